"""Kill a rank at a random step, repeatedly: every job must end with the identical model.

    python benchmarks/faults.py [--kills 20]

A job starts on two or three ranks, one of which kills itself with SIGKILL at a random step. It
resumes from the checkpoint: on as many ranks by `torchrun --max-restarts=1`, or on another number
by a second job. The result of rank 0 is compared with that of one uninterrupted process.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS, EVERY = 60, 7


def job(folder: Path, victim: int, at: int) -> str:
    """One rank: a digest of weights, marginals and scores."""
    from vitrail import factor_graph, perceptron, run
    from vitrail.datasets import glass
    from vitrail.fingerprint import fingerprint
    from vitrail.ranks import joined
    from vitrail.solvers import belief_propagation
    from vitrail.updates import flip

    first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    data = glass(400, 101, seed=1)
    graph = factor_graph(perceptron(data.inputs, data.labels, 2.0))
    with joined() as world:

        def on_step(step: int, *_: object) -> None:
            if first and step == at and world.rank == victim:
                os.kill(os.getpid(), signal.SIGKILL)

        found = run(
            belief_propagation(flip(5), damping=0.5, batch=32),
            graph.shared(world),
            seed=5,
            max_steps=STEPS,
            checkpoint=folder / "run.ckpt",
            checkpoint_every=EVERY,
            on_step=on_step,
        )
        digest = fingerprint(found.weights, found.best, found.marginals, found.history["accuracy"])
        if world.first:
            (folder / "found").write_text(digest)
    return digest


def run_job(
    folder: Path, ranks: int, victim: int, at: int, restarts: int
) -> subprocess.CompletedProcess[str]:
    """Run a job of `ranks` ranks."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    how = [f"--max-restarts={restarts}", f"--nproc-per-node={ranks}"]
    command = [*launch, *how, __file__, "--job", str(folder), str(victim), str(at)]
    return subprocess.run(command, capture_output=True, text=True)


def main() -> None:
    """Kill ranks and compare results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--job", nargs=3, metavar=("FOLDER", "VICTIM", "STEP"))
    options = parser.parse_args()
    if options.job is not None:
        job(Path(options.job[0]), int(options.job[1]), int(options.job[2]))
        return
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        expected = job(Path(folder), -1, -1)
    same = 0
    for number in range(options.kills):
        ranks, after = draw.choice(((2, 2), (3, 3), (2, 3), (3, 2)))
        victim, at = draw.randrange(ranks), draw.randrange(1, STEPS)
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            done = run_job(Path(folder), ranks, victim, at, restarts=int(after == ranks))
            named = f"rank {victim} of {ranks} ended" in done.stderr
            died = done.returncode != 0
            if after != ranks:
                done = run_job(Path(folder), after, -1, -1, restarts=0)
            found = Path(folder) / "found"
            equal = (
                died == (after != ranks) and done.returncode == 0 and found.read_text() == expected
            )
        same += equal
        print(
            f"{number + 1:3d}: rank {victim} of {ranks} at step {at:2d}, then {after} ranks: "
            f"{'identical' if equal else 'DIFFERENT'}, {'named' if named else 'not named'}, "
            f"{time.perf_counter() - begun:.1f} s",
            flush=True,
        )
    print(f"{same} of {options.kills} jobs ended with the identical result")
    sys.exit(same < options.kills)


if __name__ == "__main__":
    main()
