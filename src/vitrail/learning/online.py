"""Learning from rows as they arrive: chains that follow a posterior whose evidence decays.

A row that has come n rows ago still counts with probability exp(−n/memory): rows leave at random
times, so that those that stay all weigh the same. After every batch the chains go on for a few
sweeps on the rows that are left, and the networks they pass by are the ones that vote.

With memory "auto", several memories have chains of their own. Each batch is predicted before it is
learned, and the networks of a memory vote by the likelihood it gave to the labels of late batches.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load
from torch import Tensor

from vitrail.draws import Purpose, random_words
from vitrail.learning.chains import MOST_VOTES
from vitrail.learning.effort import USUAL_BETAS
from vitrail.learning.examples import Examples, nets_of
from vitrail.learning.posterior import raw_margins_of
from vitrail.learning.sampling import SWAPS, neighbours
from vitrail.learning.table import AUTO
from vitrail.model import Model, load_model, model_from_bytes
from vitrail.model.calibration import Evidence, calibrate
from vitrail.model.files import spelled
from vitrail.model.model import Answers, ModelError
from vitrail.model.voting import ONE, clipped_margins
from vitrail.output import atomic_output
from vitrail.random import MAX_SEED, Key
from vitrail.solvers.chains import Chains, Sample

MEMORIES = (500.0, 2000.0, 8000.0)  # rows, those of "auto"
CHAINS = 8  # of each memory
DRAWS = 4  # networks of a chain after every batch
MOST_ROWS = 8192  # that a memory keeps; of more, as many at random
WORK = 1e7  # words that the chains look at after a batch, some 30 ms on one core
PROPOSAL = 64  # words that drawing and judging a proposal costs
MOST_SWEEPS = 12  # after a batch
LATE = 1000.0  # rows after which the likelihood of a memory weighs 1/e
CALIBRATION_ROWS = 2000  # late ones
RECALIBRATED = 500  # rows from one calibration to the next
FIRST_CALIBRATION = 200  # rows
SCALE = 2**20 + 1  # of scores that are kept as whole numbers
ANCHOR = 8.0  # log-odds by which chains hold on to the networks of a model without its rows
LEAST = 1e-4  # probability below which a loss does not look
SUFFIX = ".stream"
FORMAT = "vitrail-stream-1"


@dataclass(eq=False)
class Memory:
    """The rows that one memory still holds, and its chains."""

    span: float  # rows
    kept: Tensor  # (R,) int64, places in the learner's rows
    chains: Tensor  # (C, N, A) bool
    networks: Tensor  # (C·DRAWS, N, A) bool, those that vote
    loss: float = 0.0  # −log-likelihood of late labels

    def anchor(self, rows: int) -> float:
        """How strongly chains still hold on to where they began."""
        return ANCHOR * math.exp(-rows / self.span)


@dataclass(eq=False)
class OnlineLearner:
    """A model that goes on learning: `answers` and `learn`, batch after batch.

    Args:
        model: What it begins with: nets that chains sample, with at most one hidden layer, one
            output and inputs of 0/1.
        memory: After so many rows evidence weighs 1/e; None is for ever; "auto" goes by how well
            each batch is predicted before it is learned.
        seed: Same number, same answers.

    Examples:
        >>> from vitrail import BinaryNetClassifier
        >>> rows, labels = [[0, 1], [1, 0]] * 20, ["no", "yes"] * 20
        >>> net = BinaryNetClassifier(hidden=(3,), random_state=0).fit(rows, labels)
        >>> learner = OnlineLearner(net.model_, memory=1000)
        >>> learner.learn(rows, labels)
        >>> learner.model.predict([[1, 0]]).tolist()
        ['yes']
    """

    model: Model  # as it answers now
    memory: float | str | None = AUTO  # in rows
    seed: int = 0  # of all draws
    rows: int = 0  # learned from
    batches: int = 0  # learned from
    _inputs: Tensor = field(init=False, repr=False)  # (R, I) int8, rows that some memory holds
    _labels: Tensor = field(init=False, repr=False)  # (R,) int64
    _arrival: Tensor = field(init=False, repr=False)  # (R,) int64
    _life: Tensor = field(init=False, repr=False)  # (R,) float64, in memories
    _memories: list[Memory] = field(init=False, repr=False)  # one per span
    _starts: Tensor | None = field(init=False, repr=False)  # (C, N, A), of a model without rows
    _scores: Tensor = field(init=False, repr=False)  # (late rows, N) float64, before learning
    _truth: Tensor = field(init=False, repr=False)  # (late rows,)
    _calibrated: int = field(init=False, repr=False, default=0)  # rows at the last calibration

    def __post_init__(self) -> None:
        model = self.model
        check_learnable(model)
        spans = memories_of(self.memory)
        count, nets, _ = model.networks.shape
        some = torch.arange(count - CHAINS, count) % count
        starts = model.networks[some].contiguous()
        self._starts = starts
        self._inputs = torch.zeros(0, model.program.num_inputs, dtype=torch.int8)
        self._labels = self._arrival = torch.zeros(0, dtype=torch.int64)
        self._life = torch.zeros(0, dtype=torch.float64)
        every = torch.arange(CHAINS * DRAWS * max(1, -(-count // (CHAINS * DRAWS)))) % count
        self._memories = [
            Memory(span, torch.zeros(0, dtype=torch.int64), starts.clone(), model.networks[every])
            for span in spans
        ]
        self._scores = torch.zeros(0, nets, dtype=torch.float64)
        self._truth = torch.zeros(0, dtype=torch.int64)

    @staticmethod
    def begun(model: Model, table: Any, labels: Any, **settings: Any) -> OnlineLearner:
        """The learner of a model together with the rows that it was fitted to."""
        learner = OnlineLearner(model, **settings)
        learner._starts = None
        learner._keep(model.inputs(table), torch.from_numpy(model.labels.encode(labels)))
        return learner

    def answers(self, table: Any) -> Answers:
        """Answers to a table's rows."""
        return self.model.answers(table)

    def learn(self, table: Any, labels: Any) -> None:
        """Learn from a batch of rows (rows, columns) with labels (rows,)."""
        self.learn_inputs(
            self.model.inputs(table), torch.from_numpy(self.model.labels.encode(labels))
        )

    def learn_inputs(self, inputs: Tensor, labels: Tensor) -> None:
        """The same for rows as the net reads them, and numbers of classes."""
        if not len(labels):
            return
        self._judge(inputs, labels)
        self._keep(inputs, labels)
        for number, memory in enumerate(self._memories):
            self._advance(number, memory)
        self._answer()
        self.batches += 1

    def _judge(self, inputs: Tensor, labels: Tensor) -> None:
        """What the networks say of rows that they have not learned: likelihoods and scores."""
        model, spans = self.model, self._memories
        faded = math.exp(-len(labels) / LATE)
        margins = [
            clipped_margins(raw_margins_of(model.program, one.networks, inputs)[..., 0], model.clip)
            .double()
            .mean(1)
            / model.clip
            for one in spans
        ]
        votes = torch.tensor([float(vote) for vote in self._votes()], dtype=torch.float64)
        score = (torch.stack(margins) * (votes / votes.sum())[:, None, None]).sum(0)
        if len(spans) > 1:
            for one, own in zip(spans, margins, strict=True):
                evidence = _evidence(own, labels)
                chance = evidence.probabilities(
                    SCALE, model.calibration, model.num_classes, model.scheme
                )
                right = chance.gather(1, labels[:, None]).double() / ONE
                one.loss = faded * one.loss - float(right.clamp(min=LEAST).log().sum())
        self._scores = torch.cat([self._scores, score])[-CALIBRATION_ROWS:]
        self._truth = torch.cat([self._truth, labels])[-CALIBRATION_ROWS:]

    def _keep(self, inputs: Tensor, labels: Tensor) -> None:
        """Add rows, and let those go that no memory holds any more."""
        count = len(labels)
        words = random_words(self.seed * 2**32 + self.batches, Purpose.ROWS, count)
        life = -np.log((words.astype(np.float64) + 0.5) / 2.0**64)
        self._inputs = torch.cat([self._inputs, inputs])
        self._labels = torch.cat([self._labels, labels])
        self._arrival = torch.cat([self._arrival, self.rows + torch.arange(count)])
        self._life = torch.cat([self._life, torch.from_numpy(life)])
        self.rows += count
        held = torch.zeros(len(self._labels), dtype=torch.bool)
        kept = []
        for memory in self._memories:
            left = self._life - (self.rows - 1 - self._arrival) / memory.span
            mine = left > 0
            if int(mine.sum()) > MOST_ROWS:
                mine &= left >= left.topk(MOST_ROWS).values[-1]
            kept.append(mine)
            held |= mine
        for memory, mine in zip(self._memories, kept, strict=True):
            memory.kept = mine[held].nonzero()[:, 0]
        self._inputs, self._labels = self._inputs[held], self._labels[held]
        self._arrival, self._life = self._arrival[held], self._life[held]

    def _advance(self, number: int, memory: Memory) -> None:
        """Some sweeps of one memory's chains on the rows that it holds."""
        model, labels = self.model, self._labels[memory.kept]
        ones = torch.ones(len(labels), dtype=torch.float64)
        examples = Examples(self._inputs[memory.kept], labels, ones, ones)
        nets = nets_of(examples, model.num_classes, model.scheme)
        present = [at for at, one in enumerate(nets) if len(one)]
        if not present:
            return
        prior, anchor = None, memory.anchor(self.rows)
        if self._starts is not None and anchor > 0:
            prior = torch.where(self._starts[:, present], anchor, -anchor).double()
        running = Chains(
            Key((self.seed + number) % MAX_SEED, self.batches),
            [Sample(nets[at].inputs, nets[at].labels, nets[at].weight) for at in present],
            memory.chains[:, present].contiguous(),
            partner=neighbours(model.encoder, model.bias),
            swaps=SWAPS,
            prior=prior,
        )
        betas = [USUAL_BETAS[chain % len(USUAL_BETAS)] for chain in range(CHAINS)]
        networks = memory.chains.repeat(DRAWS, 1, 1)
        sweeps = self._sweeps([len(nets[at]) for at in present])
        for draw in range(DRAWS):
            share = sweeps * (draw + 1) // DRAWS - sweeps * draw // DRAWS
            running.advance(max(1, share), betas, betas)
            networks[draw * CHAINS : (draw + 1) * CHAINS, present] = running.bits
        memory.chains = networks[-CHAINS:].clone()
        memory.networks = networks

    def _sweeps(self, sizes: Sequence[int]) -> int:
        """As many as the work allows, but at least one per draw."""
        words = sum(max(PROPOSAL, -(-size // 64)) for size in sizes)
        each = CHAINS * self.model.program.num_bits * words
        return max(DRAWS, min(MOST_SWEEPS, int(WORK / len(self._memories) / each)))

    def _votes(self) -> list[int]:
        """How much every network of each memory counts."""
        least = min(memory.loss for memory in self._memories)
        shares = [math.exp(least - memory.loss) for memory in self._memories]
        return [max(1, round(MOST_VOTES * share)) for share in shares]

    def _answer(self) -> None:
        """Make the model answer with the networks as they are."""
        model, votes = self.model, self._votes()
        networks = torch.cat([memory.networks for memory in self._memories])
        each = [
            torch.full(memory.networks.shape[:2], vote, dtype=torch.int64)
            for memory, vote in zip(self._memories, votes, strict=True)
        ]
        calibration = model.calibration
        due = FIRST_CALIBRATION if not self._calibrated else self._calibrated + RECALIBRATED
        if self.rows >= due and len(self._truth) >= FIRST_CALIBRATION:
            self._calibrated = self.rows
            found = _evidence(self._scores, self._truth)
            calibration = calibrate(found, model.num_classes, model.scheme, clip=SCALE).table
        votes = torch.cat(each)
        share = (networks * votes[..., None]).sum(0).double() / votes.sum(0)[:, None]
        self.model = replace(
            model,
            best=min(self._memories, key=lambda one: one.loss).chains[-1].clone(),
            networks=networks,
            votes=votes,
            calibration=calibration,
            marginals=(share * ONE).round().to(torch.int64),
        )

    def to_bytes(self, **notes: Any) -> bytes:
        """All that later learning depends on, and notes fit for JSON."""
        tensors = {
            "model": torch.frombuffer(bytearray(self.model.to_bytes()), dtype=torch.uint8),
            "inputs": torch.from_numpy(np.packbits(self._inputs.numpy() > 0, axis=1)),
            "labels": self._labels,
            "arrival": self._arrival,
            "life": self._life,
            "scores": self._scores,
            "truth": self._truth,
        }
        if self._starts is not None:
            tensors["starts"] = self._starts
        for number, memory in enumerate(self._memories):
            tensors |= {f"kept.{number}": memory.kept, f"chains.{number}": memory.chains}
            tensors[f"networks.{number}"] = memory.networks
        state = {
            "memory": self.memory,
            "seed": self.seed,
            "rows": self.rows,
            "batches": self.batches,
            "calibrated": self._calibrated,
            "losses": [memory.loss.hex() for memory in self._memories],
        }
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
        notes = json.loads(metadata["state"])
        model = model_from_bytes(bytes(tensors["model"].numpy()))
        learner = OnlineLearner(model, notes["memory"], notes["seed"])
        learner.rows, learner.batches = notes["rows"], notes["batches"]
        learner._calibrated = notes["calibrated"]
        wide = np.unpackbits(tensors["inputs"].numpy(), axis=1, count=model.program.num_inputs)
        learner._inputs = torch.from_numpy(wide.astype(np.int8))
        learner._labels, learner._arrival = tensors["labels"], tensors["arrival"]
        learner._life, learner._starts = tensors["life"], tensors.get("starts")
        learner._scores, learner._truth = tensors["scores"], tensors["truth"]
        for number, (memory, loss) in enumerate(
            zip(learner._memories, notes["losses"], strict=True)
        ):
            memory.kept, memory.chains = tensors[f"kept.{number}"], tensors[f"chains.{number}"]
            memory.networks, memory.loss = tensors[f"networks.{number}"], float.fromhex(loss)
        return learner, json.loads(metadata["notes"])


@dataclass(frozen=True)
class StreamFiles:
    """A model's file, and beside it what its learning goes on from.

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

        A model file that is neither the saved one nor the one before was made anew since.
        """
        if self.state.exists():
            learner, notes = OnlineLearner.from_bytes(self.state.read_bytes())
            if _digest(model) in (notes["before"], _digest(learner.model)):
                if learner.memory != memory:
                    raise ValueError(
                        f"this stream was begun with memory {learner.memory}; give the same, or "
                        f"remove {self.state.name} to begin anew"
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


def memories_of(memory: float | str | None) -> tuple[float, ...]:
    """The memories that a setting asks for."""
    if memory is None:
        return (math.inf,)
    return MEMORIES if isinstance(memory, str) else (float(memory),)


def check_learnable(model: Model) -> None:
    """Raise where chains cannot go on from a model."""
    if model.coding != "binary" or not model.program.packable or model.program.num_outputs > 1:
        raise ModelError(
            "a stream is learned by chains, which sample nets with at most one hidden layer, one "
            "output and inputs of 0/1; fit such a model with solver='chains', or only predict"
        )


def _evidence(scores: Tensor, labels: Tensor) -> Evidence:
    """Scores (rows, N) in [−1, 1] as what one network says."""
    raw_margins = ((scores * SCALE + 1) / 2).round().to(torch.int64)[:, None, :, None]
    return Evidence(raw_margins, labels, torch.ones(len(labels), dtype=torch.float64))
