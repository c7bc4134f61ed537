"""A sum of steps in C: spelled out, test by test, or a loop over a table of them.

Which of the two is smaller, and whether both are larger than bits and their weights, is estimated
in bytes of a Cortex-M0+, most of whose instructions have two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

from vitrail.export.c.encoder import (
    beside,
    bit_cuts,
    bit_range,
    bit_type,
    code_type,
    columns_of,
    field_type,
    whole,
)
from vitrail.export.c.text import (
    byte_or,
    filled,
    joined,
    limits,
    loaded,
    signed,
    size_of,
    table,
    unsigned,
)
from vitrail.export.line import Jump, Line
from vitrail.export.rule import Rule
from vitrail.model import Model
from vitrail.tables.bits import BitColumns

SMALLEST, LARGEST = limits("int32_t")
FEW_SUMS = 4  # that have a register each
# Bytes on a Cortex-M0+, as measured.
SPELLED_BYTES = 8  # to look at the pointer and to return
SUM_BYTES = 6  # of a sum: to begin, to keep and to compare it
LOAD_BYTES = 2  # of a column
TEST_BYTES = 5  # to compare and to branch
ADD_BYTES = 2  # a jump
FAR_BYTES = 6  # more, for a cut that is no byte
CHECK_BYTES = 6  # whether a column can have a value
ORDER_BYTES, CALL_BYTES = 16, 8  # of tiny_order
BEST_BYTES = 12  # to find the largest of several sums
LOOP_BYTES = 48  # over a table
LOOP_SUM_BYTES = 8  # of a sum in a loop
APART = 8  # of a table beside another
NET_LOOP_BYTES = 50  # of a loop over sums around it
SPEED_BYTES = 8  # that are well spent on the third of the instructions that tests spelled out take


@dataclass(frozen=True)
class Field:
    """How C reads a column."""

    name: str
    kind: str  # `word`, `whole`, `real` or `bit`
    type: str
    cuts: list[int]  # the largest value of each region
    categories: int = 0
    low: int | None = None  # of bits: no value is smaller, where the type has smaller ones
    high: int | None = None

    def strange(self, value: str) -> str:
        """Whether the column cannot have a value; empty if it can have all."""
        if self.kind == "word":
            known = f"(uint32_t){value} >= {self.categories}u && " if self.categories else ""
            return f"{known}(uint32_t){value} - TINY_OTHER > 1u"
        ends = ((self.low, "<"), (self.high, ">"))
        return " || ".join(f"{value} {sign} {end}" for end, sign in ends if end is not None)


def fields_of(model: Model) -> list[Field]:
    """The columns of a model."""
    encoder = model.encoder
    if isinstance(encoder, BitColumns):
        (low, high), kind = bit_range(encoder), bit_type(encoder)
        ends = limits(kind)
        field = Field("", "bit", kind, bit_cuts(encoder))
        field = replace(field, low=low if low > ends[0] else None)
        field = replace(field, high=high if high < ends[1] else None)
        return [replace(field, name=f"row->x[{i}]") for i in range(len(encoder.names))]
    columns = columns_of(encoder)
    code, both = code_type(columns), beside(columns)
    other = limits(code)[1] - 1
    found = []
    for column in columns:
        count = len(column.code.categories)
        cuts = [*range(count), other, other + 1] if column.kind == "word" else column.thresholds
        kind = field_type(column.kind, code, both)
        found.append(Field(f"row->{column.field}", column.kind, kind, cuts, count))
    return found


@dataclass(frozen=True)
class Test:
    """A step as C asks for it."""

    column: int
    cut: int
    jump: Jump
    equal: bool
    missing: bool  # counts where the number is missing too

    def asked(self, value: str) -> str:
        """Whether a value passes."""
        if self.equal:
            return f"{value} == {whole(self.cut)}"
        if self.missing:  # the smallest number, less one, is the largest
            return f"(int32_t)((uint32_t){value} - 1u) > {whole(self.cut - 1)}"
        return f"{value} > {whole(self.cut)}"


@dataclass(frozen=True)
class Sums:
    """What a function of C adds up: start + jumps of the tests that a row passes, for each sum."""

    name: str  # of the function
    about: str
    start: Jump
    tests: tuple[Test, ...]
    first: int = 0  # place of the first sum among the scores; those before it are 0

    def turned(self, name: str, about: str, rows: list[list[int]], first: int = 0) -> Sums:
        """Sums of these: each row says how often each counts."""

        def made(jump: Jump) -> Jump:
            return tuple(sum(a * b for a, b in zip(row, jump, strict=True)) for row in rows)

        tests = (replace(test, jump=made(test.jump)) for test in self.tests)
        kept = tuple(test for test in tests if any(test.jump))
        return Sums(name, about, made(self.start), kept, first)


@dataclass(frozen=True)
class Code:
    """A function, and about how many bytes of flash it takes."""

    text: str
    bytes: int


@dataclass(frozen=True)
class Answer:
    """Functions that give the sums of a row, and how it is answered by them."""

    text: str = ""
    flags: tuple[str, ...] = ()  # of the template `faces`
    to_votes: str = ""  # the score that a sum means


def answered(model: Model, line: Line, rule: Rule, most: int) -> Answer | None:
    """The code of a line, if it takes fewer bytes of flash than `most`."""
    fields = fields_of(model)
    sums, size = _sums(line, fields), len(line.base)
    if size == 1:
        below = -(-(rule.cut - line.first) // line.unit) - 1  # the largest sum of class 0
        sums = sums.turned("tiny_line", "A sum that is negative for the second class", [[-1]])
        sums = replace(sums, start=(sums.start[0] + below,))
        code = _smallest(sums, fields)
        to_votes = f"{line.first + line.unit * below} - {line.unit} * score"
        parts, flags = [code.text], ("line", "two")
    elif rule.rank == "score":
        leads = [[-1, *(int(i == net) for i in range(1, size))] for net in range(1, size)]
        first = [[1, *[0] * (size - 1)]]
        code = _smallest(
            sums.turned("tiny_line", "How far classes lead the first", leads, 1), fields
        )
        own = _smallest(sums.turned("tiny_first", "The sum of the first class", first), fields)
        to_votes = f"{line.first} + {line.unit} * (first + score[net])"
        parts, flags = [code.text, own.text], ("line", "leads")
    else:
        code = _smallest(sums, fields)
        to_votes = f"{line.first} + {line.unit} * score[net]"
        parts, flags = [code.text], ("line",)
    size = code.bytes + BEST_BYTES * (size > 1)
    return Answer(joined(*parts), flags, to_votes) if size < most else None


def _smallest(sums: Sums, fields: list[Field]) -> Code:
    """Spelled out or in a loop."""
    spelled, loop = spelled_out(sums, fields), looped(sums, fields)
    return loop if loop and loop.bytes + SPEED_BYTES < spelled.bytes else spelled


def _sums(line: Line, fields: list[Field]) -> Sums:
    """The tests of a line; those that all rows pass go to the start, and those of none go."""
    start, tests = list(line.base), []
    for step in line.steps:
        cut = fields[step.column].cuts[step.place] if step.place >= 0 else SMALLEST
        if step.missing and step.place >= 0 and cut == SMALLEST:
            start = [a + b for a, b in zip(start, step.jump, strict=True)]
        elif step.missing or cut < LARGEST:
            tests.append(Test(step.column, cut, step.jump, step.place < 0, step.missing))
    return Sums("tiny_line", "The sums of a row", tuple(start), tuple(tests))


def spelled_out(sums: Sums, fields: list[Field]) -> Code:
    """A line for each test."""
    sums = _by_words(sums, fields)
    lines, size = [], SPELLED_BYTES + SUM_BYTES * len(sums.start)
    for column, group in groupby(sums.tests, key=lambda test: test.column):
        field, tests = fields[column], list(group)
        value = field.name
        size += LOAD_BYTES * (1 + any(test.missing and not test.equal for test in tests))
        if field.kind == "real":
            lines.append(f"    v = tiny_order({value});")
            value, size = "v", size + CALL_BYTES
        lines += _check(field, value)
        size += CHECK_BYTES * bool(field.strange(value))
        for test in tests:
            adds = [_add(f"s{i}", jump) for i, jump in enumerate(test.jump) if jump]
            lines += [f"    if ({test.asked(value)}) {{", *adds, "    }"]
            size += TEST_BYTES + ADD_BYTES * len(adds) + FAR_BYTES * (not 0 <= test.cut < 256)
    reals = any(fields[test.column].kind == "real" for test in sums.tests)
    text = _filled(sums, ["spelled", *["reals"] * reals], tests="\n".join(lines))
    return Code(text, size + ORDER_BYTES * reals)


def _by_words(sums: Sums, fields: list[Field]) -> Sums:
    """The same with tests for certain words, where those are fewer than tests for being above."""
    start, found = sums.start, []
    for column, group in groupby(sums.tests, key=lambda test: test.column):
        field, tests = fields[column], list(group)
        if field.kind == "word":
            none = (0,) * len(start)
            gains = [
                _total([none, *(test.jump for test in tests if test.cut < code)])
                for code in field.cuts
            ]
            usual = max(gains, key=gains.count)
            less = tuple(-x for x in usual)
            words = [
                Test(column, code, _total([gain, less]), equal=True, missing=False)
                for code, gain in zip(field.cuts, gains, strict=True)
                if gain != usual
            ]
            if len(words) <= len(tests):
                start, tests = _total([start, usual]), words
        found += tests
    return replace(sums, start=start, tests=tuple(found))


def _total(jumps: list[Jump]) -> Jump:
    return tuple(map(sum, zip(*jumps, strict=True)))


def _check(field: Field, value: str) -> list[str]:
    strange = field.strange(value)
    return [f"    if ({strange}) {{", "        return TINY_BAD_INPUT;", "    }"] if strange else []


def _add(name: str, jump: int) -> str:
    return f"        {name} {'+' if jump > 0 else '-'}= {abs(jump)};"


def looped(sums: Sums, fields: list[Field]) -> Code | None:
    """A table of tests, and a loop over it; None where columns are not alike."""
    tests, count = sums.tests, len(sums.start)
    if not tests or any(test.equal for test in tests) or len({field.type for field in fields}) > 1:
        return None
    read = [fields[column] for column in sorted({test.column for test in tests})]
    kinds, real = {field.kind for field in read}, read[0].kind == "real"
    flagged, net_loop = any(test.missing for test in tests), count > FEW_SUMS
    cuts = [test.cut - test.missing for test in tests]
    places = [2 * test.column + test.missing if flagged else test.column for test in tests]
    jumps = [jump for test in tests for jump in test.jump]
    cut_type, column_type = byte_or(cuts), unsigned(max(places))
    jump_type = signed(min(jumps), max(jumps))
    cut_size = size_of(cut_type) // 8
    rest = [size_of(column_type) // 8, *[size_of(jump_type) // 8] * count]
    same, step = len(set(cuts)) == 1, f"{sums.name}_steps[i]"
    apart = not same and (padded([cut_size, *rest]) - cut_size - padded(rest)) * len(tests) > APART
    value = "value[c >> 1]" if flagged else "value[c]"
    value = f"tiny_order({value})" if real else value
    alone = len(kinds) == 1  # words beside whole numbers are looked at before the loop
    strange = replace(read[0], categories=max(field.categories for field in read)).strange("v")
    checks = [] if alone else [line for field in read for line in _check(field, field.name)]
    jump = f"{step}.jump + "
    if net_loop:
        adds = [f"            s += {loaded(jump_type, f'{jump}net')};"]
    else:
        adds = [f"            s{i} += {loaded(jump_type, f'{jump}{i}')};" for i in range(count)]
    cut = loaded(cut_type, f"{sums.name}_cuts + i" if apart else f"&{step}.cut")
    start_type = byte_or(sums.start)
    flags = {
        "loops": True,
        "cuts": not same and not apart,
        "apart": apart,
        "net_loop": net_loop,
        "check": alone and bool(strange),
    }
    text = _filled(
        sums,
        [name for name, on in flags.items() if on],
        cut_type=cut_type,
        column_type=column_type,
        jump_type=jump_type,
        flagged=" /* twice, and 1 if a missing number counts too */" if flagged else "",
        steps=",\n".join(
            f"    {{{f'{whole(cut)}, ' * flags['cuts']}{place}, {{{str(test.jump).strip('(,)')}}}}}"
            for cut, place, test in zip(cuts, places, tests, strict=True)
        ),
        starts=table(start_type, f"{sums.name}_starts", map(str, sums.start)),
        load_start=loaded(start_type, f"{sums.name}_starts + net"),
        field=read[0].type,
        value_type="int32_t" if real else read[0].type,
        value=f"(int32_t)((uint32_t){value} - (c & 1u))" if flagged else value,
        load_column=loaded(column_type, f"&{step}.column"),
        cut=whole(cuts[0]) if same else cut,
        cuts=table(cut_type, f"{sums.name}_cuts", map(whole, cuts)),
        strange=strange,
        adds="\n".join(adds),
        num_steps=len(tests),
        tests="\n".join(checks),
    )
    each = padded([cut_size, *rest]) if flags["cuts"] else padded(rest) + cut_size * apart
    size = LOOP_BYTES + each * len(tests) + APART * apart + CHECK_BYTES * bool(strange)
    size += NET_LOOP_BYTES + count if net_loop else LOOP_SUM_BYTES * count
    return Code(text, size + 3 * LOAD_BYTES * flagged + (ORDER_BYTES + CALL_BYTES) * real)


def padded(sizes: list[int]) -> int:
    """Bytes of a struct with members of these sizes, the largest first."""
    return -(-sum(sizes) // max(sizes)) * max(sizes)


def _filled(sums: Sums, flags: list[str], **values: object) -> str:
    names = [f"s{i}" for i in range(len(sums.start))]
    stores = [f"    score[{i}] = 0;" for i in range(sums.first)]
    if "net_loop" not in flags:
        stores += [f"    score[{sums.first + i}] = {name};" for i, name in enumerate(names)]
    return filled(
        "line",
        flags,
        **{"name": sums.name, "about": sums.about, "count": len(names), **values},
        sums=", ".join(f"{a} = {b}" for a, b in zip(names, sums.start, strict=True)),
        offset=f" + {sums.first}u" * bool(sums.first),
        opaque="    " + " ".join(f'__asm__("" : "+r"({name}));' for name in names),
        stores="\n".join(stores),
    )
