"""The default learner: many networks drawn from the posterior by long chains from random starts.

There is one net per class against the rest (one net for two classes), by default with one hidden
layer. Each net has 16 chains, whose beta rises slowly and which yield eight networks each, or more
where nets are narrow. Beta and the calibration of probabilities are settled on held-out rows first
(`held_out`). Over 15 tables this was as good as a forest of 200 trees in accuracy and better in
log-loss; messages before the chains added nothing, and fewer or longer chains were worse.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from vitrail import ranks
from vitrail.learning.effort import BURN_IN, CHAINS, effort, how_many
from vitrail.learning.examples import Examples
from vitrail.learning.held_out import BETWEEN, SWAPS, USUAL, HeldOut, Parts, enough
from vitrail.learning.mixing import Watch, unmixed
from vitrail.learning.posterior import (
    FitOptions,
    Posterior,
    TrainingData,
    check_networks,
    clip_of,
    judged,
    leads_of,
    leave_one_out,
)
from vitrail.learning.table import AUTO
from vitrail.nn import Program
from vitrail.random import Key
from vitrail.solvers import Status
from vitrail.solvers.chains import ROUND, Chains, Sample, random_starts, warming
from vitrail.solvers.checkpoint import named_after, run_fingerprint
from vitrail.solvers.history import History
from vitrail.solvers.journal import Journal
from vitrail.solvers.progress import Progress, progress_bar, silent

ANEW = {"beta", "networks", "class_weight", "predictor"}  # parameters whose change needs new chains
RECALIBRATED = 2  # times as many rows as at the last calibration bring the next
LEAST_EFFECTIVE = 0.5  # share of the networks; below, chains go on
MOST_VOTES = 64  # of a network


def chains(data: TrainingData, options: FitOptions, previous: Posterior | None) -> Posterior:
    """Chains from random starts, or from where previous ones ended.

    Rows that are added weight the networks anew; where too few of these would count, chains go on.
    The calibration stays. Once rows have doubled, all begins anew.
    """
    _check(data, options)
    hidden = options.hidden if previous is None else previous.program.hidden
    program, burn_in = effort(data.preprocessing.num_inputs, data.nets, hidden)
    many = options.predictor != "best"  # the best of as many as would vote
    count = how_many(options.networks if many else AUTO, program, data.nets)
    betas = _betas(options)
    before = previous.state if previous is not None else None
    before = before if isinstance(before, Drawn) else None
    starts = None
    if before is not None and "networks" not in options.changed:
        starts = before.networks[-1]
    run = Run(data, program, burn_in, count, options.seed, options.checkpoint, options.progress)
    found, calls = None, 0 if previous is None else previous.calls
    if before is not None and data.added is not None:
        doubled = data.examples.num_rows >= RECALIBRATED * before.calibrated
        if doubled or options.changed & ANEW:
            drawn, found = run.learned(betas)
        else:
            balanced = options.class_weight == "balanced"  # the weights of earlier rows change
            drawn = None if balanced else run.reweighted(before)
            if drawn is None:
                drawn = run.draw(betas or before.betas, starts, calls)
            drawn = replace(drawn, calibrated=before.calibrated)
            if not drawn.interrupted:
                run.ended()
            return _posterior(run, options, drawn, None, calls, kept=True)
    else:
        drawn, found = run.learned(betas, starts, calls)
    if not drawn.interrupted:
        run.ended()
    return _posterior(run, options, drawn, found, calls)


def _check(data: TrainingData, options: FitOptions) -> None:
    """Raise where the net or an option is not for chains."""
    fixed = data.preprocessing
    deep = not isinstance(options.hidden, str) and len(options.hidden) > 1
    if options.module is not None or deep or fixed.num_outputs > 1 or fixed.coding != "binary":
        raise ValueError(
            "chains sample nets with at most one hidden layer, one output and inputs of 0/1; leave "
            "module, multiclass='argmax' and inputs='bipolar' out, or take solver='messages'"
        )
    if math.inf in _betas(options, ()):
        raise ValueError(
            "chains sample at a finite beta; for beta=inf, which allows no error, take "
            "solver='messages'"
        )
    check_networks(options, "chains", options.predictor)
    if options.device not in (AUTO, "cpu"):
        raise ValueError(
            f"chains run on the CPU; leave device={options.device!r} out, or take another solver"
        )


def _betas(options: FitOptions, otherwise: Any = None) -> Any:
    """The betas asked for, or `otherwise`."""
    asked = options.given.get("beta")
    if asked is None:
        return otherwise
    return (float(asked),) if isinstance(asked, Real) else tuple(map(float, asked))


def _posterior(
    run: Run,
    options: FitOptions,
    drawn: Drawn,
    found: HeldOut | None,
    calls: int,
    *,
    kept: bool = False,
) -> Posterior:
    """All networks, with what those of the folds said of held-out rows.

    Without such rows training rows are left out one by one: networks of a chain count by exp(beta)
    where they got the row wrong, as they would without it. kept: the calibration is.
    """
    told = unmixed(drawn.mixing)
    if told is not None:
        warnings.warn(told, ConvergenceWarning, stacklevel=2)
    data, program = run.data, run.program
    best, accuracy = drawn.best(run.total)
    networks = drawn.networks.flatten(0, 1)[: max(run.count, drawn.networks.shape[1])]
    votes, clip = drawn.votes(len(networks)), clip_of(program)
    evidence = None
    asked = None if found is None else found.networks
    if options.predictor == "best":
        networks, votes = best[None], torch.ones(1, len(best), dtype=torch.int64)
        evidence, clip, asked = leave_one_out(data, program, networks), None, None
    elif not kept:
        evidence = None if found is None else found.evidence
        if evidence is None:  # counts within a chain are fair: as if the rows had been held out
            seen = leave_one_out(data, program, networks, drawn.counts)
            evidence = replace(seen, held_out=True)
    notes: dict[str, Any] = {"mixing": dict(drawn.mixing)}
    if found is not None:
        notes["held_out_log_loss"] = round(found.log_loss, 6)
    status = Status.INTERRUPTED if drawn.interrupted else Status.MAX_STEPS
    solved = (not drawn.interrupted) & (accuracy == 1)
    draws = drawn.networks.shape[0] * drawn.networks.shape[1]
    return Posterior(
        program=program,
        networks=networks,
        votes=votes,
        best=best,
        marginals=(drawn.networks.double().sum((0, 1)) + 0.5) / (draws + 1),
        accuracy=accuracy,
        evidence=evidence,
        settings={
            "solver": "chains",
            "hidden": list(program.hidden or ()),
            "beta": list(dict.fromkeys(drawn.betas)),
            "burn_in": run.burn_in,
            "chains": drawn.networks.shape[1],
            "predictor": "best" if options.predictor == "best" else "posterior",
            "networks": len(networks),
            "seed": options.seed,
        },
        history=drawn.history,
        steps=len(drawn.history),
        evaluations=drawn.proposals,
        status=tuple(Status.SOLVED if one else status for one in solved.tolist()),
        found_by=("chains",) * len(best),
        state=drawn,
        calls=calls + 1,
        interrupted=drawn.interrupted,
        clip=clip,
        asked=asked,
        notes=notes,
    )


def neighbours(columns: Tensor) -> Tensor:
    """The next input of the same column, (I,) int64; −1 where there is none. columns: (I,)."""
    following = torch.cat([columns[1:], columns.new_full((1,), -1)])
    place = torch.arange(1, len(columns) + 1)
    return torch.where((columns == following) & (columns >= 0), place, -1)


@dataclass(frozen=True)
class Drawn:
    """What the chains left behind."""

    networks: Tensor  # (D, C, N, A) bool, draw by draw
    wrong: Tensor  # (D, C, N) float64, the weight of the examples that each gets wrong
    betas: tuple[float, ...]  # of the chains
    history: History
    interrupted: bool
    mixing: Mapping[str, Any]  # of `mixing`
    calibrated: int  # rows that the calibration was made from
    proposals: int = 0  # of all chains
    log_weight: Tensor | None = None  # (D·C, N), by rows that came later; None: all alike

    def best(self, total: Tensor) -> tuple[Tensor, Tensor]:
        """The network of each net that fits best, (N, A), and its accuracy (N,); total: (N,)."""
        least = self.wrong.flatten(0, 1).min(0)
        networks = self.networks.flatten(0, 1)
        return networks[least.indices, torch.arange(len(total))], 1 - least.values / total

    def votes(self, networks: int) -> Tensor:
        """How much each of the first networks counts, (networks, N) int64 from 1 to MOST_VOTES."""
        if self.log_weight is None:
            return torch.ones(networks, self.networks.shape[2], dtype=torch.int64)
        share = torch.exp(self.log_weight - self.log_weight.amax(0))
        return (MOST_VOTES * share[:networks]).round().clamp(min=1).to(torch.int64)

    def counts(self, wrong: Tensor, weight: Tensor) -> Tensor:
        """How much networks count on a row as if chains had been without it, (rows, K, N)."""
        chains, networks = self.networks.shape[1], wrong.shape[1]
        beta = torch.tensor(self.betas).repeat(-(-networks // chains))[:networks]
        counts = torch.exp(beta[:, None] * weight[:, None, None] * wrong)
        owner = torch.arange(networks) % chains
        whole = torch.zeros(len(counts), chains, counts.shape[2], dtype=torch.float64)
        return counts / whole.index_add(1, owner, counts)[:, owner]


@dataclass(frozen=True)
class Run:
    """What is the same for all chains of a training."""

    data: TrainingData
    program: Program
    burn_in: int  # sweeps
    count: int  # networks of every net
    seed: int
    checkpoint: str | Path | None = None  # the name of files that chains are saved to
    progress: bool = False  # bars on a terminal
    journals: list[Journal] = field(default_factory=list)

    def journal(self, name: str, *asked: Any) -> Journal | None:
        """Where chains are saved to and go on from; its file's name tells this run from others."""
        if self.checkpoint is None:
            return None
        nets = [(one.inputs, one.labels, one.weight) for one in self.data.nets]
        digest = run_fingerprint(nets, self.program.num_bits, self.burn_in, self.seed, *asked)
        own = ranks.here().broadcast(digest)
        made = Journal(Path(f"{named_after(self.checkpoint, own)}.{name}"), own, ranks.here())
        self.journals.append(made)
        return made

    def bar(self, sweeps: int, label: str) -> AbstractContextManager[Progress]:
        """What shows how far chains are, on a terminal where that is asked for."""
        shown = self.progress and ranks.here().first
        return progress_bar(sweeps, label) if shown else nullcontext(silent)

    def ended(self) -> None:
        """Remove the files: nobody goes on from here."""
        for journal in self.journals if ranks.here().first else ():
            journal.remove()

    @property
    def total(self) -> Tensor:
        """The weight of each net's rows, (N,)."""
        return torch.stack([one.weight.sum() for one in self.data.nets]).clamp(min=1e-300)

    @property
    def partner(self) -> Tensor:
        return neighbours(self.data.preprocessing.columns)

    def learned(
        self, betas: Sequence[float] | None, starts: Tensor | None = None, step: int = 0
    ) -> tuple[Drawn, HeldOut | None]:
        """The networks, and what was found on held-out rows.

        betas: of the chains; None settles them on those rows. starts (C, N, A): where chains on all
        rows begin; None is anywhere. Ctrl-C keeps the networks drawn; before the first, where the
        chains are, be it those that have not seen all rows.
        """
        if not enough(self.data):
            return self.draw(betas or USUAL, starts, step), None
        journal = self.journal("folds", betas)
        parts = Parts(self.data, self.program, self.partner, betas, self.seed, journal)
        try:
            with self.bar(parts.sweeps(self.burn_in), "chains on held-out folds") as show:
                found = parts.judge(self.burn_in, show)
        except KeyboardInterrupt:
            if not parts.moved:
                raise
            return self._so_far(parts), None
        return self.draw(found.betas, starts, step), found

    def draw(self, betas: Sequence[float], starts: Tensor | None = None, step: int = 0) -> Drawn:
        """The networks, betas in turn.

        starts (C, N, A): where chains go on at once, each at its beta; None: they begin anywhere
        and cool down.
        """
        data, going_on = self.data, starts is not None
        key = Key(self.seed, step)
        if starts is None:
            chains = min(CHAINS, self.count)
            starts = random_starts(key, chains, len(data.nets), self.program.num_bits)
        chains = len(starts)
        cold = [betas[chain % len(betas)] for chain in range(chains)]
        samples = [Sample(one.inputs, one.labels, one.weight) for one in data.nets]
        total = self.total
        running = Chains(
            key,
            samples,
            starts,
            partner=self.partner,
            swaps=SWAPS,
            world=ranks.here(),
            journal=self.journal("chains", cold, starts, step, self.count),
        )
        history, drawn, wrong, stopped, done = History(), [], [], False, 0
        watch = Watch(data, self.program)

        def go(sweeps: int, warm: Sequence[float], until: Sequence[float]) -> None:
            nonlocal done
            running.advance(sweeps, warm, until)
            done += sweeps
            right = 1 - running.wrong / total
            history.add(accuracy=right.mean(0), best=right.amax(0))
            show(done, right.mean(0), right.amax(0))

        def keep() -> None:
            drawn.append(running.bits)
            wrong.append(running.wrong)

        def stay() -> None:
            for first in range(0, self.burn_in, ROUND):
                go(min(ROUND, self.burn_in - first), cold, cold)

        def collect() -> None:
            for kept in (drawn, wrong, watch.said):
                kept.clear()
            keep()
            for _ in range(1, draws):
                for _ in range(BETWEEN):
                    go(1, cold, cold)
                    watch.look(running.bits)
                keep()

        draws = -(-self.count // chains)
        try:
            with self.bar(self.burn_in + BETWEEN * (draws - 1), "chains on all rows") as show:
                if going_on:
                    stay()
                else:
                    for sweeps, warm, until in warming(cold, self.burn_in):
                        go(sweeps, warm, until)
                collect()
                if self.burn_in == BURN_IN and unmixed(watch.mixing(cold)):
                    stay()
                    collect()
        except KeyboardInterrupt:
            stopped = True
            if not len(history):
                raise  # the chains are where they began
            if not drawn:
                keep()
        return Drawn(
            torch.stack(drawn),
            torch.stack(wrong),
            tuple(cold),
            history,
            stopped,
            watch.mixing(cold),
            data.examples.num_rows,
            done * starts.numel(),
        )

    def reweighted(self, drawn: Drawn) -> Drawn | None:
        """The same networks, weighted by exp(−beta·E), E the weight of added rows they get wrong.

        That is the posterior of all rows as far as these networks represent it; None where the
        effective sample size of any net has fallen below half of them, and chains have to go on.
        """
        added = self.data.added
        assert added is not None
        networks = drawn.networks.flatten(0, 1)
        energy = self._wrong(networks, added)
        betas = torch.tensor(drawn.betas).double().repeat(len(drawn.networks))
        log_weight = -betas[:, None] * energy
        if drawn.log_weight is not None:
            log_weight = log_weight + drawn.log_weight
        share = torch.softmax(log_weight, 0)
        if float(share.square().sum(0).max()) * len(networks) > 1 / LEAST_EFFECTIVE:
            return None
        wrong = drawn.wrong + energy.reshape(drawn.wrong.shape)
        return replace(drawn, log_weight=log_weight, wrong=wrong, interrupted=False)

    def _wrong(self, networks: Tensor, examples: Examples) -> Tensor:
        """The weight of the examples that networks (K, N, A) get wrong, (K, N) float64."""
        lead = leads_of(self.program, networks, examples.inputs)
        wrong = judged(lead, examples.labels, self.data.num_classes, self.data.scheme)
        return (examples.weight[:, None, None] * wrong).sum(0)

    def _so_far(self, parts: Parts) -> Drawn:
        """What chains on parts of the rows had come to when Ctrl-C came."""
        networks, history = parts.bits[None], History()
        chains = networks.shape[1]
        wrong = self._wrong(networks[0], self.data.examples)[None]
        right = 1 - wrong[0] / self.total
        history.add(accuracy=right.mean(0), best=right.amax(0))
        betas = tuple(beta for beta in parts.betas for _ in range(chains // len(parts.betas)))
        rows = self.data.examples.num_rows
        mixing = {"draws": 0, "chains": chains}
        return Drawn(networks, wrong, betas, history, True, mixing, rows)
