"""C headers as libraries and programs, and their cost: bytes by compilers, work by emulators."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vitrail import __version__
from vitrail.export.c import c_header
from vitrail.export.c.text import with_prefix
from vitrail.export.golden import Rows
from vitrail.export.plan import ExportError
from vitrail.model import Model
from vitrail.pages import write_page

CORTEX = ("main.c", "startup.c", "say.h", "link.ld", "Makefile")
AVR = ("avr.c", "say.h")
LAYOUTS: dict[str, dict[str, str]] = {
    "header": {"tiny.h": "header"},
    "arduino": {
        "tiny/library.properties": "libraries/library.properties",
        "tiny/src/tiny.h": "header",
        "tiny/examples/Check/Check.ino": "libraries/Check.ino",
    },
    "platformio": {
        "tiny/library.json": "libraries/library.json",
        "tiny/src/tiny.h": "header",
        "tiny/examples/check/main.c": "libraries/check.c",
    },
    "zephyr": {
        "tiny/zephyr/module.yml": "libraries/module.yml",
        "tiny/CMakeLists.txt": "libraries/module.cmake",
        "tiny/include/tiny.h": "header",
        "tiny/samples/check/CMakeLists.txt": "libraries/sample.cmake",
        "tiny/samples/check/prj.conf": "libraries/prj.conf",
        "tiny/samples/check/src/main.c": "libraries/check.c",
    },
    "firmware": {
        "tiny/tiny.h": "header",
        **{f"tiny/{part}": f"firmware/{part}" for part in CORTEX},
    },
}
"""The files of each layout of C by name: where they go for the name `tiny`, what they are."""

ENTRY_NAMES = {
    "predict_bits": "predict, of bits",
    "predict": "predict, with the encoder",
    "proba": "proba, with the encoder",
}
RIVAL_HEAD = ("on a Cortex-M0+", "accuracy", "flash", "instructions")
HEAD = ("", "flash", "code", "constants", "RAM", "stack, at most")
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


def layout_files(header: str, name: str, layout: str) -> dict[str, str]:
    """The files of a layout by path; ExportError if there is none of that name."""
    if layout not in LAYOUTS:
        raise ExportError(f"unknown layout {layout!r}; choose one of: {', '.join(LAYOUTS)}")
    return {
        program(path, name): header if source == "header" else program(text_of(source), name)
        for path, source in LAYOUTS[layout].items()
    }


def text_of(source: str) -> str:
    """A file beside this one."""
    text = (Path(__file__).parent / source).read_text(encoding="utf-8")
    return text.replace("@version@", __version__)


def program(text: str, name: str) -> str:
    """A text about `tiny`.h for the header `name`.h."""
    return re.sub(r"\btiny\b", name, with_prefix(text, name))


def costs(
    model: Model, name: str, rows: Rows, entries: Sequence[str] = tuple(ENTRIES)
) -> list[Cost]:
    """The costs of a model's header on every target whose compiler is installed."""
    header = c_header(model, name, rows)
    return [cost(header, name, target, entries) for target in TARGETS if target.installed]


def table_of(found: Cost) -> list[tuple[str, ...]]:
    """A line for each function: its name, then bytes."""
    return [
        (ENTRY_NAMES[name], *(f"{n:,}" for n in (b.flash, b.code, b.constants, b.data, b.stack)))
        for name, b in found.sizes.items()
    ]


def work_of(found: Cost) -> str:
    """What the emulator counted, in words."""
    if not found.sizes:
        return "it does not fit into the flash of this device; `vitrail compress` makes it smaller"
    if found.work is None:
        needed = found.target.emulator
        return f"instructions are counted where {needed} is installed" if needed else ""
    agreed = "known answers agree" if found.agree else "KNOWN ANSWERS DIFFER"
    return f"{found.work:,} {found.unit} per prediction by {found.target.emulator}; {agreed}"


def absent() -> list[str]:
    """Targets without a compiler on this machine, in words."""
    missing = [target for target in TARGETS if not target.installed]
    return [f"{target.title}: {target.compiler} is not installed" for target in missing]


def rival_line(name: str, accuracy: float | None, found: Cost) -> tuple[str, ...]:
    """A classifier among others: how often it is right, and what it costs with its encoder."""
    size = found.sizes.get("predict")
    return (
        name,
        "" if accuracy is None else f"{accuracy:.3f}",
        "does not fit" if size is None else f"{size.flash:,}",
        "" if found.work is None else f"{found.work:,}",
    )


def write_costs(
    path: Path,
    title: str,
    lead: Sequence[str],
    found: Sequence[Cost],
    others: Sequence[Sequence[str]] = (),
    notes: Sequence[str] = (),
) -> Path:
    """Write one page that needs nothing but itself; `others` are lines of `rival_line`."""
    return write_page(
        path,
        "devices.html",
        title=f"{title} on devices",
        lead=" ".join(lead),
        found=found,
        most=max((size.flash for cost in found for size in cost.sizes.values()), default=1),
        head=HEAD,
        lines=lambda cost: zip(table_of(cost), cost.sizes.values(), strict=True),
        work_of=work_of,
        rival_head=RIVAL_HEAD,
        others=others,
        notes=". ".join([*absent(), *notes, ""]),
    )
