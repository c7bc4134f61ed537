"""How much memory this process may still take, and how much a file may ask for."""

from __future__ import annotations

from pathlib import Path

import psutil

try:
    import resource
except ImportError:  # not a Unix
    resource = None

from vitrail.errors import TableTooLargeError

# A packed file may hold anything: a megabyte of zeros is a kilobyte. What a file unpacks to is
# bounded by its size, so that a small one, damaged or meant badly, cannot take all of the memory.
ANY_FILE_MAY_TAKE = 1 << 29
TIMES_ITS_SIZE = 200

# A container's limit and use, where Linux says them (v2, v1); psutil does not read them.
CGROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def available_memory() -> int:
    """Bytes that can still be taken without swapping."""
    free = [psutil.virtual_memory().available]
    if resource is not None:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]  # what `ulimit -v` sets
        if limit != resource.RLIM_INFINITY:
            free.append(max(0, limit - psutil.Process().memory_info().vms))
    for folder, limit, used in CGROUPS:
        try:
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            # cached pages of files that were read can be given up
            taken = int((folder / used).read_text()) - int(stat["inactive_file"])
            free.append(max(0, int((folder / limit).read_text()) - taken))
        except (OSError, ValueError, KeyError):  # no such group, or its limit is "max"
            pass
    return min(free)


def in_gigabytes(amount: int) -> str:
    """`12.3 GB`, as people read it."""
    return f"{amount / 1e9:.1f} GB"


def most_bytes(file_bytes: int) -> int:
    """What a file of that size may unpack to."""
    return max(ANY_FILE_MAY_TAKE, TIMES_ITS_SIZE * file_bytes)


def check_size(title: str, what: str, needed: int, file_bytes: int | None, held: int = 0) -> None:
    """Raise a TableTooLargeError where loading `what` needs more bytes than there are or may be.

    file_bytes  the size of the file, None where nobody knows
    held        how many of the bytes needed are taken already
    """
    if file_bytes is not None and needed > most_bytes(file_bytes):
        raise TableTooLargeError(
            f"{title}: {file_bytes:,} bytes unpack to {what} ({in_gigabytes(needed)}), which is "
            f"over {TIMES_ITS_SIZE} times their size; check the file, or save it unpacked"
        )
    free = available_memory()
    if needed - held > free:
        raise TableTooLargeError(
            f"{title}: {what} need {in_gigabytes(needed)} of memory to load, "
            f"{in_gigabytes(free)} is available; use a sample of the rows or fewer columns"
        )
