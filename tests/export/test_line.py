"""Nets of one layer in C answer by steps of the columns, as Python does by bits."""

from unittest.mock import patch

import pytest
from export_cases import Models, lines
from export_runs import COMPILERS, expected_lines, run_all
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st
from parts import need

from vitrail.export.c import header, line
from vitrail.export.devices import TARGETS
from vitrail.export.golden import sample_rows

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
BY_NAME = {target.name: target for target in TARGETS}
SLOW = settings(
    phases=[Phase.generate],
    verbosity=Verbosity.quiet,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
HUGE = 10**6


def form(name):
    """All lines by steps, spelled out or where possible in a loop, however large."""
    spelled = {"spelled": -HUGE, "loop": HUGE}[name]
    return patch.multiple(header, SUMS_BYTES=10 * HUGE), patch.object(
        line, "SPELLED_BYTES", spelled
    )


FORMS = pytest.mark.parametrize("name", ["spelled", "loop"])


@FORMS
@pytest.mark.parametrize(
    ("compiler", "options"),
    [("gcc", SANITIZERS), ("clang++", ["-O1"])],
    ids=["gcc", "clang++"],
)
@settings(SLOW, max_examples=2)
@given(drawn=st.lists(lines(), min_size=16, max_size=16).map(Models))
def test_steps_answer_as_python_does(drawn, name, compiler, options, tmp_path_factory):
    check(drawn, 60, name, compiler, options, tmp_path_factory)


@pytest.mark.long
@FORMS
@settings(SLOW, max_examples=8)
@given(drawn=st.lists(lines(), min_size=24, max_size=24).map(Models))
def test_steps_answer_as_python_does_at_length(drawn, name, tmp_path_factory):
    check(drawn, 400, name, "gcc", SANITIZERS, tmp_path_factory)


def check(drawn, count, name, compiler, options, tmp_path_factory):
    need(compiler)
    models = [(model, sample_rows(model.encoder, count, seed=1)) for model in drawn]
    by_line, by_form = form(name)
    with by_line, by_form:
        found = run_all(models, tmp_path_factory.mktemp("lines"), COMPILERS[compiler], *options)
    for said, (model, rows) in zip(found, models, strict=True):
        assert said == expected_lines(model, rows)
