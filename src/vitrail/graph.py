"""Factor graphs: variables with a prior, factors of some of them, and their sums.

A batch of problems is one larger graph. P problems of N variables have V = P·N variables, and
every factor belongs to a problem; solvers have no batch axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vitrail.brief import brief
from vitrail.checks import check_made
from vitrail.memory import available_memory, in_gigabytes
from vitrail.numerics import DEFAULT_MEMORY, chunks, on_lattice
from vitrail.prepared import Prepared
from vitrail.ranks import ALONE, World
from vitrail.scopes import Dense, Indexed, Scope, dense, indexed

__all__ = ["Dense", "FactorGraph", "Indexed", "Scope", "dense", "factor_graph", "indexed", "join"]

VARIABLE_BYTES = 32  # of a variable: its prior, its problem, its marginal and belief
FORBIDDEN = 1e6  # energy of a factor of potential 0 in searches, larger than all others
MEMORY_CHECK = 2**27  # bytes beyond which free memory is checked

if TYPE_CHECKING:
    from vitrail.factors.base import Factors


@dataclass(frozen=True)
class FactorGraph(Prepared):
    """Binary variables with a prior, and blocks of factors of one kind and arity each.

    The problem of a factor is that of its first variable.
    """

    log_prior: Tensor  # (V,) float64, log-odds
    blocks: tuple[Factors, ...]  # the factors
    problem: Tensor  # (V,) int64, the problem that a variable belongs to
    num_problems: int  # number of independent problems
    world: World = ALONE  # the ranks that share the factors
    whole: FactorGraph | None = None  # the graph of which this is a rank's share

    def __repr__(self) -> str:
        kinds = ", ".join(
            f"{block.num_factors:,} {type(block).__name__} of {block.arity:,}"
            for block in self.blocks
        )
        problems = self.num_problems if self.num_problems > 1 else None
        return brief(self, variables=self.num_variables, factors=kinds, problems=problems)

    @property
    def everything(self) -> FactorGraph:
        """The graph with the factors of all ranks."""
        return self if self.whole is None else self.whole

    @property
    def num_variables(self) -> int:
        return self.log_prior.shape[0]

    @property
    def num_factors(self) -> int:
        return sum(block.num_factors for block in self.blocks)

    @property
    def device(self) -> torch.device:
        return self.log_prior.device

    @cached_property
    def factors_per_problem(self) -> Tensor:
        """Number of factors of each problem, (P,) int64."""
        problem = torch.cat(self.problem_of_factors)
        return torch.bincount(problem, minlength=self.num_problems)

    @cached_property
    def variables_per_problem(self) -> Tensor:
        """Number of variables of each problem, (P,) int64."""
        return torch.bincount(self.problem, minlength=self.num_problems)

    @cached_property
    def weight_per_problem(self) -> Tensor:
        """Total weight of each problem's factors, (P,) float64."""
        return self.per_problem(self.weights)

    @cached_property
    def weights(self) -> tuple[Tensor, ...]:
        """Weights of the factors, (F,) float64 per block, rounded so that any sum of them is exact.

        Integers are not changed; others lose at most the last bits of the total.
        """
        total = sum(float(block.weight.sum()) for block in self.everything.blocks)
        unit = 2.0 ** (math.frexp(total)[1] - 52)
        return tuple((block.weight / unit).round() * unit for block in self.blocks)

    def factor_problem(self, block: Factors) -> Tensor:
        """Problem of each factor of a block, (F,) int64."""
        return self.problem[block.scope.first()]

    @cached_property
    def problem_of_factors(self) -> tuple[Tensor, ...]:
        """Problem of each factor, (F,) int64 per block."""
        return tuple(self.factor_problem(block) for block in self.blocks)

    def total(self, messages: Sequence[Tensor]) -> Tensor:
        """The sum of one (F, A) tensor per block at the variables, (V,) float64, of all ranks."""
        total = torch.zeros(self.num_variables, dtype=torch.float64, device=self.device)
        for block, message in zip(self.blocks, messages, strict=True):
            total += block.scope.total(message, self.num_variables)
        return self.world.sum(total)[0]

    def over_variables(self, values: Tensor) -> Tensor:
        """Sum over the variables of each problem: (V,) → (P,) float64."""
        if self.num_problems == 1 and values.is_cuda:  # atomic additions to one place are slow
            return values.sum(dtype=torch.float64)[None]
        out = torch.zeros(self.num_problems, dtype=torch.float64, device=self.device)
        return out.index_add_(0, self.problem, values.to(torch.float64))

    def per_problem(self, values: Sequence[Tensor]) -> Tensor:
        """Sum over the factors of each problem, of all ranks: (…, F) per block → (…, P) float64."""
        lead = values[0].shape[:-1]
        out = torch.zeros((*lead, self.num_problems), dtype=torch.float64, device=self.device)
        for problem, value in zip(self.problem_of_factors, values, strict=True):
            out.index_add_(-1, problem, value.to(torch.float64))
        return self.world.sum(out)[0]

    def satisfied(self, states: Tensor, memory: int = DEFAULT_MEMORY) -> Tensor:
        """Weight of satisfied factors of configurations (C, V) bool: (C, P) float64."""
        counts = []
        for block, weight in zip(self.blocks, self.weights, strict=True):
            per_factor = [
                block.satisfied_at(states[part], memory)
                for part in chunks(states.shape[0], 8 * block.num_factors, memory)
            ]
            counts.append(torch.cat(per_factor) * weight)
        return self.per_problem(counts)

    def accuracy(self, states: Tensor) -> Tensor:
        """Share of satisfied weight, (C, P) float64 in [0, 1], of configurations (C, V) bool."""
        return self.satisfied(states) / self.weight_per_problem

    @cached_property
    def has_energies(self) -> bool:
        """Whether any factor has energies, so that configurations are compared by energy."""
        return any(block.has_energies for block in self.everything.blocks)

    def energy(self, states: Tensor, memory: int = DEFAULT_MEMORY) -> Tensor:
        """E = −Σ log potential − Σ log_prior·w of configurations (C, V) bool: (C, P) float64."""
        return self._fields(states) + self.per_problem(self._energies(states, memory))

    def objective(self, states: Tensor, memory: int = DEFAULT_MEMORY) -> Tensor:
        """The objective of configurations (C, V) bool, to be maximised: (C, P) float64.

        Minus the energy if any factor has energies, with FORBIDDEN for infinite ones; otherwise the
        satisfied weight.
        """
        if not self.has_energies:
            return self.satisfied(states, memory)
        finite = [energy.clamp(max=FORBIDDEN) for energy in self._energies(states, memory)]
        return -(self._fields(states) + self.per_problem(finite))

    def _energies(self, states: Tensor, memory: int) -> list[Tensor]:
        return [block.energy_at(states, memory) for block in self.blocks]

    def _fields(self, states: Tensor) -> Tensor:
        """The energy of the prior for configurations (C, V), (C, P) float64."""
        out = torch.zeros(len(states), self.num_problems, dtype=torch.float64, device=self.device)
        return out.index_add_(1, self.problem, -self.log_prior * states)

    def shared(self, world: World) -> FactorGraph:
        """This rank's share of the factors; they keep their numbers, and sums are over all ranks.

        Variables, prior and problems are the same on all ranks. A graph that has a block with fewer
        factors than ranks is not divided: every rank then does all of the work.

        Args:
            world: The ranks, from `vitrail.ranks.joined`.

        Returns:
            This rank's graph, for `run`.
        """
        whole = self.everything
        if world.size == 1 or min(block.num_factors for block in whole.blocks) < world.size:
            return whole
        blocks = []
        for block in whole.blocks:
            places = torch.arange(block.num_factors, device=self.device)
            blocks.append(block.subset(places[world.share(block.num_factors)]))
        made = replace(whole, blocks=tuple(blocks), world=world, whole=whole)
        for name in ("factors_per_problem", "weight_per_problem"):
            object.__setattr__(made, name, getattr(whole, name))
        return made

    def to(self, device: torch.device | str) -> FactorGraph:
        if self.whole is not None:
            return self.whole.to(device).shared(self.world)
        return FactorGraph(
            self.log_prior.to(device),
            tuple(block.to(device) for block in self.blocks),
            self.problem.to(device),
            self.num_problems,
        )

    def with_prior(self, log_prior: Tensor) -> FactorGraph:
        whole = None if self.whole is None else self.whole.with_prior(log_prior)
        prior = _checked_prior(log_prior, self.num_variables)
        return self._alike(log_prior=prior, whole=whole)

    def with_beta(self, beta: float | Tensor) -> FactorGraph:
        """The same graph at another inverse temperature: one number, or one per factor."""
        return self._alike(blocks=tuple(block.with_beta(beta) for block in self.blocks))

    def at_multiple(self, scale: float) -> FactorGraph:
        """The same graph with the beta of every factor times a number."""
        blocks = tuple(block.with_beta(scale * block.beta) for block in self.blocks)
        return self._alike(blocks=blocks)

    def _alike(self, **changes: Any) -> FactorGraph:
        """The graph with another prior or beta; prepared values are kept."""
        made = replace(self, **changes)
        for name in ("_prepared", "problem_of_factors", "factors_per_problem", "weights"):
            object.__setattr__(made, name, getattr(self, name))
        return made


def factor_graph(
    *blocks: Factors,
    num_variables: int | None = None,
    log_prior: Tensor | None = None,
    problem: Tensor | None = None,
) -> FactorGraph:
    """Join blocks of factors into one graph; their factors are numbered 0…F−1 in order.

    Args:
        *blocks: Factors made by `perceptron`, `network`, `table` or `blackbox`.
        num_variables: Number of variables; None is that of the factors.
        log_prior: Log-odds of each variable, (V,); None is 0.
        problem: The problem of each variable, (V,) int64; None is one problem.

    Examples:
        >>> from vitrail.factors import perceptron
        >>> factors = perceptron(torch.tensor([[1, -1, 1], [1, 1, 1]]), torch.tensor([1, 0]))
        >>> factor_graph(factors).num_variables
        3
    """
    for block in blocks:
        check_made(block, "num_factors", "perceptron(…), table(…) or another maker of factors")
    if not blocks or sum(block.num_factors for block in blocks) == 0:
        raise ValueError("the graph has no factors; pass at least one block with one example")
    needed = 1 + max(int(b.scope.index().max()) for b in blocks if b.num_factors and b.arity)
    if num_variables is None:
        num_variables = needed
    if needed > num_variables:
        raise ValueError(
            f"a factor has variable {needed - 1}, but the graph has {num_variables} variables; "
            "raise num_variables or correct the scope"
        )
    room = VARIABLE_BYTES * num_variables
    available = available_memory() if room > MEMORY_CHECK else None
    if available is not None and room > available:
        raise ValueError(
            f"{num_variables:,} variables need {in_gigabytes(room)} of memory, "
            f"{in_gigabytes(available)} is available; number them without gaps"
        )
    if log_prior is None:
        log_prior = torch.zeros(num_variables, dtype=torch.float64)
    if problem is None:
        problem = torch.zeros(num_variables, dtype=torch.int64)
    if problem.shape != (num_variables,):
        raise ValueError(
            f"problem has shape {tuple(problem.shape)}; give one number per variable, "
            f"({num_variables},)"
        )
    num_problems = int(problem.max()) + 1
    graph = FactorGraph(
        _checked_prior(log_prior, num_variables), _numbered(blocks), problem, num_problems
    )
    for block in graph.blocks:
        of_variable = problem[block.scope.index()]
        if bool((of_variable != of_variable[:, :1]).any()):
            raise ValueError(
                "a factor joins variables of two problems; give both the same problem number"
            )
    if bool((graph.weight_per_problem <= 0).any()):
        raise ValueError("a problem has no factor of positive weight; leave that problem out")
    return graph


def join(graphs: Sequence[FactorGraph]) -> FactorGraph:
    """Many problems as one graph: variables are concatenated, and factors renumbered.

    Sizes may differ. Blocks of the same kind and arity are merged where their type allows it, so
    that P problems need one call instead of P.

    Args:
        graphs: The problems in order.

    Examples:
        >>> from vitrail.factors import perceptron
        >>> one = factor_graph(perceptron(torch.tensor([[1, -1, 1]]), torch.tensor([1])))
        >>> join([one, one]).num_problems
        2
    """
    if not graphs:
        raise ValueError("there is no graph to join; pass at least one")
    for graph in graphs:
        check_made(graph, "over_variables", "factor_graph(…)")
    blocks: list[Factors] = []
    first_variable = 0
    for graph in graphs:
        blocks.extend(block.shifted(first_variable) for block in graph.blocks)
        first_variable += graph.num_variables
    counts = torch.tensor([0, *(graph.num_problems for graph in graphs)]).cumsum(0)
    return factor_graph(
        *_merged(blocks),
        num_variables=first_variable,
        log_prior=torch.cat([graph.log_prior for graph in graphs]),
        problem=torch.cat([g.problem + n for g, n in zip(graphs, counts.tolist(), strict=False)]),
    )


def _merged(blocks: Sequence[Factors]) -> list[Factors]:
    groups: dict[object, list[Factors]] = {}
    for block in blocks:
        groups.setdefault(block.merge_key(), []).append(block)
    return [group[0].merge(group) if len(group) > 1 else group[0] for group in groups.values()]


def _numbered(blocks: Sequence[Factors]) -> tuple[Factors, ...]:
    """Blocks with ids 0…F−1 over the whole graph, in order."""
    numbered, first = [], 0
    for block in blocks:
        ids = torch.arange(first, first + block.num_factors)
        numbered.append(replace(block, ids=ids))
        first += block.num_factors
    return tuple(numbered)


def _checked_prior(log_prior: Tensor, num_variables: int) -> Tensor:
    if log_prior.shape != (num_variables,):
        raise ValueError(
            f"the prior has shape {tuple(log_prior.shape)}; give one log-odds per variable, "
            f"({num_variables},)"
        )
    if not bool(torch.isfinite(log_prior).all()):
        raise ValueError("the prior holds NaN or infinity; give finite log-odds (30 is certainty)")
    return on_lattice(log_prior)
