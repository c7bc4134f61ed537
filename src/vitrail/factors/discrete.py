"""Models of variables with up to eight values, as graphs of bits.

A variable of k values is ⌈log2 k⌉ bits, which are its value in binary; values beyond k have
potential 0. A variable of more than one bit has an additional table of the valid values, whose
marginal is that of the variable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vitrail.errors import DataError
from vitrail.factors.table import MAX_TABLE_ARITY, Table, table
from vitrail.graph import FactorGraph, factor_graph
from vitrail.scopes import indexed

MAX_VALUES = 8  # of a variable: three bits


@dataclass(frozen=True)
class LogTable:
    """A factor: log potentials, an axis per variable."""

    scope: tuple[int, ...]  # the variables, each once
    values: NDArray[np.float64]  # (k, k', …), minus infinity for potential 0


@dataclass(frozen=True)
class DiscreteModel:
    """Variables of up to eight values, and factors between them."""

    num_values: tuple[int, ...]  # of each variable
    factors: tuple[LogTable, ...]  # in any order
    evidence: tuple[tuple[int, int], ...] = ()  # known variables and their values

    def given(self, evidence: Mapping[int, int]) -> DiscreteModel:
        """The model given known variables, whose axes are removed from the tables."""
        for variable, value in evidence.items():
            if not 0 <= variable < len(self.num_values):
                raise DataError(
                    f"evidence names variable {variable}, the model has {len(self.num_values)}, "
                    "numbered from 0"
                )
            if not 0 <= value < self.num_values[variable]:
                raise DataError(
                    f"evidence sets variable {variable} to {value}, it has the values 0 to "
                    f"{self.num_values[variable] - 1}"
                )
        factors = []
        for factor in self.factors:
            place = tuple(evidence.get(variable, slice(None)) for variable in factor.scope)
            scope = tuple(variable for variable in factor.scope if variable not in evidence)
            factors.append(LogTable(scope, np.asarray(factor.values[place])))
        known = tuple(sorted({**dict(self.evidence), **evidence}.items()))
        return replace(self, factors=tuple(factors), evidence=known)

    @property
    def log_constant(self) -> float:
        """Log Z minus that of the graph: factors without free variables."""
        constant = sum(float(each.values) for each in self.factors if not each.scope)
        return constant if any(self.bits) else constant - math.log(2)  # a bit that is free

    @cached_property
    def bits(self) -> list[list[int]]:
        """The bits of each variable, the lowest first; none where its value is known."""
        known, first, found = dict(self.evidence), 0, []
        for variable, count in enumerate(self.num_values):
            width = 0 if variable in known else (count - 1).bit_length()
            found.append(list(range(first, first + width)))
            first += width
        return found

    @cached_property
    def graph(self) -> FactorGraph:
        """The factors on bits; one free bit where all variables are known."""
        rows: dict[int, list[tuple[list[int], NDArray[np.float64]]]] = {}
        domains = [
            LogTable((variable,), np.zeros(self.num_values[variable]))
            for variable, own in enumerate(self.bits)
            if len(own) > 1
        ]
        # tables of valid values come first: those of b bits are the first rows of their block
        for factor in (*domains, *(each for each in self.factors if each.scope)):
            scope, values = self._on_bits(factor)
            if scope:
                rows.setdefault(len(scope), []).append((scope, values))
        count = sum(map(len, self.bits))
        if not rows:
            return factor_graph(table(torch.ones(1, 2)), num_variables=max(1, count))
        blocks = [_block(rows[arity]) for arity in sorted(rows)]
        return factor_graph(*blocks, num_variables=count)

    def _on_bits(self, factor: LogTable) -> tuple[list[int], NDArray[np.float64]]:
        """Bits of a factor, the lowest first, and its 2^A log potentials."""
        values, scope = factor.values, []
        for axis, variable in enumerate(factor.scope):
            missing = (1 << len(self.bits[variable])) - values.shape[axis]
            pad = [(0, missing if other == axis else 0) for other in range(values.ndim)]
            values = np.pad(values, pad, constant_values=-np.inf)
        for variable in reversed(factor.scope):  # the last one changes fastest
            scope += self.bits[variable]
        if len(scope) > MAX_TABLE_ARITY:
            raise DataError(
                f"a factor of {len(factor.scope)} variables takes {len(scope)} bits, at most "
                f"{MAX_TABLE_ARITY} are taken; split it"
            )
        return scope, values.reshape(-1)

    def values(self, bits: Tensor) -> list[int]:
        """The value of each variable in a configuration of bits."""
        known, flat = dict(self.evidence), bits.tolist()
        return [
            known.get(variable, sum(flat[bit] << place for place, bit in enumerate(own)))
            for variable, own in enumerate(self.bits)
        ]

    def marginals(self, of_bits: Tensor, of_factors: Sequence[Tensor]) -> list[list[float]]:
        """Probabilities of the values of each variable, from those of bits and factors."""
        blocks = {len(own[0]).bit_length() - 1: own for own in of_factors}
        rows, known, found = dict.fromkeys(blocks, 0), dict(self.evidence), []
        for variable, (count, own) in enumerate(zip(self.num_values, self.bits, strict=True)):
            if len(own) == 1:
                one = float(of_bits[own[0]])
                found.append([1 - one, one])
            elif own:
                found.append(blocks[len(own)][rows[len(own)], :count].tolist())
                rows[len(own)] += 1
            else:
                found.append([float(value == known.get(variable, 0)) for value in range(count)])
        return found


def _block(rows: list[tuple[list[int], NDArray[np.float64]]]) -> Table:
    scopes, values = zip(*rows, strict=True)
    stacked = torch.from_numpy(np.stack(values))
    if bool(torch.isneginf(stacked).all(1).any()):
        raise DataError("a factor has only zero potentials, so nothing is possible; correct it")
    return table(stacked, indexed(list(scopes)), log=True)
