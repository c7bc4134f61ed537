"""Train the hundred networks of the playground and write them as a JavaScript module.

    python scripts/build_playground.py [-o docs/playground/digits/networks.js]

A linear net for each pair of digits, one-bit weights, networks drawn from the posterior. Beside
the bits the module holds how often the networks are right by how many of them agree, on the test
images, and a few of these images to try.
"""

from __future__ import annotations

import argparse
import base64
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from vitrail import BinaryNetClassifier
from vitrail.datasets import mnist
from vitrail.model import Model

OUT = Path(__file__).parents[1] / "docs" / "playground" / "digits" / "networks.js"
ROWS = 3000  # few enough that the posterior is wide and its votes show confidence
NETWORKS = 100
AGREEMENT = (0, 30, 50, 70, 90, NETWORKS)  # lower ends of the ranges of agreement
SAMPLES = 20  # test images of each kind
SURE, UNSURE = 95, 60  # networks that agree on an image to try, at least and at most


def main() -> None:
    """Read the command line, train and write."""
    parser = argparse.ArgumentParser(description="Build the networks of the playground.")
    parser.add_argument("-o", "--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    digits = mnist(coding="binary")
    few = digits.take(ROWS, seed=0)
    classifier = BinaryNetClassifier(
        solver="sbp",
        predictor="posterior",
        networks=NETWORKS,
        inputs="bipolar",
        bias=1,
        random_state=0,
    ).fit(few.inputs.numpy(), few.labels.numpy())
    content = described(classifier.model_, digits.test_inputs.numpy(), digits.test_labels.numpy())
    lines = [f"  {name}: {json.dumps(value)},\n" for name, value in content.items()]
    text = "// Written by scripts/build_playground.py.\n\nexport const model = {\n"
    arguments.out.write_text(f"{text}{''.join(lines)}}};\n")
    record = content["record"]
    print(f"{arguments.out}: {arguments.out.stat().st_size:,} bytes, {record}")


def described(model: Model, bits: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """A model for the page, as plain values; bits and labels are the test's."""
    agreed, label = agreement(model, bits)
    right = label == labels
    ends = [*AGREEMENT[1:], NETWORKS + 1]
    reliability = []
    for low, end in zip(AGREEMENT, ends, strict=True):
        here = (agreed >= low) & (agreed < end)
        counts = {"digits": int(here.sum()), "right": int(right[here].sum())}
        reliability.append({"low": low, "high": end - 1, **counts})
    sure = np.flatnonzero(right & (agreed >= SURE))[:SAMPLES]
    unsure = np.flatnonzero(agreed <= UNSURE)[:SAMPLES]
    return {
        "classes": model.num_classes,
        "inputs": bits.shape[1],
        "bias": model.bias,
        "networks": len(model.networks),
        "record": {"rows": ROWS, "accuracy": float(right.mean())},
        "reliability": reliability,
        "samples": {
            "sure": [packed(bits[place]) for place in sure],
            "unsure": [packed(bits[place]) for place in unsure],
        },
        "bits": packed(model.networks.numpy().ravel()),
    }


def agreement(model: Model, bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most frequent answer and the number of networks that give it, (rows,) each."""
    inputs = model.inputs(bits).numpy().astype(np.float32)
    weights = 2 * model.networks.numpy().astype(np.float32) - 1
    votes = np.zeros((len(bits), model.num_classes), dtype=np.int64)
    for network in weights:
        higher = inputs @ network.T > 0
        wins = np.zeros_like(votes)
        for pair, (low, high) in enumerate(combinations(range(model.num_classes), 2)):
            wins[:, high] += higher[:, pair]
            wins[:, low] += ~higher[:, pair]
        votes[np.arange(len(bits)), wins.argmax(1)] += 1
    return votes.max(1), votes.argmax(1)


def packed(bits: np.ndarray) -> str:
    """Bits as base64, the first bit of an octet lowest."""
    return base64.b64encode(np.packbits(bits.astype(bool), bitorder="little").tobytes()).decode()


if __name__ == "__main__":
    main()
