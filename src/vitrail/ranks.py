"""Several processes (ranks) on one problem, and the collectives between them.

    torchrun --nproc-per-node=4 script.py

    with joined() as world:                       # a world of one without torchrun
        run(solver, graph.shared(world), checkpoint="run.ckpt")

Each rank owns a share of the factors and their messages. Sums of messages are exact, so all ranks
have the same beliefs to the last bit, and the same as a single process.

Losing a rank, by a crash, a kill or a hang, ends the job: the remaining ranks check which ranks
respond and report the missing ones. `torchrun --max-restarts` resumes from the last checkpoint.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Any, NoReturn

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import (  # documented there, but not in its list of names
    PrefixStore,  # pyright: ignore[reportPrivateImportUsage]
    Store,  # pyright: ignore[reportPrivateImportUsage]
    rendezvous,  # pyright: ignore[reportPrivateImportUsage]
)

from vitrail.sockets import MAX_BYTES, RankSockets, connect_ranks

TIMEOUT = "VITRAIL_RANK_TIMEOUT"  # seconds that ranks wait for one another
DEFAULT_TIMEOUT = 300.0
RESPONSE_TIME = 3.0  # seconds that ranks have to answer when one is missing
STOPS = (signal.SIGINT, signal.SIGTERM)
LOCAL_SIZE = "LOCAL_WORLD_SIZE"  # where torchrun says how many ranks this machine has
NUMPY_REDUCTIONS = {
    dist.ReduceOp.SUM: np.add,
    dist.ReduceOp.MAX: np.maximum,
}


class LostRankError(RuntimeError):
    """Another rank cannot be reached any more; the message says which."""

    def __init__(self, message: str, report_here: bool) -> None:
        super().__init__(message)
        self.report_here = report_here  # whether this rank prints the error


class World:
    """The ranks of one problem, as seen by one of them.

    `bytes_sent` counts the bytes that this rank has passed to collectives.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size, self.bytes_sent = rank, size, 0

    @property
    def machines(self) -> int:
        """Number of machines that torchrun runs the ranks on."""
        return max(1, self.size // int(os.environ.get(LOCAL_SIZE, self.size)))

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which prints and writes files."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """This rank's share of `count` items: every size-th, so that shares are similar."""
        return slice(self.rank, count, self.size)

    def contiguous_share(self, count: int) -> range:
        """This rank's contiguous share of `count` items."""
        return range(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def own(self, places: Tensor) -> Tensor:
        """The indices (f,) that belong to this rank, converted to indices into its share."""
        if self.size == 1:
            return places
        return places[places % self.size == self.rank] // self.size

    def sum(self, *values: Tensor) -> tuple[Tensor, ...]:
        """Sums over all ranks, float64; exact for whole numbers and on the message lattice.

        Where all values are int64, so are the sums.
        """
        return self._reduced(values, dist.ReduceOp.SUM)

    def max(self, *values: Tensor) -> tuple[Tensor, ...]:
        """Largest values over all ranks, float64."""
        return self._reduced(values, dist.ReduceOp.MAX)

    def any(self, values: Tensor) -> Tensor:
        """Logical or over all ranks."""
        if self.size == 1:
            return values
        flags = values.to(device="cpu", dtype=torch.uint8).contiguous()
        self._all_reduce(flags, dist.ReduceOp.MAX)
        return flags.bool().to(values.device)

    def gather(self, part: Tensor) -> Tensor | None:
        """The shares (f, …) of all ranks as one tensor, at rank 0; None elsewhere."""
        if self.size == 1:
            return part
        part = part.detach().cpu().contiguous()
        (total,) = self.sum(torch.tensor(float(len(part))))
        count = int(total)
        if not self.first:
            self._run_collective(lambda: dist.send(part, 0))
            self.bytes_sent += part.nbytes
            return None
        whole = part.new_empty((count, *part.shape[1:]))
        whole[self.share(count)] = part
        for rank in range(1, self.size):
            theirs = slice(rank, count, self.size)
            buffer = torch.empty_like(whole[theirs], memory_format=torch.contiguous_format)
            self._run_collective(lambda buffer=buffer, rank=rank: dist.recv(buffer, rank))
            whole[theirs] = buffer
        return whole

    def all_gather(self, part: Tensor) -> list[Tensor]:
        """The parts (f, …) of all ranks, rank by rank, at every rank; lengths may differ."""
        if self.size == 1:
            return [part]
        mine = torch.zeros(self.size, dtype=torch.int64)
        mine[self.rank] = len(part)
        lengths = self.sum(mine)[0].tolist()
        padded = part.new_zeros((max(lengths), *part.shape[1:]))
        padded[: len(part)] = part
        buffer = [torch.empty_like(padded) for _ in lengths]
        self.bytes_sent += padded.nbytes
        self._run_collective(lambda: dist.all_gather(buffer, padded))
        return [theirs[:length] for theirs, length in zip(buffer, lengths, strict=True)]

    def all_gather_objects(self, thing: Any) -> list[Any]:
        """The objects of all ranks, at every rank; for small, trusted objects."""
        things = [thing] * self.size
        if self.size > 1:
            self._run_collective(lambda: dist.all_gather_object(things, thing))
        return things

    def broadcast(self, text: str) -> str:
        """The text of rank 0, at every rank."""
        return self.all_gather_objects(text)[0]

    def _reduced(self, values: tuple[Tensor, ...], how: Any) -> tuple[Tensor, ...]:
        if self.size == 1:
            return values
        place, whole = values[0].device, all(value.dtype == torch.int64 for value in values)
        kind = torch.int64 if whole else torch.float64
        flat = torch.cat([value.flatten().to(place, kind) for value in values])
        self._all_reduce(flat, how)
        parts = flat.split([value.numel() for value in values])
        return tuple(
            part.view(value.shape).to(value.device)
            for part, value in zip(parts, values, strict=True)
        )

    def _all_reduce(self, values: Tensor, how: Any) -> None:
        self.bytes_sent += values.nbytes
        sockets = None if _membership is None else _membership.sockets
        if sockets is None or values.nbytes > MAX_BYTES or values.device.type != "cpu":
            self._run_collective(lambda: dist.all_reduce(values, op=how))
        else:
            self._run_collective(lambda: sockets.combine(values.numpy(), NUMPY_REDUCTIONS[how]))

    def _run_collective(self, collective: Callable[[], Any]) -> None:
        """Run a collective; report the missing ranks if it fails."""
        if _membership is None:
            raise RuntimeError("collectives work only inside the block of `joined()`")
        _membership.check()
        try:
            collective()
        except (RuntimeError, OSError) as error:
            _membership.fail(error)


ALONE = World()


def current_world() -> World:
    """The world that this process has joined; a world of one without `joined`."""
    return ALONE if _membership is None else _membership.world


def launched_by_torchrun() -> bool:
    """Whether torchrun has started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


class _Membership:
    """Membership of this process in a world, inside the block of `joined`."""

    def __init__(self, world: World, store: Store) -> None:
        self.world, self.store = world, store
        self.sockets: RankSockets | None = None  # where all ranks are on this machine
        self.stopped = 0  # number of the signal received
        self.leaving = False  # whether ranks are being checked

    def check(self) -> None:
        """Exit after a stop signal: other ranks may have ended, so no collective may start."""
        if not self.stopped:
            return
        if self.stopped == signal.SIGTERM and not self.leaving:
            self.leaving = True
            self._report_absent()
        sys.exit(128 + self.stopped)

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-C or SIGTERM: exit, after reporting ranks that do not respond."""
        self.stopped = number
        if not self.leaving:
            self.check()

    def fail(self, error: Exception) -> NoReturn:
        """A collective failed: report the ranks that do not respond."""
        self.leaving = True
        self.leave()
        absent, reports = self._absent()
        waited = "did not answer within the time that ranks wait for one another"
        how = waited if "imed out" in str(error) else "ended or cannot be reached"
        raise LostRankError(
            f"rank {absent or 'unknown'} of {self.world.size} {how}, so the job ends; with a "
            "checkpoint, the same command resumes from it",
            report_here=reports,
        ) from error

    def _report_absent(self) -> None:
        """Report ranks that do not respond: a launcher ends all others when one is lost."""
        absent, reports = self._absent()
        if absent and reports and sys.__stderr__ is not None:
            sys.__stderr__.write(
                f"error: stopped by SIGTERM, while rank {absent} of {self.world.size} does not "
                "answer\n"
            )

    def leave(self) -> None:
        """Close the sockets, so that ranks waiting for this one get an error."""
        if self.sockets is not None:
            self.sockets.close()

    def _absent(self) -> tuple[str, bool]:
        """The ranks that do not respond, found through torchrun's store.

        The second value is whether this rank, the first that responds, prints the report.
        """
        world, end = self.world, time.monotonic() + RESPONSE_TIME
        absent = [rank for rank in range(world.size) if rank != world.rank]
        try:
            self.store.set(f"vitrail/present/{world.rank}", "")
            while absent and time.monotonic() < end:
                absent = [r for r in absent if not self.store.check([f"vitrail/present/{r}"])]
                time.sleep(0.02)
        except RuntimeError:  # the machine of the store is lost, so no rank can be checked
            pass
        reports = set(range(world.rank)) <= set(absent)
        return ", ".join(map(str, absent)), reports


_membership: _Membership | None = None


@contextmanager
def joined(timeout: float | None = None) -> Iterator[World]:
    """The world that torchrun has started; a world of one without it.

    Args:
        timeout: Seconds after which a rank that hangs counts as lost; None takes those of
            VITRAIL_RANK_TIMEOUT, or 300.

    Yields:
        The world, for `FactorGraph.shared`. In the block SIGTERM and Ctrl-C end the process, with
        exit codes 143 and 130: no collective is entered any more, and the last checkpoint stays.
        SIGTERM first names ranks that do not answer within 3 seconds.

    Examples:
        >>> with joined() as world:
        ...     world.size
        1
    """
    global _membership
    if not launched_by_torchrun() or _membership is not None:
        yield current_world()
        return
    wait = timedelta(seconds=_seconds(timeout))
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    store, rank, size = next(iter(rendezvous("env://", timeout=wait)))
    # keys from before a restart must not be read after it
    store = PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)
    member = _Membership(World(rank, size), store)
    main = threading.current_thread() is threading.main_thread()
    before = [signal.signal(number, member.stop) for number in STOPS] if main else []
    try:
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if cuda else "gloo",
            store=store,
            rank=rank,
            world_size=size,
            timeout=wait,
        )
        if os.environ.get(LOCAL_SIZE) == str(size):
            member.sockets = connect_ranks(rank, size, store, wait)
        _membership = member
        yield member.world
    finally:
        _membership = None
        member.leave()
        if dist.is_initialized():
            dist.destroy_process_group()
        for number, handler in zip(STOPS, before, strict=False):
            signal.signal(number, handler)


def _seconds(timeout: float | None) -> float:
    text = os.environ.get(TIMEOUT, str(DEFAULT_TIMEOUT)) if timeout is None else str(timeout)
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"{TIMEOUT} is a number of seconds above 0, got {text!r}")
    return value
