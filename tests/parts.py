"""Tools that exported code is tested with: a test skips without them, and says what to get."""

import shutil

import pytest

PACKAGES = {  # of Debian, where they are not called as their tool
    "clang++": "clang",
    "node": "nodejs",
    "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "avr-gcc": "gcc-avr avr-libc",
    "/usr/bin/time": "time",
}


def need(*tools: str | None) -> None:
    """Skip the test if one of the tools is absent."""
    for tool in filter(None, tools):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed; apt install {PACKAGES.get(tool, tool)}")
