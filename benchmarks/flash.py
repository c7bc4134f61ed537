"""Bytes of code on a Cortex-M0+ for each part of an exported header: the table of export/flash.py.

    python benchmarks/flash.py compile [FOLDER] [--only a,b] [--skip a,b] [--multiclass ovr]
                                       [--images] [--out flash.pkl]
    python benchmarks/flash.py fit flash.pkl ... [--write]

FOLDER holds CSV files whose last column `class` is the label; scikit-learn's four tables are added.
`compile` trains on at most 300 rows of each table, compresses to students of all sizes, and links
them by arm-none-eabi-gcc -Os. --images adds nets of images with random weights. `fit` finds the
bytes of each part by non-negative least squares of relative errors. It prints the errors for each
table by the others, and with --write puts what all tables give into src/vitrail/export/flash.json.
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
from harness import parser_of, tables
from scipy.optimize import nnls

from vitrail import BinaryNetClassifier
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
    """Convolutions and nets of several outputs with random weights, which compilers cannot use."""
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
    """The bytes of each part, and how far they are off on tables that were left out."""
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
    arguments = parser.parse_args()
    arguments.stage(arguments)
