"""Small pieces of C: templates, identifiers, comments, strings, tables of numbers.

Templates are written with the prefix `tiny_` and `TINY_`; `with_prefix` puts the user's there.
Names, words and labels of the user get into code by `identifiers`, `comment` and `string` alone,
which mark a `tiny_` in them as no such prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

RESERVED = """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t
    char32_t char8_t class co_await co_return co_yield compl concept const const_cast consteval
    constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit
    export extern false float for friend goto if inline int long mutable namespace new noexcept not
    not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires
    restrict return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
    virtual void volatile wchar_t while xor xor_eq"""
KEYWORDS = frozenset(RESERVED.split())
# Names in small letters that compilers, the standard library, Windows and Qt define as macros.
DEFINED = """arm avr complex emit errno far forever hpux huge i386 imaginary interface linux m68k
    math_errhandling mips near noreturn pascal ppc signals slots small sparc stderr stdin stdout sun
    unix vax"""
NO_NAMES = KEYWORDS | set(DEFINED.split())
NO_PREFIX = "\x1a"  # in `tiny_` of the user's, until prefixes have been replaced
ESCAPES = {x: f"\\{x:03o}" for x in range(256) if not 32 <= x < 127 or chr(x) in '"\\?'}
TEMPLATES = Path(__file__).parent.glob("*.h")
ALL_TEMPLATES = "\n".join(path.read_text(encoding="utf-8") for path in TEMPLATES)


def templates(folder: Path) -> Environment:
    """The templates of C in a folder: `//:` begins a statement, `@name@` is a value."""
    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        line_statement_prefix="//:",
        variable_start_string="@",
        variable_end_string="@",
    )


ENGINE = templates(Path(__file__).parent)


def render(part: str, **values: object) -> str:
    """The template `part`.h beside this file."""
    return ENGINE.get_template(f"{part}.h").render(values).strip("\n")


def with_prefix(code: str, name: str) -> str:
    """The code with its prefix replaced."""
    code = re.sub(r"\btiny_", f"{name}_", code)
    return re.sub(r"\bTINY_", f"{name.upper()}_", code).replace(NO_PREFIX, "")


def protect(text: str) -> str:
    """Text of the user's, as `with_prefix` leaves it."""
    return re.sub(r"\b(tiny|TINY)_", rf"\1{NO_PREFIX}_", text)


def identifiers(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """A C identifier for each name, all different: letters and digits stay, the rest is `_`."""
    used, found = set(taken), []
    for name in names:
        plain = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_") or "x"
        if plain[0].isdigit() or plain in NO_NAMES:
            plain = f"x_{plain}"
        one, number = protect(plain), 1
        while one in used:
            number += 1
            one = protect(f"{plain}_{number}")
        used.add(one)
        found.append(one)
    return found


def comment(text: str) -> str:
    """Text that can stand inside a comment, on one line and in plain letters."""
    plain = "".join(x if " " <= x <= "~" else "?" for x in " ".join(text.split()))
    plain = re.sub(r"(?<=\*)(?=/)|(?<=/)(?=\*)|(?<=\?)(?=\?)", " ", plain)
    return protect(plain.rstrip("\\"))


def string(text: str) -> str:
    """A string literal; letters beyond ASCII are UTF-8 in octal, and the letter 0, which would end
    it, is spelled in two bytes as Java does."""
    return protect(literal(text.encode("utf-8", "replace").replace(b"\0", b"\xc0\x80")))


def literal(octets: bytes) -> str:
    """A string literal of bytes: letters as they are, all else in octal, in three digits so that
    none that follow are read with them; no question marks, as two of them begin a trigraph."""
    return '"' + octets.decode("latin-1").translate(ESCAPES) + '"'


def unsigned(most: int) -> str:
    """The smallest type of numbers from 0 to `most`."""
    return next(f"uint{bits}_t" for bits in (8, 16, 32, 64) if most < 2**bits)


def signed(low: int, high: int) -> str:
    """The smallest type of numbers from `low` to `high`."""
    fits = (bits for bits in (8, 16, 32, 64) if -(2 ** (bits - 1)) <= low <= high < 2 ** (bits - 1))
    return f"int{next(fits)}_t"


def size_of(kind: str) -> int:
    """How many bits a type of whole numbers has."""
    return int(re.sub(r"\D", "", kind))


def read(kind: str, place: str) -> str:
    """Reads a number from a table."""
    return f"({kind})TINY_LOAD{size_of(kind)}({place})"


def int32_literal(number: float) -> str:
    """An int32_t; the smallest has no literal of its own."""
    return "(-2147483647 - 1)" if number == -(2**31) else str(int(number))


def limits(kind: str) -> tuple[int, int]:
    """The smallest and the largest number of a type."""
    found = np.iinfo(kind.removesuffix("_t"))
    return int(found.min), int(found.max)


def byte_or(numbers: Sequence[int]) -> str:
    """The smallest type of these numbers: a byte, or one that is signed."""
    low, high = min(numbers), max(numbers)
    return "uint8_t" if 0 <= low <= high < 256 else signed(low, high)


def table(kind: str, name: str, items: Iterable[object], each: int = 12) -> str:
    """A constant array, `each` items per line."""
    cells = list(map(str, items))
    lines = [", ".join(cells[i : i + each]) for i in range(0, len(cells), each)]
    body = ",\n    ".join(lines)
    return f"static const {kind} {name}[] TINY_FLASH = {{\n    {body}\n}};"


def byte_rows(name: str, rows: np.ndarray) -> str:
    """A constant array of bytes, a row of words being a string; with a place for its end."""
    lines = ",\n    ".join(literal(row.tobytes()) for row in rows.astype("<u4"))
    width = 4 * rows.shape[1] + 4
    return f"static const uint8_t {name}[][{width}] TINY_FLASH = {{\n    {lines}\n}};"


def joined(*blocks: str) -> str:
    """Blocks with a line between them; empty ones are left out."""
    return "\n\n".join(block.strip("\n") for block in blocks if block.strip())


ENGINE.filters.update(comment=comment, string=string, int32_literal=int32_literal)
ENGINE.globals.update(read=read, limits=limits, table=table)
