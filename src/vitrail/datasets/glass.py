"""Random problems: labels without a rule (glass), and labels with a hidden one (stained glass)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from vitrail.checks import checked_count
from vitrail.datasets.dataset import Coding, Dataset, dataset_of
from vitrail.draws import Purpose, random_bits
from vitrail.memory import check_size

BYTES = 10  # that a random bit takes on its way: as it is drawn, as a sign, as it is computed with


def glass(
    num_examples: int,
    num_inputs: int,
    seed: int = 0,
    *,
    num_test: int = 0,
    coding: Coding = "bipolar",
) -> Dataset:
    """Inputs and labels are independent fair bits: nothing to learn, only to satisfy.

    The first examples of a larger set are the smaller set of the same seed, so a sweep over
    num_examples only adds factors. The paper's figure has num_inputs=10, num_examples=5…50.

    Args:
        num_examples: Training examples.
        num_inputs: Bits of an example.
        seed: Same number, same data.
        num_test: Test examples.
        coding: How a bit is written: −1/+1 ("bipolar") or 0/1 ("binary").

    Returns:
        Training and test examples.

    Examples:
        >>> glass(20, 10, seed=1).inputs.shape
        torch.Size([20, 10])
    """
    inputs, test_inputs = _fair_inputs(num_examples, num_inputs, seed, num_test)
    train = inputs, random_bits(seed, Purpose.LABELS, num_examples)
    test = test_inputs, random_bits(seed, Purpose.TEST_LABELS, num_test)
    return dataset_of("glass", train, test, coding)


def stained_glass(
    num_examples: int,
    num_inputs: int,
    seed: int = 0,
    *,
    hidden_layers: int = 1,
    width: int | None = None,
    num_test: int = 0,
    coding: Coding = "bipolar",
) -> Dataset:
    """Inputs are fair bits; the label is what a random binary teacher network makes of them.

        h_0 = x,  h_l = sign(W_l h_{l-1}),  label = [w · h_L > 0],  all entries -1/+1

    A tie is not positive, so odd num_inputs and width keep both classes equally likely. The
    teacher reads -1/+1 whatever the coding: coding changes how inputs are written, not the labels.
    Prefixes agree as in `glass`. The paper's figure has num_inputs=31.

    Args:
        num_examples: Training examples.
        num_inputs: Bits of an example.
        seed: Same number, same data and teacher.
        hidden_layers: Hidden layers L of the teacher.
        width: Units of each of them; None is num_inputs (the paper does not say).
        num_test: Test examples.
        coding: How a bit is written: −1/+1 ("bipolar") or 0/1 ("binary").

    Returns:
        Training and test examples.

    Examples:
        >>> stained_glass(50, 31, hidden_layers=2).classes
        (0, 1)
    """
    if hidden_layers not in (1, 2):
        raise ValueError(
            f"hidden_layers must be 1 or 2, got {hidden_layers!r}; for no rule at all use glass"
        )
    checked_count("num_inputs", num_inputs, 1)
    width = num_inputs if width is None else checked_count("width", width, 1)
    teacher = _teacher(seed, [num_inputs, *[width] * hidden_layers, 1])
    parts = _fair_inputs(num_examples, num_inputs, seed, num_test)
    train, test = ((inputs, _labels(teacher, inputs)) for inputs in parts)
    return dataset_of(f"stained glass, {hidden_layers} hidden", train, test, coding)


def _fair_inputs(
    num_examples: int, num_inputs: int, seed: int, num_test: int
) -> tuple[np.ndarray, np.ndarray]:
    checked_count("num_examples", num_examples, 1)
    checked_count("num_inputs", num_inputs, 1)
    checked_count("num_test", num_test, 0)
    _check_memory((num_examples + num_test) * num_inputs)
    return (
        random_bits(seed, Purpose.INPUTS, num_examples, num_inputs),
        random_bits(seed, Purpose.TEST_INPUTS, num_test, num_inputs),
    )


def _check_memory(bits: int) -> None:
    check_size("random data", f"{bits:,} bits", BYTES * bits, None)


def _teacher(seed: int, widths: list[int]) -> list[np.ndarray]:
    """One -1/+1 matrix (inputs, units) per layer, cut from one stream."""
    sizes = [below * above for below, above in pairwise(widths)]
    _check_memory(sum(sizes))
    signs = 2 * random_bits(seed, Purpose.TEACHER, sum(sizes)).astype(np.int64) - 1
    flat = np.split(signs, np.cumsum(sizes)[:-1])
    return [layer.reshape(below, -1) for layer, below in zip(flat, widths[:-1], strict=True)]


def _labels(teacher: list[np.ndarray], bits: np.ndarray) -> np.ndarray:
    """The teacher's label of each row, (F,) bool."""
    signs = 2 * bits.astype(np.int64) - 1
    for layer in teacher:
        signs = np.where(signs @ layer > 0, 1, -1)
    return signs[:, 0] > 0
