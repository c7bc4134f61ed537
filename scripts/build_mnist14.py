"""Build src/vitrail/datasets/mnist14.npz from the four original idx files of MNIST.

    python scripts/build_mnist14.py FOLDER [-o OUT]

FOLDER holds {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte, gzipped or not.
Each image is max-pooled over 2×2 blocks and thresholded at half intensity. The contents depend on
the originals alone; the compressed bytes may also depend on the zlib at hand.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np

from vitrail.datasets.idx import max_pool, read_idx
from vitrail.datasets.images import EMBEDDED


def original(folder: Path, name: str) -> Path:
    """The file of that name, gzipped or not."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            return path
    raise SystemExit(f"{folder} holds neither {name} nor {name}.gz; give MNIST's folder")


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """As np.savez_compressed, without the time of writing, so that equal contents stay equal."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content.getvalue(), compresslevel=9)


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description="Build the embedded MNIST from the originals.")
    parser.add_argument("folder", type=Path, help="folder of the four idx files")
    parser.add_argument("-o", "--out", type=Path, default=EMBEDDED)
    arguments = parser.parse_args()
    images, labels = [], []
    for part in ("train", "t10k"):
        pixels = read_idx(original(arguments.folder, f"{part}-images-idx3-ubyte"), axes=3)
        bits = max_pool(pixels, 2) > 127
        images.append(np.packbits(bits.reshape(len(bits), -1), axis=1))
        labels.append(read_idx(original(arguments.folder, f"{part}-labels-idx1-ubyte"), axes=1))
    write_npz(arguments.out, {"images": np.concatenate(images), "labels": np.concatenate(labels)})
    digest = hashlib.sha256(arguments.out.read_bytes()).hexdigest()
    print(f"{arguments.out}: {arguments.out.stat().st_size:,} bytes, sha256 {digest}")


if __name__ == "__main__":
    main()
