"""Exported C gives the answers and probabilities of Python, for every kind of net and encoder."""

import subprocess
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from export_cases import against_the_rest, committee, many_models, plain
from export_runs import COMPILERS, STRICT, as_csv, expected_lines, header_of, run_all
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from parts import need

from vitrail.export.c.header import MANY_WORDS
from vitrail.export.golden import sample_rows
from vitrail.export.plan import ExportError
from vitrail.nn import mlp, paper_conv, paper_linear
from vitrail.tables.encoders import ColumnCode

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


SLOW = settings(
    phases=[Phase.generate],  # a compiler is too slow to shrink with
    verbosity=Verbosity.quiet,  # models are long to print
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


BUILDS = {
    "gcc": ("gcc", SANITIZERS, None, False),
    "gcc-strings": ("gcc", SANITIZERS, None, True),
    "clang": ("clang", ["-O1"], 8, False),
    "g++": ("g++", ["-Os"], 8, True),
    "clang++": ("clang++", ["-O1"], None, True),
}


def builds(*names):
    arguments = ("compiler", "options", "word_bits", "strings")
    return pytest.mark.parametrize(arguments, [BUILDS[name] for name in names], ids=names)


@builds("gcc", "g++")
@settings(SLOW, max_examples=2)  # the first is the simplest
@given(drawn=many_models(12))
def test_c_answers_as_python_does(drawn, compiler, options, word_bits, strings, tmp_path_factory):
    with_strings(strings)(check_all)(drawn, 60, compiler, options, word_bits, tmp_path_factory)


@pytest.mark.long
@builds(*BUILDS)
@settings(SLOW, max_examples=20)
@given(drawn=many_models(24))
def test_c_answers_as_python_does_at_length(
    drawn, compiler, options, word_bits, strings, tmp_path_factory
):
    rows = 10_000 // 24
    with_strings(strings)(check_all)(drawn, rows, compiler, options, word_bits, tmp_path_factory)


def with_strings(always):
    """Weights as strings, however few they are, or as usual."""
    return patch("vitrail.export.c.header.MANY_WORDS", 0 if always else MANY_WORDS)


def check_all(drawn, count, compiler, options, word_bits, tmp_path_factory):
    need(compiler)
    models = [(model, sample_rows(model.encoder, count, seed=1)) for model in drawn]
    folder = tmp_path_factory.mktemp("models")
    found = run_all(models, folder, COMPILERS[compiler], *options, word_bits=word_bits)
    for lines, (model, rows) in zip(found, models, strict=True):
        assert lines == expected_lines(model, rows)


@pytest.mark.parametrize("networks", [1, 9])
@pytest.mark.parametrize("classes", [2, 3])
def test_committees_of_single_units_answer_as_python_does(classes, networks, tmp_path):
    need("gcc")
    model = replace(plain(mlp(40, (1,)), (40,), networks), clip=1)
    model = model if classes == 2 else against_the_rest(model, classes)
    votes = torch.arange(model.votes.numel()).reshape(model.votes.shape) % 5 + 1
    model = replace(model, votes=votes)
    rows = sample_rows(model.encoder, 300)
    (lines,) = run_all([(model, rows)], tmp_path, COMPILERS["gcc"], *SANITIZERS)
    assert lines == expected_lines(model, rows)
    assert "weights_1" not in header_of(model)  # a sign of the vote


def test_the_same_model_gives_the_same_header():
    model = committee()
    assert header_of(model, "one") == header_of(model, "one")
    assert header_of(model, "two") != header_of(model, "one")


@pytest.mark.parametrize("name", ["", "Tiny", "2d", "a-b", "int", "a" * 40])
def test_a_name_that_c_cannot_have_is_refused(name):
    with pytest.raises(ExportError, match="cannot begin names in C"):
        header_of(committee(), name)


HOSTILE = """
#include "tiny.h"
#include <stdio.h>
int main(void)
{
    tiny_row row = {0};
    tiny_bits bits;
    uint16_t proba[TINY_CLASSES];
    row.size = TINY_NO_NUMBER;
    printf("%d %d %d ", tiny_predict(0), tiny_proba(&row, 0), tiny_encode(&row, 0));
    printf("%d %d ", tiny_predict_bits(0), tiny_encode(0, &bits));
    printf("%d ", tiny_predict(&row) >= 0);
    row.colour = 77;
    printf("%d %d ", tiny_predict(&row), tiny_proba(&row, proba));
    row.colour = TINY_OTHER;
    row.size_word = 9;
    printf("%d ", tiny_predict(&row));
    row.size_word = TINY_OTHER; /* the column has no bit for other words: missing */
    printf("%d ", tiny_predict(&row) >= 0);
    printf("%d", tiny_label(2) == 0 && tiny_label(-1) == 0);
    return 0;
}
"""


def test_bad_input_is_a_negative_code(tmp_path):
    need("gcc")
    codes = (
        ColumnCode("colour", False, ("blue", "red"), missing=True),
        ColumnCode("size", True, ("unknown",), thresholds=(3.5, 9.0), typical=4.0, held_as="int32"),
    )
    (tmp_path / "tiny.h").write_text(header_of(committee(codes), "tiny"))
    assert output_of(tmp_path, HOSTILE, *SANITIZERS) == "-1 -1 -1 -1 -1 1 -2 -2 -2 1 1"


def test_numbers_that_float32_cannot_tell_apart_are_refused():
    code = ColumnCode("time", True, thresholds=(1.7e9, 1.7e9 + 1), held_as="float64")
    with pytest.raises(ExportError, match="'time' tells numbers apart that are one as float32"):
        header_of(committee((code,)), "tiny")


def test_the_program_of_a_header_reads_a_table_and_counts_right_answers(tmp_path):
    need("gcc")
    model = committee()
    (tmp_path / "tiny.h").write_text(header_of(model, "tiny"))
    (tmp_path / "main.c").write_text('#define TINY_MAIN\n#include "tiny.h"\n')
    command = ["gcc", "-std=c99", *STRICT, "main.c", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    rows = sample_rows(model.encoder, 30, seed=2)
    numbers = model.answers(rows).numbers
    labels = [model.labels.classes[k] for k in numbers]
    text = as_csv(model, {**rows, "y": ["other", *labels[1:]]})
    done = subprocess.run([tmp_path / "main"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()) == (0, expected_lines(model, rows))
    assert done.stderr.splitlines() == [
        "8 of 8 known answers agree",
        "29 of 30 rows answered as their label says",
    ]
    wrong = subprocess.run([tmp_path / "main"], input="a,b\n", capture_output=True, text=True)
    assert wrong.returncode == 1
    assert "the table has no column" in wrong.stderr


LIMITS = {  # bytes on a Cortex-M0+, without the encoder
    "linear": (paper_linear, (196,), 1, 300),
    "conv": (paper_conv, (1, 14, 14), 1, 1536),
    "committee": (lambda: mlp(60, (7,)), (60,), 15, 2048 + 15 * (60 * 7 + 7) // 8),
}


@pytest.mark.parametrize("coding", ["binary", "bipolar"])
@pytest.mark.parametrize("case", LIMITS)
def test_predict_fits_its_bytes_of_flash(case, coding, tmp_path):
    need("arm-none-eabi-gcc")
    module, shape, networks, limit = LIMITS[case]
    clip = 127 if networks == 1 else 1  # within reach of the sums, or all answers are one
    model = replace(plain(module(), shape, networks), coding=coding, clip=clip)
    (tmp_path / "tiny.h").write_text(header_of(model, "tiny"))
    (tmp_path / "predict.c").write_text(
        '#include "tiny.h"\nint predict(const tiny_bits *x) { return tiny_predict_bits(x); }\n'
    )
    command = "arm-none-eabi-gcc -mcpu=cortex-m0plus -mthumb -Os -nostdlib -Wl,-e,predict"
    subprocess.run(
        [*command.split(), "-Wl,--gc-sections", "predict.c", "-lgcc", "-o", "a.elf"],
        cwd=tmp_path,
        check=True,
    )
    listed = subprocess.run(
        ["arm-none-eabi-size", "a.elf"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    text, data = map(int, listed.stdout.splitlines()[1].split()[:2])
    assert 50 < text + data <= limit


def output_of(folder, program, *options):
    (folder / "main.c").write_text(program)
    command = ["gcc", "-std=c99", *STRICT, *options, "main.c", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run([folder / "main"], capture_output=True, text=True, check=True)
    return done.stdout
