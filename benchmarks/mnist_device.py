"""MNIST at 28×28 on a microcontroller: gray images as bytes in, the digit out, in one header.

python benchmarks/mnist_device.py train FOLDER OUT --device cuda     # idx files, plain or gzipped
python benchmarks/mnist_device.py measure FOLDER OUT/*.safetensors --json rows.json

`train` fits small convolutional nets with activations of four bits and saves them; it needs no
compiler. `measure` exports them to C, reads what they take on a Cortex-M0+ (code,
weights and encoder, linked alone), runs all test images through the same C compiled here, and
stops where an answer is not Python's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from harness import mnist_files, parser_of, write_between, write_json
from torch import nn

from vitrail import BinaryNetClassifier, load_model
from vitrail.export.c import c_header
from vitrail.export.devices import TARGETS, cost
from vitrail.model import Model
from vitrail.nn import RandomWarp, small_conv
from vitrail.nn.nodes import Conv

NETS: dict[str, dict[str, Any]] = {  # chosen on the last 10,000 training images
    "8k": {"channels": (8, 32, 48, 64), "digits": (2, 1, 1, 1, 2)},
    "16k": {"channels": (16, 40, 56, 60), "digits": (3, 2, 2, 2, 2), "kernel": 4, "padding": 0},
    "3k": {"channels": (6, 12, 24), "digits": (3, 2, 2, 2), "padding": 0},
}
EPOCHS = 50
KNOWN = 4  # images with known answers, for the emulator to check
BEGIN, END = "<!-- measured by benchmarks/mnist_device.py -->", "<!-- end -->"
NAME = "tiny"
ANSWERS = f"""\
#include "{NAME}.h"
#include <stdio.h>

int main(void)
{{
    {NAME}_row row;
    while (fread(&row, sizeof row, 1, stdin) == 1) {{
        putchar({NAME}_predict(&row));
    }}
    return 0;
}}
"""


def train(args: argparse.Namespace) -> None:
    """Fit and save the nets of a seed."""
    images, labels = (part[: args.rows] for part in mnist_files(args.folder, "train"))
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.net or NETS:
        module = small_conv((1, *images.shape[1:]), num_outputs=10, **NETS[name])
        net = BinaryNetClassifier(
            module=nn.Sequential(RandomWarp(), module),
            solver="ste",
            epochs=args.epochs,
            random_state=args.seed,
            device=args.device,
        )
        model = net.fit(images[:, None], labels).model_
        model.record["image_shape"] = list(images.shape[1:])
        model.save(args.out / f"{name}-seed{args.seed}.safetensors")
        print(f"{name}: {model.bits} bits, {model.record['seconds']:.0f} s", flush=True)


def compiled_answers(header: str, images: np.ndarray) -> np.ndarray:
    """The header's answer to each image, compiled by this machine's compiler."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / f"{NAME}.h").write_text(header, encoding="utf-8")
        (folder / "answers.c").write_text(ANSWERS)
        subprocess.run(["gcc", "-O2", "answers.c", "-o", "answers"], cwd=folder, check=True)
        done = subprocess.run(
            [str(folder / "answers")], input=images.tobytes(), capture_output=True, check=True
        )
    return np.frombuffer(done.stdout, np.uint8)


def measured(model: Model, images: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Accuracy of the compiled code on images, and its cost on a Cortex-M0+."""
    pixels = images.reshape(len(images), -1)
    known = dict(zip(model.encoder.names, pixels[:KNOWN].T.tolist(), strict=True))
    header = c_header(model, NAME, known)
    answers = compiled_answers(header, images)
    if not np.array_equal(answers, model.answers(pixels).numbers.numpy()):
        raise SystemExit("C and Python answer differently; that is a bug")
    target = next(target for target in TARGETS if target.name == "m0plus")
    found = cost(header, NAME, target, ("predict", "proba"))
    if not found.agree:
        raise SystemExit(f"{target.title} did not give Python's answers; install {target.emulator}")
    right = model.labels.decode(answers.astype(np.int64)) == labels
    return {
        "channels": [layer.outputs for layer in model.program.layers if isinstance(layer, Conv)],
        "bits": model.networks.numel(),
        "accuracy": float(np.mean(right)),
        "flash": found.sizes["predict"].flash,
        "flash with probabilities": found.sizes["proba"].flash,
        "stack": found.sizes["predict"].stack,
        "instructions": found.work,
    }


def measure(args: argparse.Namespace) -> None:
    """Print, and write, a line per model."""
    images, labels = mnist_files(args.folder, "t10k")
    rows = []
    for path in args.models:
        row = {"model": path.stem, **measured(load_model(path), images, labels)}
        rows.append(row)
        print(json.dumps(row), flush=True)
        write_json(args.json, rows)
    if args.page:
        write_between(args.page, BEGIN, END, text(rows))


def text(rows: list[dict[str, Any]]) -> str:
    """The table of a page."""
    sizes = ("flash", "flash with probabilities", "stack", "instructions")
    lines = [
        "| channels | bits of weights | accuracy | flash | with probabilities | stack, at most "
        "| instructions |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [", ".join(map(str, row["channels"])), f"{row['bits']:,}"]
        cells += [f"{row['accuracy']:.2%}", *(f"{row[size]:,}" for size in sizes)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Train or measure."""
    parser = parser_of(__doc__)
    stages = parser.add_subparsers(required=True)
    training = stages.add_parser("train")
    training.add_argument("folder", type=Path, help="where the four idx files of MNIST are")
    training.add_argument("out", type=Path, help="folder for the models")
    training.add_argument("--device", default="auto")
    training.add_argument("--net", choices=NETS, action="append", help="may be repeated")
    training.add_argument("--epochs", type=int, default=EPOCHS)
    training.add_argument("--rows", type=int, default=60_000, help="training images")
    training.add_argument("--seed", type=int, default=0)
    training.set_defaults(stage=train)
    measuring = stages.add_parser("measure")
    measuring.add_argument("folder", type=Path, help="where the four idx files of MNIST are")
    measuring.add_argument("models", type=Path, nargs="+")
    measuring.add_argument("--json", type=Path, help="write all rows here too")
    measuring.add_argument("--page", type=Path, help="put the table there, docs/footprint.md")
    measuring.set_defaults(stage=measure)
    args = parser.parse_args()
    args.stage(args)


if __name__ == "__main__":
    main()
