"""Accuracy against bytes of flash on a Cortex-M0+: compressed models beside what exports trees.

    python benchmarks/footprint.py train [FOLDER] [--tables a,b] [--splits 5] [--published 100]
                                         [--jobs 2] [--out trained.zip]
    python benchmarks/footprint.py measure trained.zip ... [--folder FOLDER] [--json points.json]
                                         [--docs docs]

FOLDER holds CSV files whose last column `class` is the label; iris, wine, digits and MNIST (14x14
bits, 6,000 images) are added. Every split holds out a third of the rows, the same for all. All
read rows as a device has them: whole numbers of 16 bits and words by number; what each needs to
make of that (bits, one-hot columns, standard scores) is part of its code.

`train` needs no compiler, and goes on where it stopped if its file is there. Accuracy is the mean
over splits; the models of the first are kept, and `measure` exports, compiles and emulates them:
bytes of `predict` by arm-none-eabi-gcc -Os, instructions that qemu counts. `--published N` answers
BTHOWeN's points by N splits of iris and wine. `--docs` draws the pictures and writes the tables.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import time
import zipfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

PARTS = 8  # four ways to cut columns, three widths of nets for images, and the rivals
FEW_SPLITS = ("mnist", "digits")  # large enough for one split


def train(options: argparse.Namespace) -> None:
    """Everything that needs no compiler, in as many processes as asked for."""
    from footprints.rows import all_rows

    os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    wanted = list(all_rows(options.folder, options.tables))
    begun = time.perf_counter()
    jobs: list[tuple[str, str, int, int]] = [
        ("splits", name, split, part)
        for name in wanted
        for split in range(options.first, 1 if name in FEW_SPLITS else options.splits)
        for part in range(PARTS - options.ours)
    ]
    jobs += [
        ("published", name, split, 0)
        for name in ("iris", "wine")
        for split in range(options.published)
    ]
    known = set(zipfile.ZipFile(options.out).namelist()) if options.out.exists() else set()
    jobs = [job for job in jobs if "/".join(map(str, job)) not in known]
    print(f"{len(jobs)} trainings in {options.jobs} processes", flush=True)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(_trained, *job, options.folder): job for job in jobs}
        for number, done in enumerate(as_completed(running), 1):
            entry = "/".join(map(str, running[done]))
            if done.exception():
                print(f"{entry} failed: {done.exception()!r}", flush=True)
                continue
            seconds, content = done.result()
            with zipfile.ZipFile(options.out, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
                file.writestr(entry, content)  # a run that is cut leaves a whole file
            so_far = time.perf_counter() - begun
            print(f"{number}/{len(jobs)} {so_far:.0f} s: {entry} {seconds:.1f} s", flush=True)
    print(f"wrote {options.out} ({options.out.stat().st_size:,} bytes)")


def _trained(
    kind: str, name: str, split: int, part: int, folder: Path | None
) -> tuple[float, bytes]:
    """What one split gives, pickled: points, and in the first split the models too."""
    import torch
    from footprints import learners, rows

    torch.set_num_threads(1)
    begun = time.perf_counter()
    table = rows.read(name, folder)
    if kind == "published":
        found: Any = learners.published(table, split)
    else:
        found = learners.trained(table, split, part)
        if split:
            found = [one.without_learner() for one in found]
    return time.perf_counter() - begun, pickle.dumps(found)


def measure(options: argparse.Namespace) -> None:
    """Bytes and instructions of what was trained, then the page."""
    from footprints import page, points

    found = json.loads(options.json.read_text()) if options.json.exists() else {}
    points.gather(options.files, found, options.folder, lambda: _kept(options.json, found))
    print(page.text(found))
    if options.docs is not None:
        page.write(found, options.docs)


def _kept(path: Path, found: dict[str, Any]) -> None:
    path.write_text(json.dumps(found, indent=1))


def main() -> None:
    """Train or measure; both, of iris and wine, where nothing is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    stages = parser.add_subparsers()
    one = stages.add_parser("train")
    one.add_argument("folder", type=Path, nargs="?")
    one.add_argument("--tables", default="")
    one.add_argument("--splits", type=int, default=5)
    one.add_argument("--first", type=int, default=0, help="split, where those before are known")
    one.add_argument("--published", type=int, default=0)
    one.add_argument("--ours", action="store_true", help="no rivals, where they are known")
    one.add_argument("--jobs", type=int, default=2)
    one.add_argument("--out", type=Path, default=Path("trained.zip"))
    one.set_defaults(stage=train)
    two = stages.add_parser("measure")
    two.add_argument("files", type=Path, nargs="*", default=[Path("trained.zip")])
    two.add_argument("--folder", type=Path)
    two.add_argument("--json", type=Path, default=Path("points.json"))
    two.add_argument("--docs", type=Path, help="write footprint.md and its pictures there")
    two.set_defaults(stage=measure)
    options = parser.parse_args()
    if not hasattr(options, "stage"):
        train(parser.parse_args(["train", "--tables", "iris,wine", "--splits", "1"]))
        options = parser.parse_args(["measure"])
    options.stage(options)


if __name__ == "__main__":
    main()
