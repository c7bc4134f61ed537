"""The learner of nets with activations of a few bits: straight-through gradients in the module.

What such a net rounds by (`vitrail.nn.Levels`) is learned with its weights, so the module itself is
trained, as torch trains any: batches, Adam with a rate that falls along a cosine, cross-entropy.
Layers that act in training only, such as `RandomWarp`, do so here. Then its program is taken.

The first fit trains the module a second time, without a fold of rows, and for half the epochs where
that is enough. What this net says of the fold calibrates probabilities: a net is too confident in
rows that it has learned.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitrail import interrupts
from vitrail.learning.choice import trial_folds
from vitrail.learning.examples import Examples
from vitrail.learning.messages import programs_of
from vitrail.learning.posterior import (
    CALIBRATION_ROWS,
    FitOptions,
    Posterior,
    TrainingData,
    check_networks,
    leave_one_out,
    raw_margins_of,
)
from vitrail.learning.table import AUTO, parameter_of
from vitrail.model.calibration import Evidence
from vitrail.nn import Program, get_bits, program_of
from vitrail.nn.layers import BinaryLayer
from vitrail.random import MAX_SEED
from vitrail.solvers import Status
from vitrail.solvers.history import History
from vitrail.solvers.progress import progress_bar, silent

OPTIONS = ("batch", "epochs")  # of `ste` that such nets take
BATCH, LEAST_EPOCHS, LEAST_STEPS = 250, 40, 4000
LATENT_RATE, RATE = 0.03, 0.01  # of latent weights, whose range is −1 to 1, and of all else
RISE = 100  # steps in which rates come up to that
FIRST_SPREAD = 2.0  # of a class's score, as a log-odds: outputs are whole numbers of any size


@dataclass(frozen=True)
class GradientState:
    """State from which a fit continues."""

    module: nn.Module


def learn_by_gradients(
    data: TrainingData, options: FitOptions, previous: Posterior | None
) -> Posterior:
    """Train a module with `Levels`; going on, from its weights and levels."""
    module = _module(data, options, previous)
    batch, epochs = _batch_and_epochs(data, options)
    calls = 0 if previous is None else previous.calls
    seed = (options.seed + calls) % MAX_SEED

    def trained(module: nn.Module, examples: Examples, epochs: int) -> ModuleRun:
        run = ModuleRun(
            module, data.preprocessing.shape, examples, batch, epochs, device=options.device
        )
        run.train(seed, fresh=previous is None, shown=options.progress)
        return run

    run = trained(module, data.nets[0], epochs)
    program, networks = run.answering()
    of_training = leave_one_out(data, program, networks)
    evidence, stopped = None if previous is not None else of_training, run.interrupted
    if previous is None and not stopped:
        try:
            for seen, held in trial_folds(data, options.seed)[:1]:
                enough = min(epochs, max(epochs // 2, usual_epochs(len(seen), batch)))
                trial = trained(_module(data, options, None), seen, enough)
                stopped = trial.interrupted
                if not stopped:
                    evidence = trial.evidence(held)
        except KeyboardInterrupt:
            stopped = True
    return Posterior(
        program=program,
        networks=networks,
        votes=torch.ones(1, 1, dtype=torch.int64),
        best=networks[0],
        marginals=networks[0].double(),
        accuracy=accuracy_of(of_training),
        evidence=evidence,
        settings={
            "solver": "ste",
            "batch_size": batch,
            "epochs": epochs,
            "predictor": "best",
            "networks": 1,
            "seed": options.seed,
        },
        history=run.history,
        steps=run.steps,
        evaluations=run.steps * batch,
        status=(Status.INTERRUPTED if stopped else Status.MAX_STEPS,),
        found_by=("ste",),
        state=GradientState(module),
        calls=calls + 1,
        interrupted=stopped,
    )


def _module(data: TrainingData, options: FitOptions, previous: Posterior | None) -> nn.Module:
    """A copy of the module to train; raises where the net or an option is not for this learner."""
    if options.predictor == "posterior":
        raise ValueError(
            "nets with activations of a few bits answer with one network; take predictor='best', "
            "or leave it out"
        )
    check_networks(options, "ste", "best")
    for option in options.given:
        if option not in OPTIONS:
            raise ValueError(
                f"{parameter_of(option)} is no option of nets with activations of a few bits; "
                f"leave it out, or give {' or '.join(parameter_of(one) for one in OPTIONS)}"
            )
    if not isinstance(options.module, nn.Module):
        raise ValueError("levels of a program are constants; give the module that it came from")
    programs_of(data, options)  # says whether outputs fit the classes
    known = previous.state if previous is not None else None
    return copy.deepcopy(known.module if isinstance(known, GradientState) else options.module)


def _batch_and_epochs(data: TrainingData, options: FitOptions) -> tuple[int, int]:
    rows = len(data.examples)
    given: Any = options.given.get("batch", BATCH)
    batch = max(1, min(rows, rows if given is None else int(given)))
    return batch, int(options.given.get("epochs", usual_epochs(rows, batch)))


def usual_epochs(rows: int, batch: int) -> int:
    """Epochs of a fit of so many rows."""
    return max(LEAST_EPOCHS, -(-LEAST_STEPS * batch // rows))


def _start(module: nn.Module) -> None:
    """Random weights, so that the seed alone says where training begins."""
    for layer in module.modules():
        if isinstance(layer, BinaryLayer):
            nn.init.uniform_(layer.latent, -1.0, 1.0)


class ModuleRun:
    """One training of a module."""

    def __init__(
        self,
        module: nn.Module,
        shape: tuple[int, ...],
        examples: Examples,
        batch: int,
        epochs: int,
        *,
        device: str = AUTO,
    ) -> None:
        """shape: of an example, as the module reads it."""
        usual = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(usual if device == AUTO else device)
        self.module, self.shape, self.epochs = module.to(self.device), shape, epochs
        self.batch = min(batch, len(examples))
        self.inputs = examples.inputs.unflatten(1, shape).to(self.device)
        self.labels = examples.labels.to(self.device)
        self.weight = (examples.weight / examples.weight.mean()).float().to(self.device)
        self.history, self.steps, self.interrupted = History(), 0, False

    def train(self, seed: int, *, fresh: bool = True, shown: bool = False) -> None:
        """All epochs; after a stop, those until then. fresh: from random weights."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(seed)
            if fresh:
                _start(self.module)
            self._train(shown=shown)
        self.module.cpu().eval()

    def answering(self) -> tuple[Program, Tensor]:
        """The trained net and its network, (1, 1, A) bool."""
        return program_of(self.module, self.shape), get_bits(self.module)[None, None]

    def evidence(self, held: Examples) -> Evidence:
        """What the trained net says of rows it has not seen."""
        rows = held.where(torch.arange(0, len(held), -(-len(held) // CALIBRATION_ROWS)))
        margins = raw_margins_of(*self.answering(), rows.inputs)
        return Evidence(margins, rows.labels, rows.weight)

    def _train(self, *, shown: bool) -> None:
        self.module.train()
        scale = nn.Parameter(self._first_scale())
        latent = [part.latent for part in self.module.modules() if isinstance(part, BinaryLayer)]
        own = {id(part) for part in latent}
        others = [part for part in self.module.parameters() if id(part) not in own]
        groups = [{"params": latent, "lr": LATENT_RATE}, {"params": [*others, scale]}]
        optimiser = torch.optim.Adam(groups, lr=RATE)
        count = max(1, len(self.labels) // self.batch)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: _rate(step, self.epochs * count)
        )
        best = torch.zeros(1)
        with progress_bar(self.epochs) as bar:
            show = bar if shown else silent
            try:
                for epoch in range(self.epochs):
                    hits = torch.zeros((), device=self.device)
                    order = torch.randperm(len(self.labels), device=self.device)
                    for chosen in order[: count * self.batch].split(self.batch):
                        interrupts.check()
                        outputs = self.module(self.inputs[chosen].float())
                        loss = self._loss(outputs * scale.exp(), chosen)
                        optimiser.zero_grad()
                        loss.backward()
                        optimiser.step()
                        schedule.step()
                        for part in latent:
                            part.data.clamp_(-1, 1)
                        hits += self._hits(outputs.detach(), chosen)
                        self.steps += 1
                    accuracy = (hits / (count * self.batch)).double().cpu()[None]
                    best = torch.maximum(best, accuracy)
                    self.history.add(accuracy=accuracy, best=best)
                    show(epoch + 1, accuracy, best)
            except KeyboardInterrupt:
                if not len(self.history):
                    raise
                self.interrupted = True

    @torch.no_grad()
    def _first_scale(self) -> Tensor:
        """Log of what brings outputs to their first spread; running means begin with the data."""
        first = self.inputs[torch.randperm(len(self.inputs), device=self.device)[: self.batch]]
        spread = self.module(first.float()).std().clamp(min=1.0)
        return torch.log(FIRST_SPREAD / spread)

    def _loss(self, outputs: Tensor, chosen: Tensor) -> Tensor:
        labels, weight = self.labels[chosen], self.weight[chosen]
        if outputs.shape[1] > 1:
            each = F.cross_entropy(outputs, labels, reduction="none")
        else:
            target = labels.to(outputs.dtype)
            each = F.binary_cross_entropy_with_logits(outputs[:, 0], target, reduction="none")
        return (each * weight).mean()

    def _hits(self, outputs: Tensor, chosen: Tensor) -> Tensor:
        answers = outputs.argmax(1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0).long()
        return (answers == self.labels[chosen]).sum()


def accuracy_of(evidence: Evidence) -> Tensor:
    """The share of rows that one network gets right, (1,)."""
    margin = evidence.raw_margins[:, 0, 0]
    answers = margin.argmax(1) if margin.shape[1] > 1 else (margin[:, 0] > 0).long()
    hits = (answers == evidence.labels) * evidence.weight
    return (hits.sum() / evidence.weight.sum())[None]


def _rate(step: int, steps: int) -> float:
    """The share of the rate at a step: it rises at first, then falls along a cosine."""
    return min(1.0, (step + 1) / RISE) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))
