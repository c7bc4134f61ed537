"""All of MNIST, 14×14 bits per image, embedded in the package.

The file is an npz of `images` (70000, 25) uint8, each row 196 bits packed most significant first,
row by row of the image, and `labels` (70000,) uint8; the 60,000 training images come first.
`mnist14.md` beside it tells where the images come from and on what terms;
`scripts/build_mnist14.py` makes the file from the originals.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vitrail.datasets.dataset import Coding, Dataset
from vitrail.datasets.idx import labelled_images

EMBEDDED = Path(__file__).with_name("mnist14.npz")
SIDE = 14
NUM_TRAIN = 60_000


def mnist(pair: tuple[int, int] | None = None, *, coding: Coding = "bipolar") -> Dataset:
    """MNIST max-pooled to 14×14 and thresholded at half intensity; nothing is downloaded.

    `.take(count, seed)` keeps a few of the training examples.

    Args:
        pair: Two digits, label 1 for the second; None is all ten.
        coding: How a bit is written: −1/+1 ("bipolar") or 0/1 ("binary").

    Returns:
        Training and test examples.

    Examples:
        >>> mnist(pair=(3, 5)).inputs.shape
        torch.Size([11552, 196])
    """
    with np.load(EMBEDDED, allow_pickle=False) as stored:
        images, labels = unpack(stored["images"]), stored["labels"]
    train, test = (
        (images[part], labels[part]) for part in (slice(NUM_TRAIN), slice(NUM_TRAIN, None))
    )
    return labelled_images("mnist", train, test, pair, coding)


def pack(images: np.ndarray) -> np.ndarray:
    """Bit images (F, 14, 14) as (F, 25) uint8."""
    return np.packbits(images.reshape(-1, SIDE * SIDE).astype(bool), axis=1)


def unpack(packed: np.ndarray) -> np.ndarray:
    """What `pack` packed: (F, 25) uint8 to (F, 14, 14) of 0/1."""
    return np.unpackbits(packed, axis=1, count=SIDE * SIDE).reshape(-1, SIDE, SIDE)
