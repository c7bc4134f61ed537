"""Survey propagation and WalkSAT on clauses, one sweep or run per call.

Literals are numbered 2·variable + [negated], −1 where a clause has no further one. η of a clause
at a literal is the probability of a warning; Σ log(1 − η) is kept per literal, so the product
over all other clauses of a variable is a difference.
"""

from __future__ import annotations

from math import exp, log

import numpy as np
from numba import njit, uint32

from vitrail.kernels.cpu.compiled import compiled
from vitrail.kernels.cpu.philox import philox

MAX_SURVEY = 1.0 - 1e-9  # so that logarithms stay finite; a warning that is certain


@njit
def _warned(same, opposite):
    """Probability that the others force a literal to be false, from their log products."""
    all_same, all_opposite = exp(same), exp(opposite)
    unsatisfied = (1.0 - all_opposite) * all_same
    total = all_same + all_opposite - all_same * all_opposite
    return unsatisfied / total if total > 1e-300 else 0.5


@compiled("float64(int64[:, ::1], float64[:, ::1], float64[::1], int64[::1])")
def sweep(clauses, surveys, log_free, order):
    """Update the surveys of the clauses in `order` one after another; the largest change."""
    largest = 0.0
    width = clauses.shape[1]
    warned = np.empty(width)
    for a in order:
        for k in range(width):
            literal = clauses[a, k]
            if literal >= 0:
                own = log(1.0 - surveys[a, k])
                warned[k] = _warned(log_free[literal] - own, log_free[literal ^ 1])
        for k in range(width):
            literal = clauses[a, k]
            if literal < 0:
                continue
            product = 1.0
            for other in range(width):
                if other != k and clauses[a, other] >= 0:
                    product *= warned[other]
            product = min(product, MAX_SURVEY)
            largest = max(largest, abs(product - surveys[a, k]))
            log_free[literal] += log(1.0 - product) - log(1.0 - surveys[a, k])
            surveys[a, k] = product
    return largest


@compiled("int64(int64[:, ::1], int64[::1], int64[::1], boolean[::1], float64, int64, uint32[::1])")
def walk(clauses, first, places, truth, noise, flips, key):
    """WalkSAT in place: truth (2·V,) of literals; returns how many clauses stay unsatisfied.

    first and places: the clauses of each literal. A variable of a random unsatisfied clause is
    flipped: one that breaks nothing if there is one, else a random one with probability `noise`,
    else the one that breaks fewest.
    """
    count, width = clauses.shape
    met = np.zeros(count, np.int64)
    broken, where = np.empty(count, np.int64), np.full(count, -1, np.int64)
    size = 0
    for a in range(count):
        for k in range(width):
            if clauses[a, k] >= 0 and truth[clauses[a, k]]:
                met[a] += 1
        if met[a] == 0:
            broken[size], where[a] = a, size
            size += 1
    for flip in range(flips):
        if size == 0:
            return 0
        w0, w1, w2, w3 = philox(
            uint32(flip & 0xFFFFFFFF), uint32(flip >> 32), uint32(0), uint32(0), key[0], key[1]
        )
        a = broken[(np.int64(w0) * size) >> 32]
        arity, chosen, fewest, ties = 0, np.int64(-1), count + 1, 0
        for k in range(width):
            literal = clauses[a, k]
            if literal < 0:
                continue
            arity += 1
            breaks = 0
            for use in range(first[literal ^ 1], first[(literal ^ 1) + 1]):
                breaks += met[places[use]] == 1
            if breaks < fewest:
                fewest, chosen, ties = breaks, literal, 1
            elif breaks == fewest:  # each of the best is as likely as the others
                ties += 1
                if np.int64(w3) % ties == 0:
                    chosen = literal
        if arity == 0:
            return size
        if fewest > 0 and np.int64(w1) < noise * 4294967296.0:
            chosen = clauses[a, (np.int64(w2) * arity) >> 32]
        truth[chosen], truth[chosen ^ 1] = True, False
        for use in range(first[chosen], first[chosen + 1]):
            b = places[use]
            met[b] += 1
            if met[b] == 1:
                size -= 1
                last = broken[size]
                broken[where[b]], where[last] = last, where[b]
                where[b] = -1
        for use in range(first[chosen ^ 1], first[(chosen ^ 1) + 1]):
            b = places[use]
            met[b] -= 1
            if met[b] == 0:
                broken[size], where[b] = b, size
                size += 1
    return size
