# pyright: reportMissingImports=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportReturnType=false, reportIndexIssue=false, reportArgumentType=false
# (Triton comes with CUDA builds of torch, and its decorator hides the types of kernels.)
"""How fast Philox can go on this GPU: the loop of the kernels and nothing else."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from vitrail.kernels.cuda.philox import philox

_CALLS = 256  # side by side in a program
_LOOPS = 64


@triton.jit
def _bare(sink, CALLS: tl.constexpr, LOOPS: tl.constexpr):
    calls = tl.arange(0, CALLS).to(tl.uint32)
    zero = tl.zeros([CALLS], tl.uint32)
    row = zero + tl.program_id(0).to(tl.uint32)
    total = zero
    for loop in range(LOOPS):
        w0, w1, w2, w3 = philox(calls, zero + loop, row, zero, zero + 1, zero + 2)
        total ^= w0 ^ w1 ^ w2 ^ w3
    tl.store(sink + tl.program_id(0), tl.xor_sum(total).to(tl.int32))


def bare_philox(lanes: int) -> int:
    """Make about `lanes` 16-bit lanes that are thrown away; how many exactly."""
    each = 8 * _CALLS * _LOOPS
    programs = max(1, lanes // each)
    sink = torch.empty(programs, dtype=torch.int32, device="cuda")
    _bare[(programs,)](sink, _CALLS, _LOOPS, num_warps=1)
    return programs * each
