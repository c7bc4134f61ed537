"""Available memory, and limits on the memory of files."""

from __future__ import annotations

from pathlib import Path

import psutil

try:
    import resource
except ImportError:  # not a Unix
    resource = None

from vitrail.errors import TableTooLargeError

# Compressed files may be much smaller than their contents. The unpacked size is limited relative to
# the file, so that a small file, damaged or malicious, cannot use all of the memory.
MIN_UNPACKED_LIMIT = 1 << 29
MAX_UNPACKED_RATIO = 200

# Limit and usage of a container in Linux (cgroups v2, v1), which psutil does not read.
CGROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def available_memory() -> int:
    """Bytes that can be allocated without swapping."""
    free = [psutil.virtual_memory().available]
    if resource is not None:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]  # what `ulimit -v` sets
        if limit != resource.RLIM_INFINITY:
            free.append(max(0, limit - psutil.Process().memory_info().vms))
    for folder, limit, used in CGROUPS:
        try:
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            # cached pages of files can be released
            taken = int((folder / used).read_text()) - int(stat["inactive_file"])
            free.append(max(0, int((folder / limit).read_text()) - taken))
        except (OSError, ValueError, KeyError):  # no such group, or its limit is "max"
            pass
    return min(free)


def in_gigabytes(amount: int) -> str:
    """The amount as text, such as `12.3 GB`."""
    return f"{amount / 1e9:.1f} GB"


def most_bytes(file_bytes: int) -> int:
    """The limit of the unpacked size of a file of that size."""
    return max(MIN_UNPACKED_LIMIT, MAX_UNPACKED_RATIO * file_bytes)


def check_size(title: str, what: str, needed: int, file_bytes: int | None, held: int = 0) -> None:
    """Raise a TableTooLargeError if `what` needs more bytes than are available or allowed.

    file_bytes  size of the file, None if unknown
    held        bytes of those needed that are already allocated
    """
    if file_bytes is not None and needed > most_bytes(file_bytes):
        raise TableTooLargeError(
            f"{title}: {file_bytes:,} bytes unpack to {what} ({in_gigabytes(needed)}), which is "
            f"over {MAX_UNPACKED_RATIO} times their size; check the file, or save it unpacked"
        )
    free = available_memory()
    if needed - held > free:
        raise TableTooLargeError(
            f"{title}: {what} need {in_gigabytes(needed)} of memory to load, "
            f"{in_gigabytes(free)} is available; use a sample of the rows or fewer columns"
        )
