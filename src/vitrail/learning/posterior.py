"""Which networks answer, with how many votes each, and how sure their score makes us."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vitrail.decode import samples
from vitrail.learning.examples import Examples, graph_of
from vitrail.learning.training import Trained
from vitrail.model import outputs_of, thresholds_of
from vitrail.model.calibration import Calibration, Evidence, calibrate
from vitrail.model.voting import Scheme, leads
from vitrail.nn import Program
from vitrail.random import MAX_SEED, Key
from vitrail.solvers.sampling import posterior_samples

Predictor = Literal["best", "posterior"]
NEAR = 4.0  # log-odds: a chain near a network begins with two percent of its bits flipped
CALIBRATION_ROWS = 4096  # enough to place two numbers
CALIBRATION_SIZE = 4_000_000  # margins looked at: fewer rows where networks and nets are many
LEAST_ROWS = 64
DRAWN_BITS = 2**23  # a megabyte of networks, where they are drawn from marginals alone
LEAVING_OUT = 5.0  # beta at most, where a row is left out by counting networks anew


@dataclass(frozen=True)
class Committee:
    """What a model answers with."""

    networks: Tensor  # (K, N, A) bool
    votes: Tensor  # (K, N) int64
    calibration: Calibration
    thresholds: tuple[int, ...]
    interrupted: bool = False  # by Ctrl-C while networks were drawn


@dataclass(frozen=True)
class Question:
    """What a committee is made for."""

    program: Program
    examples: Examples
    nets: Sequence[Examples]
    num_classes: int
    scheme: Scheme
    beta: float
    seed: int


def committee(
    question: Question,
    trained: Trained,
    predictor: Predictor,
    count: int,
    held_out: Evidence | None,
) -> Committee:
    """The best network alone, or `count` networks of the posterior.

    held_out: what nets of this kind said on rows that they were not trained on. Without it the
    best network's margins are taken from training rows. Of the posterior, rows are left out one by
    one: networks count by exp(beta) where they got the row wrong, as they would have been drawn
    without it. Training rows give no thresholds: networks are too confident in them.
    """
    networks, interrupted = trained.best[None], False
    if predictor == "posterior":
        networks, interrupted = _drawn(question, trained, count)
    alone = len(networks) == 1
    known = held_out is not None and held_out.leads.shape[1] == len(networks)
    evidence = held_out if known else _evidence(question, networks, alone)
    assert evidence is not None
    classes, scheme = question.num_classes, question.scheme
    made = calibrate(evidence, classes, scheme)
    thresholds: tuple[int, ...] = ()
    if known:
        confidence = evidence.chances(made.clip, made.table, classes, scheme).amax(1)
        thresholds = thresholds_of(confidence, rows_of(question, evidence))
    votes = torch.ones(networks.shape[:2], dtype=torch.int64)
    return Committee(networks, votes, made, thresholds, interrupted)


def _drawn(question: Question, trained: Trained, count: int) -> tuple[Tensor, bool]:
    """`count` networks of the posterior, (count, N, A) bool, by short chains; whether cut short.

    Every other chain begins at a draw from the marginals, the others near the best network:
    marginals cover more of the posterior, the best network lies where most of its mass is. A net
    without examples is drawn from its marginals alone. After Ctrl-C what was drawn remains, or
    the best network.
    """
    if question.program.shallow is None:  # a step of a chain would cost a look at the whole net
        return drawn_from_marginals(question.program, trained, count, question.seed), False
    best = trained.best
    log_odds = trained.log_odds[trained.chosen, torch.arange(len(best))]
    done = torch.zeros(count, dtype=torch.bool)
    networks = samples(Key(question.seed), log_odds.flatten(), count).reshape(count, *best.shape)
    try:
        present = [number for number, one in enumerate(question.nets) if len(one)]
        nets = [question.nets[number] for number in present]
        graph = graph_of(question.program, nets, question.beta)
        near_best = torch.where(best, NEAR, -NEAR).double()
        for first, start in enumerate((log_odds, near_best)):
            mine = slice(first, None, 2)
            num = len(range(count)[mine])
            if num:
                key = Key((question.seed + first) % MAX_SEED)
                prior = start[present].flatten()
                drawn = posterior_samples(key, graph, prior, num, beta=question.beta)
                networks[mine, present] = drawn.reshape(num, len(present), -1)
                done[mine] = True
    except KeyboardInterrupt:
        return (networks[done] if bool(done.any()) else best[None]), True
    return networks, False


def drawn_from_marginals(program: Program, trained: Trained, count: int, seed: int) -> Tensor:
    """At most `count` networks, (K, N, A) bool, each bit by its marginal; fewer of large nets."""
    nets = len(trained.best)
    log_odds = trained.log_odds[trained.chosen, torch.arange(nets)]
    few = min(count, max(1, DRAWN_BITS // (nets * program.num_bits)))
    return samples(Key(seed), log_odds.flatten(), few).reshape(few, nets, -1)


def _evidence(question: Question, networks: Tensor, alone: bool) -> Evidence:
    """What networks say on training rows; of many, each counts as it would without the row."""
    num = len(networks)
    examples = question.examples.where(spread(question, num))
    said = outputs_of(question.program, networks, examples.inputs)
    lead = torch.cat([leads(outputs) for outputs in said])
    if alone:
        return Evidence(lead, examples.labels, examples.weight, held_out=False)
    wrong = judged(lead, examples.labels, question.num_classes, question.scheme)
    beta = min(question.beta, LEAVING_OUT) * examples.weight.clamp(max=1.0)
    counts = torch.exp(beta[:, None, None] * wrong)
    # the heaviest are cut, as usual where few networks would count for all
    counts = torch.minimum(counts, num**0.5 * counts.mean(1, keepdim=True))
    return Evidence(lead, examples.labels, examples.weight, counts, held_out=False)


def spread(question: Question, networks: int) -> Tensor:
    """The examples that so many networks are calibrated on: evenly from first to last."""
    count = len(question.examples)
    return torch.arange(0, count, max(1, -(-count // affordable_rows(question, networks))))


def affordable_rows(question: Question, networks: int) -> int:
    """How many rows so many networks are asked about, where many more would say little more."""
    each = networks * len(question.nets) * question.program.num_outputs
    return min(CALIBRATION_ROWS, max(LEAST_ROWS, CALIBRATION_SIZE // each))


def rows_of(question: Question, evidence: Evidence) -> Tensor:
    """How many rows each row of evidence stands for, (rows,): its weight without its class's."""
    examples, count = question.examples, question.num_classes
    weights, rows = (
        torch.bincount(examples.labels, each, count) for each in (examples.weight, examples.rows)
    )
    return evidence.weight * (rows / weights)[evidence.labels]


def clip_of(program: Program) -> int:
    """How far margins count: those beyond chance's √units say no more."""
    return 2 * math.isqrt((program.hidden or (1,))[0]) + 1


def judged(lead: Tensor, labels: Tensor, num_classes: int, scheme: Scheme) -> Tensor:
    """Which nets got the rows wrong that they were trained on, (rows, K, N) float64."""
    if lead.shape[-1] > 1:
        own = lead[:, :, 0].gather(2, labels[:, None, None].expand(-1, lead.shape[1], 1))
        return (own <= 0).double()
    high = lead[..., 0] > 0
    if scheme == "one-vs-rest":
        return (high != (labels[:, None] == torch.arange(num_classes))[:, None]).double()
    if scheme == "argmax":
        return (high != (labels == 1)[:, None, None]).double()
    first, second = torch.triu_indices(num_classes, num_classes, 1)
    is_low, is_high = labels[:, None] == first, labels[:, None] == second
    return ((high & is_low[:, None]) | (~high & is_high[:, None])).double()
