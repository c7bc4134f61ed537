"""Stops come where things are whole, and are never mistaken for the end of the work."""

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


def test_a_stop_comes_after_the_block():
    done = []

    def stopped():
        with interrupts.held(), interrupts.held():
            stop()
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_a_stop_nothing_happens():
    with interrupts.sigterm_stops_too(), interrupts.whole(), interrupts.held():
        interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_stop_comes_where_all_is_whole():
    done = []
    with interrupts.held():
        stop()
        done.append("the step")
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()  # it comes once
    assert done


def test_a_stop_can_be_taken_without_an_exception():
    with interrupts.held():
        stop()
        assert interrupts.taken()
        assert not interrupts.taken()


def keeps_its_best() -> str:
    """As a loop does; the next Ctrl-C is a new one."""
    try:
        with interrupts.held():
            stop()
            interrupts.check()
    except KeyboardInterrupt:
        return "best so far"
    return "all"


def test_a_loop_may_keep_its_best():
    assert keeps_its_best() == "best so far"
    assert keeps_its_best() == "best so far"


def test_where_a_part_is_none_no_loop_keeps_its_best():
    kept = []
    with pytest.raises(KeyboardInterrupt), interrupts.whole():
        kept.append(keeps_its_best())
    assert not kept


def test_a_stop_that_some_code_has_caught_still_ends_the_whole():
    def swallowed():
        with interrupts.whole():
            try:
                stop()
            except BaseException:
                return

    with pytest.raises(KeyboardInterrupt):
        swallowed()


def test_within_the_whole_the_best_may_count():
    def program():
        with interrupts.sigterm_stops_too(), interrupts.whole():
            with interrupts.best_counts():
                kept.append(keeps_its_best())
            assert interrupts.heard()

    kept = []
    with pytest.raises(KeyboardInterrupt):
        program()
    assert kept == ["best so far"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_programs_end_with_the_code_of_the_signal(number):
    def program():
        with interrupts.sigterm_stops_too():
            try:
                stop(number)
            except KeyboardInterrupt:
                codes.append(interrupts.exit_code())

    codes: list[int] = []
    program()
    assert codes == [128 + number]


def test_a_second_stop_waits_for_nothing(monkeypatch):
    monkeypatch.setattr(interrupts, "SAME_PRESS", 0.0)
    done = []

    def stopped():
        with interrupts.held():
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


def test_the_same_press_told_twice_is_one():
    done = []
    with interrupts.held():
        stop()
        stop(signal.SIGINT)
        done.append(interrupts.taken())
    assert done == [True]


def test_handlers_of_the_users_own_stay_in_force():
    heard = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    with interrupts.whole(), interrupts.held():
        stop()
    assert heard == [signal.SIGINT]


def long_work(told: list[str]) -> None:
    with interrupts.patient(0.05, lambda: told.append("long")):
        told.append("begun")
        time.sleep(30)


@pytest.mark.parametrize("before", [True, False])
def test_a_stop_does_not_wait_for_long_work(before):
    told: list[str] = []
    clock = threading.Timer(0.2, stop)
    with interrupts.held():
        if before:
            stop()
        else:
            clock.start()
        with pytest.raises(KeyboardInterrupt):
            long_work(told)
        assert not interrupts.taken()
    assert told == ["begun", "long"]


def test_whoever_has_stopped_does_not_wait_for_the_next_long_work():
    told: list[str] = []
    with interrupts.held():
        stop()
        assert interrupts.taken()
        with pytest.raises(KeyboardInterrupt):
            long_work(told)
    assert told == ["begun", "long"]


def test_long_work_that_loses_a_stop_is_cut_again():
    def work():
        with interrupts.patient(0.1, lambda: None):
            ctypes.CFUNCTYPE(None)(lambda: time.sleep(0.4))()
            time.sleep(30)

    begun = time.monotonic()
    with interrupts.held():
        stop()
        with pytest.raises(KeyboardInterrupt):
            work()
    assert time.monotonic() - begun < 10


def test_short_work_is_done_before_a_stop_comes():
    with interrupts.held():
        with interrupts.patient(5.0, pytest.fail):
            stop()
        assert interrupts.taken()


def test_a_stop_of_earlier_work_does_not_cut_later_work():
    assert keeps_its_best() == "best so far"
    told: list[str] = []
    with interrupts.held(), interrupts.patient(0.01, lambda: told.append("long")):
        time.sleep(0.05)
    assert told == ["long"]


@pytest.mark.parametrize("then", [None, RuntimeError("nothing was made")])
def test_a_stop_that_c_has_lost_is_raised_when_the_work_ends(then, capfd):
    """As a compiler loses it: it calls back from C, and misses what the call should have made."""

    def called():
        stop()
        time.sleep(1)

    def work():
        with interrupts.patient(5.0, pytest.fail):
            ctypes.CFUNCTYPE(None)(called)()
            if then is not None:
                raise then

    with pytest.raises(KeyboardInterrupt):
        work()
    assert capfd.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
