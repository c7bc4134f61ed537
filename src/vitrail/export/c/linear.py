"""A linear model in C: a sum of steps, spelled out test by test, or a loop over a table of them.

Which of the two is smaller, and whether both are larger than bits and their weights, is estimated
in bytes of a Cortex-M0+, most of whose instructions have two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

from vitrail.export.c.encoder import bit_columns, code_type, columns_of
from vitrail.export.c.text import (
    byte_or,
    int32_literal,
    joined,
    limits,
    render,
    signed,
    size_of,
    unsigned,
)
from vitrail.export.linear import Jump, LinearForm
from vitrail.export.rule import Rule
from vitrail.model import Model
from vitrail.tables.bits import BitColumns

SMALLEST, LARGEST = limits("int32_t")
FEW_SUMS = 4  # that have a register each
BYTE = 256
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
TABLE_BYTES = 8  # of a table beside another
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

    def invalid(self, value: str) -> str:
        """The condition that the column cannot have a value; empty if it can have all."""
        if self.kind == "word":
            known = f"(uint32_t){value} >= {self.categories}u && " if self.categories else ""
            return f"{known}(uint32_t){value} - TINY_OTHER > 1u"
        ends = ((self.low, "<"), (self.high, ">"))
        return " || ".join(f"{value} {sign} {end}" for end, sign in ends if end is not None)


def fields_of(model: Model) -> list[Field]:
    """The columns of a model."""
    encoder = model.encoder
    if isinstance(encoder, BitColumns):
        bits = bit_columns(encoder)
        low = bits["low"] if bits["low"] > bits["smallest"] else None
        high = bits["high"] if bits["high"] < bits["largest"] else None
        return [
            Field(f"row->x[{i}]", "bit", bits["type"], bits["cuts"], low=low, high=high)
            for i in range(len(encoder.names))
        ]
    other, found = limits(code_type(encoder))[1] - 1, []
    for column in columns_of(encoder):
        count = len(column.code.categories)
        cuts = [*range(count), other, other + 1] if column.kind == "word" else column.thresholds
        found.append(Field(f"row->{column.field}", column.kind, column.type, cuts, count))
    return found


@dataclass(frozen=True)
class Test:
    """A step as C tests for it."""

    column: int
    cut: int
    jump: Jump
    equal: bool
    missing: bool  # counts where the number is missing too

    def condition(self, value: str) -> str:
        """Whether a value passes."""
        if self.equal:
            return f"{value} == {int32_literal(self.cut)}"
        if self.missing:  # the smallest number minus one is the largest
            return f"(int32_t)((uint32_t){value} - 1u) > {int32_literal(self.cut - 1)}"
        return f"{value} > {int32_literal(self.cut)}"


@dataclass(frozen=True)
class Sums:
    """What a function of C adds up: start + jumps of the tests that a row passes, for each sum."""

    name: str  # of the function
    about: str
    start: Jump
    tests: tuple[Test, ...]
    first: int = 0  # place of the first sum among the scores; those before it are 0

    def combined(self, name: str, about: str, rows: list[list[int]], first: int = 0) -> Sums:
        """Sums of these: each row says how often each counts."""

        def combine(jump: Jump) -> Jump:
            return tuple(sum(a * b for a, b in zip(row, jump, strict=True)) for row in rows)

        tests = (replace(test, jump=combine(test.jump)) for test in self.tests)
        kept = tuple(test for test in tests if any(test.jump))
        return Sums(name, about, combine(self.start), kept, first)


@dataclass(frozen=True)
class Code:
    """A function, and about how many bytes of flash it takes."""

    text: str
    bytes: int
    tables: int  # bytes of constants, exactly
    parts: dict[str, int]  # how often there is what `vitrail.export.flash` knows the bytes of


@dataclass(frozen=True)
class Answer:
    """Functions that give the sums of a row, and how it is answered by them."""

    text: str = ""
    form: str = ""  # of the template `faces`: by bits where empty
    to_votes: str = ""  # the score that a sum means
    code: Code | None = None  # of the function that `tiny_predict` calls


def answer_by_steps(model: Model, linear: LinearForm, rule: Rule, most: int) -> Answer | None:
    """The code of a linear model, if it takes fewer bytes of flash than `most`."""
    fields = fields_of(model)
    sums, size, unit = _sums(linear, fields), len(linear.base), linear.unit
    own = ""
    if size == 1:
        below = -(-(rule.cut - linear.first) // unit) - 1  # the largest sum of class 0
        sums = sums.combined(sums.name, "A sum that is negative for the second class", [[-1]])
        sums = replace(sums, start=(sums.start[0] + below,))
        form, to_votes = "two", f"{linear.first + unit * below} - {unit} * score"
    elif rule.rank == "score":
        first = [[1, *[0] * (size - 1)]]
        first_sum = sums.combined("tiny_first", "The sum of the first class", first)
        own = _smallest(first_sum, fields).text
        leads = [[-1, *(int(i == net) for i in range(1, size))] for net in range(1, size)]
        sums = sums.combined(sums.name, "How far classes lead the first", leads, 1)
        form, to_votes = "leads", f"{linear.first} + {unit} * (first + score[net])"
    else:
        form, to_votes = "scores", f"{linear.first} + {unit} * score[net]"
    code = _smallest(sums, fields)
    total = code.bytes + BEST_BYTES * (size > 1)
    return Answer(joined(code.text, own), form, to_votes, code) if total < most else None


def _smallest(sums: Sums, fields: list[Field]) -> Code:
    """Spelled out or in a loop."""
    spelled, loop = spelled_out(sums, fields), looped(sums, fields)
    return loop if loop and loop.bytes + SPEED_BYTES < spelled.bytes else spelled


def _sums(linear: LinearForm, fields: list[Field]) -> Sums:
    """The tests of a model; those that all rows pass go to the start, and those of none go."""
    start, tests = linear.base, []
    for step in linear.steps:
        cut = fields[step.column].cuts[step.place] if step.place >= 0 else SMALLEST
        if step.missing and step.place >= 0 and cut == SMALLEST:
            start = _total([start, step.jump])
        elif step.missing or cut < LARGEST:
            tests.append(Test(step.column, cut, step.jump, step.place < 0, step.missing))
    return Sums("tiny_linear", "The sums of a row", start, tuple(tests))


def spelled_out(sums: Sums, fields: list[Field]) -> Code:
    """A line for each test."""
    sums = _by_words(sums, fields)
    groups = [(fields[c], list(tests)) for c, tests in groupby(sums.tests, lambda t: t.column)]
    real = any(field.kind == "real" for field, _ in groups)
    size = SPELLED_BYTES + SUM_BYTES * len(sums.start) + ORDER_BYTES * real
    live = sum(any(test.jump[i] for test in sums.tests) for i in range(len(sums.start)))
    parts = {"spelled": 1, "spelled sum": live, "constant sum": len(sums.start) - live}
    parts |= spelled_parts(groups, live)
    for field, tests in groups:
        size += LOAD_BYTES * (1 + any(test.missing and not test.equal for test in tests))
        size += CALL_BYTES * (field.kind == "real") + CHECK_BYTES * bool(field.invalid(""))
        for test in tests:
            adds = len(test.jump) - test.jump.count(0)
            size += TEST_BYTES + ADD_BYTES * adds + FAR_BYTES * (not 0 <= test.cut < 256)
    values = {"looped": False, "net_loop": False, "real": real, "groups": groups}
    return Code(_filled(sums, **values), size, 0, parts)


def spelled_parts(groups: list[tuple[Field, list[Test]]], sums: int) -> dict[str, int]:
    """What the tests of columns consist of; an instruction holds numbers of a byte alone."""
    tests = [test for _, own in groups for test in own]
    cuts = [test.cut for test in tests if not 0 <= test.cut < BYTE]
    jumps = [abs(jump) for test in tests for jump in test.jump if jump]
    reals = sum(field.kind == "real" for field, _ in groups)
    spilled = max(sums - FEW_SUMS, 0) * len(jumps) // max(sums, 1)
    return {
        "column": len(groups),
        "order": min(reals, 1),
        "real column": max(reals - 1, 0),  # the first has `tiny_order` itself where it is alone
        "checked column": sum(bool(field.invalid("")) for field, _ in groups),
        "checked word": sum(field.kind == "word" for field, _ in groups),
        "test": len(tests),
        "test for missing": sum(test.missing for test in tests),
        "far cut": len(cuts),
        "far constant": len(set(cuts)),
        "add": len(jumps),
        "spilled add": spilled,
        "large add": sum(jump >= BYTE for jump in jumps),
    }


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
            opposite = tuple(-x for x in usual)
            words = [
                Test(column, code, _total([gain, opposite]), equal=True, missing=False)
                for code, gain in zip(field.cuts, gains, strict=True)
                if gain != usual
            ]
            if len(words) <= len(tests):
                start, tests = _total([start, usual]), words
        found += tests
    return replace(sums, start=start, tests=tuple(found))


def _total(jumps: list[Jump]) -> Jump:
    return tuple(map(sum, zip(*jumps, strict=True)))


def looped(sums: Sums, fields: list[Field]) -> Code | None:
    """A table of tests, and a loop over it; None where columns are not alike."""
    tests, count = sums.tests, len(sums.start)
    if not tests or any(test.equal for test in tests) or len({field.type for field in fields}) > 1:
        return None
    read = [fields[column] for column in sorted({test.column for test in tests})]
    field = replace(read[0], categories=max(field.categories for field in read))
    alone = len({field.kind for field in read}) == 1
    flagged, net_loop = any(test.missing for test in tests), count > FEW_SUMS
    cuts = [test.cut - test.missing for test in tests]
    places = [2 * test.column + test.missing if flagged else test.column for test in tests]
    jumps = [jump for test in tests for jump in test.jump]
    types = byte_or(cuts), unsigned(max(places)), signed(min(jumps), max(jumps))
    cut, *rest = (size_of(kind) // 8 for kind in types)
    rest = [rest[0], *[rest[1]] * count]
    same = len(set(cuts)) == 1
    apart = not same and (padded([cut, *rest]) - cut - padded(rest)) * len(tests) > TABLE_BYTES
    text = _filled(
        sums,
        looped=True,
        net_loop=net_loop,
        real=field.kind == "real",
        # Words beside whole numbers are checked before the loop.
        groups=[] if alone else [(one, []) for one in read],
        field=field,
        flagged=flagged,
        apart=apart,
        cuts_in_steps=not same and not apart,
        cuts=cuts,
        places=places,
        cut_type=types[0],
        column_type=types[1],
        jump_type=types[2],
        start_type=byte_or(sums.start),
    )
    each = padded(rest) + cut * apart if same or apart else padded([cut, *rest])
    size = LOOP_BYTES + each * len(tests) + TABLE_BYTES * apart
    size += CHECK_BYTES * bool(field.invalid("")) + 3 * LOAD_BYTES * flagged
    size += NET_LOOP_BYTES + count if net_loop else LOOP_SUM_BYTES * count
    size += (ORDER_BYTES + CALL_BYTES) * (field.kind == "real")
    starts = count * size_of(byte_or(sums.start)) // 8 if net_loop else 0
    parts = {
        "loop": 1,
        "loop over sums": net_loop,
        "sum in a loop": 0 if net_loop else count,
        "real loop": field.kind == "real",
        "checked loop": bool(field.invalid("")) and alone,
        "checked column": 0 if alone else sum(bool(one.invalid("")) for one in read),
        "checked word": 0 if alone else sum(one.kind == "word" for one in read),
        "missing in a loop": flagged,
        "cuts apart": apart,
    }
    return Code(text, size, each * len(tests) + starts, {k: int(n) for k, n in parts.items()})


def padded(sizes: list[int]) -> int:
    """Bytes of a struct with members of these sizes, the largest first."""
    return -(-sum(sizes) // max(sizes)) * max(sizes)


def _filled(sums: Sums, **values: object) -> str:
    names = [f"s{i}" for i in range(len(sums.start))]
    begun = ", ".join(f"{a} = {b}" for a, b in zip(names, sums.start, strict=True))
    opaque = " ".join(f'__asm__("" : "+r"({name}));' for name in names)
    return render("linear", sums=sums, begun=begun, opaque=opaque, **values)
