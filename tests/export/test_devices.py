"""Exported C on devices: compilers for them, emulators of them, and the report on what it costs."""

import subprocess
from pathlib import Path
from unittest.mock import patch

import pytest
from export_cases import against_the_rest, committee, many_models, plain
from export_runs import STRICT, header_of
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from parts import need

from vitrail.export import export_model
from vitrail.export.c.header import MANY_WORDS
from vitrail.export.devices import TARGETS, cost, run_firmware, write_costs
from vitrail.nn import mlp, paper_conv

BY_NAME = {target.name: target for target in TARGETS}


def test_firmware_runs_on_an_emulated_cortex_m3(tmp_path):
    need("make", "arm-none-eabi-gcc", "qemu-system-arm")
    export_model(committee(), "c", tmp_path, name="paint", layout="firmware")
    done = subprocess.run(
        ["make", "run"], cwd=tmp_path / "paint", capture_output=True, text=True, timeout=60
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "16 of 16 known answers agree" in said
    assert "bytes of flash" in said


def test_firmware_says_when_an_answer_differs(tmp_path):
    need("make", "arm-none-eabi-gcc", "qemu-system-arm")
    export_model(committee(), "c", tmp_path, name="paint", layout="firmware")
    header = tmp_path / "paint" / "paint.h"
    text = header.read_text()
    start = text.index("paint_golden_proba[]")
    header.write_text(text[:start] + text[start:].replace("{\n    ", "{\n    1", 1))
    done = subprocess.run(
        ["make", "run"], cwd=tmp_path / "paint", capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "15 of 16 known answers agree" in done.stdout + done.stderr


@pytest.mark.parametrize("target", ["m0plus", "avr"])
def test_costs_are_measured_by_real_tools(target, tmp_path):
    need(BY_NAME[target].compiler, BY_NAME[target].emulator)
    found = cost(header_of(committee()), "tiny", BY_NAME[target])
    assert found.agree
    assert found.work is not None
    assert 100 < found.work < 100_000
    sizes = [found.sizes[entry].flash for entry in ("predict_bits", "predict", "proba")]
    assert 100 < sizes[0] < sizes[1] < sizes[2] < 3000
    assert all(0 < found.sizes[entry].stack < 512 for entry in found.sizes)
    page = write_costs(tmp_path / "page.html", "tiny", ["A lead."], [found]).read_text("utf-8")
    assert f"{sizes[1]:,}</td>" in page
    assert f"{found.work:,} {found.unit}" in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize(("inputs", "units", "networks"), [(300, 100, 20), (118, 31, 128)])
def test_a_program_that_does_not_fit_is_reported(inputs, units, networks, tmp_path):
    """75 and 59 kB: compilers find other words for them."""
    need("avr-gcc")
    model = plain(mlp(inputs, (units,)), (inputs,), networks)
    found = cost(header_of(model), "tiny", BY_NAME["avr"])
    assert not found.sizes
    page = write_costs(tmp_path / "page.html", "tiny", ["A lead."], [found])
    assert "does not fit" in page.read_text("utf-8")


SLOW = settings(
    phases=[Phase.generate],
    verbosity=Verbosity.quiet,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check_warnings(folder, target):
    (folder / "strict.c").write_text('#define TINY_CHECK\n#include "tiny.h"\n')
    command = [target.compiler, *target.flags, "-std=c99", "-Os", *STRICT, "-c", "strict.c"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.long
@pytest.mark.parametrize("target", ["m0plus", "m4", "avr"])
@settings(SLOW, max_examples=10)
@given(drawn=many_models(12))
def test_emulated_devices_answer_as_python_does(target, drawn, tmp_path_factory):
    need(BY_NAME[target].compiler, BY_NAME[target].emulator)
    for number, model in enumerate(drawn):
        folder = Path(tmp_path_factory.mktemp("device"))
        few = 0 if number % 2 else MANY_WORDS  # every other as strings
        with patch("vitrail.export.c.header.MANY_WORDS", few):
            (folder / "tiny.h").write_text(header_of(model))
        check_warnings(folder, BY_NAME[target])
        said = run_firmware(folder, "tiny", BY_NAME[target])
        assert "8 of 8 known answers agree" in said, said


@pytest.mark.long
@pytest.mark.parametrize("target", ["m0plus", "m4", "avr"])
def test_the_papers_net_of_convolutions_runs_on_devices(target, tmp_path):
    need(BY_NAME[target].compiler, BY_NAME[target].emulator)
    (tmp_path / "tiny.h").write_text(header_of(plain(paper_conv(), (1, 14, 14))))
    assert "8 of 8 known answers agree" in run_firmware(tmp_path, "tiny", BY_NAME[target])


@pytest.mark.long
@pytest.mark.parametrize(
    ("inputs", "hidden", "networks", "classes"), [(784, 64, 100, 2), (784, 31, 128, 10)]
)
def test_a_large_header_compiles_in_two_seconds_and_200_megabytes(
    inputs, hidden, networks, classes, tmp_path
):
    need("gcc", "/usr/bin/time")
    model = plain(mlp(inputs, (hidden,)), (inputs,), networks)
    if classes > 2:
        model = against_the_rest(model, classes)
    (tmp_path / "tiny.h").write_text(header_of(model))
    (tmp_path / "main.c").write_text('#define TINY_MAIN\n#include "tiny.h"\n')
    command = ["/usr/bin/time", "-f", "%U %M", "gcc", "-O2", "main.c", "-o", "main"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    seconds, kilobytes = map(float, done.stderr.split()[-2:])
    assert seconds <= 2
    assert kilobytes <= 200_000
