"""Exact answers by variable elimination: log Z, marginals, the best configuration.

Variables are summed out one by one in log space, in the cheaper of min-fill order and index order.
Marginals are derivatives: the derivatives of log Z with respect to the log-potentials of a factor
are the probabilities of its configurations. With max in place of sum the derivative is the
indicator of the best configuration. So one forward and one backward pass answer every query.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from itertools import combinations

import torch
from torch import Tensor

from vitrail.brief import brief
from vitrail.factors.split import split
from vitrail.factors.table import log_potentials
from vitrail.graph import FactorGraph
from vitrail.memory import in_gigabytes
from vitrail.numerics import EXACT_LIMIT
from vitrail.random import Key
from vitrail.solvers.base import Feedback, Info, Solver

DEFAULT_CEILING = 2**31  # bytes of all tables together
MAX_WIDTH = 40  # the search for an order stops there: 2^41 numbers fit into no memory
MAX_ARITY = 20  # of a factor whose potentials are enumerated
IMPOSSIBLE = -1e30  # replaces log 0, so that derivatives are finite
Reduce = Callable[[Tensor, Tensor], Tensor]


class WidthError(ValueError):
    """A graph is too wide for elimination within the memory limit."""


@dataclass(frozen=True)
class ExactAnswer:
    """Exact results for V variables and P problems."""

    log_z: Tensor  # (P,) float64, log Σ exp(−energy); −inf if no configuration is possible
    marginals: Tensor  # (V,) float64, P(w = 1)
    factor_marginals: tuple[Tensor, ...]  # (F, 2^A) float64 per block, variable j being bit j
    best: Tensor  # (V,) bool, a configuration of the lowest energy
    energy: Tensor  # (P,) float64, its energy
    width: int  # variables of the largest table minus one

    def __repr__(self) -> str:
        return brief(self, **vars(self))


def eliminate(graph: FactorGraph, *, memory: int = DEFAULT_CEILING) -> ExactAnswer:
    """Exact answers for a graph whose factors have at most 20 variables each.

    Time and memory grow as 2^width, the width being that of the elimination order: 1 for trees,
    about L for a grid of L × L.

    Args:
        graph: One problem or several; the prior counts as a field, exp(log_prior·w).
        memory: Memory limit of the tables, in bytes; a graph that needs more is refused.

    Returns:
        log Z, marginals of variables and factors, and the best configuration.

    Examples:
        >>> from vitrail import factor_graph, table
        >>> equal = table(torch.tensor([[2.0, 1.0, 1.0, 2.0]]))
        >>> answer = eliminate(factor_graph(equal))
        >>> round(float(answer.log_z.exp()), 6)
        6.0
        >>> answer.marginals
        tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    marginals = torch.empty(graph.num_variables, dtype=torch.float64)
    best = torch.empty(graph.num_variables, dtype=torch.bool)
    _check_arities(graph)
    of_factors = [best.new_empty(b.num_factors, 2**b.arity).double() for b in graph.blocks]
    owners, log_z, width = graph.problem_of_factors, [], 0
    for number, (part, variables) in enumerate(split(graph.to("cpu"))):
        plan = _plan(part, memory)
        total, unary, blocks = _derivatives(part, plan, torch.logaddexp)
        indicator = _derivatives(part, plan, _maximum)[1]
        possible = total > IMPOSSIBLE / 2
        log_z.append(total if possible else -torch.inf)
        marginals[variables] = unary[:, 1] if possible else torch.nan
        best[variables] = indicator[:, 1] > 0.5
        width = max(width, plan.width)
        mine = [
            (kept, rows)
            for kept, owner in zip(of_factors, owners, strict=True)
            if len(rows := torch.nonzero(owner.cpu() == number)[:, 0])
        ]
        for (kept, rows), found in zip(mine, blocks, strict=True):
            kept[rows] = found if possible else torch.nan
    device = graph.device
    best = best.to(device)
    return ExactAnswer(
        torch.tensor(log_z, dtype=torch.float64, device=device),
        marginals.to(device),
        tuple(kept.to(device) for kept in of_factors),
        best,
        graph.energy(best[None])[0],
        width,
    )


def log_partition(graph: FactorGraph, *, memory: int = DEFAULT_CEILING) -> Tensor:
    """log Z alone: one forward pass, which needs less time and memory than `eliminate`.

    Args:
        graph: One problem or several, of factors of at most 20 variables each.
        memory: Memory limit of the tables, in bytes; a graph that needs more is refused.

    Returns:
        log Z of each problem, (P,) float64; minus infinity if no configuration is possible.

    Examples:
        >>> from vitrail import factor_graph, table
        >>> either = factor_graph(table(torch.tensor([[0.0, 1.0, 1.0, 1.0]])))
        >>> round(float(log_partition(either).exp()), 6)
        3.0
    """
    _check_arities(graph)
    totals = []
    with torch.no_grad():
        for part, _ in split(graph.to("cpu")):
            plan = _plan(part, memory, derivatives=False)
            totals.append(_derivatives(part, plan, torch.logaddexp)[0])
    log_z = torch.tensor(totals, dtype=torch.float64, device=graph.device)
    return torch.where(log_z > IMPOSSIBLE / 2, log_z, -torch.inf)


def _check_arities(graph: FactorGraph) -> None:
    for block in graph.blocks:
        if block.arity > MAX_ARITY:
            raise ValueError(
                f"elimination takes factors of at most {MAX_ARITY} variables, got {block.arity}; "
                "use belief_propagation"
            )


@dataclass(frozen=True)
class _Plan:
    order: list[int]  # variables in elimination order
    cliques: list[int]  # number of variables in the table of each, itself included

    @property
    def width(self) -> int:
        return max(self.cliques, default=1) - 1

    def bytes(self, derivatives: bool) -> int:
        """A few copies of the largest table, and all tables where derivatives need them."""
        kept = sum(1 << size for size in self.cliques) if derivatives else 0
        return 8 * (kept + (4 << (self.width + 1)))


def _plan(graph: FactorGraph, memory: int, derivatives: bool = True) -> _Plan:
    """The cheaper of the two orders, or an error that states the width."""
    neighbours: list[set[int]] = [set() for _ in range(graph.num_variables)]
    for block in graph.blocks:
        for scope in block.scope.index().expand(block.num_factors, block.arity).tolist():
            for variable in scope:
                neighbours[variable].update(scope)
    for variable, others in enumerate(neighbours):
        others.discard(variable)
    plans = [_min_fill([set(others) for others in neighbours]), _in_order(neighbours)]
    plan = min(plans, key=lambda plan: plan.bytes(derivatives=True))
    needed = plan.bytes(derivatives)
    if needed > memory or plan.width >= MAX_WIDTH:
        at_least = "at least " if plan.width >= MAX_WIDTH else ""
        raise WidthError(
            f"elimination of {graph.num_variables:,} variables has width {at_least}{plan.width} "
            f"and needs {in_gigabytes(needed)} of memory, the limit is "
            f"{in_gigabytes(memory)}; raise memory or use belief_propagation"
        )
    return plan


def _min_fill(neighbours: list[set[int]]) -> _Plan:
    """Eliminate the variable whose neighbours lack the fewest edges between them first."""

    def cost(variable: int) -> tuple[int, int, int]:
        others = neighbours[variable]
        inside = sum(len(neighbours[other] & others) for other in others)
        return (len(others) * (len(others) - 1) - inside) // 2, len(others), variable

    current = [cost(variable) for variable in range(len(neighbours))]
    heap, done = list(current), [False] * len(neighbours)
    heapq.heapify(heap)
    order, cliques = [], []
    while heap:
        found = heapq.heappop(heap)
        variable = found[2]
        if done[variable] or found != current[variable]:
            continue
        others = neighbours[variable]
        done[variable] = True
        order.append(variable)
        cliques.append(len(others) + 1)
        if len(others) >= MAX_WIDTH:
            break
        changed = set(others)
        for a, b in combinations(others, 2):
            if b not in neighbours[a]:
                changed |= neighbours[a] & neighbours[b]
                neighbours[a].add(b)
                neighbours[b].add(a)
        for other in others:
            neighbours[other].discard(variable)
        for other in changed - {variable}:
            if not done[other]:
                current[other] = cost(other)
                heapq.heappush(heap, current[other])
    return _Plan(order, cliques)


def _in_order(neighbours: list[set[int]]) -> _Plan:
    """Eliminate variables in index order, which suits grids stored row by row."""
    later = [{other for other in others if other > v} for v, others in enumerate(neighbours)]
    cliques = []
    for others in later:
        cliques.append(len(others) + 1)
        if len(others) >= MAX_WIDTH:
            break
        if others:
            first = min(others)
            later[first] |= others - {first}
    return _Plan(list(range(len(neighbours))), cliques)


def _maximum(zero: Tensor, one: Tensor) -> Tensor:
    """The maximum, whose derivative is 1 for exactly one argument, even on ties."""
    return torch.where(one > zero, one, zero)


def _derivatives(
    graph: FactorGraph, plan: _Plan, reduce: Reduce
) -> tuple[float, Tensor, list[Tensor]]:
    """The total, and its derivatives by the values of variables (N, 2) and of factors (F, 2^A).

    Only the total is valid where torch's gradients are off.
    """
    prior = graph.log_prior
    unary = torch.stack([torch.zeros_like(prior), prior], 1).requires_grad_()
    leaves = [
        log_potentials(block).clamp(min=IMPOSSIBLE).requires_grad_() for block in graph.blocks
    ]
    place = [0] * graph.num_variables
    for position, variable in enumerate(plan.order):
        place[variable] = position
    buckets: list[list[tuple[tuple[int, ...], Tensor]]] = [[] for _ in plan.order]
    for position, values in zip(place, unary.unbind(), strict=True):
        buckets[position].append(((position,), values))
    for block, leaf in zip(graph.blocks, leaves, strict=True):
        scopes = block.scope.index().expand(block.num_factors, block.arity).tolist()
        for scope, values in zip(scopes, leaf.unbind(), strict=True):
            # the last variable is the highest bit, hence the first axis
            axes = [place[variable] for variable in reversed(scope)]
            by_place = sorted(range(len(axes)), key=axes.__getitem__)
            shaped = values.view((2,) * len(axes)).permute(by_place)
            positions = tuple(axes[axis] for axis in by_place)
            buckets[positions[0]].append((positions, shaped))
    total = torch.zeros((), dtype=torch.float64)
    for bucket in buckets:
        union = sorted({position for positions, _ in bucket for position in positions})
        joint = torch.zeros((), dtype=torch.float64)
        for positions, values in sorted(bucket, key=lambda one: len(one[0])):
            seen = set(positions)
            joint = joint + values.reshape([2 if place in seen else 1 for place in union])
        joint = reduce(joint[0], joint[1])
        if len(union) == 1:
            total = total + joint
        else:
            buckets[union[1]].append((tuple(union[1:]), joint))
        bucket.clear()
    if not torch.is_grad_enabled():
        return float(total), unary, leaves
    gradients = torch.autograd.grad(total, [unary, *leaves])
    return float(total.detach()), gradients[0], list(gradients[1:])


@dataclass(frozen=True)
class Elimination(Solver[ExactAnswer]):
    """Variable elimination as a solver: exact marginals and an optimal configuration.

    `init` computes the `ExactAnswer`, which is `solution.state`; `step` changes nothing.

    Args:
        memory: Memory limit of the tables, in bytes; a graph that needs more is refused.

    Examples:
        >>> from vitrail import factor_graph, run, table
        >>> graph = factor_graph(table(torch.tensor([[1.0, 2.0, 2.0, 3.0]])))
        >>> run(elimination(), graph).best
        tensor([True, True])
    """

    _: KW_ONLY
    memory: int = DEFAULT_CEILING

    def init(self, key: Key, graph: FactorGraph) -> ExactAnswer:
        return eliminate(graph, memory=self.memory)

    def step(
        self, key: Key, graph: FactorGraph, state: ExactAnswer, feedback: Feedback
    ) -> tuple[ExactAnswer, Info]:
        zero = torch.zeros(graph.num_problems, dtype=torch.float64, device=graph.device)
        return state, Info(zero, 0, torch.isneginf(state.log_z))

    def log_odds(self, graph: FactorGraph, state: ExactAnswer) -> Tensor:
        return torch.logit(state.marginals.nan_to_num(0.5)).clamp(-EXACT_LIMIT, EXACT_LIMIT)

    def candidates(self, key: Key, graph: FactorGraph, state: ExactAnswer) -> Tensor:
        return state.best[None]


elimination = Elimination
