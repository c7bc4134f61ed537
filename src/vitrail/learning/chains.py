"""The default: many networks drawn from the posterior by long chains from random starts.

A net with one hidden layer for each class against the rest (for two classes one net), and of each
16 chains that begin anywhere, warm up slowly and leave eight networks behind, or more where nets
are narrow. How cold the chains are, and how sure answers may be, is settled before on rows held out
(`held_out`). Over 15 tables this was as good as a forest of 200 trees in accuracy and better in
log-loss; messages before the chains added nothing, and fewer or longer chains were worse.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from vitrail import ranks
from vitrail.learning.crossing import crossed
from vitrail.learning.examples import Examples
from vitrail.learning.held_out import BETWEEN, SWAPS, USUAL, HeldOut, Parts, chains_on_parts, enough
from vitrail.learning.posterior import (
    Committee,
    Question,
    affordable_rows,
    clip_of,
    judged,
    rows_of,
    spread,
)
from vitrail.learning.problem import AUTO
from vitrail.learning.training import Trained
from vitrail.model import outputs_of, thresholds_of, transferred
from vitrail.model.calibration import Calibration, Evidence, calibrate
from vitrail.model.voting import clipped_margins, leads
from vitrail.nn import Program, mlp, program_of
from vitrail.random import Key
from vitrail.solvers import Solution, Status
from vitrail.solvers.chains import ROUND, Chains, Sample, random_starts, warming
from vitrail.solvers.history import History

WIDTHS = (63, 31, 15, 7, 3)  # odd, so that the units' vote has no tie
WIDE_FROM = 2000  # rows from which the widest pays
FEW = 64  # rows a class, below which narrower nets do as well, and more of them better
UNITS = 31 * 128  # hidden units of all networks: more networks where they are narrow
LEAST_NETWORKS = 128
WORK = 2e10  # words looked at, about a minute on one core; wider nets than that allows are cut
COLLECTING = 0.5  # of that work at most, for more networks than the least
PROPOSAL = 64  # words that drawing and judging a proposal costs, however few its rows are
REWRITING = 2  # times the words where rows per class are few: most flips are accepted there
CHAINS = 16  # starts: what one chain does not find another does
BURN_IN = 150  # sweeps; half of them while beta rises
SHORTEST = 20  # sweeps of burn-in, however large the table
WATCHED = 256  # rows at most on which mixing is measured
LEAST_CHAINS, LEAST_DRAWS = 4, 25  # below, nothing is said about mixing
LEAST_EFFECTIVE = 0.5  # share of the networks; below, chains go on
MOST_VOTES = 64  # of a network
ENOUGH = 25  # undecided networks whose mean vote is as far off as an average may be
MOST_SPREAD = 99.0  # where chains stand still
CROSSED_ROWS = 2000  # made to compare the confidence of committees


def by_chains(
    predictor: str, hidden: Any, module: Any, coding: str, multiclass: str, given: Mapping[str, Any]
) -> bool:
    """Whether the networks are drawn by this recipe.

    It needs bits read as 0/1 and at most one hidden layer's width; who asks for a solver, for
    hard rows or for anything else of message passing gets message passing.
    """
    if predictor == "best" or module is not None or coding == "bipolar" or multiclass == "argmax":
        return False
    beta = given.get("beta", AUTO)
    others = [value for name, value in given.items() if name != "beta"]
    named = any(not isinstance(value, str) or value != AUTO for value in others)
    hard = not isinstance(beta, str) and not 0 < beta < math.inf
    return not named and not hard and (isinstance(hidden, str) or len(tuple(hidden)) == 1)


def neighbours(columns: Tensor) -> Tensor:
    """The next input of the same column, (I,) int64; −1 where there is none. columns: (I,)."""
    following = torch.cat([columns[1:], columns.new_full((1,), -1)])
    place = torch.arange(1, len(columns) + 1)
    return torch.where((columns == following) & (columns >= 0), place, -1)


def effort(num_inputs: int, nets: Sequence[Examples], hidden: Any) -> tuple[Program, int]:
    """The net, and how many sweeps of burn-in its chains can afford."""
    rows = max(one.num_rows for one in nets)
    chains = CHAINS + chains_on_parts(rows)

    def work(width: int, sweeps: int) -> float:
        return chains * sweeps * _words(num_inputs, width, nets)

    widths = WIDTHS[3:] if _few(nets) else WIDTHS[rows < WIDE_FROM :]
    fitting = [width for width in widths if work(width, BURN_IN) <= WORK]
    width = (fitting or widths[-1:])[0] if isinstance(hidden, str) else int(next(iter(hidden)))
    sweeps = int(min(1.0, WORK / work(width, BURN_IN)) * BURN_IN)
    shape = (num_inputs,)
    return program_of(mlp(num_inputs, (width,), 1), shape), max(SHORTEST, sweeps)


def _words(num_inputs: int, width: int, nets: Sequence[Examples]) -> int:
    """Words that a sweep of one chain of every net looks at."""
    times = REWRITING if _few(nets) else 1
    each = sum(max(PROPOSAL, times * -(-len(one) // 64)) for one in nets)
    return (num_inputs + 1) * width * each


def _few(nets: Sequence[Examples]) -> bool:
    """Whether rows per class are few."""
    return max(one.num_rows for one in nets) < FEW * max(2, len(nets))


def how_many(networks: int | str, program: Program, nets: Sequence[Examples]) -> int:
    """The number of networks asked for; "auto" is more of narrow ones, as far as time allows."""
    if not isinstance(networks, str):
        return networks
    (width,) = program.hidden or (1,)
    each_draw = CHAINS * BETWEEN * _words(program.num_inputs, width, nets)
    draws = min(UNITS // width // CHAINS, int(COLLECTING * WORK / each_draw))
    return max(LEAST_NETWORKS, draws * CHAINS)


@dataclass(frozen=True)
class Drawn:
    """What the chains left behind: networks (D, C, N, A), draw by draw."""

    networks: Tensor
    trained: Trained
    betas: tuple[float, ...]  # of the chains
    interrupted: bool
    mixing: Mapping[str, Any]  # of `mixing`
    log_weight: Tensor | None = None  # (D·C, N), by rows that came later; None: all alike


class _Watch:
    """What chains say on some rows, sweep after sweep: that is where they must agree."""

    def __init__(self, question: Question) -> None:
        examples = question.examples
        self._rows = examples.inputs[:: -(-len(examples) // WATCHED)]
        self._program = question.program
        self.said: list[Tensor] = []

    def look(self, networks: Tensor) -> None:
        """Remember what networks (C, N, A) say."""
        for outputs in outputs_of(self._program, networks, self._rows):  # the rows are one chunk
            self.said.append(clipped_margins(leads(outputs)[..., 0], 1).to(torch.int8))

    def mixing(self, betas: Sequence[float]) -> dict[str, Any]:
        """How far they agree; nothing is known of them where no sweep was watched."""
        if not self.said:
            return {"draws": 0, "chains": len(betas)}
        return mixing(torch.stack(self.said, 1).double(), betas)


def learned(
    question: Question,
    partner: Tensor,
    burn_in: int,
    count: int,
    beta: float | None,
    starts: Tensor | None = None,
) -> tuple[Drawn, HeldOut | None]:
    """`count` networks of every net, and what was found on rows held out.

    beta: of all chains; None settles it on those rows. starts (C, N, A): where chains on all rows
    begin; None is anywhere. Ctrl-C keeps the networks drawn; before the first, where the chains
    are, be it those that have not seen all rows.
    """
    begun = time.perf_counter()
    given = None if beta is None else (beta,)
    if not enough(question):
        return draw(question, partner, burn_in, count, given or USUAL, starts), None
    parts = Parts(question, partner, given)
    try:
        found = parts.judge(burn_in)
    except KeyboardInterrupt:
        if not parts.moved:
            raise
        return _so_far(question, parts, time.perf_counter() - begun), None
    return draw(question, partner, burn_in, count, found.betas, starts), found


def draw(
    question: Question,
    partner: Tensor,
    burn_in: int,
    count: int,
    betas: Sequence[float],
    starts: Tensor | None = None,
    step: int = 0,
) -> Drawn:
    """`count` networks of every net, betas in turn.

    starts (C, N, A): where chains go on at once, each at its beta; None: they begin anywhere and
    cool down.
    """
    begun = time.perf_counter()
    key, program, going_on = Key(question.seed, step), question.program, starts is not None
    if starts is None:
        chains = min(CHAINS, count)
        starts = random_starts(key, chains, len(question.nets), program.num_bits)
    chains = len(starts)
    cold = [betas[chain % len(betas)] for chain in range(chains)]
    samples = [Sample(one.inputs, one.labels, one.weight) for one in question.nets]
    total = _total(question)
    running = Chains(key, samples, starts, partner=partner, swaps=SWAPS, world=ranks.here())
    history, drawn, wrong, stopped = History(), [], [], False
    watch = _Watch(question)

    def go(sweeps: int, warm: Sequence[float], until: Sequence[float]) -> None:
        running.advance(sweeps, warm, until)
        right = 1 - running.wrong / total
        history.add(accuracy=right.mean(0), best=right.amax(0))

    def keep() -> None:
        drawn.append(running.bits)
        wrong.append(running.wrong)

    def stay() -> None:
        for first in range(0, burn_in, ROUND):
            go(min(ROUND, burn_in - first), cold, cold)

    def collect() -> None:
        for kept in (drawn, wrong, watch.said):
            kept.clear()
        keep()
        for _ in range(1, -(-count // chains)):
            for _ in range(BETWEEN):
                go(1, cold, cold)
                watch.look(running.bits)
            keep()

    try:
        if going_on:
            stay()
        else:
            for sweeps, warm, until in warming(cold, burn_in):
                go(sweeps, warm, until)
        collect()
        if burn_in == BURN_IN and unmixed(watch.mixing(cold)):
            stay()
            collect()
    except KeyboardInterrupt:
        stopped = True
        if not len(history):
            raise  # the chains are where they began
        if not drawn:
            keep()
    networks, missed = torch.stack(drawn), torch.stack(wrong)
    status = Status.INTERRUPTED if stopped else Status.MAX_STEPS
    trained = _trained(networks, missed, total, history, status, time.perf_counter() - begun)
    return Drawn(networks, trained, tuple(cold), stopped, watch.mixing(cold))


def reweighted(question: Question, batch: Examples, drawn: Drawn) -> Drawn | None:
    """The same networks, weighted by what they say of more rows: exp(−beta·weight of the wrong).

    That is the posterior of all rows as far as these networks represent it; None where the
    effective sample size of any net has fallen below half of them, and chains have to go on.
    """
    networks = drawn.networks.flatten(0, 1)
    said = outputs_of(question.program, networks, batch.inputs)
    lead = torch.cat([leads(outputs) for outputs in said])
    wrong = judged(lead, batch.labels, question.num_classes, question.scheme)
    energy = (batch.weight[:, None, None] * wrong).sum(0)
    log_weight = -torch.tensor(drawn.betas).double().repeat(len(drawn.networks))[:, None] * energy
    if drawn.log_weight is not None:
        log_weight = log_weight + drawn.log_weight
    share = torch.softmax(log_weight, 0)
    if float(share.square().sum(0).max()) * len(networks) > 1 / LEAST_EFFECTIVE:
        return None
    return replace(drawn, log_weight=log_weight)


def votes_of(drawn: Drawn, networks: int) -> Tensor:
    """How much each of the first networks counts, (networks, N) int64 from 1 to MOST_VOTES."""
    if drawn.log_weight is None:
        return torch.ones(networks, drawn.networks.shape[2], dtype=torch.int64)
    share = torch.exp(drawn.log_weight - drawn.log_weight.amax(0))
    return (MOST_VOTES * share[:networks]).round().clamp(min=1).to(torch.int64)


def _so_far(question: Question, parts: Parts, seconds: float) -> Drawn:
    """What chains on parts of the rows had come to when Ctrl-C came."""
    networks = parts.bits[None]
    chains = networks.shape[1]
    examples = question.examples
    said = outputs_of(question.program, networks[0], examples.inputs)
    lead = torch.cat([leads(outputs) for outputs in said])
    wrong = judged(lead, examples.labels, question.num_classes, question.scheme)
    missed = (examples.weight[:, None, None] * wrong).sum(0)[None]
    total, history = _total(question), History()
    right = 1 - missed[0] / total
    history.add(accuracy=right.mean(0), best=right.amax(0))
    trained = _trained(networks, missed, total, history, Status.INTERRUPTED, seconds)
    betas = tuple(beta for beta in parts.betas for _ in range(chains // len(parts.betas)))
    return Drawn(networks, trained, betas, True, {"draws": 0, "chains": chains})


def _total(question: Question) -> Tensor:
    """The weight of each net's rows, (N,)."""
    return torch.stack([one.weight.sum() for one in question.nets]).clamp(min=1e-300)


def answering(
    question: Question,
    drawn: Drawn,
    count: int,
    found: HeldOut | None,
    columns: Sequence[slice] = (),
    calibration: Calibration | None = None,
) -> Committee:
    """The committee of all networks, as sure as rows held out make us.

    Without such rows training rows are left out one by one: networks of a chain count by exp(beta)
    where they got the row wrong, as they would without it. columns: the inputs of each column.
    calibration: one that is kept instead.
    """
    networks = drawn.networks.flatten(0, 1)[: max(count, drawn.networks.shape[1])]
    votes = votes_of(drawn, len(networks))
    if calibration is not None:
        return Committee(networks, votes, calibration, (), drawn.interrupted)
    evidence = _left_out(question, drawn, networks) if found is None else found.evidence
    clip = clip_of(question.program)
    classes, scheme = question.num_classes, question.scheme
    made = calibrate(evidence, classes, scheme, clip=clip, networks=len(networks))
    thresholds: tuple[int, ...] = ()
    if found is not None:
        confidence = evidence.chances(clip, made.table, classes, scheme).amax(1)
        thresholds = thresholds_of(confidence, rows_of(question, evidence))
        thresholds = _of_all(thresholds, question, networks, made, found, columns)
    return Committee(networks, votes, made, thresholds, drawn.interrupted)


def _of_all(
    thresholds: tuple[int, ...],
    question: Question,
    networks: Tensor,
    calibration: Calibration,
    found: HeldOut,
    columns: Sequence[slice],
) -> tuple[int, ...]:
    """Thresholds for all networks, from those of the ones that held-out rows were asked of.

    Those had fewer rows to learn from, which makes them less confident in new rows. How much less
    is seen on rows that neither has learned from: rows that are made of training rows.
    """
    if not thresholds:
        return ()
    count = min(CROSSED_ROWS, affordable_rows(question, len(networks)))
    until = question.examples.rows.cumsum(0)
    parents = torch.searchsorted(until, until[-1] * (torch.arange(count) + 0.5) / count)
    rows = crossed(question.examples.inputs[parents], columns, count, question.seed)

    def confidence(asked: Tensor) -> Tensor:
        said = torch.cat([leads(part) for part in outputs_of(question.program, asked, rows)])
        nobody = torch.zeros(len(rows), dtype=torch.int64)
        classes, scheme = question.num_classes, question.scheme
        evidence = Evidence(said, nobody, torch.ones(len(rows), dtype=torch.float64))
        return evidence.chances(calibration.clip, calibration.table, classes, scheme).amax(1)

    before = torch.cat([confidence(fold) for fold in found.networks])
    return transferred(thresholds, before, confidence(networks))


def _left_out(question: Question, drawn: Drawn, networks: Tensor) -> Evidence:
    draws, chains = drawn.networks.shape[:2]
    examples = question.examples.where(spread(question, len(networks)))
    said = outputs_of(question.program, networks, examples.inputs)
    lead = torch.cat([leads(outputs) for outputs in said])
    wrong = judged(lead, examples.labels, question.num_classes, question.scheme)
    beta = torch.tensor(drawn.betas).repeat(draws)[: len(networks)]
    counts = torch.exp(beta[:, None] * examples.weight.clamp(max=1.0)[:, None, None] * wrong)
    owner = torch.arange(len(networks)) % chains
    whole = torch.zeros(len(counts), chains, counts.shape[2], dtype=torch.float64)
    counts = counts / whole.index_add(1, owner, counts)[:, owner]
    return Evidence(lead, examples.labels, examples.weight, counts)


def mixing(said: Tensor, betas: Sequence[float]) -> dict[str, Any]:
    """How far chains agree on rows: `said` (rows, draws, chains, N), and the beta of each chain.

    `spread` is √(V/W), W the mean variance within chains and V that of all with the same beta;
    one is well mixed. `effective_networks` is the number of independent ones with the same error
    of their mean, which is `error`.
    """
    draws, chains = said.shape[1:3]
    groups = [[at for at, one in enumerate(betas) if one == beta] for beta in sorted(set(betas))]
    if draws < 2 or min(len(group) for group in groups) < 2:
        return {"chains": chains, "draws": draws}
    within = float(said.var(1).mean())
    means = said.mean(1)
    between = float(torch.stack([means[:, group].var(1).mean() for group in groups]).mean())
    whole = within * (draws - 1) / draws + between
    share = min(1.0, whole / (draws * between)) if between > 0 else 1.0
    apart = math.sqrt(whole / within) if within > 0 else MOST_SPREAD
    return {
        "chains": chains,
        "draws": draws,
        "spread": round(min(apart, MOST_SPREAD), 3) if whole > 0 else 1.0,
        "effective_networks": round(chains * draws * share, 1),
        "error": round(math.sqrt(whole / (chains * draws * share)), 4),
    }


def unmixed(found: Mapping[str, Any]) -> str | None:
    """What there is to say of chains that do not agree, where enough is known of them."""
    known = found["draws"] >= LEAST_DRAWS and found["chains"] >= LEAST_CHAINS
    if not known or found["error"] ** 2 * ENOUGH <= 1:
        return None
    return (
        f"the chains have not mixed: all networks together differ {found['spread']:.2f} times as "
        f"much as those of one chain, and are worth {found['effective_networks']:.0f} independent "
        "ones; probabilities may be off, so check them on rows held out"
    )


def _trained(
    networks: Tensor, wrong: Tensor, total: Tensor, history: History, status: Status, seconds: float
) -> Trained:
    """The drawn network that fits best, and the shares of ones, as training reports them."""
    nets = networks.shape[2]
    least = wrong.flatten(0, 1).min(0)
    best = networks.flatten(0, 1)[least.indices, torch.arange(nets)]
    accuracy = 1 - least.values / total
    share = (networks.double().sum((0, 1)) + 0.5) / (networks.shape[0] * networks.shape[1] + 1)
    ends = tuple(Status.SOLVED if float(lost) == 0 else status for lost in least.values)
    if status == Status.INTERRUPTED:
        ends = (status,) * nets
    solution = Solution(
        weights=best.flatten(),
        best=best.flatten(),
        marginals=share.flatten(),
        accuracy=accuracy,
        best_accuracy=accuracy,
        status=ends,
        history=history,
        steps=len(history),
        evaluations=0,
        seconds=seconds,
        state=None,
    )
    bits = best[None]
    return Trained(solution, bits, bits, accuracy[None], torch.logit(share)[None],
                   (("chains",) * nets,))  # fmt: skip
