"""Bytes on a device: estimates beside what is linked, and models that fit into a given flash."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from export_cases import committee
from export_runs import header_of
from parts import need
from sklearn import datasets

from vitrail import BinaryNetClassifier, compress
from vitrail.export import flash as flash_module
from vitrail.export import flash_bytes
from vitrail.export.devices import TARGETS, cost
from vitrail.export.flash import Flash, estimated, flash_parts
from vitrail.learning import compression
from vitrail.model import Model

COMPILER = TARGETS[0].compiler
ALIGNMENT = 6  # bytes between tables, at most
LOADERS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "cancer": datasets.load_breast_cancer,
}


@pytest.fixture(autouse=True)
def few_crossed_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Students learn the same from fewer rows, in less time."""
    monkeypatch.setattr(compression, "CROSSED_ROWS", 600)


@cache
def table_of(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """150 rows, with readable labels; `words` has categories beside numbers."""
    if name in LOADERS:
        found = LOADERS[name](as_frame=True)
        rows = np.random.default_rng(0).permutation(len(found.target))[:150]
        return found.data.iloc[rows].reset_index(drop=True), found.target.to_numpy()[rows]
    rng = np.random.default_rng(1)
    colour, size = rng.choice(["red", "green", "blue"], 150), rng.integers(0, 50, 150)
    table = pd.DataFrame({"colour": colour, "size": size, "age": rng.integers(0, 9, 150)})
    return table, np.where((colour == "red") ^ (size > 20), "yes", "no")


@cache
def fitted(name: str) -> Model:
    classifier = BinaryNetClassifier(hidden=(3,), networks=16, beta=2.0, random_state=0)
    return classifier.fit(*table_of(name)).model_


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash_module, "TARGETS", (replace(TARGETS[0], prefix="absent-"),))


def test_estimates_are_near_what_is_linked():
    need(COMPILER)
    errors = []
    for name in ("iris", "words"):
        small = compression.Compression(fitted(name), fitted(name).inputs(table_of(name)[0]))
        for compressor in small.compressors.values():
            for size in compressor.sizes(4000)[::12]:
                model = compressor.build(size).model
                found, guess = flash_bytes(model), estimated(model)
                assert found.measured
                assert not guess.measured
                errors.append(abs(guess.flash / found.flash - 1))
    assert len(errors) >= 8
    assert np.median(errors) <= 0.06
    assert max(errors) <= 0.25


@pytest.mark.parametrize("times", [1, 8, 64])
def test_constants_are_counted_to_the_byte(times):
    need(COMPILER)
    model = committee()
    model = replace(
        model, networks=model.networks.repeat(times, 1, 1), votes=model.votes.repeat(times, 1)
    )
    constants, _, _ = flash_parts(model)
    linked = cost(header_of(model), "tiny", TARGETS[0], ["predict"], emulate=False).sizes["predict"]
    assert linked.constants - ALIGNMENT <= constants <= linked.constants


def test_without_a_compiler_it_says_that_it_is_an_estimate(no_compiler):
    size = flash_bytes(committee())
    assert size == estimated(committee())
    assert str(size).endswith("on a Cortex-M0+, estimated")
    assert "estimated" not in str(Flash(1200, 40, measured=True))
    assert "1,200 bytes of flash" in str(Flash(1200, 40, measured=True))


EVERY = [(name, flash) for name in (*LOADERS, "words") for flash in (256, 512, 1024, 4096)]


@pytest.mark.parametrize(
    ("name", "flash"),
    [
        pytest.param(*case, marks=() if case == ("words", 256) else pytest.mark.long)
        for case in EVERY
    ],
)
def test_a_model_within_a_flash_is_never_larger(name, flash):
    need(COMPILER)
    table, labels = table_of(name)
    small = compress(fitted(name), table, labels, flash=flash)
    assert flash_bytes(small).flash <= flash
    assert flash_bytes(small).measured
    chosen = small.record["compressed"]["chosen"]
    others = [
        point["agreement"]
        for point in small.record["compressed"]["curve"]
        if point["flash"] <= 0.85 * flash
    ]  # estimates are that good
    assert chosen["agreement"] >= max(others, default=0.0)


def test_estimates_choose_without_a_compiler(no_compiler):
    table, _ = table_of("words")
    small = compress(fitted("words"), table, flash=300)
    assert not flash_bytes(small).measured
    assert flash_bytes(small).flash <= 300


def test_too_little_flash_is_refused_with_the_smallest_model(no_compiler):
    table, _ = table_of("words")
    with pytest.raises(ValueError, match="bytes of flash are too few") as refused:
        compress(fitted("words"), table, flash=4)
    least = int(str(refused.value).split(";")[0].split()[-1])
    assert flash_bytes(compress(fitted("words"), table, flash=least)).flash <= least
    with pytest.raises(ValueError, match="leave one out"):
        compress(fitted("words"), table, flash=400, bits=400)
