"""Ctrl-C and SIGTERM: taken where they leave things whole. The policy is docs/reliability.md.

A stop is raised as KeyboardInterrupt, which a loop may catch to give its best so far. Blocks say
more:

    held()               a stop waits until the block is done, or until `check` finds all whole
    whole()              a part of a result is none: a stop waits for nothing, and passes by every
                         loop that keeps its best
    best_counts()        the other way round, within `whole`
    patient()            within `held`: work that may be cut anywhere, after some seconds
    sigterm_stops_too()  SIGTERM is a stop as Ctrl-C is; for programs, not for parts of them

A second stop waits for nothing and passes by every loop. Signals reach the main thread only, and
only where Python's own handlers are in force; elsewhere the blocks do nothing.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

AGAIN = 0.1  # seconds after which work is cut again that has lost a stop
SAME_PRESS = 0.5  # seconds; launchers pass on what their whole group has got already
_USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}

POOL = "vitrail"  # how the names of threads begin that rows are shared out to


class PassingBy(BaseException):
    """A stop that no loop may keep its best at; KeyboardInterrupt again where its block ends."""


@dataclass
class _Stops:
    """The one handler, and what it has heard since it was last put in force."""

    holding: int = 0  # blocks that hold back
    only_whole: bool = False  # whether a part of a result is none
    waiting: bool = False  # whether a stop is held back
    number: int = 0  # of the last signal; 0 for none yet
    first: float = 0.0  # when the first came, by the clock
    over: threading.Event | None = None  # of work that has taken longer than a stop waits
    nudged: bool = False  # whether the next signal is our own, to have it cut
    raised: int = 0  # how often it has raised, ever
    last: type[BaseException] = KeyboardInterrupt  # what it raised

    def __call__(self, number: int, frame: FrameType | None) -> None:
        nudged, self.nudged = self.nudged, False
        in_vain = self.over is not None and not self.over.is_set()
        if nudged and not in_vain:
            return  # the work was done in the meantime
        again = self.number > 0 and not nudged
        if again and time.monotonic() - self.first < SAME_PRESS:
            return
        self.first = self.first or time.monotonic()
        self.number = number
        if again or self.only_whole:
            self.waiting = False
            self._raise(PassingBy)
        self.waiting = self.holding > 0 and not in_vain
        if not self.waiting:
            self._raise(KeyboardInterrupt)

    def _raise(self, stop: type[BaseException]) -> NoReturn:
        self.raised, self.last = self.raised + 1, stop
        raise stop

    def forget(self) -> None:
        self.waiting, self.number, self.first = False, 0, 0.0


_stops = _Stops()


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _in_force() -> bool:
    return any(signal.getsignal(number) is _stops for number in _USUAL)


@contextmanager
def _listening(*numbers: signal.Signals) -> Iterator[None]:
    """Our handler in force; what it has heard is known until the next outermost block begins."""
    if not _in_main_thread():
        yield
        return
    mine = [number for number in numbers if signal.getsignal(number) is _USUAL[number]]
    outermost = not _in_force()
    if outermost:
        _stops.forget()
    try:
        for number in mine:
            signal.signal(number, _stops)
        yield
    except PassingBy as stop:
        if outermost:
            raise KeyboardInterrupt(*stop.args) from None
        raise
    finally:
        for number in mine:
            signal.signal(number, _USUAL[number])
        if outermost:
            _stops.waiting = False


@contextmanager
def sigterm_stops_too() -> Iterator[None]:
    """SIGTERM is a stop as Ctrl-C is."""
    with _listening(signal.SIGINT, signal.SIGTERM):
        yield


@contextmanager
def held() -> Iterator[None]:
    """Hold back a stop until the outermost such block is done, or until `check` or `taken`."""
    if not _in_main_thread():
        yield
        return
    with _listening(signal.SIGINT):
        _stops.holding += 1
        try:
            yield
        finally:
            _stops.holding -= 1
        if not _stops.holding:
            check()


def waiting() -> bool:
    """Whether a stop is held back, for work that may be cut anywhere; any thread may ask."""
    return _stops.waiting


def check() -> None:
    """Raise a stop that is held back: a place where everything is whole."""
    if taken():
        raise KeyboardInterrupt


def taken() -> bool:
    """Whether a stop was held back; by that it is taken, and raised no more."""
    if not (_stops.waiting and _in_main_thread()):
        return False
    _stops.waiting = False
    return True


def heard() -> bool:
    """Whether any stop has come since the outermost block began."""
    return _stops.number > 0 and _in_force()


@contextmanager
def patient(seconds: float, afterwards: Callable[[], object]) -> Iterator[None]:
    """Work that leaves nothing behind where it is cut: a stop waits for it only so long.

    If it takes longer, `afterwards` is called, and stops are raised at once. So is one that was
    heard before, even if it was taken: whoever has stopped does not wait for long work. The work
    may call back from C, where no exception gets through: it is raised when the work ends.
    """
    mine, before, over = _in_main_thread(), _stops.raised, threading.Event()

    def watch() -> None:
        if over.wait(seconds):
            return
        afterwards()
        if mine:
            _stops.over = over
        while mine and not over.wait(AGAIN):
            if heard():
                _stops.nudged = True
                signal.pthread_kill(threading.main_thread().ident or 0, _stops.number)

    with _listening(signal.SIGINT), _callbacks_silent() if mine else nullcontext():
        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        except Exception:
            if not mine or _stops.raised == before:
                raise
        finally:
            try:
                over.set()
            finally:
                over.set()  # a stop may have come in the line before
        if mine and _stops.raised > before:
            raise _stops.last


@contextmanager
def _callbacks_silent() -> Iterator[None]:
    """Nothing is printed of a stop that is raised where C calls back."""
    usual = sys.unraisablehook

    def hook(lost: sys.UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt | PassingBy):
            usual(lost)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = usual


@contextmanager
def whole() -> Iterator[None]:
    """A part of a result is none: a stop ends the block with KeyboardInterrupt."""
    with _listening(signal.SIGINT), _only_whole(True):
        before = _stops.number
        try:
            yield
        except PassingBy as stop:
            raise KeyboardInterrupt(*stop.args) from None
        if _stops.number and not before and _in_main_thread():
            raise KeyboardInterrupt  # some code in the block has caught it


@contextmanager
def best_counts() -> Iterator[None]:
    """Within `whole`: loops may keep their best so far again."""
    with _only_whole(False):
        yield


@contextmanager
def _only_whole(value: bool) -> Iterator[None]:
    before, _stops.only_whole = _stops.only_whole, value
    try:
        yield
    finally:
        _stops.only_whole = before


def exit_code() -> int:
    """Of a program that was stopped, as shells count: 128 and the signal's number."""
    return 128 + (_stops.number or signal.SIGINT)
