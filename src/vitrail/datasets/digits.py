"""scikit-learn's 8×8 digits as bits."""

from __future__ import annotations

import numpy as np

from vitrail.checks import checked_count
from vitrail.datasets.dataset import (
    Coding,
    Dataset,
    binarise,
    dataset_of,
    indices_of_pair,
)
from vitrail.draws import random_order

SIDE = 8
FULL_INTENSITY = 16  # a pixel counts the black dots of a 4×4 block


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
    num_images = checked_count("num_images", num_images, 1, len(chosen))
    if num_examples is None:
        num_examples = num_images
    checked_count("num_examples", num_examples, 1, num_images)
    order = chosen[random_order(seed, len(chosen))][:num_images]
    train, test = order[:num_examples], order[num_examples:]
    bits = binarise(pixels, FULL_INTENSITY, threshold)
    name = f"digits {pair[0]}-vs-{pair[1]}"
    parts = (bits[train], classes[train]), (bits[test], classes[test])
    return dataset_of(name, *parts, coding, pair, (1, SIDE, SIDE))
