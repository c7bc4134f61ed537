"""How much memory this process may still take."""

from __future__ import annotations

from pathlib import Path

# Where Linux says it: the machine's free memory, and a container's limit and use (v2, v1).
MEMINFO = Path("/proc/meminfo")
CGROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def available_memory() -> int | None:
    """Bytes that can still be taken without swapping; None where the system does not say."""
    free = [_free_in_machine()]
    free += [_free_in_group(*group) for group in CGROUPS]
    known = [amount for amount in free if amount is not None]
    return min(known, default=None)


def in_gigabytes(amount: int) -> str:
    """`12.3 GB`, as people read it."""
    return f"{amount / 1e9:.1f} GB"


def _free_in_machine() -> int | None:
    try:
        return _field(MEMINFO, "MemAvailable:") * 1024
    except (OSError, ValueError):
        return None


def _free_in_group(folder: Path, limit: str, used: str) -> int | None:
    """What a group may still take; cached pages of files it has read can be given up."""
    try:
        taken = int((folder / used).read_text()) - _field(folder / "memory.stat", "inactive_file")
        return max(0, int((folder / limit).read_text()) - taken)
    except (OSError, ValueError):  # no such group, or its limit is "max"
        return None


def _field(path: Path, name: str) -> int:
    """The number behind a name in a file of names and numbers."""
    for line in path.read_text().splitlines():
        words = line.split()
        if words and words[0] == name:
            return int(words[1])
    raise ValueError(f"{path} has no {name}")
