"""Random K-SAT by survey propagation: decimation until surveys are trivial, then WalkSAT.

Braunstein, Mézard and Zecchina, Survey propagation: an algorithm for satisfiability (2005). A
survey is the probability over clusters of solutions that a clause warns a variable; each variable
is forced to one, forced to zero or free. The most biased variables are fixed, a share at a time,
and the clauses are simplified.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vitrail.checks import check_made, checked_share
from vitrail.factors import Table
from vitrail.graph import FactorGraph
from vitrail.random import Key, Stream

MAX_SWEEPS = 1000  # surveys that need more are taken not to converge
SURVEY_TOLERANCE = 1e-3  # largest change of a survey, as in the paper
TRIVIAL_SURVEY = 0.01  # below, surveys are trivial and local search continues
NOISE = 0.57  # WalkSAT's probability of flipping a random variable of the clause; best for 3-SAT


@dataclass(frozen=True)
class Assignment:
    """An assignment of the V variables of a formula."""

    best: Tensor  # (V,) bool
    unsatisfied: int  # number of unsatisfied clauses of the original formula
    fixed: int  # variables fixed by surveys; local search assigned the rest
    sweeps: int  # of survey propagation


def solve_formula(
    graph: FactorGraph,
    *,
    fraction: float = 0.01,
    flips: int = 50_000_000,
    seed: int = 0,
) -> Assignment:
    """A solution of a formula by survey propagation, decimation and local search.

    Args:
        graph: Clauses: tables of 0 and 1, each with a single 0.
        fraction: Share of the free variables that is fixed at a time.
        flips: Maximum number of WalkSAT flips.
        seed: Same number, same result.

    Returns:
        The assignment, checked clause by clause.

    Examples:
        >>> from vitrail import factor_graph, table
        >>> from vitrail.graph import indexed
        >>> either = table(torch.tensor([[0.0, 1.0, 1.0, 1.0]] * 2), indexed([[0, 1], [1, 2]]))
        >>> solve_formula(factor_graph(either)).unsatisfied
        0
    """
    from vitrail.kernels.cpu.sat import sweep, walk

    check_made(graph, "over_variables", "factor_graph(…)")
    checked_share("fraction", fraction)
    original = _clauses(graph)
    random = np.random.default_rng(seed)
    value = np.full(graph.num_variables, -1)  # −1 is free
    clauses, sweeps = original, 0
    surveys = random.random(clauses.shape)
    while True:
        log_free = np.zeros(2 * len(value))
        present = clauses >= 0
        surveys = np.where(present, surveys, 0.0)
        np.add.at(log_free, clauses[present], np.log1p(-surveys[present]))
        for _ in range(MAX_SWEEPS):
            sweeps += 1
            change = sweep(clauses, surveys, log_free, random.permutation(len(clauses)))
            if change < SURVEY_TOLERANCE:
                break
        else:
            break
        if len(clauses) == 0 or surveys.max() < TRIVIAL_SURVEY:
            break
        up, down = _forced_probabilities(log_free)
        bias = np.where(value < 0, np.abs(up - down), -1.0)
        count = max(1, int(fraction * (value < 0).sum()))
        chosen = np.argpartition(-bias, count - 1)[:count]
        value[chosen] = up[chosen] > down[chosen]
        clauses, surveys = _simplify(clauses, surveys, value)
    fixed = int((value >= 0).sum())
    bits = np.where(value < 0, random.integers(0, 2, len(value)), value).astype(bool)
    truth = np.stack([bits, ~bits], 1).reshape(-1)
    words = np.array(Key(seed).of(Stream.SEARCH).words(), np.uint32)
    for formula in (clauses, original):  # the simplified formula first, then all clauses
        walk(formula, *_clauses_by_literal(formula, len(truth)), truth, NOISE, flips // 2, words)
        if _unsatisfied(original, truth) == 0:
            break
    best = torch.from_numpy(truth[0::2].copy())
    return Assignment(best.to(graph.device), _unsatisfied(original, truth), fixed, sweeps)


def _clauses(graph: FactorGraph) -> NDArray[np.int64]:
    """Literals of the clauses, (M, K) int64, padded with −1."""
    width = max(block.arity for block in graph.blocks)
    rows = []
    for block in graph.blocks:
        if not isinstance(block, Table) or bool(((block.potential == 0).sum(1) != 1).any()):
            raise ValueError("a formula is made of clauses: tables of 0 and 1 with a single 0 each")
        forbidden = (block.potential == 0).int().argmax(1).cpu().numpy()
        scope = block.scope.index().expand(block.num_factors, block.arity).cpu().numpy()
        # a literal is negated where the forbidden configuration has a one
        literals = 2 * scope + (forbidden[:, None] >> np.arange(block.arity) & 1)
        pad = ((0, 0), (0, width - block.arity))
        rows.append(np.pad(literals, pad, constant_values=-1))
    return np.ascontiguousarray(np.concatenate(rows).astype(np.int64))


def _forced_probabilities(
    log_free: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probabilities that each variable is forced to one and to zero."""
    positive, negative = np.exp(log_free[0::2]), np.exp(log_free[1::2])
    up, down = (1 - positive) * negative, (1 - negative) * positive
    total = np.maximum(up + down + positive * negative, 1e-300)
    return up / total, down / total


def _simplify(
    clauses: NDArray[np.int64], surveys: NDArray[np.float64], value: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Clauses not yet satisfied by fixed variables, without their false literals."""
    known = np.where(clauses >= 0, value[clauses >> 1], -1)
    met = ((known >= 0) & (known != (clauses & 1))).any(1)
    left = np.where(known >= 0, -1, clauses)[~met]
    order = np.argsort(left < 0, axis=1, kind="stable")  # literals first, gaps behind them
    return np.take_along_axis(left, order, 1), np.take_along_axis(surveys[~met], order, 1)


def _clauses_by_literal(clauses: NDArray[np.int64], literals: int) -> tuple[NDArray, NDArray]:
    """The clauses of each literal in CSR form: offsets and clause indices."""
    row, column = np.nonzero(clauses >= 0)
    of = clauses[row, column]
    first = np.concatenate([[0], np.bincount(of, minlength=literals).cumsum()])
    return first.astype(np.int64), row[np.argsort(of, kind="stable")].astype(np.int64)


def _unsatisfied(clauses: NDArray[np.int64], truth: NDArray[np.bool_]) -> int:
    return int((~((clauses >= 0) & truth[clauses]).any(1)).sum())
