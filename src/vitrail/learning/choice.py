"""Net and local search, chosen on held-out rows.

Local search fits training rows better than anything, which is right where labels follow a rule
and wrong where they are noisy; the same goes for hidden units. So each candidate is trained on
some rows and scored on others. All folds are problems of one graph, and one run gives both the
network that message passing found and the one that local search made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vitrail.engines import map_tasks
from vitrail.learning.examples import Examples, nets_of, stratified_folds
from vitrail.learning.posterior import FitOptions, TrainingData, raw_margins_of
from vitrail.learning.table import Plan, Problem
from vitrail.learning.training import Trained, problem_of, train
from vitrail.model.calibration import Evidence, logistic_table
from vitrail.model.voting import class_scores, levels, net_probabilities, scores
from vitrail.nn import Program
from vitrail.solvers import Status

FOLDS = 5
STANDARD_ERRORS = 2.0
ROWS_IN_ALL = 3000  # training rows of all folds: several of a small table, one of a large one
CLIP = 31  # limit of margins of nets of pairs

Fold = tuple[Examples, Examples]  # rows to train on, and rows held out


@dataclass(frozen=True)
class Choice:
    """A candidate, and its answers on held-out rows."""

    program: Program
    polish: int
    hits: Tensor  # (rows,) bool, which held-out rows it classifies correctly
    evidence: Evidence  # on those rows
    found: Trained  # the nets of every fold
    polished: bool  # whether they are the ones of local search


def trial_folds(data: TrainingData, seed: int) -> list[Fold]:
    """Folds with the same share of every class, fewer if there are many rows.

    A fold that would leave a class without an example to train on is left out.
    """
    examples, folds = data.examples, []
    share = stratified_folds(examples, FOLDS, seed)
    for held in share[: max(1, ROWS_IN_ALL // len(examples))]:
        seen = examples.share(1 - held)
        if bool(held.any()) and len(seen.labels.unique()) == data.preprocessing.num_classes:
            folds.append((seen, examples.share(held)))
    return folds


def train_each(
    nets: Sequence[Examples], plans: Sequence[Plan], options: FitOptions
) -> Iterator[Trained]:
    """The result of each plan on the same nets, in order; on workers where there are any."""
    settings = (options.seed, options.device, options.progress)
    return map_tasks(_trained, [(nets, plan, *settings) for plan in plans])


def correct_rows(evidence: Evidence, data: TrainingData) -> Tensor:
    """Which rows are classified correctly, (rows,) bool."""
    votes = torch.ones(evidence.raw_margins.shape[1:3], dtype=torch.int64)
    level = levels(scores(evidence.raw_margins, votes, CLIP), votes, CLIP)
    table = logistic_table(CLIP / 2).expand(votes.shape[1], -1)
    fixed = data.preprocessing
    score = class_scores(net_probabilities(level, table), fixed.num_classes, fixed.scheme)
    return score.argmax(1) == evidence.labels


def choose(
    data: TrainingData,
    options: FitOptions,
    programs: Sequence[Program],
    plan_of: Callable[[Problem], Plan],
) -> tuple[Choice | None, bool]:
    """The simplest candidate that none after it clearly beats, and whether Ctrl-C interrupted.

    programs: from simple to large; with local search comes before without. None where there are
    too few rows to hold any out.
    """
    folds = trial_folds(data, options.seed)
    best: Choice | None = None
    if not folds:
        return None, False
    fixed = data.preprocessing
    nets = [net for seen, _ in folds for net in nets_of(seen, fixed.num_classes, fixed.scheme)]
    plans = [plan_of(problem_of(program, nets)).changed(restarts=1) for program in programs]
    trials = train_each(nets, plans, options)
    for program, plan in zip(programs, plans, strict=True):
        try:
            found = next(trials)
            for polished, bits in ((True, found.best), (False, found.unpolished)):
                evidence = _evidence(program, bits, folds)
                hits = correct_rows(evidence, data)
                if best is None or clearly_better(hits, best.hits, evidence.weight):
                    polish = plan.polish if polished else 0
                    best = Choice(program, polish, hits, evidence, found, polished)
        except KeyboardInterrupt:
            if best is None:
                raise
            return best, True
        if Status.INTERRUPTED in found.status:
            return best, True
    return best, False


def _evidence(program: Program, best: Tensor, folds: Sequence[Fold]) -> Evidence:
    """Scores of nets (folds·N, A) on the held-out rows, fold by fold."""
    held = [part for _, part in folds]
    nets = best.reshape(len(held), 1, -1, best.shape[1])
    each_fold = zip(nets, held, strict=True)
    return Evidence(
        torch.cat([raw_margins_of(program, one, part.inputs) for one, part in each_fold]),
        torch.cat([part.labels for part in held]),
        torch.cat([part.weight for part in held]),
    )


def _trained(
    nets: Sequence[Examples], plan: Plan, seed: int, device: str, progress: bool
) -> Trained:
    found = train(nets, plan, seed=seed, device=device, progress=progress)
    return replace(found, solution=replace(found.solution, state=None))  # too large to travel


def best_of_folds(choice: Choice, nets: Sequence[Examples], restarts: int) -> Trained:
    """The best net of any fold for each of `nets`, for a fit that is stopped."""
    found = choice.found
    bits = found.starts if choice.polished else found.unpolished_starts
    folds = bits.reshape(-1, len(nets), bits.shape[-1])
    accuracy = torch.stack([_accuracy(choice.program, folds, n, one) for n, one in enumerate(nets)])
    fold, number = accuracy.argmax(1), torch.arange(len(nets))
    unpolished = found.unpolished_starts.reshape(folds.shape)[fold, number]
    log_odds = found.log_odds.reshape(folds.shape)[fold, number]
    stage = [found.stage[0][f * len(nets) + n] for n, f in enumerate(fold.tolist())]
    status = (Status.INTERRUPTED,) * (restarts * len(nets))
    return Trained(
        replace(found.solution, status=status),
        folds[fold, number].repeat(restarts, 1, 1),
        unpolished.repeat(restarts, 1, 1),
        accuracy.amax(1).repeat(restarts, 1),
        log_odds.repeat(restarts, 1, 1),
        (tuple(stage),) * restarts,
    )


def _accuracy(program: Program, folds: Tensor, net: int, examples: Examples) -> Tensor:
    """Weighted accuracy of the net of each fold, (folds,) float64."""
    raw = raw_margins_of(program, folds[:, net : net + 1], examples.inputs)[:, :, 0]
    answers = (raw[..., 0] > 0).long() if raw.shape[-1] == 1 else raw.argmax(-1)
    hits = (answers == examples.labels[:, None]).double()
    return (hits * examples.weight[:, None]).sum(0) / examples.weight.sum()


def clearly_better(new: Tensor, old: Tensor, weight: Tensor) -> bool:
    """Whether Σ w·d > 2·√(Σ w·d²), d = new − old on each row: by more than two standard errors.

    With one standard error, small noisy tables often got a larger net that did worse.
    """
    gain = new.double() - old.double()
    error = (weight * gain.square()).sum().sqrt()
    return bool((weight * gain).sum() > STANDARD_ERRORS * error)
