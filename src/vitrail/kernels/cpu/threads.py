"""Division of rows among threads.

Compiled kernels release the interpreter's lock, so plain Python threads run them in parallel; the
compiler's threading layers are not needed, and there may be any number of concurrent callers.
`torch.set_num_threads` limits the threads of one call.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from types import CodeType

import torch

from vitrail.interrupts import POOL

# Waking a thread takes about 50 µs, as long as drawing this many lanes.
WORK_PER_THREAD = 200_000
SHARES = 8  # pieces per thread, so that a slow core does not delay the others
PIECE = 2_000_000  # lanes per piece, at least: each piece acquires Python's lock

_pool: ThreadPoolExecutor | None = None
_called: set[CodeType] = set()


def _forget_pool() -> None:
    global _pool
    _pool = None  # a forked process has none of its threads


os.register_at_fork(after_in_child=_forget_pool)


def over_rows(kernel: Callable[[int, int], None], rows: int, work_per_row: int) -> None:
    """Call kernel(begin, end) on ranges that cover all rows; work is counted in lanes drawn."""
    global _pool
    total_work = rows * work_per_row
    threads = min(torch.get_num_threads(), rows, 1 + total_work // WORK_PER_THREAD)
    if threads <= 1:
        kernel(0, rows)
        return
    shares = max(1, min(SHARES, total_work // (threads * PIECE)))
    size = -(-rows // (threads * shares))
    first = 0
    if kernel.__code__ not in _called:  # the first call compiles, interruptibly
        kernel(0, size)
        _called.add(kernel.__code__)
        first = size
    pieces = count(first, size)

    def work() -> None:
        for begin in pieces:
            if begin >= rows:
                return
            kernel(begin, min(begin + size, rows))

    if _pool is None:
        _pool = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix=POOL)
    helpers = [_pool.submit(work) for _ in range(threads - 1)]
    work()
    for helper in helpers:
        helper.result()
