"""Input and output of learners, and calibration.

A learner takes `TrainingData` and `FitOptions` and returns a `Posterior`: networks with votes,
their scores on rows they had not seen, and a record of what ran. Everything after it sees only
that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from vitrail.decode import samples
from vitrail.learning.examples import Examples, crossed
from vitrail.learning.preprocessing import Preprocessing
from vitrail.learning.table import AUTO
from vitrail.model.calibration import Calibration, Evidence, calibrate
from vitrail.model.model import outputs_of, thresholds_of, transferred
from vitrail.model.voting import raw_margins
from vitrail.nn import Program
from vitrail.random import Key
from vitrail.solvers import Solver, Stage, Status
from vitrail.solvers.history import History

Predictor = Literal["best", "posterior"]
LEAST_NETWORKS = 128  # drawn by "auto"
CALIBRATION_ROWS = 4096  # enough for two parameters
CALIBRATION_SIZE = 4_000_000  # margins used: fewer rows where networks and nets are many
LEAST_ROWS = 64
DRAWN_BITS = 2**23  # a megabyte of networks, where they are drawn from marginals alone
CROSSED_ROWS = 2000  # made to compare the confidence of networks


@dataclass(frozen=True)
class FitOptions:
    """Options of a fit; "auto" leaves one to the rules."""

    solver: str | Solver[Any] | Sequence[Stage]  # a name of `table.SOLVERS` or "auto" among them
    given: Mapping[str, Any]  # those of `table.OPTIONS` that are not "auto"
    hidden: Any  # units of each layer, or "auto"
    module: nn.Module | None
    multiclass: str  # "auto", "argmax", "ovo" or "ovr"
    inputs: str  # "auto", "binary" or "bipolar"
    bias: int | Literal["auto"]  # constant inputs
    predictor: Predictor | Literal["auto"]
    networks: int | Literal["auto"]
    seed: int
    device: str
    progress: bool  # whether this rank shows a bar on a terminal
    class_weight: Any = None  # None, "balanced" or a mapping of labels to weights
    monotonic_cst: Any = None  # per column 1, 0 or −1, by name or by place
    memory: float | str | None = None  # rows after which earlier evidence weighs 1/e
    checkpoint: str | Path | None = None  # file from which a stopped run resumes
    changed: frozenset[str] = frozenset()  # parameters of the classifier, since the previous fit


@dataclass(frozen=True)
class TrainingData:
    """Prepared rows."""

    preprocessing: Preprocessing
    examples: Examples  # of all rows, labels are numbers of classes
    nets: Sequence[Examples]  # the same for each net, labels are 0 and 1 or numbers of classes
    added: Examples | None = None  # new since the previous posterior
    kept: float = 1.0  # weight of the evidence of the previous posterior


@dataclass(frozen=True)
class Posterior:
    """The result of a learner."""

    program: Program
    networks: Tensor  # (K, N, A) bool; one where one network predicts
    votes: Tensor  # (K, N) int64
    best: Tensor  # (N, A) bool, the network that fits best
    marginals: Tensor  # (N, A) float, P(w = 1)
    accuracy: Tensor  # (N,) float64, of `best` on the training rows; NaN without any
    evidence: Evidence | None  # scores of rows; None keeps the previous calibration
    settings: Mapping[str, Any]  # the options that ran, as plain values
    history: History
    steps: int
    evaluations: int
    status: tuple[Status, ...]  # of each net that had examples
    found_by: tuple[str, ...]  # the stage that found `best`, of each net
    state: Any  # from which the same learner continues
    calls: int = 1  # number of fits, this one included
    interrupted: bool = False
    clip: int | None = None  # limit of margins; None is chosen with the calibration
    scored_by: Tensor | None = None  # (folds, K, N, A): networks of the evidence, if not `networks`
    notes: Mapping[str, Any] = field(default_factory=dict)  # for the record


CountsOf = Callable[[Tensor, Tensor], Tensor]


class Learner(Protocol):
    """A method that finds a posterior.

    previous: an earlier posterior; its net stays, and the learner continues from it where it can.
    Ctrl-C keeps the best so far; before there is one, KeyboardInterrupt is raised.
    """

    def __call__(
        self, data: TrainingData, options: FitOptions, previous: Posterior | None
    ) -> Posterior: ...


def calibrated(data: TrainingData, posterior: Posterior) -> tuple[Calibration, tuple[int, ...]]:
    """Calibration table and thresholds of abstention from the evidence.

    Training rows give no thresholds: networks are too confident in them. Networks of the folds had
    fewer rows to learn from, which makes them less confident in new rows than all networks are. How
    much less is seen on rows that neither has learned from: crossed training rows.
    """
    evidence, examples, fixed = posterior.evidence, data.examples, data.preprocessing
    assert evidence is not None
    classes, scheme = fixed.num_classes, fixed.scheme
    networks = None if posterior.clip is None else len(posterior.networks)
    made = calibrate(evidence, classes, scheme, clip=posterior.clip, networks=networks)
    if not evidence.held_out:
        return made, ()

    def confidence(seen: Evidence) -> Tensor:
        return seen.probabilities(made.clip, made.table, classes, scheme).amax(1)

    weights, rows = (
        torch.bincount(examples.labels, each, classes) for each in (examples.weight, examples.rows)
    )
    without_class_weight = evidence.weight * (rows / weights)[evidence.labels]
    thresholds = thresholds_of(confidence(evidence), without_class_weight)
    if not thresholds or posterior.scored_by is None:
        return made, thresholds
    margins = posterior.votes.numel() * evidence.raw_margins.shape[-1]  # of a row
    count = min(CROSSED_ROWS, max(LEAST_ROWS, CALIBRATION_SIZE // margins))
    until = examples.rows.cumsum(0)
    parents = torch.searchsorted(until, until[-1] * (torch.arange(count) + 0.5) / count)
    seed = int(posterior.settings["seed"])
    unseen = crossed(examples.inputs[parents], fixed.encoder.spans, count, seed)
    labels, equal = torch.zeros(len(unseen), dtype=torch.int64), torch.ones(len(unseen))
    of_folds, of_all = (
        [
            confidence(Evidence(raw_margins_of(posterior.program, one, unseen), labels, equal))
            for one in of
        ]
        for of in (posterior.scored_by, posterior.networks[None])
    )
    return made, transferred(thresholds, torch.cat(of_folds), of_all[0])


def check_networks(options: FitOptions, solver: str, predictor: str) -> None:
    """Raise where `networks` is given and a single network predicts."""
    if predictor == "best" and options.networks not in (AUTO, 1):
        raise ValueError(
            f"networks counts those of predictor='posterior', and {solver!r} answers with its "
            "best network here; leave networks out, or set predictor"
        )


def raw_margins_of(program: Program, networks: Tensor, inputs: Tensor) -> Tensor:
    """Raw margins of networks (K, N, A) on rows of inputs, (rows, K, N, O), as in `voting`."""
    return torch.cat([raw_margins(outputs) for outputs in outputs_of(program, networks, inputs)])


def leave_one_out(
    data: TrainingData, program: Program, networks: Tensor, counts_of: CountsOf | None = None
) -> Evidence:
    """Scores of training rows.

    counts_of: how much networks count on a row, from which of them got it wrong (rows, K, N) and
    the weights of the rows (rows,): more where they did, as if they were drawn without it.
    """
    margins = networks.shape[:2].numel() * program.num_outputs  # of a row
    most = min(CALIBRATION_ROWS, max(LEAST_ROWS, CALIBRATION_SIZE // margins))
    step = -(-len(data.examples) // most)
    examples = data.examples.where(torch.arange(0, len(data.examples), max(1, step)))
    raw = raw_margins_of(program, networks, examples.inputs)
    counts = None
    if counts_of is not None:
        wrong = wrong_answers(raw, examples.labels, data.preprocessing)
        counts = counts_of(wrong, examples.weight.clamp(max=1.0))
    return Evidence(raw, examples.labels, examples.weight, counts, held_out=False)


def drawn_from_marginals(log_odds: Tensor, count: int, seed: int) -> Tensor:
    """At most `count` networks, (K, N, A) bool, each bit by its log-odds (N, A); fewer if large."""
    count = min(count, max(1, DRAWN_BITS // log_odds.numel()))
    return samples(Key(seed), log_odds.flatten(), count).reshape(count, *log_odds.shape)


def wrong_answers(raw: Tensor, labels: Tensor, fixed: Preprocessing) -> Tensor:
    """Whether each network misclassifies the rows it was trained on, (rows, K, N) float64."""
    num_classes, scheme = fixed.num_classes, fixed.scheme
    if raw.shape[-1] > 1:
        own = raw[:, :, 0].gather(2, labels[:, None, None].expand(-1, raw.shape[1], 1))
        return (own <= 0).double()
    high = raw[..., 0] > 0
    if scheme == "one-vs-rest":
        return (high != (labels[:, None] == torch.arange(num_classes))[:, None]).double()
    if scheme == "argmax":
        return (high != (labels == 1)[:, None, None]).double()
    first, second = torch.triu_indices(num_classes, num_classes, 1)
    is_low, is_high = labels[:, None] == first, labels[:, None] == second
    return ((high & is_low[:, None]) | (~high & is_high[:, None])).double()
