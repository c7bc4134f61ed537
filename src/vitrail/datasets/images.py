"""Handwritten digits as bits: scikit-learn's 8×8 images, and all of MNIST at 14×14, embedded here.

MNIST's file is an npz of `images` (70000, 25) uint8, each row 196 bits packed most significant
first, row by row of the image, and `labels` (70000,) uint8; the 60,000 training images come first.
`mnist14.md` beside it has source and licence of the images;
`scripts/build_mnist14.py` makes the file from the originals.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vitrail.checks import checked_count
from vitrail.datasets.dataset import Coding, Dataset, binarise, dataset_of, indices_of_pair
from vitrail.datasets.idx import labelled_images
from vitrail.draws import random_order

DIGITS_SIDE, DIGITS_INTENSITY = 8, 16  # a pixel counts the black dots of a 4×4 block
EMBEDDED = Path(__file__).with_name("mnist14.npz")
SIDE = 14
NUM_TRAIN = 60_000


def digits(
    num_examples: int | None = None,
    pair: tuple[int, int] = (3, 5),
    seed: int = 0,
    *,
    num_images: int = 250,
    threshold: float = 0.5,
    coding: Coding = "bipolar",
) -> Dataset:
    """Two classes of handwritten digits, 64 bits each; label 1 is the second of the pair.

    The paper has 250 images, num_examples=5…245, and does not name the classes or the threshold.

    Args:
        num_examples: Images to train on; None is all of `num_images`. The others are the test part.
        pair: The two digits.
        seed: Puts the pair's images (about 360) in a random order.
        num_images: How many of them are used, the first in that order.
        threshold: A pixel is 1 if strictly above this share of full intensity.
        coding: How a bit is written: −1/+1 ("bipolar") or 0/1 ("binary").

    Returns:
        Training and test examples.

    Examples:
        >>> digits(100).test_inputs.shape
        torch.Size([150, 64])
    """
    from sklearn.datasets import load_digits  # takes seconds, which only its callers should pay

    pixels, classes = (np.asarray(part) for part in load_digits(return_X_y=True))
    chosen = indices_of_pair(classes, pair)
    checked_count("num_images", num_images, 1, len(chosen))
    count = num_images if num_examples is None else num_examples
    checked_count("num_examples", count, 1, num_images)
    order = chosen[random_order(seed, len(chosen))][:num_images]
    bits = binarise(pixels, DIGITS_INTENSITY, threshold)
    train, test = ((bits[part], classes[part]) for part in (order[:count], order[count:]))
    name, shape = f"digits {pair[0]}-vs-{pair[1]}", (1, DIGITS_SIDE, DIGITS_SIDE)
    return dataset_of(name, train, test, coding, pair, shape)


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


def unpack(packed: np.ndarray) -> np.ndarray:
    """Images of the file (F, 25) as (F, 14, 14) of 0/1."""
    return np.unpackbits(packed, axis=1, count=SIDE * SIDE).reshape(-1, SIDE, SIDE)
