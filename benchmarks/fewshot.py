"""Ten classes of MNIST at 14×14 from a few images each: many networks compared with one.

    python benchmarks/fewshot.py [--shots 10,40] [--draws 5]

The default draws nets of one hidden layer, a class against the rest; the others have a net per pair
of classes, linear ones 45 of 196 weights and a constant. Accuracy is on all 10,000 test images.
"""

from __future__ import annotations

import time

import numpy as np
from harness import parser_of

from vitrail import BinaryNetClassifier
from vitrail.datasets import mnist
from vitrail.lab.demo import few_per_class

METHODS = {
    "default": {},
    "linear posterior": {"hidden": ()},
    "best": {"predictor": "best"},
    "straight-through": {"solver": "ste"},
}


def main() -> None:
    """Measure and print one row per method and number of shots."""
    parser = parser_of(__doc__)
    parser.add_argument("--shots", default="10,40")
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    data = mnist()
    inputs, labels = data.inputs.numpy(), data.labels.numpy()
    print("| images per class | method | test accuracy | lowest draw | bits | seconds |")
    print("|---|---|---|---|---|---|")
    for shots in map(int, options.shots.split(",")):
        for name, settings in METHODS.items():
            scores, begun, bits = [], time.perf_counter(), 0
            for draw in range(options.draws):
                rows = few_per_class(labels, shots, draw)
                net = BinaryNetClassifier(random_state=draw, **settings)
                net.fit(inputs[rows], labels[rows])
                scores.append(net.score(data.test_inputs.numpy(), data.test_labels.numpy()))
                bits = net.model_.networks.numel()
            spent = (time.perf_counter() - begun) / options.draws
            figures = f"{np.mean(scores):.3f} | {min(scores):.3f} | {bits} | {spent:.1f}"
            print(f"| {shots} | {name} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
