"""A small sweep and a choice of nets, whose results must not depend on who does them; also a job.

    python sweep.py BACKEND FOLDER

In a process of its own, because clusters leave threads and sockets behind that warn at odd times.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

from vitrail import BinaryNetClassifier
from vitrail.engines import checked_backend, workers
from vitrail.fingerprint import fingerprint
from vitrail.lab.experiments.methods import SBP
from vitrail.lab.experiments.tasks import solve_linear
from vitrail.lab.experiments.units import Unit, compute


def units() -> list[Unit]:
    settings = {"family": "glass", "sizes": ((5, 6),), "epochs": 2, "repeats": 2, "method": SBP()}
    return [Unit(solve_linear, {**settings, "seed": seed}) for seed in range(3)]


def chosen() -> list[str]:
    """Digests of models: one net of three, and one of two ways to train a deep net."""
    rows = np.random.default_rng(1).integers(0, 2, (120, 9)).astype(bool)
    labels = np.where(rows[:, :5].sum(1) > 2, "many", "few")
    digests = []
    for hidden in ("auto", (5, 3)):
        net = BinaryNetClassifier(hidden=hidden, predictor="best", epochs=4, random_state=2)
        model = net.fit(rows, labels).model_
        tables = model.best, model.marginals, model.networks, model.votes, model.calibration
        record = {name: model.record[name] for name in ("settings", "steps", "train_accuracy")}
        digests.append(fingerprint(*tables, record))
    return digests


if __name__ == "__main__":
    backend = checked_backend(sys.argv[1])
    with workers(backend, 2):
        if backend == "dask":  # the sweep joins this cluster; it takes seconds to start another
            from dask import config  # pyright: ignore[reportPrivateImportUsage]
            from distributed import default_client

            os.environ["DASK_SCHEDULER_ADDRESS"] = default_client().scheduler.address
            config.refresh()
        rows = [done.rows for done in compute(units(), Path(sys.argv[2]), 2, backend=backend)]
        print(json.dumps({"rows": rows, "chosen": chosen()}))  # noqa: T201
