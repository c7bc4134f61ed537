"""Ctrl-C waits for the end of a step."""

import os
import signal

import pytest

from vitrail.solvers.interrupts import interrupts_wait


@pytest.fixture(autouse=True)
def pythons_own_handler():
    """A shell that runs tests in the background has them ignore Ctrl-C; here it must arrive."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_comes_after_the_block():
    done = []

    def interrupted():
        with interrupts_wait():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_an_interrupt_nothing_happens():
    with interrupts_wait():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
