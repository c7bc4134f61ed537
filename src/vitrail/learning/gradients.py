"""The learner of nets with activations of a few bits: straight-through gradients in the module.

What such a net rounds by (`vitrail.nn.Levels`) is learned with its weights, so the module itself is
trained, as torch trains any: batches, Adam with a rate that falls along a cosine, cross-entropy.
Layers that act in training only, such as `RandomWarp`, do so here. Then its program is taken.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitrail import interrupts, ranks
from vitrail.learning.messages import programs_of
from vitrail.learning.posterior import (
    FitOptions,
    Posterior,
    TrainingData,
    check_networks,
    leave_one_out,
)
from vitrail.learning.table import AUTO, parameter_of
from vitrail.model.calibration import Evidence
from vitrail.nn import get_bits, program_of
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
    """What a fit goes on from."""

    module: nn.Module


def learn_by_gradients(
    data: TrainingData, options: FitOptions, previous: Posterior | None
) -> Posterior:
    """Train a module with `Levels`; going on, from its weights and levels."""
    module = _module(data, options, previous)
    batch, epochs = _batch_and_epochs(data, options)
    calls = 0 if previous is None else previous.calls
    usual = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(usual if options.device == AUTO else options.device)
    run = _Run(data, module.to(device), batch, epochs, device)
    seed = (options.seed + calls) % MAX_SEED
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        if previous is None:
            _start(module)
        run.train(shown=options.progress and ranks.current_world().first)
    module = module.cpu().eval()
    program, bits = program_of(module, data.preprocessing.shape), get_bits(module)
    networks = bits[None, None]
    evidence = leave_one_out(data, program, networks)
    return Posterior(
        program=program,
        networks=networks,
        votes=torch.ones(1, 1, dtype=torch.int64),
        best=bits[None],
        marginals=bits[None].double(),
        accuracy=_accuracy(evidence),
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
        status=(Status.INTERRUPTED if run.interrupted else Status.MAX_STEPS,),
        found_by=("ste",),
        state=GradientState(module),
        calls=calls + 1,
        interrupted=run.interrupted,
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
    usual = max(LEAST_EPOCHS, -(-LEAST_STEPS * batch // rows))
    return batch, int(options.given.get("epochs", usual))


def _start(module: nn.Module) -> None:
    """Random weights, so that the seed alone says where training begins."""
    for layer in module.modules():
        if isinstance(layer, BinaryLayer):
            nn.init.uniform_(layer.latent, -1.0, 1.0)


class _Run:
    """One training of a module."""

    def __init__(
        self, data: TrainingData, module: nn.Module, batch: int, epochs: int, device: torch.device
    ) -> None:
        examples = data.nets[0]
        self.module, self.batch, self.epochs, self.device = module, batch, epochs, device
        self.inputs = examples.inputs.unflatten(1, data.preprocessing.shape).to(device)
        self.labels = examples.labels.to(device)
        self.weight = (examples.weight / examples.weight.mean()).float().to(device)
        self.history, self.steps, self.interrupted = History(), 0, False

    def train(self, *, shown: bool) -> None:
        """All epochs; after a stop, those until then."""
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


def _accuracy(evidence: Evidence) -> Tensor:
    """The share of rows that one network gets right, (1,)."""
    margin = evidence.raw_margins[:, 0, 0]
    answers = margin.argmax(1) if margin.shape[1] > 1 else (margin[:, 0] > 0).long()
    hits = (answers == evidence.labels) * evidence.weight
    return (hits.sum() / evidence.weight.sum())[None]


def _rate(step: int, steps: int) -> float:
    """The share of the rate at a step: it rises at first, then falls along a cosine."""
    return min(1.0, (step + 1) / RISE) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))
