"""Ctrl-C and SIGTERM, handled where results stay consistent. The policy is docs/reliability.md.

A stop is raised as KeyboardInterrupt, which a loop may catch to return its best result so far.
Context managers change that:

    defer_stop()           a stop is raised at the end of the block, or earlier by `check`
    all_or_nothing()       partial results are worthless: a stop is raised at once, and no loop may
                           catch it to return its best result so far
    allow_partial()        within `all_or_nothing`: loops may return their best result again
    interruptible_after()  within `defer_stop`: work that may be interrupted after some seconds
    stop_on_sigterm()      SIGTERM is a stop like Ctrl-C; for programs, not for parts of them

A second stop is raised at once, and no loop may catch it. Signals reach the main thread only, and
only where Python's own handlers are installed; elsewhere the blocks do nothing.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

RETRY = 0.1  # seconds between attempts to interrupt work that ignored a stop
SAME_PRESS = 0.5  # seconds; launchers forward a signal that their process group got already
_DEFAULT = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}

POOL = "vitrail"  # prefix of the names of worker threads


class ForcedStop(BaseException):
    """A stop that no loop may catch; becomes KeyboardInterrupt where its block ends."""


@dataclass
class _Stops:
    """The signal handler, and the signals it received since it was installed."""

    deferring: int = 0  # number of open `defer_stop` blocks
    all_or_nothing: bool = False  # whether partial results are worthless
    pending: bool = False  # whether a stop is deferred
    number: int = 0  # of the last signal; 0 for none yet
    first: float = 0.0  # time of the first signal
    over: threading.Event | None = None  # end of work that has exceeded its time
    nudged: bool = False  # whether the next signal is our own, sent to interrupt that work
    raised: int = 0  # number of stops raised so far
    last: type[BaseException] = KeyboardInterrupt  # the last one raised

    def __call__(self, number: int, frame: FrameType | None) -> None:
        nudged, self.nudged = self.nudged, False
        overdue = self.over is not None and not self.over.is_set()
        if nudged and not overdue:
            return  # the work has ended in the meantime
        again = self.number > 0 and not nudged
        if again and time.monotonic() - self.first < SAME_PRESS:
            return
        self.first = self.first or time.monotonic()
        self.number = number
        if again or self.all_or_nothing:
            self.pending = False
            self._raise(ForcedStop)
        self.pending = self.deferring > 0 and not overdue
        if not self.pending:
            self._raise(KeyboardInterrupt)

    def _raise(self, stop: type[BaseException]) -> NoReturn:
        self.raised, self.last = self.raised + 1, stop
        raise stop


_stops = _Stops()


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def _handling(*numbers: signal.Signals) -> Iterator[None]:
    """Install the handler; its record is kept until the next outermost block begins."""
    if not _in_main_thread():
        yield
        return
    installed = [number for number in numbers if signal.getsignal(number) is _DEFAULT[number]]
    outermost = _stops not in map(signal.getsignal, _DEFAULT)
    if outermost:
        _stops.pending, _stops.number, _stops.first = False, 0, 0.0
    try:
        for number in installed:
            signal.signal(number, _stops)
        yield
    except ForcedStop as stop:
        if outermost:
            raise KeyboardInterrupt(*stop.args) from None
        raise
    finally:
        for number in installed:
            signal.signal(number, _DEFAULT[number])
        if outermost:
            _stops.pending = False


def stop_on_sigterm() -> AbstractContextManager[None]:
    """Treat SIGTERM as a stop, like Ctrl-C."""
    return _handling(signal.SIGINT, signal.SIGTERM)


@contextmanager
def defer_stop() -> Iterator[None]:
    """Defer a stop to the end of the outermost such block, or to `check` or `consume_stop`."""
    if not _in_main_thread():
        yield
        return
    with _handling(signal.SIGINT):
        _stops.deferring += 1
        try:
            yield
        finally:
            _stops.deferring -= 1
        if not _stops.deferring:
            check()


def stop_pending() -> bool:
    """Whether a stop is deferred; safe to call from any thread."""
    return _stops.pending


def check() -> None:
    """Raise a deferred stop: call it where results are consistent."""
    if consume_stop():
        raise KeyboardInterrupt


def consume_stop() -> bool:
    """Whether a stop was deferred; it is consumed, and will not be raised."""
    if not (_stops.pending and _in_main_thread()):
        return False
    _stops.pending = False
    return True


def stop_requested() -> bool:
    """Whether any stop was received since the outermost block began."""
    return _stops.number > 0 and _stops in map(signal.getsignal, _DEFAULT)


@contextmanager
def interruptible_after(seconds: float, on_timeout: Callable[[], object]) -> Iterator[None]:
    """Run work without side effects, which a stop may interrupt after `seconds`.

    Once they have passed, `on_timeout` is called and stops are raised at once; so is a stop that
    was received before, even if it was consumed. The work may call back from C, where exceptions
    are lost: the stop is then raised when the work ends.
    """
    in_main, before, over = _in_main_thread(), _stops.raised, threading.Event()

    def watch() -> None:
        if over.wait(seconds):
            return
        on_timeout()
        if in_main:
            _stops.over = over
        while in_main and not over.wait(RETRY):
            if stop_requested():
                _stops.nudged = True
                signal.pthread_kill(threading.main_thread().ident or 0, _stops.number)

    with _handling(signal.SIGINT), _silent_callbacks() if in_main else nullcontext():
        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        except Exception:
            if not in_main or _stops.raised == before:
                raise
        finally:
            try:
                over.set()
            finally:
                over.set()  # a stop may have been raised by the line before
        if in_main and _stops.raised > before:
            raise _stops.last


@contextmanager
def _silent_callbacks() -> Iterator[None]:
    """Print nothing about a stop that is raised in a callback from C."""
    default = sys.unraisablehook

    def hook(lost: sys.UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt | ForcedStop):
            default(lost)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = default


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """Partial results are worthless: a stop ends the block with KeyboardInterrupt."""
    with _handling(signal.SIGINT), allow_partial(False):
        before = _stops.number
        try:
            yield
        except ForcedStop as stop:
            raise KeyboardInterrupt(*stop.args) from None
        if _stops.number and not before and _in_main_thread():
            raise KeyboardInterrupt  # code in the block has caught it


@contextmanager
def allow_partial(allowed: bool = True) -> Iterator[None]:
    """Within `all_or_nothing`: loops may return their best result so far again."""
    before, _stops.all_or_nothing = _stops.all_or_nothing, not allowed
    try:
        yield
    finally:
        _stops.all_or_nothing = before


def exit_code() -> int:
    """The exit code of a stopped program, as in shells: 128 plus the signal number."""
    return 128 + (_stops.number or signal.SIGINT)
