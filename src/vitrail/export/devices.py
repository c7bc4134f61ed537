"""What an exported header costs on a device: bytes by real compilers, work by emulators."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vitrail.export.layouts import AVR, CORTEX, program, text_of

SECONDS = 120  # more than any of these tools needs


@dataclass(frozen=True)
class Target:
    """A processor, its compiler, and the emulator that counts its work."""

    name: str
    title: str
    prefix: str  # of compiler and tools
    flags: tuple[str, ...]
    emulator: str | None
    board: str = ""

    @property
    def compiler(self) -> str:
        return f"{self.prefix}gcc"

    @property
    def installed(self) -> bool:
        return shutil.which(self.compiler) is not None


ARM = "arm-none-eabi-"
QEMU = "qemu-system-arm"
TARGETS = (
    Target("m0plus", "Cortex-M0+", ARM, ("-mcpu=cortex-m0plus", "-mthumb"), QEMU, "mps2-an385"),
    Target("m4", "Cortex-M4", ARM, ("-mcpu=cortex-m4", "-mthumb"), QEMU, "mps2-an386"),
    Target("avr", "AVR", "avr-", ("-mmcu=atmega328p",), "simavr"),
    Target("host", "this machine", "", (), None),
)
ENTRIES = {  # what is linked alone, so that its bytes are its own
    "predict_bits": "int entry(const tiny_bits *x) { return tiny_predict_bits(x); }",
    "predict": "int entry(const tiny_row *x) { return tiny_predict(x); }",
    "proba": "int entry(const tiny_row *x, uint16_t *p) { return tiny_proba(x, p); }",
}


@dataclass(frozen=True)
class Bytes:
    """Bytes of a linked function with all that it calls. `stack` is an upper bound."""

    code: int
    constants: int
    data: int
    stack: int

    @property
    def flash(self) -> int:
        return self.code + self.constants + self.data


class TooLargeError(RuntimeError):
    """Compiler or linker say that a program does not fit into the memory of its device."""


@dataclass(frozen=True)
class Cost:
    """What a header costs on a target: bytes by entry, and work in the emulator's unit."""

    target: Target
    sizes: dict[str, Bytes]  # none where it does not fit
    work: int | None  # per prediction, encoder included
    unit: str  # instructions or cycles
    agree: bool | None  # whether the emulator gave the known answers


def cost(
    header: str,
    name: str,
    target: Target,
    entries: Sequence[str] = tuple(ENTRIES),
    *,
    emulate: bool = True,
) -> Cost:
    """Compile the header for a target, and run it where an emulator is installed."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / f"{name}.h").write_text(header, encoding="utf-8")
        try:
            sizes = {entry: _sizes(folder, name, target, ENTRIES[entry]) for entry in entries}
            output = run_firmware(folder, name, target) if emulate else ""
        except TooLargeError:
            sizes, output = {}, ""
    work = re.search(r"(\d+) (instructions|cycles) per prediction", output)
    known = re.search(r"(\d+) of (\d+) known answers agree", output)
    unit = "cycles" if target.name == "avr" else "instructions"
    agree = known[1] == known[2] if known else None
    return Cost(target, sizes, int(work[1]) if work else None, unit, agree)


def run_firmware(folder: Path, name: str, target: Target) -> str:
    """Output of the firmware for a header in the folder; nothing where no emulator is."""
    if target.emulator is None or not shutil.which(target.emulator):
        return ""
    built = folder / "firmware.elf"
    avr = target.name == "avr"
    for part in AVR if avr else CORTEX:
        text = program(text_of(f"firmware/{part}"), name)
        (folder / part).write_text(text, encoding="utf-8")
    if avr:
        _run([target.compiler, *target.flags, "-Os", "avr.c", "-o", built.name], folder)
        return _run(["simavr", "-m", "atmega328p", "-f", "16000000", built.name], folder)
    options = ["-Os", "-DCOUNT_INSTRUCTIONS", "-nostartfiles", "-T", "link.ld"]
    _run(
        [target.compiler, *target.flags, *options, "main.c", "startup.c", "-o", built.name], folder
    )
    quiet = ["-nographic", "-monitor", "none", "-serial", "none", "-semihosting"]
    counted = ["-icount", "shift=0", "-kernel", built.name]
    return _run([target.emulator, "-M", target.board, *quiet, *counted], folder)


def _sizes(folder: Path, name: str, target: Target, entry: str) -> Bytes:
    (folder / "entry.c").write_text(f'#include "{name}.h"\n{program(entry, name)}\n')
    build = [target.compiler, *target.flags, "-Os", "-ffunction-sections", "-fdata-sections"]
    built = "entry.o"
    _run([*build, "-fstack-usage", "-c", "entry.c", "-o", built], folder)
    if target.prefix:  # with what the compiler's own library adds
        linked = ["-nostartfiles", "-Wl,-e,entry", "-Wl,--gc-sections"]
        built = "entry.elf"
        _run([*build, *linked, "entry.c", "-o", built], folder)
    sections: dict[str, int] = dict.fromkeys(("text", "rodata", "data", "bss"), 0)
    for line in _run([f"{target.prefix}size", "-A", built], folder).splitlines():
        found = re.match(r"\.(text|rodata|data|bss|progmem)\S*\s+(\d+)", line)
        if found:
            kind = "rodata" if found[1] == "progmem" else found[1]
            sections[kind] += int(found[2])
    usage = (folder / "entry.su").read_text().split("\n")
    stack = sum(int(line.split("\t")[1]) for line in usage if line)
    data = sections["data"] + sections["bss"]
    return Bytes(sections["text"], sections["rodata"], data, stack)


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, errors="replace"
    )
    if done.returncode and re.search(r"overflowed by|will not fit|is too large", done.stderr):
        raise TooLargeError(f"{command[0]}: the program does not fit into the device")
    if done.returncode and "simavr" not in command[0]:
        raise RuntimeError(f"{command[0]} failed on exported code: {done.stderr[-500:]}")
    return done.stdout + done.stderr
