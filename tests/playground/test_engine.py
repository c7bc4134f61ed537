"""The playground's engine under Node: its draws, runs and votes are Python's."""

import base64
import json
import math
import shutil
import subprocess
from itertools import combinations
from typing import Any

import numpy as np
import playground_reference as reference
import pytest
import torch

from vitrail.datasets import mnist
from vitrail.random import Key, Stream, lanes16, lanes32, normal, threshold_edges, thresholds

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="Node is not installed; apt install nodejs")

MODULES = {
    "engine": reference.PLAYGROUND / "engine" / "index.js",
    "tracing": reference.ROOT / "tests" / "playground" / "trace.mjs",
    "committee": reference.PLAYGROUND / "digits" / "committee.js",
    "networks": reference.PLAYGROUND / "digits" / "networks.js",
    "settings": reference.PLAYGROUND / "glass" / "settings.js",
}
IMPORTS = "".join(f"import * as {name} from {path.as_uri()!r};\n" for name, path in MODULES.items())


def node(expression: str, given: Any = None) -> Any:
    """The value of a JavaScript expression, which may use `given` and the modules."""
    # infinities have no spelling in JSON
    script = f"""{IMPORTS}
const revive = (_, value) => value === "Infinity" ? Infinity : value;
const given = JSON.parse({json.dumps(json.dumps(_plain(given)))}, revive);
process.stdout.write(JSON.stringify({expression}));"""
    done = subprocess.run(
        [str(NODE), "--input-type=module", "-"], input=script, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return "Infinity" if value == math.inf else value


@pytest.mark.parametrize(("seed", "step"), [(0, 0), (2**53 - 1, 7), (2**32, 2**32 - 1)])
def test_draws_are_the_same(seed, step):
    streams = [Stream.CONFIGURATION, Stream.SURVEY, Stream.DECODE, Stream.CAVITY]
    addresses = [
        [int(stream), factor, sample]
        for stream in streams
        for factor, sample in [(0, 0), (3, 499), (2**20 + 1, 2**31)]
    ]
    edges = threshold_edges(torch.device("cpu"))[1:-1]
    near = (torch.ceil(edges[::97] * 2**19) / 2**19)[:, None] + torch.tensor([-1, 0, 1]) / 2**19
    log_odds = torch.cat([near.double().flatten(), torch.linspace(-30, 30, 999).double()])
    found = node(
        "tracing.draws(engine, given)",
        {
            "seed": seed,
            "step": step,
            "addresses": addresses,
            "slots": 21,
            "logOdds": log_odds.tolist(),
        },
    )
    key = Key(seed, step)
    for lanes, name in ((lanes16, "lanes16"), (lanes32, "lanes32")):
        expected = [
            lanes(key.of(Stream(stream)), torch.tensor(factor), torch.tensor(sample), 21).tolist()
            for stream, factor, sample in addresses
        ]
        assert found[name] == expected
    draws = normal(key.of(Stream.PRIOR), 21)
    assert found["normal"] == pytest.approx(draws.tolist(), rel=1e-14)
    assert found["thresholds"] == thresholds(log_odds).tolist()


def test_no_log_odds_on_a_lattice_tells_the_two_tables_of_edges_apart():
    # cavities lie on 2⁻²⁶ (surveys) or 2⁻¹⁹ (messages), or are ±log 999
    spec = {"seed": 0, "step": 0, "addresses": [], "slots": 1, "logOdds": []}
    found = torch.tensor(node("tracing.draws(engine, given)", spec)["edges"], dtype=torch.float64)
    edges = threshold_edges(torch.device("cpu"))[1:-1]
    assert torch.equal(torch.ceil(found * 2**26), torch.ceil(edges * 2**26))
    assert torch.equal(found >= math.log(999), edges >= math.log(999))


@pytest.mark.parametrize("case", reference.CASES, ids=str)
def test_fifty_steps_are_pythons(case):
    spec = {"case": case.__dict__, "steps": reference.STEPS}
    reference.agree(node("tracing.traced(engine, given.case, given.steps)", spec), case)


def test_the_best_count_is_the_exhaustive_optimum():
    for case in (reference.BP, reference.replace(reference.BP, weights=7, data="stained")):
        run = reference.traced(case, steps=1)
        inputs = torch.tensor(run["inputs"]).view(case.examples, case.weights)
        states = (
            2 * ((torch.arange(2**case.weights)[:, None] >> torch.arange(case.weights)) & 1) - 1
        )
        right = (inputs @ states.T > 0) == (torch.tensor(run["labels"]) == 1)[:, None]
        make = "glass" if case.data == "glass" else "stainedGlass"
        sizes = f"{case.examples}, {case.weights}, {case.seed}"
        found = node(f"new engine.Perceptrons(engine.{make}({sizes})).optimum()")
        assert found == int(right.sum(0).max())


@pytest.mark.parametrize("case", [reference.BP, reference.CASES[5]], ids=str)
def test_the_python_that_the_page_shows_gives_the_same_counts(case):
    code = node("settings.asPython(given.case, given.steps)", {"case": case.__dict__, "steps": 9})
    scope: dict[str, Any] = {}
    exec(code.replace("print(", "shown = ("), scope)
    rows = reference.traced(case, steps=9)["rows"]
    assert [round(float(count)) for count in scope["shown"]] == [row["count"] for row in rows]


def test_an_address_spells_settings_and_bad_ones_are_as_usual():
    case = reference.CASES[6]
    spelled = node("settings.toHash(settings.fromHash(given.hash))", {"hash": f"#{case.hash}"})
    assert node("settings.fromHash(given.hash)", {"hash": f"#{spelled}"}) == case.__dict__
    usual = node("settings.toHash(settings.fromHash('#beta=4&seed=-1&weights=99&solver=x'))")
    assert usual == ""


class Networks:
    """The module of networks, evaluated by numpy."""

    def __init__(self) -> None:
        self.model = node("networks.model")
        pairs = list(combinations(range(self.model["classes"]), 2))
        shape = (self.model["networks"], len(pairs), self.model["inputs"] + self.model["bias"])
        bits = np.unpackbits(
            np.frombuffer(base64.b64decode(self.model["bits"]), np.uint8),
            bitorder="little",
            count=math.prod(shape),
        )
        self.weights = 2.0 * bits.reshape(shape) - 1
        self.pairs = pairs

    def votes(self, rows: np.ndarray) -> np.ndarray:
        """How many networks answer each digit on bits (rows, 196), (rows, 10)."""
        inputs = np.hstack([2 * rows - 1, np.ones((len(rows), self.model["bias"]))])
        inputs, votes = inputs.astype(np.float32), np.zeros((len(rows), 10), dtype=int)
        for network in self.weights.astype(np.float32):
            higher, wins = inputs @ network.T > 0, np.zeros_like(votes)
            for pair, (low, high) in enumerate(self.pairs):
                wins[:, high] += higher[:, pair]
                wins[:, low] += ~higher[:, pair]
            votes[np.arange(len(rows)), wins.argmax(1)] += 1
        return votes


@pytest.fixture(scope="module")
def networks() -> Networks:
    return Networks()


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    data = mnist(coding="binary")
    return data.test_inputs.numpy(), data.test_labels.numpy()


def test_votes_are_those_of_the_bits(networks, digits):
    rows = digits[0][:40]
    found = node(
        "given.rows.map((row) => new committee.Committee(networks.model).predict(row))"
        ".map(({label, proba, votes}) => ({label, proba: [...proba], votes: [...votes]}))",
        {"rows": rows.tolist()},
    )
    votes = networks.votes(rows)
    assert [answer["votes"] for answer in found] == votes.tolist()
    assert [answer["proba"] for answer in found] == (votes / 100).tolist()
    assert [answer["label"] for answer in found] == votes.argmax(1).tolist()


def test_the_accuracy_on_the_page_is_that_of_the_networks(networks, digits):
    rows, labels = digits
    votes = networks.votes(rows)
    agreed, right = votes.max(1), votes.argmax(1) == labels
    assert networks.model["record"]["accuracy"] == pytest.approx(right.mean(), abs=1e-9)
    covered = 0
    for part in networks.model["reliability"]:
        here = (agreed >= part["low"]) & (agreed <= part["high"])
        assert (part["digits"], part["right"]) == (here.sum(), right[here].sum())
        covered += here.sum()
    assert covered == len(rows)
