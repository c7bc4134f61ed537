"""Stops are raised where results are consistent, and are never taken for the end of the work."""

import ctypes
import os
import signal
import threading
import time

import pytest

from vitrail import interrupts


@pytest.fixture(autouse=True)
def pythons_own_handler():
    """A shell that runs tests in the background has them ignore Ctrl-C; here it must arrive."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def stop(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def test_a_deferred_stop_is_raised_after_the_block():
    done = []

    def stopped():
        with interrupts.defer_stop(), interrupts.defer_stop():
            stop()
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_a_stop_nothing_happens():
    with interrupts.stop_on_sigterm(), interrupts.all_or_nothing(), interrupts.defer_stop():
        interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_check_raises_a_deferred_stop_once():
    done = []
    with interrupts.defer_stop():
        stop()
        done.append("the step")
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()
    assert done


def test_a_stop_can_be_consumed_without_an_exception():
    with interrupts.defer_stop():
        stop()
        assert interrupts.consume_stop()
        assert not interrupts.consume_stop()


def returns_its_best() -> str:
    """Like a loop that catches a stop; the next Ctrl-C is a new one."""
    try:
        with interrupts.defer_stop():
            stop()
            interrupts.check()
    except KeyboardInterrupt:
        return "best so far"
    return "all"


def test_a_loop_may_return_its_best():
    assert returns_its_best() == "best so far"
    assert returns_its_best() == "best so far"


def test_all_or_nothing_lets_no_loop_return_its_best():
    kept = []
    with pytest.raises(KeyboardInterrupt), interrupts.all_or_nothing():
        kept.append(returns_its_best())
    assert not kept


def test_all_or_nothing_raises_a_stop_that_code_has_caught():
    def swallowed():
        with interrupts.all_or_nothing():
            try:
                stop()
            except BaseException:
                return

    with pytest.raises(KeyboardInterrupt):
        swallowed()


def test_allow_partial_lets_loops_return_their_best():
    def program():
        with interrupts.stop_on_sigterm(), interrupts.all_or_nothing():
            with interrupts.allow_partial():
                kept.append(returns_its_best())
            assert interrupts.stop_requested()

    kept = []
    with pytest.raises(KeyboardInterrupt):
        program()
    assert kept == ["best so far"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_programs_end_with_the_code_of_the_signal(number):
    def program():
        with interrupts.stop_on_sigterm():
            try:
                stop(number)
            except KeyboardInterrupt:
                codes.append(interrupts.exit_code())

    codes: list[int] = []
    program()
    assert codes == [128 + number]


def test_a_second_stop_is_raised_at_once(monkeypatch):
    monkeypatch.setattr(interrupts, "SAME_PRESS", 0.0)
    done = []

    def stopped():
        with interrupts.defer_stop():
            try:
                stop()
                done.append("first")
                stop()
                done.append("second")
            except KeyboardInterrupt:
                done.append("caught as by a loop")

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert done == ["first"]


def test_a_signal_forwarded_twice_counts_once():
    done = []
    with interrupts.defer_stop():
        stop()
        stop(signal.SIGINT)
        done.append(interrupts.consume_stop())
    assert done == [True]


def test_handlers_of_the_user_are_kept():
    received = []
    signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    with interrupts.all_or_nothing(), interrupts.defer_stop():
        stop()
    assert received == [signal.SIGINT]


def long_work(told: list[str]) -> None:
    with interrupts.interruptible_after(0.05, lambda: told.append("long")):
        told.append("begun")
        time.sleep(30)


@pytest.mark.parametrize("before", [True, False])
def test_a_stop_does_not_wait_for_long_work(before):
    told: list[str] = []
    clock = threading.Timer(0.2, stop)
    with interrupts.defer_stop():
        if before:
            stop()
        else:
            clock.start()
        with pytest.raises(KeyboardInterrupt):
            long_work(told)
        assert not interrupts.consume_stop()
    assert told == ["begun", "long"]


def test_a_consumed_stop_interrupts_later_long_work():
    told: list[str] = []
    with interrupts.defer_stop():
        stop()
        assert interrupts.consume_stop()
        with pytest.raises(KeyboardInterrupt):
            long_work(told)
    assert told == ["begun", "long"]


def test_long_work_that_loses_a_stop_is_interrupted_again():
    def work():
        with interrupts.interruptible_after(0.1, lambda: None):
            ctypes.CFUNCTYPE(None)(lambda: time.sleep(0.4))()
            time.sleep(30)

    begun = time.monotonic()
    with interrupts.defer_stop():
        stop()
        with pytest.raises(KeyboardInterrupt):
            work()
    assert time.monotonic() - begun < 10


def test_short_work_ends_before_a_stop_is_raised():
    with interrupts.defer_stop():
        with interrupts.interruptible_after(5.0, pytest.fail):
            stop()
        assert interrupts.consume_stop()


def test_a_stop_of_earlier_work_does_not_interrupt_later_work():
    assert returns_its_best() == "best so far"
    told: list[str] = []
    with interrupts.defer_stop(), interrupts.interruptible_after(0.01, lambda: told.append("long")):
        time.sleep(0.05)
    assert told == ["long"]


@pytest.mark.parametrize("then", [None, RuntimeError("nothing was made")])
def test_a_stop_that_c_has_lost_is_raised_when_the_work_ends(then, capfd):
    """As a compiler loses it: it calls back from C, and misses what the call should have made."""

    def called():
        stop()
        time.sleep(1)

    def work():
        with interrupts.interruptible_after(5.0, pytest.fail):
            ctypes.CFUNCTYPE(None)(called)()
            if then is not None:
                raise then

    with pytest.raises(KeyboardInterrupt):
        work()
    assert capfd.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
