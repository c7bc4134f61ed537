"""Rows shared out among threads.

Compiled kernels let go of the interpreter's lock, so plain Python threads run them side by side;
no threading layer of the compiler is needed, and any number of callers may be at work at once.
`torch.set_num_threads` decides how many threads one call takes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from types import CodeType

import torch

from vitrail.interrupts import POOL

# Waking a thread costs some 50 µs, as much as drawing this many lanes.
WORK_PER_THREAD = 200_000
SHARES = 8  # pieces a thread takes one by one, so that a slow core does not hold up the others
PIECE = 2_000_000  # lanes at least, where there are several: Python's lock changes hands for each

_pool: ThreadPoolExecutor | None = None
_called: set[CodeType] = set()


def _forget_pool() -> None:
    global _pool
    _pool = None  # its threads did not come along into the forked process


os.register_at_fork(after_in_child=_forget_pool)


def over_rows(kernel: Callable[[int, int], None], rows: int, work_per_row: int) -> None:
    """Call kernel(begin, end) until all rows are covered; work is counted in lanes drawn."""
    global _pool
    work_in_all = rows * work_per_row
    threads = min(torch.get_num_threads(), rows, 1 + work_in_all // WORK_PER_THREAD)
    if threads <= 1:
        kernel(0, rows)
        return
    shares = max(1, min(SHARES, work_in_all // (threads * PIECE)))
    size = -(-rows // (threads * shares))
    first = 0
    if kernel.__code__ not in _called:  # the first call compiles, in the thread that can be stopped
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
