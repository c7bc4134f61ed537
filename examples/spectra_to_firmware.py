"""From an NPZ of spectra to firmware: a net of activations of four bits as C for a microcontroller.

    python examples/spectra_to_firmware.py [FOLDER] [NPZ] [SEED]

The NPZ holds `images` (rows, frames, bands) of bytes and `labels`; rows whose `take` is below 5, or
else every tenth row, are held out. Without a file, tones are made that rise, fall or stay. The
folder gets firmware for a Cortex-M3, which an emulator runs where compiler and emulator are
installed.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from torch import nn

from vitrail import BinaryNetClassifier
from vitrail.nn import BinaryConv2d, BinaryLinear, Levels, RandomLevel, RandomWarp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "firmware")
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
if len(sys.argv) > 2:
    known = np.load(sys.argv[2])
    images, labels = known["images"], known["labels"]
    held_out = known["take"] < 5 if "take" in known else np.arange(len(labels)) % 10 == 0
    epochs = 300
else:
    rng = np.random.default_rng(0)
    labels = np.array(["rises", "falls", "stays"])[np.arange(300) % 3]
    slope = np.select([labels == "rises", labels == "falls"], [0.3, -0.3], 0.0)[:, None]
    at = rng.uniform(6, 10, (300, 1)) + slope * (np.arange(32) - 16)
    loud = 180 * np.exp(-((np.arange(16) - at[..., None]) ** 2) / 4)
    images = (loud + rng.uniform(0, 60, loud.shape)).astype(np.uint8)
    held_out, epochs = np.arange(300) % 10 == 0, 20

frames, bands = images.shape[1:]
classes = len(np.unique(labels))
module = nn.Sequential(
    RandomWarp(shift=(0.1, 0.06), scale=(0.12, 0.05), rotate=0, shear=0, elastic=0.02, edge=True),
    RandomLevel(),
    BinaryConv2d(1, 8, 5, stride=2, padding=2, digits=4),
    Levels(8),
    BinaryConv2d(8, 16, 3, stride=2, padding=1, digits=3),
    Levels(16),
    BinaryConv2d(16, 24, 3, padding=1, digits=2),
    Levels(24),
    nn.MaxPool2d(2),
    BinaryConv2d(24, 30, 3, padding=1, digits=2),
    Levels(30),
    nn.Flatten(),
    BinaryLinear(30 * (frames // 8) * (bands // 8), classes, digits=2),
)
net = BinaryNetClassifier(module=module, epochs=epochs, batch_size=100, random_state=seed)
net.fit(images[~held_out, None], labels[~held_out])
right = net.score(images[held_out, None], labels[held_out])
print(f"{net.model_.bits} bits: {right:.3f} of {held_out.sum()} unseen rows right")

folder.mkdir(exist_ok=True)
net.model_.save(folder / f"spectra-seed{seed}.safetensors")
rows = images[held_out].reshape(held_out.sum(), -1)
net.export(folder, to="c", name="spectra", layout="firmware", rows=rows[:8])
if shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm"):
    made = subprocess.run(
        ["make", "-s", "-C", str(folder / "spectra"), "run"], capture_output=True, text=True
    )
    print(made.stderr.strip())
