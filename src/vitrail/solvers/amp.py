"""Reinforced approximate message passing for perceptrons, in many copies at once.

Where every factor has many weights, a cavity hardly differs from the belief. Messages then depend
on one number per weight and one per factor, and two matrix products compute them all (Donoho,
Maleki and Montanari 2009; Krzakala et al. 2012):

    m_i = tanh(h_i / 2)                            mean of weight i as ±1
    v_a = Σ_i x_ai² (1 − m_i²)                     variance of the sum of factor a
    ω_a = Σ_i x_ai m_i − v_a g_a − b_a             its mean minus the boundary, without own message
    g_a = ∂/∂ω log Z_a,  Z_a = floor + (1 − floor)·Φ(ω_a/√v_a)
    h_i = 2 Σ_a x_ai g_a + 2 m_i Σ_a x_ai² (−∂g_a/∂ω) + share·h_i + prior_i

The share of the old belief grows until beliefs commit (Braunstein and Zecchina 2006). Copies differ
in their random prior. Cost: 3·F·A multiplications per copy and step, no memory per message.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from vitrail.checks import checked_count, checked_number
from vitrail.factors import Network
from vitrail.graph import FactorGraph
from vitrail.numerics import EXACT_LIMIT, on_lattice
from vitrail.random import Key, Stream, normal
from vitrail.solvers.base import Feedback, Info, Solver
from vitrail.solvers.reinforcement import COMMIT_TOLERANCE, Share, linear
from vitrail.updates.closed_form import agreement

MIN_VARIANCE = 1e-3  # of a sum: below, beliefs have committed and only signs matter
AMP_MAX_SHARE = 0.6  # random perceptrons commit at shares of 0.3 to 0.5
CPU_STATE_SIZE, GPU_STATE_SIZE = 2**16, 2**21  # of all copies of a problem, by default: R·(F + n)
ROOT_HALF_PI = math.sqrt(math.pi / 2)
LARGEST_EXPONENT = 700.0  # exp of it is finite in float64
DIVERGENCE_STEP = 10  # by then beliefs of random inputs move by less than 0.1


@dataclass(frozen=True)
class AMPState:
    """R copies of every problem. All values are on the message lattice, so sums are exact."""

    log_odds: Tensor  # (R, V) float64, beliefs with their reinforcement
    prior: Tensor  # (R, V) float64, drawn separately for each copy
    response: tuple[Tensor, ...]  # g, (R, F) float64 for each problem
    age: Tensor  # (P,) int64, steps of this attempt
    attempt: Tensor  # (P,) int64, 0 for the first


@dataclass(frozen=True)
class _Sums:
    """The factors of one problem as a matrix: satisfied where Σ_i signs_ai s_i > boundary_a."""

    variables: Tensor  # (n,) int64, their indices in the graph
    signs: Tensor  # (F, n) float64 in {−1, 0, 1}: input times label
    boundary: Tensor  # (F,) float64, halfway between satisfying and violating sums
    full: bool  # whether all inputs are nonzero
    rows: tuple[Tensor, ...]  # factors of this problem, per block


@dataclass(frozen=True)
class ApproximateMessagePassing(Solver[AMPState]):
    """Reinforced approximate message passing for problems of linear threshold units.

    It assumes random inputs; correlated inputs need `belief_propagation`, which stores every
    message. Attempt k takes its share at age/slower^k and ends when the share stops growing.

    Args:
        share: Share of the belief that is fed back, by step; beyond 0.6 few further problems are
            solved.
        copies: Independent copies of every problem, each with its own random prior; None fits the
            copies into 2¹⁶ numbers, 2²¹ on a GPU, counting one per weight and factor.
        spread: Standard deviation of that prior, in log-odds.
        slower: Factor by which each attempt is slower than the previous one.

    Examples:
        >>> from vitrail import factor_graph, perceptron, run
        >>> from vitrail.datasets import glass
        >>> data = glass(150, 301, seed=0)
        >>> graph = factor_graph(perceptron(data.inputs, data.labels))
        >>> solver = approximate_message_passing(linear(0.01), copies=4)
        >>> run(solver, graph, max_steps=100).best_accuracy
        tensor([1.], dtype=torch.float64)
    """

    share: Share = linear(most=AMP_MAX_SHARE)  # noqa: RUF009 (a frozen value)
    _: KW_ONLY
    copies: int | None = None
    spread: float = 0.1
    slower: float = 2.0

    def __post_init__(self) -> None:
        if self.copies is not None:
            checked_count("copies", self.copies, 1)
        checked_number("spread", self.spread)
        checked_number("slower", self.slower, 1)

    def init(self, key: Key, graph: FactorGraph) -> AMPState:
        copies = self.copies
        if copies is None:
            sizes = graph.factors_per_problem + graph.variables_per_problem
            numbers = CPU_STATE_SIZE if graph.device.type == "cpu" else GPU_STATE_SIZE
            copies = max(1, numbers // int(sizes.max()))
        prior = self._prior(key, graph, copies, 0)
        none = torch.zeros(graph.num_problems, dtype=torch.int64, device=graph.device)
        return AMPState(
            prior,
            prior,
            tuple(
                torch.zeros(copies, len(sums.signs), dtype=torch.float64, device=graph.device)
                for sums in graph.once(_matrices)
            ),
            none,
            none,
        )

    def _prior(self, key: Key, graph: FactorGraph, copies: int, attempt: int) -> Tensor:
        rows = torch.arange(copies, device=graph.device)
        noise = normal(key.at(attempt).of(Stream.PRIOR), graph.num_variables, graph.device, rows)
        return graph.log_prior + on_lattice(self.spread * noise)

    def step(
        self, key: Key, graph: FactorGraph, state: AMPState, feedback: Feedback
    ) -> tuple[AMPState, Info]:
        slowness = self.slower ** state.attempt.double()
        share = self.share(state.age / slowness)
        log_odds, response = state.log_odds.clone(), list(state.response)
        residual = torch.zeros(graph.num_problems, dtype=torch.float64, device=graph.device)
        active = feedback.active.tolist()
        for number, sums in enumerate(graph.once(_matrices)):
            if not active[number]:
                continue
            floor = torch.cat(
                [block.floor[rows] for block, rows in zip(graph.blocks, sums.rows, strict=True)]
            )
            here = sums.variables
            before = state.log_odds[:, here]
            message, response[number] = _update_messages(sums, floor, before, response[number])
            after = message + share[number] * before + state.prior[:, here]
            log_odds[:, here] = after
            change = (torch.sigmoid(after) - torch.sigmoid(before)).abs()
            residual[number] = change.max()
        age = state.age + feedback.active.long()
        # committed, and not to a solution
        failed = (residual <= COMMIT_TOLERANCE) & (share > COMMIT_TOLERANCE)
        over = (age >= self.share.steps * slowness) | failed
        over &= feedback.active
        early = (age == DIVERGENCE_STEP) & (state.attempt == 0)
        info = Info(
            torch.where(over, 1.0, residual),  # another attempt follows: nothing has settled
            0,
            torch.zeros_like(over),
            records={"share": share, "attempt": state.attempt},
            diverged=early & feedback.active & (residual > 0.5),  # as correlated inputs do
        )
        state = AMPState(log_odds, state.prior, tuple(response), age, state.attempt)
        return self._restart(key, graph, state, over), info

    def _restart(self, key: Key, graph: FactorGraph, state: AMPState, over: Tensor) -> AMPState:
        """The state with a new attempt for the problems whose last attempt is over, (P,) bool."""
        if not bool(over.any()):
            return state
        attempt = state.attempt + over.long()
        prior = state.prior
        for number in attempt[over].unique().tolist():
            mine = (over & (attempt == number))[graph.problem]
            prior = torch.where(mine, self._prior(key, graph, len(prior), number), prior)
        log_odds = torch.where(over[graph.problem], prior, state.log_odds)
        response = tuple(
            torch.zeros_like(one) if ended else one
            for one, ended in zip(state.response, over.tolist(), strict=True)
        )
        return AMPState(log_odds, prior, response, torch.where(over, 0, state.age), attempt)

    def log_odds(self, graph: FactorGraph, state: AMPState) -> Tensor:
        return state.log_odds.mean(0)

    def candidates(self, key: Key, graph: FactorGraph, state: AMPState) -> Tensor:
        """For each problem, the copy that satisfies the most factors, (1, V)."""
        best = torch.zeros(graph.num_variables, dtype=torch.bool, device=graph.device)
        for sums in graph.once(_matrices):
            bits = state.log_odds[:, sums.variables] > 0
            met = (2.0 * bits.double() - 1.0) @ sums.signs.T > sums.boundary
            best[sums.variables] = bits[met.sum(1).argmax()]
        return best[None]


def _update_messages(
    sums: _Sums, floor: Tensor, log_odds: Tensor, response: Tensor
) -> tuple[Tensor, Tensor]:
    """Sums of messages to each weight (R, n) and factor responses (R, F), from beliefs (R, n)."""
    mean = on_lattice(torch.tanh(log_odds / 2))
    freedom = on_lattice(1 - mean.square())
    signs = sums.signs
    variance = freedom.sum(1, keepdim=True) if sums.full else freedom @ signs.square().T
    above = mean @ signs.T - variance * response - sums.boundary
    spread = variance.clamp(min=MIN_VARIANCE).sqrt()
    z = above / spread
    # 1/g: the inverse of the Gaussian hazard, plus the term of the floor
    hazard = ROOT_HALF_PI * torch.special.erfcx(-z / math.sqrt(2))
    lifted = floor / (1 - floor) * torch.exp((z.square() / 2).clamp(max=LARGEST_EXPONENT))
    response = 1 / (spread * (hazard + 2 * ROOT_HALF_PI * lifted))
    response = on_lattice(response.clamp(max=EXACT_LIMIT))
    curvature = on_lattice(response * (response + z / spread))
    reaction = curvature.sum(1, keepdim=True) if sums.full else curvature @ signs.square()
    return 2 * (response @ signs + mean * reaction), response


def _matrices(graph: FactorGraph) -> tuple[_Sums, ...]:
    """The factors of each problem, once per graph."""
    for block in graph.blocks:
        if not isinstance(block, Network) or block.perceptron_low is None:
            raise TypeError(
                "approximate message passing takes linear threshold units only, got other "
                f"{type(block).__name__} factors; use belief_propagation"
            )
    return tuple(_problem_sums(graph, number) for number in range(graph.num_problems))


def _problem_sums(graph: FactorGraph, number: int) -> _Sums:
    variables = torch.nonzero(graph.problem == number)[:, 0]
    rows = tuple(torch.nonzero(of == number)[:, 0] for of in graph.problem_of_factors)
    signs, boundaries = [], []
    for block, mine in zip(graph.blocks, rows, strict=True):
        assert isinstance(block, Network)
        part = block.select(mine)
        agree, least = agreement(part)
        inputs = torch.where(agree, 1.0, -1.0).double() * (part.rows != 0)
        places = torch.searchsorted(variables, part.scope.index()).expand(inputs.shape)
        table = inputs.new_zeros(len(mine), len(variables))
        signs.append(table.scatter_(1, places, inputs))
        boundaries.append((2 * least - 1 - (part.rows != 0).sum(1)).double())
    table = torch.cat(signs)
    return _Sums(variables, table, torch.cat(boundaries), bool((table != 0).all()), rows)


approximate_message_passing = ApproximateMessagePassing
