"""Bytes of code on a Cortex-M0+ for each part of an exported header: the table of export/flash.py.

    python benchmarks/flash.py compile [FOLDER] [--only a,b] [--skip a,b] [--multiclass ovr]
                                       [--images] [--out flash.pkl]
    python benchmarks/flash.py fit flash.pkl ... [--write]
    python benchmarks/flash.py limits FOLDER [--only a,b] [--skip a,b] [--splits 3]
                                      [--out limits.json]

FOLDER holds CSV files whose last column `class` is the label; scikit-learn's four tables are added.
`compile` trains on at most 300 rows of each table, compresses to students of all sizes, and links
them by arm-none-eabi-gcc -Os. --images adds nets of images with random weights. `fit` finds the
bytes of each part by non-negative least squares of relative errors. It prints the errors for each
table by the others, and with --write puts what all tables give into src/vitrail/export/flash.json.

`limits` tests `compress(…, flash=N)`: a third of the rows is held out, at most 1,000 others train a
default fit, and for each N the model is linked and judged on the held-out rows. Beside it stands
what `compress` finds without a search for this size: of the students that it tries for any size,
the one that agrees best with the networks among those that fit. The results of
several runs are joined in --out, and written to docs/records/flash.json.
"""

from __future__ import annotations

import json
import pickle
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import parser_of, save_record, tables, write_json
from scipy.optimize import nnls

from vitrail import BinaryNetClassifier, compress
from vitrail.export import flash_bytes
from vitrail.export.c import c_header
from vitrail.export.devices import TARGETS, Bytes, cost
from vitrail.export.flash import FITTED, flash_parts
from vitrail.export.golden import sample_rows
from vitrail.learning import compression
from vitrail.model import Model
from vitrail.model.voting import LEVELS, ONE
from vitrail.nn import conv, mlp, program_of
from vitrail.tables.bits import BitColumns
from vitrail.tables.labels import LabelCoder

ROWS = 300  # of a table, at most
HIDDEN = ((7,), (3,), (), (15,))  # of the networks, one table after the other
SCHEMES = ("auto", "ovr", "ovo")
NETWORKS = 24
LEAST, MOST = 64, 2**16  # bytes of the models that count
SMALL_STACK = 16  # bytes that errors of the stack are small beside
LEAST_BYTES = 0.05  # of a part, or it is left out
STUDENTS = 30  # of a compressor and table, at most
LIMITS = (256, 512, 1024, 4096)  # bytes
TRAINING_ROWS = 1000  # of a table, at most, where limits are tested


def students(number: int, table: Any, labels: np.ndarray, multiclass: Any) -> list[Model]:
    """Students of all compressors and sizes, and the model itself."""
    hidden = HIDDEN[(number + SCHEMES.index(multiclass)) % len(HIDDEN)]
    classifier = BinaryNetClassifier(
        hidden=hidden, multiclass=multiclass, networks=NETWORKS, beta=2.0, random_state=number
    )
    model = classifier.fit(table, labels).model_
    compression.CROSSED_ROWS = 600
    found, small = [model], compression.Compression(model, model.inputs(table))
    most = compression.MAX_MEMBERS * max(model.bits, small.least)
    for compressor in small.compressors.values():
        sizes = compressor.sizes(most)
        step = -(-len(sizes) // STUDENTS)
        found += [compressor.build(size).model for size in sizes[number % step :: step]]
    return found


def image_nets() -> list[Model]:
    """Convolutions and nets of several outputs with random weights, kept by compilers."""
    found, rng = [], torch.Generator().manual_seed(0)
    for side, outputs, networks, width in product((14, 28), (1, 10), (1, 4), (4, 16)):
        image, row = (1, side, side), (side * side,)
        small = conv(image, (width, 2 * width), outputs), mlp(*row, (width - 1,), outputs)
        for module, shape in zip(small, (image, row), strict=True):
            program = program_of(module, shape)
            bits = torch.rand(networks, 1, program.num_bits, generator=rng) < 0.5
            classes = tuple(map(str, range(max(2, outputs))))
            found.append(
                Model(
                    encoder=BitColumns(tuple(f"x{i}" for i in range(side * side)), 0.0, 1.0),
                    labels=LabelCoder(classes, "str"),
                    coding="binary",
                    bias=0,
                    program=program,
                    scheme="argmax",
                    best=bits[0],
                    marginals=bits.double().mean(0).mul(ONE).long(),
                    networks=bits,
                    votes=torch.ones(networks, 1, dtype=torch.int64),
                    clip=15,
                    calibration=torch.linspace(0, ONE, LEVELS + 1).long()[None],
                )
            )
    return found


def compile_all(options: Any) -> None:
    """Models of every table with the bytes that were linked."""
    found: dict[str, Any] = {}
    chosen = tables(options.folder, options.only, options.skip)
    for number, (name, table, labels) in enumerate(chosen):
        begun = time.perf_counter()
        rows = np.random.default_rng(number).permutation(len(labels))[:ROWS]
        own = table.iloc[rows].reset_index(drop=True)
        found[name] = linked(students(number, own, labels[rows], options.multiclass))
        seconds = time.perf_counter() - begun
        print(f"{name}: {len(found[name])} models, {seconds:.0f} s", flush=True)
        options.out.write_bytes(pickle.dumps(found))
    if options.images:
        options.out.write_bytes(pickle.dumps({**found, "images": linked(image_nets())}))


def linked(models: list[Model]) -> list[tuple[Model, Bytes]]:
    """The models with the bytes of their `predict`, of those that fit into a device."""
    headers = [c_header(model, "tiny", sample_rows(model.encoder, 1)) for model in models]
    sizes = [cost(text, "tiny", TARGETS[0], ["predict"], emulate=False).sizes for text in headers]
    return [(model, size["predict"]) for model, size in zip(models, sizes, strict=True) if size]


def fit(options: Any) -> None:
    """The bytes of each part, and the errors on tables that were left out."""
    rows = [
        (name, flash_parts(model), size)
        for path in options.files
        for name, models in pickle.loads(path.read_bytes()).items()
        for model, size in models
        if LEAST <= size.flash <= MOST
    ]
    names = sorted({part for _, (*_, parts), _ in rows for part in parts})
    counts = np.array([[float(parts.get(name, 0)) for name in names] for _, (*_, parts), _ in rows])
    tables_of = np.array([name for name, *_ in rows])
    known = np.array([own[:2] for _, own, _ in rows])  # constants and buffers
    truth = np.array([(size.flash, size.data + size.stack) for *_, size in rows])
    weight = 1 / (truth + np.array([0, SMALL_STACK]))

    def solved(kind: int, chosen: np.ndarray) -> np.ndarray:
        w = weight[chosen, kind]
        return nnls(counts[chosen] * w[:, None], (truth - known)[chosen, kind] * w)[0]

    for kind, what in enumerate(("code", "stack")):
        guess = np.zeros(len(rows))
        for name in set(tables_of):
            own = tables_of == name
            guess[own] = known[own, kind] + counts[own] @ solved(kind, ~own)
        off = np.abs(guess - truth[:, kind]) * weight[:, kind]
        print(
            f"{what}: {len(rows)} models of {len(set(tables_of))} tables, each by the others: "
            f"median error {np.median(off):.3f}, within a tenth {np.mean(off <= 0.1):.3f}"
        )
    if options.write:
        everything = np.ones(len(rows), bool)
        found = {
            what: {
                name: round(float(number), 1)
                for name, number in zip(names, solved(kind, everything), strict=True)
                if number >= LEAST_BYTES
            }
            for kind, what in enumerate(("code", "stack"))
        }
        FITTED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def limits(options: Any) -> None:
    """Models within each limit, for all tables and splits; the record has their means."""
    found = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name, table, labels in tables(options.folder, options.only, options.skip):
        for split in range(options.splits):
            if f"{name} {split}" not in found:
                found[f"{name} {split}"] = within_limits(table, labels, split)
                print(name, split, found[f"{name} {split}"], flush=True)
                write_json(options.out, found)
    save_record("flash", *record_of(found))


def within_limits(table: Any, labels: np.ndarray, split: int) -> dict[str, Any]:
    """Bytes and accuracy on unseen rows of the model within each limit, and of its comparison."""
    order = np.random.default_rng(split).permutation(len(labels))
    unseen, rows = order[: len(order) // 3], order[len(order) // 3 :][:TRAINING_ROWS]
    own, other = table.iloc[rows].reset_index(drop=True), table.iloc[unseen]
    model = BinaryNetClassifier(random_state=split).fit(own, labels[rows]).model_

    def judged(student: Model) -> dict[str, Any]:
        right = float(np.mean(np.asarray(student.predict(other)) == labels[unseen]))
        return {"flash": flash_bytes(student).flash, "accuracy": right}

    tried = compression.Compression(model, model.inputs(own))
    curve = tried.curve()
    found: dict[str, Any] = {"all": judged(model)["accuracy"]}
    for limit in LIMITS:
        try:
            found[str(limit)] = judged(compress(model, own, flash=limit))
        except ValueError as refused:
            found[str(limit)] = {"refused": str(refused)}
            continue
        _, without = tried.best_in_flash(curve, limit)
        found[str(limit)]["without"] = judged(without)["accuracy"]
    return found


def record_of(found: dict[str, Any]) -> tuple[str, dict[str, str], list[dict[str, Any]]]:
    """Command, columns and rows of the record: a row per table, means over its splits."""
    columns = {"table": "{table}", "splits": "{splits}", "all networks": "{all:.3f}"}
    for limit in LIMITS:
        columns[f"{limit:,} bytes"] = f"{{result_{limit}}}"
        columns[f"{limit:,}: difference"] = f"{{difference_{limit}:+.3f}}"
    rows: list[dict[str, Any]] = []
    for name in sorted({key.split()[0] for key in found}):
        runs = [run for key, run in found.items() if key.split()[0] == name]
        row: dict[str, Any] = {"table": name.replace("_", " "), "splits": len(runs)}
        row["all"] = float(np.mean([run["all"] for run in runs]))
        for limit in LIMITS:
            fits = [run[str(limit)] for run in runs if "flash" in run[str(limit)]]
            if len(fits) < len(runs):
                row[f"result_{limit}"] = f"fits {len(fits)} of {len(runs)}"
                continue
            accuracy, without = (
                np.mean([run[key] for run in fits]) for key in ("accuracy", "without")
            )
            row[f"result_{limit}"] = f"{accuracy:.3f} in {max(run['flash'] for run in fits):,}"
            row[f"difference_{limit}"] = float(accuracy - without)
        rows.append(row)
    return "python benchmarks/flash.py limits TABLES", columns, rows


if __name__ == "__main__":
    parser = parser_of(__doc__)
    stages = parser.add_subparsers(required=True)
    one = stages.add_parser("compile")
    one.add_argument("folder", type=Path, nargs="?")
    one.add_argument("--only", default="")
    one.add_argument("--skip", default="")
    one.add_argument("--multiclass", choices=SCHEMES, default="auto")
    one.add_argument("--images", action="store_true", help="nets of images too")
    one.add_argument("--out", type=Path, default=Path("flash.pkl"))
    one.set_defaults(stage=compile_all)
    two = stages.add_parser("fit")
    two.add_argument("files", type=Path, nargs="+")
    two.add_argument("--write", action="store_true")
    two.set_defaults(stage=fit)
    three = stages.add_parser("limits")
    three.add_argument("folder", type=Path)
    three.add_argument("--only", default="")
    three.add_argument("--skip", default="")
    three.add_argument("--splits", type=int, default=3)
    three.add_argument("--out", type=Path, default=Path("limits.json"))
    three.set_defaults(stage=limits)
    arguments = parser.parse_args()
    arguments.stage(arguments)
