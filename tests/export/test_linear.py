"""Nets of one layer in C answer by steps of the columns, as Python does by bits."""

import subprocess
from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from export_cases import Models, linear_model, linear_models
from export_runs import COMPILERS, STRICT, expected_lines, header_of, run_all
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st
from parts import need

from vitrail.export.devices import TARGETS, cost, run_firmware
from vitrail.export.golden import sample_rows
from vitrail.export.plan import plan_export
from vitrail.export.rule import rule_of
from vitrail.tables.bits import BitColumns
from vitrail.tables.columns import NumberType
from vitrail.tables.encoders import ColumnCode, TableEncoder

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
BY_NAME = {target.name: target for target in TARGETS}
SLOW = settings(
    phases=[Phase.generate],  # a compiler is too slow to shrink with
    verbosity=Verbosity.quiet,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
HUGE = 10**6  # bytes
FORMS = {"spelled": -HUGE, "loop": HUGE}  # what seems to be the size of tests spelled out


def forced(form):
    """Linear models by steps, spelled out, or where possible in a loop, however large that is."""
    stack = ExitStack()
    stack.enter_context(patch("vitrail.export.c.header.SUMS_BYTES", 10 * HUGE))
    stack.enter_context(patch("vitrail.export.c.linear.SPELLED_BYTES", FORMS[form]))
    return stack


def check(models, count, form, folder, compiler="gcc", options=SANITIZERS):
    need(compiler)
    pairs = [(model, sample_rows(model.encoder, count, seed=1)) for model in models]
    with forced(form):
        found = run_all(pairs, folder, COMPILERS[compiler], *options)
    for found_lines, (model, rows) in zip(found, pairs, strict=True):
        assert found_lines == expected_lines(model, rows)


@pytest.mark.parametrize(
    ("form", "compiler", "options"),
    [("loop", "gcc", SANITIZERS), ("spelled", "clang++", ["-O1"])],
    ids=["loop", "spelled"],
)
@settings(SLOW, max_examples=2)
@given(drawn=st.lists(linear_models(), min_size=12, max_size=12).map(Models))
def test_steps_answer_as_python_does(drawn, form, compiler, options, tmp_path_factory):
    check(drawn, 60, form, tmp_path_factory.mktemp("linear"), compiler, options)


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("compiler", "options"), [("gcc", SANITIZERS), ("clang++", ["-O1"])])
@settings(SLOW, max_examples=8)
@given(drawn=st.lists(linear_models(), min_size=24, max_size=24).map(Models))
def test_steps_answer_as_python_does_at_length(drawn, form, compiler, options, tmp_path_factory):
    check(drawn, 400, form, tmp_path_factory.mktemp("linear"), compiler, options)


@pytest.mark.long
@pytest.mark.parametrize("target", ["m0plus", "avr"])
@settings(SLOW, max_examples=3)
@given(drawn=st.lists(linear_models(), min_size=8, max_size=8).map(Models))
def test_devices_answer_by_steps_as_python_does(target, drawn, tmp_path_factory):
    device = BY_NAME[target]
    need(device.compiler, device.emulator)
    for number, model in enumerate(drawn):
        folder = tmp_path_factory.mktemp("device")
        with forced(list(FORMS)[number % 2]):
            (folder / "tiny.h").write_text(header_of(model))
        (folder / "strict.c").write_text('#define TINY_CHECK\n#include "tiny.h"\n')
        command = [device.compiler, *device.flags, "-std=c99", "-Os", *STRICT, "-c", "strict.c"]
        subprocess.run(command, cwd=folder, check=True)
        assert "8 of 8 known answers agree" in run_firmware(folder, "tiny", device)


def numbers(held_as: NumberType = "int32", missing=False, steps=6, each=2):
    """Columns of numbers, some of which are read as above a threshold where missing."""
    codes = []
    for i in range(-(-steps // each)):
        cuts = tuple(10.0 * i + 20 * j + 5.5 for j in range(min(each, steps - each * i)))
        typical = cuts[i % 2 * (len(cuts) - 1)] + 1.5
        codes.append(ColumnCode(f"x{i}", True, (), False, cuts, (), missing, typical, held_as))
    return TableEncoder(tuple(codes), tuple(code.name for code in codes))


def words(missing=True, other=False, beside=()):
    """Columns of words; the second has fewer."""
    codes = (
        ColumnCode("colour", False, ("blue", "green", "red"), other, missing=missing),
        ColumnCode("shape", False, ("round",), True),
        *beside,
    )
    return TableEncoder(codes, tuple(code.name for code in codes))


BINNED = ColumnCode("rooms", True, (), False, (1.5, 2.5), (1, 2, 3), False, 3.0, "int32")
FAR = ColumnCode("far", True, (), False, (-(2.0**31), 2.0**31 - 1), (), False, 4.0, "int32")
ENCODERS = {
    "whole": numbers(),
    "real": numbers("float32"),
    "missing": numbers(missing=True),
    "words": words(),
    "other words": words(missing=False, other=True),
    "words beside numbers": words(beside=(BINNED,)),
    "three kinds": words(beside=(BINNED, numbers("float32").columns[0])),
    "ends of numbers": TableEncoder((FAR, BINNED), ("far", "rooms")),
    "bits": BitColumns(("a", "b", "c"), 0.0, 1.0),
    "grays": BitColumns(("a", "b", "c"), -3.5, 300.0, cuts=3),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_column_becomes_steps(form, tmp_path):
    cases = [(name, classes) for name in ENCODERS for classes in (2, 3, 6)]
    models = [linear_model(ENCODERS[name], classes, 3) for name, classes in cases]
    check(models, 200, form, tmp_path)
    with forced(form):
        loops = {name for (name, _), model in zip(cases, models, strict=True) if looped(model)}
    alike = set(ENCODERS) - {"three kinds", "missing"}  # a missing bit of its own is spelled out
    assert loops == (alike if form == "loop" else set())


def looped(model):
    text = header_of(model)
    assert "tiny_linear(" in text
    return "tiny_linear_steps" in text


HOSTILE = """
#include "tiny.h"
#include <stdio.h>
int main(void)
{
    uint16_t proba[TINY_CLASSES];
    tiny_row row = {0};
    printf("%d %d %d ", tiny_predict(0), tiny_proba(0, proba), tiny_proba(&row, 0));
    printf("%d ", tiny_predict(&row) >= 0);
    row.FIELD = BAD;
    printf("%d %d ", tiny_predict(&row), tiny_proba(&row, proba));
    row.FIELD = GOOD;
    printf("%d", tiny_predict(&row) >= 0 && tiny_predict(&row) == tiny_proba(&row, proba));
    return 0;
}
"""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("encoder", "field", "bad", "good"),
    [
        ("words", "colour", "77", "TINY_OTHER"),
        ("words beside numbers", "colour", "-1", "TINY_MISSING"),
        ("bits", "x[1]", "2", "1"),
        ("grays", "x[2]", "301", "300"),
        ("grays", "x[0]", "-4", "-3"),
    ],
)
def test_bad_input_is_a_negative_code(encoder, field, bad, good, form, tmp_path):
    need("gcc")
    with forced(form):
        (tmp_path / "tiny.h").write_text(header_of(linear_model(ENCODERS[encoder], 3, 2)))
    program = HOSTILE.replace("FIELD", field).replace("= BAD", f"= {bad}")
    (tmp_path / "main.c").write_text(program.replace("GOOD", good))
    command = ["gcc", "-std=c99", *STRICT, *SANITIZERS, "main.c", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert done.stdout == "-1 -1 -1 1 -2 -2 1"


def balanced(steps, classes):
    """A linear model whose classes are all within reach."""
    model = linear_model(numbers(steps=steps), classes, 3)
    rows = sample_rows(model.encoder, 500)
    found = set()
    for seed in range(100):
        model = linear_model(numbers(steps=steps), classes, 3, rng=np.random.default_rng(seed))
        found = set(model.answers(rows).numbers.tolist())
        if len(found) == classes:
            break
    assert len(found) == classes
    return model


LIMITS = {(6, 2): 72, (16, 2): 108, (6, 3): 96, (16, 3): 148}  # bytes by steps and classes


@pytest.mark.parametrize(("steps", "classes"), LIMITS)
def test_steps_fit_their_bytes_of_flash(steps, classes):
    need("arm-none-eabi-gcc", "qemu-system-arm")
    found = cost(header_of(balanced(steps, classes)), "tiny", BY_NAME["m0plus"], ("predict",))
    assert found.agree
    assert 40 < found.sizes["predict"].flash <= LIMITS[steps, classes]


def test_many_weights_of_bits_stay_bits():
    model = linear_model(BitColumns(tuple(f"x{i}" for i in range(196)), 0.0, 1.0), 2, 1)
    assert "tiny_linear(" not in header_of(model)


def test_a_line_that_may_be_clipped_stays_bits():
    model = linear_model(numbers(), 2, 3)
    assert "tiny_linear(" in header_of(model)
    assert "tiny_linear(" not in header_of(replace(model, clip=3))


def test_classes_with_one_rising_curve_need_no_table():
    model = linear_model(numbers(steps=40), 3, 4)  # several scores a level
    several = replace(model, clip=4 * model.clip)
    flat = several.calibration.clone()
    flat[:, 100:140] = flat[:, 100:101]
    found = {}
    for name, one in {"rises": several, "flat": replace(several, calibration=flat)}.items():
        found[name] = rule_of(one, plan_export(one))
    assert found["rises"].rank == "level"
    assert found["flat"].rank is None
    small = linear_model(numbers(), 3, 2)
    assert rule_of(small, plan_export(small)).rank == "score"


@given(most=st.integers(1, 1024), data=st.data())
def test_levels_by_a_product_are_those_by_division(most, data):
    model = linear_model(numbers(), 2, 1)
    rule = replace(
        rule_of(model, plan_export(model)), clip=most, margins=np.arange(-most, most + 1)
    )
    assert rule.product is not None
    multiplier, shift = rule.product
    score = data.draw(st.integers(-most, most))
    level = (torch.tensor(score) + most) * 256 // (2 * most)
    assert ((score + most) * multiplier % 2**32) >> shift == level
