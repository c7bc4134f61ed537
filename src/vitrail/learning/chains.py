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
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from vitrail import ranks
from vitrail.learning.effort import (
    BURN_IN,
    CHAINS,
    FOLDS,
    USUAL_BETAS,
    ChainPlan,
    plan_chains,
)
from vitrail.learning.examples import Examples, label_factors, nets_of, with_rare_raised
from vitrail.learning.held_out import FoldChains, HeldOut
from vitrail.learning.posterior import (
    FitOptions,
    Posterior,
    TrainingData,
    check_networks,
    leave_one_out,
    raw_margins_of,
    wrong_answers,
)
from vitrail.learning.sampling import (
    MIXING_ROWS,
    SWEEPS_PER_DRAW,
    ChainRun,
    mixing,
    mixing_warning,
)
from vitrail.learning.table import AUTO
from vitrail.random import Key
from vitrail.solvers import Status
from vitrail.solvers.chains import random_starts
from vitrail.solvers.checkpoint import Checkpoint, checkpoint_path, run_digest
from vitrail.solvers.history import History
from vitrail.solvers.journal import Journal
from vitrail.solvers.progress import progress_bar

RESTARTING = {"beta", "effort", "networks", "class_weight", "predictor"}
"""Parameters whose change starts new chains."""
RECALIBRATED = 2  # growth of the number of rows after which calibration is repeated
LEAST_EFFECTIVE = 0.5  # share of the networks; below, chains continue
MOST_VOTES = 64  # of a network


def chains(data: TrainingData, options: FitOptions, previous: Posterior | None) -> Posterior:
    """Chains from random starts, or from where previous ones ended.

    Added rows reweight the networks; where the effective sample size is too small, chains continue.
    The calibration stays. Once rows have doubled, the fit starts from scratch.
    """
    fixed = data.preprocessing
    deep = not isinstance(options.hidden, str) and len(options.hidden) > 1
    several_outputs = fixed.scheme == "argmax" and fixed.num_classes > 2
    if options.module is not None or deep or several_outputs or fixed.coding != "binary":
        raise ValueError(
            "chains sample nets with at most one hidden layer, one output and inputs of 0/1; leave "
            "module, multiclass='argmax' and inputs='bipolar' out, or take solver='messages'"
        )
    given, betas = options.given.get("beta"), None
    if given is not None:
        betas = (float(given),) if isinstance(given, Real) else tuple(map(float, given))
    if betas is not None and math.inf in betas:
        raise ValueError(
            "chains sample at a finite beta; for beta=inf, which allows no error, take "
            "solver='messages'"
        )
    check_networks(options, "chains", options.predictor)
    if options.device not in (AUTO, "cpu"):
        raise ValueError(
            f"chains run on the CPU; leave device={options.device!r} out, or use another solver"
        )
    data = replace(data, nets=[with_rare_raised(one, fixed.scheme) for one in data.nets])
    plan = plan_chains(
        data.nets,
        options.hidden if previous is None else previous.program.hidden,
        AUTO if options.predictor == "best" else options.networks,  # the best of the usual number
        options.given.get("effort", "normal"),
    )
    total = torch.stack([one.weight.sum() for one in data.nets]).clamp(min=1e-300)
    run = Run(data, plan, options, total)
    calls = 0 if previous is None else previous.calls
    state = None if previous is None else previous.state
    starts, found, keep_calibration = None, None, False
    if isinstance(state, ChainState) and "networks" not in options.changed:
        starts = state.networks[-1]
    if data.added is None or not isinstance(state, ChainState):
        drawn, found = run.learned(betas, starts, calls)
    elif data.examples.num_rows >= RECALIBRATED * state.calibrated or options.changed & RESTARTING:
        drawn, found = run.learned(betas)
    else:
        # with balanced classes, or a memory, the weights of earlier rows change too
        changed = options.class_weight == "balanced" or data.kept < 1
        drawn = None if changed else run.reweighted(state)
        if drawn is None:
            drawn = run.draw(betas or state.betas, state.coupling, starts, calls)
        drawn, keep_calibration = replace(drawn, calibrated=state.calibrated), True
    for journal in () if drawn.interrupted else run.journals:
        journal.remove()
    return _posterior(run, drawn, found, calls, keep_calibration=keep_calibration)


def _posterior(
    run: Run, drawn: ChainState, found: HeldOut | None, calls: int, *, keep_calibration: bool
) -> Posterior:
    """All networks, with the scores that those of the folds gave held-out rows.

    Without such rows training rows are left out one by one: networks of a chain count by exp(beta)
    where they got the row wrong, as they would without it.
    """
    warning = mixing_warning(drawn.mixing)
    if warning is not None:
        warnings.warn(warning, ConvergenceWarning, stacklevel=2)
    data, options, program = run.data, run.options, run.plan.program
    draws, num_chains, num_nets, _ = drawn.networks.shape
    networks = drawn.networks.flatten(0, 1)
    least = drawn.wrong.flatten(0, 1).min(0)
    best, accuracy = networks[least.indices, torch.arange(num_nets)], 1 - least.values / run.total
    networks = networks[: max(run.plan.networks, num_chains)]
    votes = torch.ones(networks.shape[:2], dtype=torch.int64)
    if drawn.log_weight is not None:
        share = torch.exp(drawn.log_weight - drawn.log_weight.amax(0))
        votes = (MOST_VOTES * share[: len(networks)]).round().clamp(min=1).to(torch.int64)
    clip, evidence = run.plan.clip, None
    scored_by = None if found is None else found.networks
    if options.predictor == "best":
        networks, votes = best[None], torch.ones(1, len(best), dtype=torch.int64)
        evidence, clip, scored_by = leave_one_out(data, program, networks), None, None
    elif found is not None:
        evidence = found.evidence
    elif not keep_calibration:  # leave-one-out weights within a chain: as if rows had been held out
        evidence = replace(leave_one_out(data, program, networks, drawn.counts), held_out=True)
    notes: dict[str, Any] = {"mixing": dict(drawn.mixing)}
    if found is not None:
        weight = found.evidence.weight / found.evidence.weight.sum()
        notes["held_out_log_loss"] = round(float((weight * found.losses).sum()), 6)
    status = Status.INTERRUPTED if drawn.interrupted else Status.MAX_STEPS
    solved = (not drawn.interrupted) & (accuracy == 1)
    return Posterior(
        program=program,
        networks=networks,
        votes=votes,
        best=best,
        marginals=(drawn.networks.double().sum((0, 1)) + 0.5) / (draws * num_chains + 1),
        accuracy=accuracy,
        evidence=evidence,
        settings={
            "solver": "chains",
            "hidden": list(program.hidden or ()),
            "beta": list(dict.fromkeys(drawn.betas)),
            "coupling": drawn.coupling,
            "effort": options.given.get("effort", "normal"),
            "burn_in": run.plan.burn_in,
            "chains": num_chains,
            "predictor": "best" if options.predictor == "best" else "posterior",
            "networks": len(networks),
            "seed": options.seed,
        },
        history=drawn.history,
        steps=len(drawn.history),
        evaluations=drawn.proposals,
        status=tuple(Status.SOLVED if one else status for one in solved.tolist()),
        found_by=("chains",) * num_nets,
        state=drawn,
        calls=calls + 1,
        interrupted=drawn.interrupted,
        clip=clip,
        scored_by=scored_by,
        notes=notes,
    )


@dataclass(frozen=True)
class ChainState:
    """The state of the chains after a fit."""

    networks: Tensor  # (D, C, N, A) bool, draw by draw
    wrong: Tensor  # (D, C, N) float64, the weight of the examples that each gets wrong
    betas: tuple[float, ...]  # of the chains
    coupling: float  # likewise
    history: History
    interrupted: bool
    mixing: Mapping[str, Any]  # of `mixing`
    calibrated: int  # rows that the calibration was made from
    proposals: int = 0  # of all chains
    log_weight: Tensor | None = None  # (D·C, N), by rows that came later; None: all alike

    def counts(self, wrong: Tensor, weight: Tensor) -> Tensor:
        """Leave-one-out weights of networks, (rows, K, N)."""
        chains, networks = self.networks.shape[1], wrong.shape[1]
        beta = torch.tensor(self.betas).repeat(-(-networks // chains))[:networks]
        counts = torch.exp(beta[:, None] * weight[:, None, None] * wrong)
        owner = torch.arange(networks) % chains
        totals = torch.zeros(len(counts), chains, counts.shape[2], dtype=torch.float64)
        return counts / totals.index_add(1, owner, counts)[:, owner]


@dataclass(frozen=True)
class Run:
    """Settings shared by all chains of a fit."""

    data: TrainingData
    plan: ChainPlan
    options: FitOptions
    total: Tensor  # (N,) float64, the weight of each net's rows
    journals: list[Journal] = field(default_factory=list)

    def learned(
        self, betas: Sequence[float] | None, starts: Tensor | None = None, step: int = 0
    ) -> tuple[ChainState, HeldOut | None]:
        """The networks, and the scores of held-out rows.

        betas: of the chains; None settles them on those rows. starts (C, N, A): where chains on all
        rows begin; None is anywhere. Ctrl-C keeps the networks drawn; before the first, where the
        chains are, be it those that have not seen all rows.
        """
        data, plan, shown = self.data, self.plan, self.options.progress
        if data.examples.num_rows < 2 * FOLDS:
            return self.draw(betas or USUAL_BETAS, 0.0, starts, step), None
        journal = self._journal("folds", betas) if self.options.checkpoint else None
        folds = FoldChains(data, plan, betas, self.options.seed, journal)
        try:
            label = "chains on held-out folds"
            with progress_bar(folds.sweeps, label) if shown else nullcontext() as show:
                found = folds.score(show)
        except KeyboardInterrupt:
            if not folds.run.sweeps:
                raise
            return self._from_folds(folds), None
        return self.draw(found.betas, found.coupling, starts, step), found

    def draw(
        self,
        betas: Sequence[float],
        coupling: float,
        starts: Tensor | None = None,
        step: int = 0,
    ) -> ChainState:
        """The networks, betas in turn.

        starts (C, N, A): states from which chains continue at their beta; None: random states
        and cool down.
        """
        data, plan, shown = self.data, self.plan, self.options.progress
        continued = starts is not None
        key, program = Key(self.options.seed, step), plan.program
        if starts is None:
            count = min(CHAINS, plan.networks)
            starts = random_starts(key, count, len(data.nets), program.num_bits)
        betas = [betas[chain % len(betas)] for chain in range(len(starts))]
        draws = -(-plan.networks // len(starts))
        journal = None
        if self.options.checkpoint:
            journal = self._journal("chains", betas, coupling, starts, step, plan.networks)
        couplings = [coupling] * len(starts)
        run = ChainRun(
            key, program, data.nets, starts, betas, data.preprocessing, journal, couplings
        )
        rows, interrupted = data.examples.inputs[:: -(-len(data.examples) // MIXING_ROWS)], False
        sweeps = plan.burn_in + SWEEPS_PER_DRAW * (draws - 1)
        try:
            label = "chains on all rows"
            with progress_bar(sweeps, label) if shown else nullcontext() as run.show:
                run.burn_in(plan.burn_in, rising=not continued)
                run.collect(draws, rows)
                if plan.burn_in == BURN_IN and mixing_warning(mixing(run.signs, betas)):
                    run.burn_in(plan.burn_in, rising=False)
                    run.collect(draws, rows)
        except KeyboardInterrupt:
            if not run.sweeps:
                raise  # no draw yet
            interrupted = True
            if not run.networks:
                run.networks, run.wrong = [run.chains.bits], [run.chains.wrong]
        return ChainState(
            torch.stack(run.networks),
            torch.stack(run.wrong),
            tuple(betas),
            coupling,
            run.history,
            interrupted,
            mixing(run.signs, betas),
            data.examples.num_rows,
            run.sweeps * starts.numel(),
        )

    def reweighted(self, drawn: ChainState) -> ChainState | None:
        """The same networks, weighted by exp(−beta·E), E the weight of added rows they get wrong.

        That is the posterior of all rows as far as these networks represent it; None where the
        effective sample size of any net has fallen below half of them, and chains have to continue.
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

    def _from_folds(self, folds: FoldChains) -> ChainState:
        """The networks of chains on folds at the time of Ctrl-C."""
        bits = folds.run.chains.bits.unflatten(1, (-1, len(self.data.nets)))
        networks, history = bits.flatten(0, 1)[None], History()
        chains = networks.shape[1]
        wrong = self._wrong(networks[0], self.data.examples)[None]
        accuracy = 1 - wrong[0] / self.total
        history.add(accuracy=accuracy.mean(0), best=accuracy.amax(0))
        betas = tuple(beta for beta in folds.betas for _ in range(chains // len(folds.betas)))
        return ChainState(
            networks,
            wrong,
            betas,
            0.0,
            history,
            True,
            mixing([], betas),
            self.data.examples.num_rows,
        )

    def _wrong(self, networks: Tensor, examples: Examples) -> Tensor:
        """The weight of the examples that networks (K, N, A) get wrong, (K, N) float64."""
        fixed, weight = self.data.preprocessing, examples.weight[:, None]
        raw = raw_margins_of(self.plan.program, networks, examples.inputs)
        wrong = wrong_answers(raw, examples.labels, fixed)
        if fixed.scheme != "pairs":  # every net has all rows
            known, new = (
                nets_of(one, fixed.num_classes, fixed.scheme)
                for one in (self.data.examples, examples)
            )
            factors = [label_factors(net, fixed.scheme) for net in known]
            each = zip(new, factors, strict=True)
            weight = torch.stack([net.weight * factor[net.labels] for net, factor in each], 1)
        return (weight[:, None] * wrong).sum(0)

    def _journal(self, name: str, *settings: Any) -> Journal:
        """The journal of this run; its file name has a digest of rows and settings."""
        assert self.options.checkpoint is not None
        nets = [(one.inputs, one.labels, one.weight) for one in self.data.nets]
        num_bits, burn_in, world = (
            self.plan.program.num_bits,
            self.plan.burn_in,
            ranks.current_world(),
        )
        fixed = self.data.preprocessing
        ordered = fixed.encoder.ordered if fixed.directions else []
        seed = self.options.seed
        digest = run_digest(world, nets, num_bits, burn_in, seed, *settings, *ordered)
        path = Path(f"{checkpoint_path(self.options.checkpoint, digest)}.{name}")
        journal = Journal(Checkpoint(path, digest, world))
        self.journals.append(journal)
        return journal
