"""A run in which something goes wrong, as one rank of a job.

faulty.py FOLDER FAULT STEP: at STEP, in the first sitting, the last rank meets its FAULT.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from cases import batches, found

from vitrail.ranks import joined

FAULTS = {
    "none": lambda: None,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hang": lambda: time.sleep(60),
}


def main(folder: Path, fault: str, at: int) -> None:
    first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    with joined() as world:
        last = world.rank == world.size - 1

        def on_step(step: int, *_: object) -> None:
            (folder / f"step.{world.rank}").write_text(str(step))
            if fault == "slow":
                time.sleep(0.1)
            elif first and last and step == at:
                FAULTS[fault]()

        solution = batches(
            world, checkpoint=folder / "run.ckpt", checkpoint_every=4, on_step=on_step
        )
        if world.first:
            (folder / "found.json").write_text(json.dumps(found(solution)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
