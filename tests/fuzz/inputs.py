"""Models, checkpoints, settings and arguments made by a seed: sound, strange and damaged ones.

Each kind is used in full. Its errors must be intended: an error that some line of this package, or
of scikit-learn's checks, raises on purpose. Anything else is an error that was stumbled into.
"""

import json
import linecache
import random
import tempfile
import warnings
from collections.abc import Callable
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from fuzz.rule_tables import rule_table
from fuzz.table_files import damaged
from silent_constant import SILENT_CONSTANT, is_silent_constant

from vitrail import belief_propagation, factor_graph, perceptron, run
from vitrail.datasets import glass
from vitrail.estimator import BinaryNetClassifier
from vitrail.factors import table
from vitrail.graph import indexed
from vitrail.model.files import checksum, model_from_bytes, model_to_bytes, spelled
from vitrail.solvers.s4p import s4p
from vitrail.updates import UPDATES, flip

HUGE = (10**9, 2**70)
STRANGE: list[Any] = [
    None,
    0,
    -1,
    1,
    2,
    3,
    1.5,
    -0.5,
    float("nan"),
    float("inf"),
    -float("inf"),
    "x",
]
STRANGE += ["", "auto", True, False, [], (), {}, (3,), (0,), (2.5,), "8", b"x", object(), [1, [2]]]
STRANGE += [np.int64(3), np.float32(0.5), np.zeros(2), *HUGE]
SAMPLED = ("flip", "pinned", "counting")
SAID_IN = ("vitrail", "sklearn")  # packages whose sentences reach the user


def is_expected(error: BaseException) -> bool:
    """Whether the line that raised is a `raise` of this package or of scikit-learn."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return False
    file = place.tb_frame.f_code.co_filename
    line = linecache.getline(file, place.tb_lineno).strip()
    return line.startswith("raise") and any(part in Path(file).parts for part in SAID_IN)


# --- models -------------------------------------------------------------------------------------


@cache
def sound_model() -> bytes:
    frame = pd.DataFrame({"a": ["x", "y", "z"] * 10, "b": np.arange(30) % 7})
    labels = np.where((frame["a"] == "x") ^ (frame["b"] > 3), "yes", "no")
    net = BinaryNetClassifier((3,), predictor="posterior", networks=4, random_state=0)
    return model_to_bytes(net.fit(frame, labels).model_)


@cache
def sound_answers() -> list[list[float]]:
    return probabilities(sound_model())


def probabilities(content: bytes) -> list[list[float]]:
    frame = pd.DataFrame({"a": ["x", "y", "w", None], "b": [1, 5, None, 3]})
    return model_from_bytes(content, "file").probabilities(frame).tolist()


def a_model(rng: random.Random) -> str:
    """Damaged bytes are refused or change nothing; edited contents are a model or refused."""
    content = sound_model()
    if rng.random() < 0.6:
        broken = damaged(rng, content)
        assert probabilities(broken) == sound_answers(), "a silent change"
        return "sound"
    return str(len(probabilities(_edited(rng, content))))


def _edited(rng: random.Random, content: bytes) -> bytes:
    """The file of somebody who writes any value anywhere, and the right checksum."""
    from safetensors.torch import load

    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length])["__metadata__"]
    tensors = load(content)
    del metadata["checksum"]
    part = rng.choice(["model", "model", "model", "record"])
    state = json.loads(metadata[part])
    for _ in range(rng.randint(1, 2)):
        _change(rng, state)
    metadata[part] = json.dumps(state, separators=(",", ":"))
    if rng.random() < 0.3:
        name = rng.choice(sorted(tensors))
        tensors[name] = rng.choice(
            [tensors[name][:0], torch.cat([tensors[name]] * 2), tensors[name] * 0]
        )
    return spelled(tensors, {**metadata, "checksum": checksum(tensors, metadata)})


def _change(rng: random.Random, value: Any) -> None:
    """Put something else at a random place of nested lists and dictionaries."""
    places = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not places:
        return
    place = rng.choice(places)
    inner = value[place]
    if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
        _change(rng, inner)
    elif rng.random() < 0.2:
        del value[place]
    else:
        plain = [None, 0, -1, 3, 1.5, "x", "", True, [], {}, [0], 2**40, "a" * 300]
        value[place] = rng.choice(plain)


# --- checkpoints --------------------------------------------------------------------------------


@cache
def graph() -> Any:
    data = glass(9, 11, seed=0)
    return factor_graph(perceptron(data.inputs, data.labels))


@cache
def sound_checkpoint() -> tuple[bytes, list[bool]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        run(belief_propagation(flip(2)), graph(), seed=3, max_steps=2, checkpoint=path)
        content = path.read_bytes()
        found = run(belief_propagation(flip(2)), graph(), seed=3, max_steps=5, checkpoint=path)
    return content, found.weights.tolist()


def a_checkpoint(rng: random.Random) -> str:
    """A damaged checkpoint is refused, or the run ends as it would have."""
    content, weights = sound_checkpoint()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        path.write_bytes(damaged(rng, content))
        found = run(belief_propagation(flip(2)), graph(), seed=3, max_steps=5, checkpoint=path)
    assert found.weights.tolist() == weights, "a silent change"
    return "sound"


# --- settings and rows of the classifier --------------------------------------------------------

SETTINGS = sorted(BinaryNetClassifier().get_params(deep=False))
LONG_WORK = ("epochs", "polish")  # a thousand million of these is no mistake, only long


def some_rows(rng: random.Random) -> Any:
    count = rng.choice([0, 1, 2, 20, 20, 20])
    draws = np.random.default_rng(rng.randrange(10**6))
    plain = draws.integers(0, 5, (count, 3))
    made: list[Callable[[], Any]] = [
        lambda: plain,
        lambda: plain,
        lambda: plain.astype(rng.choice(["f8", "f4", "i1", "U4", "?", "O", "c8", "u8", "M8[D]"])),
        lambda: np.where(plain == 1, rng.choice([np.nan, np.inf, 1e300]), plain.astype(float)),
        lambda: pd.DataFrame(plain, columns=rng.choice([["a", "b", "c"], ["a", "a", "b"]])),
        lambda: plain[:, : rng.choice([0, 1])],
        lambda: plain[None],
        lambda: plain[:, 0],
        lambda: plain.tolist(),
        lambda: [[rng.choice(STRANGE)] for _ in range(count)],
        lambda: rng.choice(STRANGE),
    ]
    return rng.choice(made)()


def some_labels(rng: random.Random, count: int) -> Any:
    draws = np.random.default_rng(rng.randrange(10**6))
    plain = draws.integers(0, rng.choice([1, 2, 2, 3]), count)
    made: list[Callable[[], Any]] = [
        lambda: plain,
        lambda: plain,
        lambda: plain.astype(rng.choice(["f8", "U3", "?", "O", "u8", "c8", "M8[D]"])),
        lambda: plain[: rng.choice([0, 1, 5])],
        lambda: np.where(plain == 1, np.nan, plain),
        lambda: plain / 7,
        lambda: plain[:, None],
        lambda: pd.Categorical([None, *plain[1:]]),
        lambda: [rng.choice(STRANGE) for _ in range(count)],
        lambda: rng.choice(STRANGE),
    ]
    return rng.choice(made)()


def a_classifier(rng: random.Random) -> str:
    """Any settings and rows: a classifier that answers, or a sentence, and then as it was."""
    settings: dict[str, Any] = {
        "epochs": 1,
        "polish": 0,
        "networks": 4,
        "hidden": (),
        "restarts": 1,
    }
    for name in rng.sample(SETTINGS, rng.choice([0, 1, 1, 2])):
        value = rng.choice(STRANGE)
        huge = isinstance(value, int) and value in HUGE
        settings[name] = 2 if huge and name in LONG_WORK else value
    net = BinaryNetClassifier(**settings)
    rows: Any = np.arange(60).reshape(20, 3) % 7
    labels: Any = np.arange(20) % 2
    if rng.random() < 0.5:
        rows = some_rows(rng)
        labels = some_labels(rng, len(rows) if hasattr(rows, "__len__") else 3)
    before = dict(vars(net))
    try:
        net.fit(rows, labels)
    except Exception:
        assert vars(net).keys() == before.keys(), "a failed fit has left something behind"
        raise
    answers = net.predict(rows)
    assert len(answers) == len(rows)
    return str(len(answers))


def a_rule(rng: random.Random) -> str:
    """A table with something to learn: the default does not answer all fresh rows alike."""
    table = rule_table(rng)
    net = BinaryNetClassifier(random_state=rng.randrange(100))
    if len(set(table.labels)) < 2:
        return "refused: one class"
    net.fit(table.rows, table.labels)
    constant = is_silent_constant(net.model_, table.fresh, table.fresh_labels)
    assert not constant, SILENT_CONSTANT
    return str(net.score(table.fresh, table.fresh_labels))


# --- arguments of functions ---------------------------------------------------------------------


def an_argument(rng: random.Random) -> str:
    """Functions of the package with a strange argument or two."""
    value, other = rng.choice(STRANGE), rng.choice(STRANGE)
    data = glass(5, 7, seed=0)
    limits = ("max_steps", "score_every", "checkpoint_every", "seed", "tolerance", "max_seconds")

    def running(solver: Any, on: Any = None, **limits: Any) -> str:
        found = run(solver, graph() if on is None else on, **{"max_steps": 2, **limits})
        assert bool(torch.isfinite(found.marginals).all())
        return str(found.status[0])

    calls: list[Callable[[], str]] = [
        lambda: running(belief_propagation(flip(2)), **{rng.choice(limits): value}),
        lambda: running(belief_propagation(UPDATES[rng.choice(SAMPLED)](value))),
        lambda: running(belief_propagation(flip(2), damping=value)),
        lambda: running(belief_propagation(flip(2), batch=value)),
        lambda: running(s4p(flip(2), survey_samples=2, bins=value)),
        lambda: running(s4p(flip(2), survey_samples=value, bins=5)),
        lambda: running(s4p(flip(2), survey_samples=2, bins=5, damping=value)),
        lambda: running(
            belief_propagation(flip(2)),
            factor_graph(perceptron(data.inputs, data.labels, beta=value)),
        ),
        lambda: running(
            belief_propagation(flip(2)),
            factor_graph(table(torch.ones(1, 2, 2), indexed([[value, other]]))),
        ),
        lambda: str(glass(value, other, seed=0).inputs.shape),
    ]
    if any(isinstance(one, int) and one in HUGE for one in (value, other)):
        calls = calls[1:-1]  # a thousand million steps or examples are no mistake
    return rng.choice(calls)()


MAKERS: dict[str, Callable[[random.Random], str]] = {
    "model": a_model,
    "checkpoint": a_checkpoint,
    "classifier": a_classifier,
    "rule": a_rule,
    "argument": an_argument,
}


def use(case: tuple[str, int]) -> str:
    """Use the input of a kind and seed: a result, or an expected error."""
    kind, seed = case
    rng = random.Random(f"{kind} {seed}")
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder, chdir(folder):
        warnings.simplefilter("ignore")
        try:
            return MAKERS[kind](rng)
        except (ValueError, TypeError) as error:
            if not is_expected(error):
                raise
            return f"refused: {error}"


def warm() -> None:
    """Train and compile what all cases share."""
    sound_answers()
    sound_checkpoint()
    BinaryNetClassifier((), epochs=1, polish=1, predictor="best").fit(np.eye(4), [0, 0, 1, 1])
    solvers: list[Any] = [belief_propagation(UPDATES[name](2)) for name in SAMPLED]
    for solver in [s4p(flip(2), bins=5), *solvers]:
        run(solver, graph(), max_steps=1)
