"""Small convolutional nets under a limit of flash: the shape that answers best.

Every family of shapes gives the widest net that fits, and the widest in half the bytes. All learn
for a few epochs on some rows and are compared on others. The best are trained again for more
epochs, with and without warped images.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from vitrail.export.flash import estimated, flash_bytes
from vitrail.learning.choice import CLIP, trial_folds
from vitrail.learning.compression import first_within
from vitrail.learning.examples import Examples
from vitrail.learning.gradients import BATCH, ModuleRun, accuracy_of, usual_epochs
from vitrail.learning.learn import prepare
from vitrail.learning.posterior import FitOptions, TrainingData
from vitrail.learning.table import AUTO
from vitrail.model import Model
from vitrail.model.calibration import logistic_table
from vitrail.nn import RandomWarp, get_bits, program_of, small_conv
from vitrail.tables.labels import LabelCoder

SHARES = (1.0, 0.5)  # of the flash
FEW, MORE = 1 / 16, 1 / 4  # of the epochs
FINALISTS = 3  # that learn for more epochs
WIDEST = 64  # channels of the first convolution


class Family(NamedTuple):
    """Nets of one form: channels relative to the first, and the rest of `small_conv`."""

    channels: tuple[float, ...]
    digits: tuple[int, ...]
    kernel: int = 5
    padding: int = 2


FAMILIES = (  # those of benchmarks/mnist_device.py, and with fewer or more bits per weight
    Family((1, 4, 6, 8), (2, 1, 1, 1, 2)),
    Family((1, 4, 6, 8), (3, 2, 2, 2, 2), padding=0),
    Family((1, 2.5, 3.5, 4), (3, 2, 2, 2, 2), 4, 0),
    Family((1, 2, 4), (3, 2, 2, 2), padding=0),
    Family((1, 3, 6), (2, 1, 1, 2)),
    Family((1, 3, 6), (1, 1, 1, 1)),
)


@dataclass(frozen=True)
class Shape:
    """A net of a family."""

    family: Family
    width: int  # channels of the first convolution
    warped: bool = False  # whether it learns from images that are turned, shifted and bent

    @property
    def channels(self) -> tuple[int, ...]:
        return tuple(round(self.width * share) for share in self.family.channels)

    def module(self, image: tuple[int, ...], outputs: int) -> nn.Module:
        """An untrained net for images of a shape."""
        settings: dict[str, Any] = self.family._asdict() | {"channels": self.channels}
        net = small_conv(image, num_outputs=outputs, **settings)
        return nn.Sequential(RandomWarp(), net) if self.warped else net

    @property
    def record(self) -> dict[str, Any]:
        """The settings as plain values."""
        return self.family._asdict() | {"channels": self.channels, "warped": self.warped}


class RankedShapes(NamedTuple):
    """What a search found, best first."""

    modules: list[nn.Module]  # untrained
    record: list[dict[str, Any]]  # what was measured of each


class _Images:
    """Labelled images as a search sees them: some to learn from, others to compare by."""

    def __init__(self, table: Any, labels: np.ndarray, seed: int) -> None:
        first = small_conv((1, *table.image_shape))
        options = FitOptions(
            solver="ste", given={}, hidden=AUTO, module=first, multiclass=AUTO, inputs=AUTO,
            bias=AUTO, predictor="best", networks=1, seed=seed, device=AUTO, progress=False,
        )  # fmt: skip
        weight = np.ones(len(labels))
        self.fixed = prepare(table, weight, LabelCoder.fit(labels), options, None)
        self.seed = seed
        known = torch.from_numpy(self.fixed.coder.encode(labels))
        inputs = self.fixed.inputs(table)
        self.examples = Examples.distinct(inputs, known, torch.from_numpy(weight))
        folds = trial_folds(TrainingData(self.fixed, self.examples, [self.examples]), seed)
        # where no rows can be held out, all shapes are compared on those they have learned
        self.seen, self.held = folds[0] if folds else (self.examples, self.examples)

    def module(self, shape: Shape) -> nn.Module:
        """An untrained net of a shape."""
        return shape.module(self.fixed.shape, self.fixed.num_outputs)

    def model(self, shape: Shape) -> Model:
        """An untrained model, which takes as many bytes of flash as a trained one."""
        module, fixed = self.module(shape), self.fixed
        bits = get_bits(module)[None]
        return Model(
            encoder=fixed.encoder,
            labels=fixed.coder,
            coding=fixed.coding,
            bias=fixed.bias,
            program=program_of(module.eval(), fixed.shape),
            scheme=fixed.scheme,
            best=bits,
            marginals=bits.to(torch.int64),
            networks=bits[None],
            votes=torch.ones(1, 1, dtype=torch.int64),
            clip=CLIP,
            calibration=logistic_table(1.0)[None],
        )

    def widest(self, family: Family, flash: float) -> tuple[Shape, int]:
        """The widest net of a family in so many bytes, and its bytes; else the narrowest."""
        sizes = range(1, WIDEST + 1)
        fits = bisect_right(
            sizes, flash, key=lambda width: estimated(self.model(Shape(family, width))).flash
        )
        for width in range(max(1, fits), 0, -1):  # estimates are not exact
            size = flash_bytes(self.model(Shape(family, width))).flash
            if size <= flash:
                break
        return Shape(family, width), size

    def accuracy(self, shape: Shape, epochs: int) -> float:
        """On the rows held out, after so many epochs on the others."""
        run = ModuleRun(self.module(shape), self.fixed.shape, self.seen, BATCH, epochs)
        run.train(self.seed)
        if run.interrupted:
            raise KeyboardInterrupt
        return float(accuracy_of(run.evidence(self.held)))


def shapes_in_flash(
    table: Any, labels: np.ndarray, flash: int, *, epochs: int | None = None, seed: int = 0
) -> RankedShapes:
    """Small convolutional nets for images, of at most `flash` bytes on a Cortex-M0+, best first.

    Args:
        table: Images, a row of pixels each.
        labels: Their labels.
        flash: The maximum bytes of code and constants that `predict` takes, encoder included.
        epochs: Those of the fit that follows; None is chosen by the number of rows.
        seed: Same number, same result.
    """
    images = _Images(table, labels, seed)
    epochs = usual_epochs(len(images.examples), BATCH) if epochs is None else epochs
    side = min(images.fixed.shape[1:])
    families = [one for one in FAMILIES if one.kernel <= side + 2 * one.padding]
    sizes = dict(images.widest(family, share * flash) for family in families for share in SHARES)
    first_within(flash, sorted(sizes, key=lambda shape: sizes[shape]), images.model)
    order = [shape for shape, size in sizes.items() if size <= flash]
    record: dict[Shape, dict[str, Any]] = {}
    for share in (FEW, MORE):
        now = max(1, round(share * epochs))
        if share == MORE:
            order = [replace(one, warped=way) for one in order[:FINALISTS] for way in (False, True)]
        for shape in order:
            size = sizes[replace(shape, warped=False)]
            right = images.accuracy(shape, now)
            record[shape] = shape.record | {"flash": size, "epochs": now, "accuracy": right}
        order.sort(key=lambda shape: (-record[shape]["accuracy"], record[shape]["flash"]))
    rest = sorted(record.keys() - {*order}, key=lambda shape: -record[shape]["accuracy"])
    notes = [record[shape] for shape in (*order, *rest)]
    return RankedShapes([images.module(shape) for shape in order], notes)
