"""Learning from rows as they arrive: beliefs whose evidence decays, row by row.

Evidence weighs exp(−n/memory) after n rows. Of each memory, several nets begin at networks of the
model and follow their own beliefs by moments; beside them a logistic regression follows the columns
themselves. The model as it began, the memories and the shares of late labels are weighed by another
logistic regression that follows the rows too: a memory counts as far as it has predicted rows
before they were learned.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load
from torch import Tensor

from vitrail.decode import samples
from vitrail.learning.preprocessing import BIAS, multilayer
from vitrail.learning.table import AUTO
from vitrail.model import Model, load_model, model_from_bytes
from vitrail.model.calibration import MIDDLES
from vitrail.model.files import spelled
from vitrail.model.model import Answers, ModelError
from vitrail.model.voting import LEVELS, ONE, Scheme, class_probabilities, class_scores
from vitrail.output import atomic_output
from vitrail.random import Key
from vitrail.solvers.row_beliefs import RowBeliefs
from vitrail.solvers.row_logistic import RowLogistic
from vitrail.tables.bits import BitColumns
from vitrail.tables.encoders import TableEncoder
from vitrail.tables.labels import LabelCoder

MEMORIES = (500.0, 4000.0, math.inf)  # rows, those of "auto"
LINEAR_MEMORIES = (250.0, 1000.0, 4000.0, math.inf)  # of regressions
MOST_READ = 64  # numbers of a row that regressions read; they take as many squared
MOST_COPIES = 4  # nets of a memory that begin at different networks
MOST_WEIGHTS = 2**16  # of all nets together, beyond which there are fewer copies
START = 1.0  # log-odds by which nets begin at a network
FLOOR = 0.03  # probability that a label is any
AGAINST = 0.05  # probability of a label against its rule, of regressions
SHARES = (2.0, 20.0, 200.0)  # rows over which shares of late labels are taken
PSEUDO = 0.02  # added to both shares
FOLLOWED = 3_000.0  # memory of the mixture, in rows
BEGIN = 3.0  # log-odds of all nets together where they agree, at the beginning
DRAWS = 8  # networks of each copy that a saved model votes with
MOST_VOTES = 64  # of a network
UNITS, THRESHOLDS = 12, 64  # of a net that begins without a model
SUFFIX = ".stream"
FORMAT = "vitrail-stream-3"


@dataclass(eq=False)
class OnlineLearner:
    """A model that keeps learning: `answers` and `learn`, row after row.

    Args:
        began: What it begins with: nets with at most one hidden layer and one output.
        memory: After so many rows evidence weighs 1/e; None is for ever; "auto" weighs memories by
            how well they predict rows before these are learned.
        seed: Same number, same answers.

    Examples:
        >>> from vitrail import BinaryNetClassifier
        >>> rows, labels = [[0, 1], [1, 0]] * 20, ["no", "yes"] * 20
        >>> net = BinaryNetClassifier(hidden=(3,), random_state=0).fit(rows, labels)
        >>> learner = OnlineLearner(net.model_, memory=1000)
        >>> answers = learner.learn(rows, labels)  # those before each row was learned
        >>> learner.model.predict([[1, 0]]).tolist()
        ['yes']
    """

    began: Model  # as it was before the stream
    memory: float | str | None = AUTO  # in rows
    seed: int = 0  # of all draws
    rows: int = 0  # learned from
    _beliefs: RowBeliefs = field(init=False, repr=False)  # of memories × copies × nets
    _linear: RowLogistic = field(init=False, repr=False)  # of memories × nets, or of none
    _mixture: RowLogistic = field(init=False, repr=False)  # of all parts, and without `_linear`
    _shares: np.ndarray = field(init=False, repr=False)  # (SHARES, N) of label 1
    _single: Model = field(init=False, repr=False)  # `began`, where a network is one vote
    _reader: NumberReader = field(init=False, repr=False)  # for `_linear`

    def __post_init__(self) -> None:
        model = self.began
        check_learnable(model)
        self._single = replace(model, clip=1)
        spans = memories_of(self.memory)
        count, nets, bits = model.networks.shape
        copies = max(1, min(MOST_COPIES, MOST_WEIGHTS // (len(spans) * nets * bits)))
        some = torch.arange(copies) * count // copies
        signs = 2 * model.networks[some].numpy().astype(np.float32) - 1
        log_odds = np.tile(START * signs.reshape(copies * nets, bits), (len(spans), 1))
        kept = np.repeat([math.exp(-1 / span) for span in spans], copies * nets)
        self._beliefs = RowBeliefs(model.program, log_odds, kept, FLOOR)
        self._reader = NumberReader.of(model.encoder)
        few = len(self._reader) <= MOST_READ
        linear = memories_of(self.memory, LINEAR_MEMORIES) if few else ()
        kept = np.repeat([math.exp(-1 / span) for span in linear], nets)
        self._linear = RowLogistic(np.zeros((len(kept), len(self._reader))), kept, floor=AGAINST)
        parts = 1 + len(spans) + len(linear)
        centre = np.r_[np.full(parts, BEGIN / parts), np.zeros(len(SHARES) + 1)]
        self._mixture = RowLogistic(np.tile(centre, (2, 1)), np.full(2, math.exp(-1 / FOLLOWED)))
        self._shares = np.full((len(SHARES), nets), 0.5)

    @staticmethod
    def untrained(table: Any, labels: Any, **settings: Any) -> OnlineLearner:
        """The learner of random nets, for a stream that has no model yet.

        table, labels: the first rows, which set thresholds of columns and name all classes; they
        are not learned.
        """
        encoder = TableEncoder.fit(table, thresholds=THRESHOLDS)
        coder = LabelCoder.fit(np.asarray(labels))
        classes = len(coder.classes)
        scheme: Scheme = "argmax" if classes == 2 else "one-vs-rest"
        nets = 1 if classes == 2 else classes
        bias = BIAS["bipolar"]
        program = multilayer((len(encoder.bit_names) + bias,), (UNITS,), 1)
        even = torch.zeros(MOST_COPIES * nets * program.num_bits, dtype=torch.float64)
        networks = samples(Key(settings.get("seed", 0)), even, 1)
        networks = networks.reshape(MOST_COPIES, nets, program.num_bits)
        share = ONE // 2 if classes == 2 else ONE // classes
        model = Model(
            encoder=encoder,
            labels=coder,
            coding="bipolar",
            bias=bias,
            program=program,
            scheme=scheme,
            best=networks[0],
            marginals=torch.full(networks.shape[1:], ONE // 2),
            networks=networks,
            votes=torch.ones(networks.shape[:2], dtype=torch.int64),
            clip=1,
            calibration=torch.full((nets, LEVELS + 1), share),
        )
        return OnlineLearner(model, **settings)

    def answers(self, table: Any) -> Answers:
        """Answers to a table's rows, by all that is learned so far."""
        return self.follow(self.began.inputs(table))

    def learn(self, table: Any, labels: Any) -> Answers:
        """Learn rows (rows, columns) with labels (rows,), one by one; answers before each."""
        numbers = self.began.labels.encode(np.asarray(labels))
        return self.follow(self.began.inputs(table), numbers)

    def follow(self, inputs: Tensor, numbers: np.ndarray | None = None) -> Answers:
        """The same for rows as the net reads them, and numbers of classes, −1 for none."""
        model, nets = self.began, self._shares.shape[1]
        rows = inputs.numpy().astype(np.float32)
        read = self._reader.read(rows)
        first = self._of_model(inputs)
        probability = np.empty((len(rows), nets))
        agreeing = np.empty((len(rows), nets))
        for place, row in enumerate(rows):
            memories = self._beliefs.agreement(row).reshape(-1, self._copies, nets).mean(1)
            linear = self._linear.agreement(read[place]).reshape(-1, nets)
            memories = np.concatenate([memories, linear])
            features = self._features(first[place], memories)
            probability[place] = (1 + self._mixture.agreement(features)[:, 0]) / 2
            agreeing[place] = (1 + features[:, 0, : 1 + len(memories)].mean(1)) / 2
            if numbers is not None and numbers[place] >= 0:
                self._learn(int(numbers[place]), features)
        parts = torch.from_numpy((probability * ONE).round().astype(np.int64))[:, :, None]
        scores = class_scores(parts, model.num_classes, model.scheme)
        number = scores.argmax(1)
        voted = torch.from_numpy((agreeing * ONE).round().astype(np.int64))[:, :, None]
        of_class = class_probabilities(class_scores(voted, model.num_classes, model.scheme))
        against = ONE - of_class.gather(1, number[:, None])[:, 0]
        return Answers(number, class_probabilities(scores), against)

    def _learn(self, number: int, features: np.ndarray) -> None:
        signs = self._signs[number]
        for net in np.flatnonzero(signs):
            self._mixture.agreement(features[net])
            self._mixture.learn(np.repeat(signs[net], 2))
        self._linear.learn(np.tile(signs, len(self._linear.kept) // len(signs)))
        self._beliefs.learn(np.tile(signs, len(self._beliefs.kept) // len(signs)))
        kept = np.exp(-1 / np.array(SHARES))[:, None]
        after = kept * self._shares + (1 - kept) * (signs > 0)
        self._shares = np.where(signs == 0, self._shares, after)
        self.rows += 1

    @property
    def _copies(self) -> int:
        return len(self._beliefs.kept) // (len(memories_of(self.memory)) * self._shares.shape[1])

    @property
    def _signs(self) -> np.ndarray:
        """The label ±1 of each net for a row of each class, 0 where it learns nothing, (C, N)."""
        classes = self.began.num_classes
        if self.began.scheme == "argmax":
            return np.array([[-1.0], [1.0]])
        if self.began.scheme == "one-vs-rest":
            return 2 * np.eye(classes) - 1
        low, high = np.triu_indices(classes, 1)
        number = np.arange(classes)[:, None]
        return (number == high).astype(float) - (number == low)

    def _of_model(self, inputs: Tensor) -> np.ndarray:
        """What the model as it began says: mean votes from −1 to 1, (rows, N)."""
        votes = self._single.votes.sum(0).numpy()
        parts = [score[..., 0].numpy() / votes for score, _ in self._single.tallies(inputs)]
        return np.concatenate(parts) if parts else np.zeros((0, len(votes)))

    def _features(self, first: np.ndarray, memories: np.ndarray) -> np.ndarray:
        """Of each net the mean answers of the model and the memories, log-odds of late labels, and
        1; the same with 0 for regressions: (N, 2, F)."""
        odds = np.log((self._shares + PSEUDO) / (1 - self._shares + PSEUDO))
        parts = np.concatenate([first[None], memories, odds, np.ones((1, len(first)))]).T
        both = np.repeat(parts[:, None], 2, 1)
        both[:, 1, 1 + len(memories_of(self.memory)) : 1 + len(memories)] = 0
        return both

    @property
    def model(self) -> Model:
        """The model as it answers now, by networks drawn from beliefs: near `answers`, not equal.

        Networks vote by weights that were learned without regressions.
        """
        began, nets = self.began, self._shares.shape[1]
        memories = memories_of(self.memory)
        beliefs = torch.from_numpy(self._beliefs.beliefs.astype(np.float64))
        drawn = samples(Key(self.seed, self.rows), beliefs.flatten(), DRAWS)
        drawn = drawn.reshape(DRAWS, len(memories), self._copies, nets, -1).transpose(0, 1)
        groups = [began.networks, *drawn.reshape(len(memories), -1, nets, drawn.shape[-1])]
        mixture = self._mixture.weights[1]
        weights = mixture[: len(groups)].clip(min=0)
        if not weights.any():
            weights[-1] = 1.0
        each = weights / [len(group) for group in groups]
        votes = np.maximum(1, np.round(MOST_VOTES * each / each.max())).astype(np.int64)
        kept = [place for place, weight in enumerate(weights) if weight > 0]
        none = np.zeros((len(mixture) - len(SHARES) - 2, nets))
        shift = self._features(np.zeros(nets), none)[:, 1] @ mixture
        curve = _sigmoid(weights.sum() * MIDDLES.numpy().clip(-1, 1) + shift[:, None])
        log_odds = beliefs.reshape(len(memories), -1, nets, beliefs.shape[1])
        strongest = log_odds[int(weights[1:].argmax()), 0]
        return replace(
            began,
            networks=torch.cat([groups[place] for place in kept]),
            votes=torch.cat(
                [torch.full(groups[place].shape[:2], int(votes[place])) for place in kept]
            ),
            best=strongest > 0,
            marginals=(torch.sigmoid(strongest) * ONE).round().to(torch.int64),
            clip=1,
            calibration=torch.from_numpy((curve * ONE).round().astype(np.int64)),
            thresholds=(),
            record=dict(began.record),
        )

    def to_bytes(self, **notes: Any) -> bytes:
        """All that later learning depends on, and notes fit for JSON."""
        tensors = {
            "model": torch.frombuffer(bytearray(self.began.to_bytes()), dtype=torch.uint8),
            "beliefs": torch.from_numpy(self._beliefs.beliefs),
            "linear weights": torch.from_numpy(self._linear.weights),
            "linear covariance": torch.from_numpy(self._linear.covariance),
            "weights": torch.from_numpy(self._mixture.weights),
            "covariance": torch.from_numpy(self._mixture.covariance),
            "shares": torch.from_numpy(self._shares),
        }
        state = {"memory": self.memory, "seed": self.seed, "rows": self.rows}
        texts = {"format": FORMAT, "state": json.dumps(state), "notes": json.dumps(notes)}
        return spelled(tensors, texts)

    @staticmethod
    def from_bytes(content: bytes) -> tuple[OnlineLearner, dict[str, Any]]:
        """The learner of `to_bytes`, and the notes."""
        tensors = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = header["__metadata__"]
        if metadata.get("format") != FORMAT:
            raise ModelError("this is no state of a stream; remove it, and begin from the model")
        began = model_from_bytes(bytes(tensors["model"].numpy()))
        learner = OnlineLearner(began, **json.loads(metadata["state"]))
        learner._beliefs = replace(learner._beliefs, log_odds=tensors["beliefs"].numpy().copy())
        learner._linear.weights = tensors["linear weights"].numpy().copy()
        learner._linear.covariance = tensors["linear covariance"].numpy().copy()
        learner._mixture.weights = tensors["weights"].numpy().copy()
        learner._mixture.covariance = tensors["covariance"].numpy().copy()
        learner._shares = tensors["shares"].numpy().copy()
        return learner, json.loads(metadata["notes"])


@dataclass(frozen=True)
class StreamFiles:
    """A model's file, and the state file from which learning continues.

    The latter holds the model too and is written first, so that a crash between the two loses
    nothing.
    """

    path: Path

    @property
    def state(self) -> Path:
        """The file beside the model."""
        return self.path.with_name(self.path.name + SUFFIX)

    def begin(
        self, model: Model, memory: float | str | None, seed: int
    ) -> tuple[OnlineLearner, dict[str, Any]]:
        """The learner as it was saved, with its notes, or a new one of the model.

        A model file that is neither the saved one nor the one before has been replaced.
        """
        if self.state.exists():
            learner, notes = OnlineLearner.from_bytes(self.state.read_bytes())
            if _digest(model) in (notes["before"], _digest(learner.model)):
                if learner.memory != memory:
                    raise ValueError(
                        f"this stream was begun with memory {learner.memory}; give the same, or "
                        f"remove {self.state.name} to start again"
                    )
                return learner, notes
        return OnlineLearner(model, memory, seed), {}

    def save(self, learner: OnlineLearner, notes: dict[str, Any]) -> None:
        """Write both files, each whole or not at all."""
        before = _digest(load_model(self.path))
        with atomic_output(self.state) as stream:
            stream.write(learner.to_bytes(**notes, before=before))
        learner.model.save(self.path)


def _digest(model: Model) -> str:
    return sha256(model.to_bytes()).hexdigest()


def memory_setting(text: str) -> float | str | None:
    """`none`, `auto` or a positive number of rows."""
    if text in ("none", AUTO):
        return None if text == "none" else AUTO
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 1 <= value < math.inf:
        raise ValueError(f"memory is a number of rows from 1, none or auto, got {text!r}")
    return value


def memories_of(
    memory: float | str | None, auto: tuple[float, ...] = MEMORIES
) -> tuple[float, ...]:
    """The memories of a setting."""
    if memory is None:
        return (math.inf,)
    return auto if isinstance(memory, str) else (float(memory),)


@dataclass(frozen=True)
class NumberReader:
    """What regressions read of a row's bits: numbers, other bits as they are, and 1.

    A number is the middle of its bin between thresholds, of mean 0 and variance 1 over bins.
    """

    columns: tuple[tuple[list[int], np.ndarray], ...]  # bits of thresholds, and middles of bins
    others: list[int]  # further bits

    @staticmethod
    def of(encoder: TableEncoder | BitColumns) -> NumberReader:
        """Of the bits of an encoder."""
        if isinstance(encoder, BitColumns):
            return NumberReader((), list(range(len(encoder.bit_names))))
        columns, others = [], []
        for code, span in zip(encoder.columns, encoder.spans, strict=True):
            steps = [span.start + step for step in code.steps] if code.thresholds else []
            if steps:
                columns.append((steps, _middles(np.array(code.thresholds))))
            again = len(steps) * code.both  # bits that say the opposite
            last = span.stop - code.missing
            plain = [*range(span.start, last - again), *range(last, span.stop)]
            others += [bit for bit in plain if bit not in steps]
        return NumberReader(tuple(columns), others)

    def __len__(self) -> int:
        """Numbers of a row."""
        return len(self.columns) + len(self.others) + 1

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Of rows (R, I) as a net reads them: (R, F) float64."""
        bits = rows > 0
        numbers = [middles[bits[:, steps].sum(1)] for steps, middles in self.columns]
        return np.column_stack([*numbers, bits[:, self.others], np.ones(len(rows))])


def _middles(thresholds: np.ndarray) -> np.ndarray:
    """Middles of the bins of ascending thresholds, standardized; outer bins as wide as the next."""
    gaps = np.diff(thresholds) if len(thresholds) > 1 else np.ones(1)
    ends = np.r_[thresholds[0] - gaps[0], thresholds, thresholds[-1] + gaps[-1]]
    middles = (ends[1:] + ends[:-1]) / 2
    return (middles - middles.mean()) / middles.std()


def check_learnable(model: Model) -> None:
    """Raise where rows cannot be learned one by one."""
    if not model.program.packable or model.program.num_outputs > 1:
        raise ModelError(
            "a stream is learned by nets with at most one hidden layer and one output; fit such a "
            "model with solver='chains', or only predict"
        )


def _sigmoid(log_odds: np.ndarray) -> np.ndarray:
    return torch.sigmoid(torch.from_numpy(log_odds)).numpy()
