"""Fingerprints tell code and data apart, and are the same in every process."""

import functools
import math
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from vitrail.fingerprint import FingerprintError, fingerprint

SCALE = 2.0
TABLE = torch.arange(4.0)


def helper(x):
    return x + SCALE


def deep(x):
    return helper(x) * TABLE[0]


def closing(number, data):
    return lambda states: states.sum() * number + data.sum()


class Scaled:
    """A callable object."""

    def __init__(self, by):
        self.by = by
        self.me = self

    def __call__(self, x):
        return self.by * x

    def other(self, x):
        return self.by + x


@dataclass(frozen=True)
class Rule:
    rate: float

    def __call__(self, step):
        return self.rate * step


class Net(nn.Module):
    def __init__(self, shift=0.5, buffer=1.0):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(3, 2)
        self.shift = shift
        self.register_buffer("level", torch.tensor(buffer))

    def forward(self, x):
        return self.first(x) + self.shift * self.get_buffer("level")


def changed_weight():
    net = Net()
    with torch.no_grad():
        net.first.weight[0, 0] += 1
    return net


def hooked():
    net = Net()
    net.register_forward_hook(lambda module, given, output: torch.as_tensor(output) * 2)
    return net


# each pair differs in one thing, which a name or a repr does not show
APART = {
    "tensors": (torch.zeros(3), torch.tensor([0.0, 0.0, 1.0])),
    "kinds of numbers": (torch.zeros(3), torch.zeros(3, dtype=torch.float64)),
    "shapes": (torch.zeros(2, 3), torch.zeros(3, 2)),
    "arrays": (np.arange(3), np.arange(3) + 1),
    "where parts end": (("ab", "c"), ("a", "bc")),
    "nesting": (((1, 2), 3), (1, (2, 3))),
    "dictionaries": ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
    "true and one": (True, 1),
    "constants in code": (lambda x: x + 1, lambda x: x + 2),
    "operators": (lambda x: x + 1, lambda x: x - 1),
    "calls by name": (lambda x: torch.sin(x), lambda x: torch.cos(x)),
    "nested functions": (lambda x: (lambda y: y + 1)(x), lambda x: (lambda y: y + 2)(x)),
    "closed numbers": (closing(1, TABLE), closing(2, TABLE)),
    "closed data": (closing(1, TABLE), closing(1, TABLE + 1)),
    "defaults": (lambda x, by=1: x * by, lambda x, by=2: x * by),
    "keyword defaults": (lambda x, *, by=TABLE: x, lambda x, *, by=TABLE + 1: x),
    "partial functions": (functools.partial(helper, x=1), functools.partial(helper, x=2)),
    "bound methods": (Scaled(2).other, Scaled(3).other),
    "methods of one object": (Scaled(2).other, Scaled(2).__call__),
    "callable objects": (Scaled(2), Scaled(3)),
    "settings": (Rule(0.1), Rule(0.2)),
    "built-in functions": (math.sin, math.cos),
    "methods of tensors": (TABLE.add, (TABLE + 1).add),
    "ufuncs": (np.add, np.multiply),
    "cached functions": (functools.lru_cache(helper), functools.lru_cache(deep)),
    "generators of draws": (np.random.default_rng(1), np.random.default_rng(2)),
    "modules' weights": (Net(), changed_weight()),
    "modules' buffers": (Net(buffer=1.0), Net(buffer=2.0)),
    "modules' plain constants": (Net(shift=0.5), Net(shift=0.25)),
    "modules' modes": (Net(), Net().eval()),
    "modules' hooks": (Net(), hooked()),
    "types": (Rule, Scaled),
}


@pytest.mark.parametrize("case", APART)
def test_what_would_run_otherwise_has_another_fingerprint(case):
    one, other = APART[case]
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)


@pytest.mark.parametrize("make", [Net, lambda: Scaled(2), lambda: closing(1, TABLE.clone())])
def test_what_is_made_anew_alike_has_the_same(make):
    assert fingerprint(make()) == fingerprint(make())


@pytest.mark.parametrize(("name", "value"), [("SCALE", 3.0), ("TABLE", torch.ones(4))])
def test_data_that_a_function_reaches_by_name_counts(monkeypatch, name, value):
    """Also through the functions that it calls."""
    before = fingerprint(deep)
    monkeypatch.setitem(globals(), name, value)
    assert fingerprint(deep) != before


def test_a_changed_method_counts():
    parts = [
        f"class Own:\n    def __call__(self, x):\n        return x {op} 1\n" for op in ("+", "-")
    ]
    made = []
    for part in parts:
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(part, space)  # as typed at a prompt
        made.append(fingerprint(space["Own"]()))
    assert made[0] != made[1]


@pytest.mark.parametrize(
    "value",
    [threading.Lock(), (number for number in range(3)), np.frompyfunc(helper, 1, 1)],
    ids=["lock", "generator", "own ufunc"],
)
def test_objects_without_comparable_contents_are_refused(value):
    with pytest.raises(FingerprintError, match="no contents that can be compared"):
        fingerprint(lambda x: value)


def test_a_list_that_holds_itself_is_refused():
    endless: list = []
    endless.append(endless)
    with pytest.raises(FingerprintError, match="contains itself"):
        fingerprint(endless)


def test_processes_and_hash_seeds_agree():
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import test_fingerprint as cases\n"
        "from vitrail.fingerprint import fingerprint\n"
        "known = {'zebra', 'ant', 'cow'}\n"
        "print(fingerprint(*cases.APART.values(), known, lambda x: x in {'b', 'a', 'c'}))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == 64
