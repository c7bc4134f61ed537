"""The guide to firmware runs from its table to the emulated board."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from parts import need

PAGE = Path(__file__).parents[2] / "docs" / "firmware.md"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]


@pytest.mark.long
def test_every_step_of_the_guide_runs(tmp_path):
    need("gcc", "make", "arm-none-eabi-gcc", "qemu-system-arm")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    settings = {"cwd": tmp_path, "env": {**os.environ, "PATH": path}}
    ran = set()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for kind, text in blocks:
        if kind == "python":
            subprocess.run([sys.executable, "-c", text], check=True, **settings)
        elif kind == "c":
            (tmp_path / "own.c").write_text(text)
            command = ["gcc", *STRICT, "-Iheader", "-c", "own.c"]
            subprocess.run(command, check=True, **settings)
        elif kind == "sh":
            for line in text.splitlines():
                subprocess.run(shlex.split(line), check=True, capture_output=True, **settings)
        else:
            said, expected = "", []
            for line in text.splitlines():
                if line.startswith("$ "):
                    done = subprocess.run(
                        line[2:], shell=True, capture_output=True, text=True, **settings
                    )
                    said += done.stdout + done.stderr
                    assert done.returncode == 0, said
                else:
                    expected.append(line)
            assert expected
            assert all(line in said.splitlines() for line in expected), said
        ran.add(kind)
    assert ran == {"python", "sh", "c", "console"}
    assert "bytes of flash" in said
