"""Images and labels in MNIST's idx format, plain or gzipped.

A file is two zero bytes, a type code (8: unsigned bytes), the number of axes, each axis's length
as a big-endian 32-bit integer, then the values, last axis fastest.
"""

from __future__ import annotations

import io
from math import prod
from os import PathLike
from pathlib import Path
from typing import BinaryIO

import numpy as np

from vitrail.datasets.dataset import (
    Coding,
    Dataset,
    Part,
    binarise,
    dataset_of,
    indices_of_pair,
)
from vitrail.errors import DataError
from vitrail.files import Unpacked
from vitrail.memory import check_size

FULL_INTENSITY = 255
UNSIGNED_BYTES = 8

FilePath = str | PathLike[str]


def load_idx(
    images: FilePath,
    labels: FilePath,
    test_images: FilePath | None = None,
    test_labels: FilePath | None = None,
    *,
    pair: tuple[int, int] | None = None,
    pool: int = 1,
    threshold: float = 0.5,
    coding: Coding = "bipolar",
) -> Dataset:
    """Your own files in MNIST's format, as bits.

    Args:
        images: The training images, gzipped or not.
        labels: Their labels.
        test_images: The test images, if there are any.
        test_labels: Their labels.
        pair: Keeps two classes, label 1 being the second; None keeps all labels of the training
            file, numbered in ascending order.
        pool: Side of the blocks that images are max-pooled over; 2 makes MNIST's 28×28 the 14×14
            of `mnist`.
        threshold: A pixel is 1 if strictly above this share of full intensity.
        coding: How a bit is written: −1/+1 ("bipolar") or 0/1 ("binary").

    Returns:
        Training and test examples.

    Examples:
        >>> data = load_idx("train-images.gz", "train-labels.gz", pool=2)  # doctest: +SKIP
    """
    if (test_images is None) != (test_labels is None):
        raise DataError(
            "test_images and test_labels belong together, got only one of them; give both or none"
        )
    train = _read_bits(images, labels, pool, threshold)
    test = train[0][:0], train[1][:0]
    if test_images is not None and test_labels is not None:
        test = _read_bits(test_images, test_labels, pool, threshold)
        if test[0].shape[1:] != train[0].shape[1:]:
            raise DataError(
                f"{test_images} holds images of {test[0].shape[1:]} after pooling, {images} of "
                f"{train[0].shape[1:]}; give test images of the size of the training images"
            )
    unknown = np.setdiff1d(test[1], train[1])
    if unknown.size and pair is None:
        raise DataError(
            f"{test_labels} has the label {unknown[0]}, which {labels} has not; "
            "give test labels of the training classes"
        )
    name = Path(images).name.split(".")[0]
    return labelled_images(name, train, test, pair, coding)


def labelled_images(
    name: str, train: Part, test: Part, pair: tuple[int, int] | None, coding: Coding
) -> Dataset:
    """Bit images (F, H, W) and their raw labels (F,) as a data set, of all classes or a pair."""
    if pair is None:
        classes = tuple(int(label) for label in np.unique(train[1]))
    else:
        keep, keep_test = indices_of_pair(train[1], pair), np.isin(test[1], pair)
        train = train[0][keep], train[1][keep]
        test = test[0][keep_test], test[1][keep_test]
        classes, name = pair, f"{name} {pair[0]}-vs-{pair[1]}"
    return dataset_of(name, train, test, coding, classes, (1, *train[0].shape[1:]))


def read_idx(path: FilePath, axes: int) -> np.ndarray:
    """The unsigned bytes of an idx file with that many axes, gzipped or not.

    The header is read first: what it announces must fit in memory, and be there.
    """
    path = Path(path)
    counter = Unpacked(path)
    with io.BufferedReader(counter) as stream:
        shape = _read_shape(path, stream, axes)
        size, announced = counter.plain_bytes, prod(shape)
        rest = None if size is None else size - (4 + 4 * axes)
        what = f"{announced:,} values of shape {shape}"
        if rest in (None, announced):
            check_size(str(path), what, announced, counter.file_bytes)
            content = stream.read(announced + 1)  # one byte more shows that there is more
            rest = len(content)
        if rest != announced:
            unknown = rest > announced and size is None
            held = "more" if unknown else f"{rest:,}"
            raise DataError(f"{path} announces {what} but holds {held}; fetch or copy it again")
    return np.frombuffer(content, np.uint8).reshape(shape)


def _read_shape(path: Path, stream: BinaryIO, axes: int) -> tuple[int, ...]:
    start = stream.read(4)
    if len(start) < 4 or start[:2] != b"\0\0":
        raise DataError(
            f"{path} does not start like an idx file; give a file in MNIST's idx format, "
            "plain or gzipped"
        )
    kind, found_axes = start[2], start[3]
    if kind != UNSIGNED_BYTES:
        raise DataError(
            f"{path} holds values of idx type {kind:#04x}, expected unsigned bytes "
            f"({UNSIGNED_BYTES:#04x}); convert it to bytes 0…{FULL_INTENSITY}"
        )
    if found_axes != axes:
        what = {1: "labels (1 axis)", 3: "images (3 axes)"}[axes]
        raise DataError(
            f"{path} has {found_axes} axes, expected {what}; are images and labels swapped?"
        )
    lengths = stream.read(4 * axes)
    if len(lengths) < 4 * axes:
        raise DataError(f"{path} ends inside its header; fetch or copy it again")
    return tuple(int(n) for n in np.frombuffer(lengths, ">u4"))


def max_pool(images: np.ndarray, size: int) -> np.ndarray:
    """The brightest pixel of each size×size block: (F, H, W) to (F, H/size, W/size)."""
    count, height, width = images.shape
    if size < 1 or height % size or width % size:
        raise DataError(
            f"pool must divide the image size {height}×{width}, got {size}; "
            "pool=1 leaves images as they are"
        )
    return images.reshape(count, height // size, size, width // size, size).max(axis=(2, 4))


def _read_bits(images: FilePath, labels: FilePath, pool: int, threshold: float) -> Part:
    pixels, classes = read_idx(images, axes=3), read_idx(labels, axes=1)
    if len(pixels) != len(classes) or not len(pixels):
        raise DataError(
            f"one label per image expected, got {len(pixels)} images in {images} and "
            f"{len(classes)} labels in {labels}; give the two files of one set"
        )
    return binarise(max_pool(pixels, pool), FULL_INTENSITY, threshold), classes
