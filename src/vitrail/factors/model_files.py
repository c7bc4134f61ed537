"""Files of graphical models: UAI (MARKOV, BAYES) with evidence, DIMACS (CNF, WCNF).

Formats: UAI competitions 2006 to 2022, DIMACS 1993, WCNF with a top weight (before 2022) and with
`h` for hard clauses (since 2022). A soft clause of weight w costs energy w where it is violated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np

from vitrail.errors import DataError
from vitrail.factors.discrete import MAX_VALUES, DiscreteModel, LogTable
from vitrail.factors.table import MAX_TABLE_ARITY
from vitrail.files import Unpacked

T = TypeVar("T", int, float)


class _Tokens:
    """The words of a file, with their line numbers."""

    def __init__(self, path: str | Path) -> None:
        with Unpacked(path) as stream:
            self.title = stream.title
            text = stream.read()
        try:
            self.lines = (text or b"").decode("ascii").splitlines()
        except UnicodeDecodeError as error:
            self.line = (text or b"")[: error.start].count(b"\n") + 1
            self.fail("not a text file; give a UAI or DIMACS file")
        self.line = 1
        self._words = self._all()

    def _all(self) -> Iterator[str]:
        for number, line in enumerate(self.lines, 1):
            self.line = number
            yield from line.split()

    def fail(self, what: str) -> NoReturn:
        raise DataError(f"{self.title}, line {self.line}: {what}")

    def word(self, what: str) -> str:
        word = next(self._words, None)
        if word is None:
            self.fail(f"the file ends where {what} should be; it is cut or counts are wrong")
        return word

    def number(self, what: str, kind: Callable[[str], T], low: float, high: float = math.inf) -> T:
        word = self.word(what)
        try:
            value = kind(word)
        except ValueError:
            self.fail(f"{what} should be a number, got {word!r}")
        if not low <= value <= high or value == math.inf:
            limits = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
            self.fail(f"{what} should be {limits}, got {word}")
        return value

    def end(self) -> None:
        word = next(self._words, None)
        if word is not None:
            self.fail(f"{word!r} is beyond the end given by the counts")


def read_model(path: str | Path, evidence: str | Path | None = None) -> DiscreteModel:
    """Read a model from a file; the first word gives the format.

    Args:
        path: UAI (MARKOV or BAYES), DIMACS CNF or WCNF; gzipped or not.
        evidence: UAI evidence: a count, then variables and their values.

    Returns:
        The model; its `graph` is what solvers take.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "pair.uai"
        ...     _ = path.write_text("MARKOV 2 2 3 1 2 0 1 6 1 2 3 4 5 6")
        ...     read_model(path).graph.num_variables
        3
    """
    tokens = _Tokens(path)
    first = next((line.split()[0] for line in tokens.lines if line.strip()), "")
    if first.upper() in ("MARKOV", "BAYES"):
        model = _uai(tokens)
    elif first in ("c", "p", "h") or first.isdigit():
        model = _dimacs(tokens)
    else:
        tokens.fail(f"a model begins with MARKOV, BAYES, 'p cnf' or 'p wcnf', got {first!r}")
    return model if evidence is None else model.given(_evidence(evidence))


def _uai(tokens: _Tokens) -> DiscreteModel:
    tokens.word("MARKOV or BAYES")
    count = tokens.number("the number of variables", int, 1)
    sizes = []
    for variable in range(count):
        size = tokens.number(f"the number of values of variable {variable}", int, 1)
        if size > MAX_VALUES:
            tokens.fail(f"variable {variable} has {size} values, at most {MAX_VALUES} are taken")
        sizes.append(size)
    scopes = []
    for factor in range(tokens.number("the number of factors", int, 0)):
        arity = tokens.number(f"the number of variables of factor {factor}", int, 0)
        scope = tuple(
            tokens.number(f"a variable of factor {factor}", int, 0, count - 1) for _ in range(arity)
        )
        if len(set(scope)) < arity:
            tokens.fail(f"factor {factor} lists a variable twice")
        if sum((sizes[variable] - 1).bit_length() for variable in scope) > MAX_TABLE_ARITY:
            tokens.fail(f"factor {factor} takes more than {MAX_TABLE_ARITY} bits; split it")
        scopes.append(scope)
    factors = []
    for factor, scope in enumerate(scopes):
        shape = [sizes[variable] for variable in scope]
        entries = tokens.number(f"the number of entries of factor {factor}", int, 0)
        if entries != math.prod(shape):
            tokens.fail(
                f"factor {factor} announces {entries} entries, its variables have "
                f"{math.prod(shape)} configurations"
            )
        what = f"a potential of factor {factor}"
        values = [tokens.number(what, float, 0.0) for _ in range(entries)]
        with np.errstate(divide="ignore"):
            factors.append(LogTable(scope, np.log(np.array(values)).reshape(shape)))
    tokens.end()
    return DiscreteModel(tuple(sizes), tuple(factors))


def _evidence(path: str | Path) -> dict[int, int]:
    tokens = _Tokens(path)
    words = [word for line in tokens.lines for word in line.split()]
    # files of 2010 begin with the number of samples, of which there is one
    if len(words) % 2 == 0 and words and words[0] == "1":
        tokens.word("the number of samples")
    found: dict[int, int] = {}
    for _ in range(tokens.number("the number of known variables", int, 0) if words else 0):
        variable = tokens.number("a known variable", int, 0)
        if variable in found:
            tokens.fail(f"variable {variable} is named twice")
        found[variable] = tokens.number("the value of a known variable", int, 0)
    tokens.end()
    return found


def _dimacs(tokens: _Tokens) -> DiscreteModel:
    declared: int | None = None
    weighted, top, clauses = True, math.inf, []
    literals: list[int] = []
    weight: float | None = None
    for number, line in enumerate(tokens.lines, 1):
        tokens.line = number
        words = line.split()
        if not words or words[0] == "c":
            continue
        if words[0] == "%":
            break  # how files of SATLIB end
        if words[0] == "p":
            declared, weighted, top = _problem_line(tokens, words)
            continue
        for word in words:
            if weighted and weight is None:
                weight = math.inf if word == "h" else _float(tokens, word)
                weight = math.inf if weight >= top else weight
                continue
            try:
                literal = int(word)
            except ValueError:
                tokens.fail(f"a clause is made of whole numbers, got {word!r}")
            if literal:
                literals.append(literal)
                if declared is not None and abs(literal) > declared:
                    tokens.fail(f"literal {literal} is beyond the {declared} variables announced")
                continue
            clauses.append((math.inf if weight is None else weight, literals, tokens.line))
            literals, weight = [], None
    if literals or weight is not None:
        tokens.fail("the last clause does not end with 0; the file is cut")
    count = declared or max((abs(x) for _, clause, _ in clauses for x in clause), default=0)
    if count == 0:
        tokens.fail("there is no variable; give clauses")
    factors = [_clause(tokens, *clause) for clause in clauses]
    return DiscreteModel((2,) * count, tuple(f for f in factors if f is not None))


def _problem_line(tokens: _Tokens, words: Sequence[str]) -> tuple[int, bool, float]:
    """Variables, whether clauses have weights, and the weight of hard ones."""
    numbers = words[2:]
    if words[1:2] not in (["cnf"], ["wcnf"]) or not all(n.isdigit() for n in numbers):
        tokens.fail("a problem line is 'p cnf VARIABLES CLAUSES' or 'p wcnf VARIABLES CLAUSES TOP'")
    if not 2 <= len(numbers) <= 3:
        tokens.fail("a problem line has the number of variables and of clauses")
    top = float(numbers[2]) if len(numbers) == 3 else math.inf
    return int(numbers[0]), words[1] == "wcnf", top


def _float(tokens: _Tokens, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        tokens.fail(f"a weight is a number of at least 0, or h for a hard clause, got {word!r}")
    return value


def _clause(tokens: _Tokens, weight: float, literals: list[int], line: int) -> LogTable | None:
    """The factor of a clause; None where it holds a variable and its negation."""
    chosen = sorted(set(literals), key=abs)
    scope = tuple(abs(literal) - 1 for literal in chosen)
    if len(set(scope)) < len(scope):
        return None
    if len(scope) > MAX_TABLE_ARITY:
        tokens.line = line
        tokens.fail(f"a clause of {len(scope)} literals; at most {MAX_TABLE_ARITY} are taken")
    values = np.zeros((2,) * len(scope))
    values[tuple(int(literal < 0) for literal in chosen)] = -weight
    return LogTable(scope, values)


def result_text(task: str, answer: float | Sequence[int] | Sequence[Sequence[float]]) -> str:
    """A UAI result file.

    Args:
        task: "pr", "mar" or "map".
        answer: log10 Z, probabilities of the values of each variable, or their values.

    Returns:
        The text, which ends with a line end.

    Examples:
        >>> print(result_text("map", [1, 0, 2]), end="")
        MAP
        3 1 0 2
    """
    if isinstance(answer, float | int):
        return f"{task.upper()}\n{answer:.12g}\n"
    words = [str(len(answer))]
    for one in answer:
        if isinstance(one, int):
            words.append(str(one))
        else:
            words += [str(len(one)), *(f"{value:.12g}" for value in one)]
    return f"{task.upper()}\n{' '.join(words)}\n"
