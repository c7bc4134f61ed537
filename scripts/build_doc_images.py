"""Draw the pictures of the documentation that the demo does not: docs/images/beliefs.png.

python scripts/build_doc_images.py
"""

from pathlib import Path

import numpy as np

from vitrail.datasets import mnist
from vitrail.factors import perceptron
from vitrail.graph import factor_graph
from vitrail.lab.plots import beliefs_figure, save
from vitrail.solvers import belief_propagation, run
from vitrail.updates import flip

IMAGES = Path(__file__).parents[1] / "docs" / "images"
STEPS = (1, 10, 60, 400)


def main() -> None:
    """Train for as many steps as each picture shows."""
    data = mnist(pair=(3, 5))
    graph = factor_graph(perceptron(data.inputs, data.labels, beta=3.0))
    solver = belief_propagation(flip(samples=5), damping=0.9, batch=128)
    pictures: dict[str, np.ndarray] = {}
    for steps in STEPS:
        solution = run(solver, graph, seed=0, max_steps=steps)
        title = f"{128 * steps:,} images\n{float(solution.accuracy):.2f} right"
        pictures[title] = solution.marginals.view(14, 14).numpy()
    save(beliefs_figure(pictures), IMAGES / "beliefs.png")


if __name__ == "__main__":
    main()
