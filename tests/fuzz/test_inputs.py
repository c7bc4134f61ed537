"""Any model, checkpoint, setting or argument is used, or refused in a sentence."""

import pytest
from bounded import calls_in_child
from fuzz.inputs import MAKERS
from fuzz.seeds import fresh_seeds

SHORT, LONG = 15, 1_000  # of each kind
RARER = {"rule": 10}  # kinds of which only every so many seeds are taken: a whole training each
AT_ONCE = 250  # of a child: what one call leaks shows in the next


def check(seeds: range) -> None:
    cases = [(kind, seed) for kind in MAKERS for seed in seeds[:: RARER.get(kind, 1)]]
    done = dict.fromkeys(MAKERS, 0)
    for first in range(0, len(cases), AT_ONCE):
        some = cases[first : first + AT_ONCE]
        for case, outcome in zip(some, calls_in_child("fuzz.inputs:use", some), strict=True):
            assert outcome.error is None, (case, outcome)
            done[case[0]] += not str(outcome.result).startswith("refused")
    assert all(done.values()), f"nothing was sound: the makers are broken: {done}"


def test_some_inputs_are_used_or_refused():
    check(range(SHORT))


@pytest.mark.long
def test_many_inputs_are_used_or_refused():
    check(fresh_seeds(LONG))
