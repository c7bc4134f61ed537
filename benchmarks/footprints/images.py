"""Convolutional nets for tables that are images: a few small ones that vote, each one network.

All have two convolutions with units of 0 and 1 and a linear layer, and are trained by streaming
from starts of their own. Bits of a pixel, kernels, strides, passes, the last beta and how far leads
count were chosen by training on three quarters of the training images of the first split and asking
about the last quarter; the images held out had no part in it. Channels and voters are the sizes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import torch
from torch import nn

from footprints.rows import Rows
from vitrail import BinaryNetClassifier
from vitrail.model import Model
from vitrail.nn import BinaryConv2d, BinaryLinear, Threshold
from vitrail.solvers import Stage, falling, geometric, streaming, usual_rate
from vitrail.tables.bits import BitColumns

VOTERS = (1, 2, 3, 4, 6, 8)
BATCH = 128
LAST_BETA = 3.0  # nets that vote should each be less confident than one net alone
CLIP = 15  # how far a net's lead counts: larger ones say no more, and take larger tables


@dataclass(frozen=True)
class Images:
    """How the images of a table are read, and what nets read them."""

    side: int  # pixels, of a square
    bits: int  # of a pixel
    kernels: tuple[int, int]
    strides: tuple[int, int]
    channels: tuple[tuple[int, int], ...]
    epochs: int

    def net(self, channels: tuple[int, int], classes: int) -> nn.Module:
        """Two convolutions and a linear layer."""
        before, side, layers = self.bits, self.side, []
        for kernel, stride, after in zip(self.kernels, self.strides, channels, strict=True):
            padding = (kernel - 1) // 2
            layers += [BinaryConv2d(before, after, kernel, stride, padding), Threshold()]
            before, side = after, (side + 2 * padding - kernel) // stride + 1
        return nn.Sequential(*layers, nn.Flatten(), BinaryLinear(before * side**2, classes))


TABLES = {
    "mnist": Images(14, 1, (5, 5), (2, 2), ((16, 8), (16, 16), (16, 32)), 20),
    "digits": Images(8, 3, (3, 3), (1, 2), ((4, 8), (8, 8), (8, 16)), 60),
}
WIDTHS = max(len(images.channels) for images in TABLES.values())


def convolutions(
    seen: Rows, held: Rows, split: int, width: int
) -> Iterator[tuple[str, Model, float]]:
    """Size, model and accuracy of growing committees; none of a table that is no images."""
    images = TABLES.get(seen.name)
    if images is None:
        return
    channels = images.channels[width]
    nets = trained(seen, images, channels, split)
    known: list[Model] = []
    for voters in VOTERS:
        known += [next(nets) for _ in range(voters - len(known))]
        model = voting(known)
        right = model.labels.decode(model.answers(held.table).numbers) == held.labels
        told = " and ".join(map(str, channels))
        yield f"{voters} nets of {told} channels", model, float(np.mean(right))


def trained(seen: Rows, images: Images, channels: tuple[int, int], split: int) -> Iterator[Model]:
    """Nets from one start after another."""
    pixels = seen.table.to_numpy().reshape(-1, 1, images.side, images.side)
    encoder = BitColumns.fit_images(seen.table, images.bits)
    module = images.net(channels, len(np.unique(seen.labels)))
    batches = images.epochs * -(-len(pixels) // BATCH)
    beta, rate = geometric(1.0, LAST_BETA, batches), falling(usual_rate(batches), batches)
    solver = streaming(batch=BATCH, batches=1, beta=beta, rate=rate)
    stage = Stage("streaming", solver, batches, score_every=batches)
    for start in count():
        net = BinaryNetClassifier(
            module=module,
            solver=[stage],
            predictor="best",
            beta=math.inf,
            bias=0,
            random_state=max(VOTERS) * split + start,
            device="cpu",
        )
        yield replace(net.fit(pixels, seen.labels).model_, encoder=encoder)


def voting(nets: list[Model]) -> Model:
    """One model whose networks are those of all; one alone needs no more than its sign."""
    return replace(
        nets[0],
        networks=torch.cat([net.networks for net in nets]),
        votes=torch.ones(len(nets), 1, dtype=torch.int64),
        clip=CLIP if len(nets) > 1 else 1,
        calibration=(255 * torch.arange(257) + 128)[None],
        thresholds=(),
    )
