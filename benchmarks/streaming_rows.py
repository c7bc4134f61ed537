"""A million rows × 196 bits of a linear teacher, streamed within a limit of memory.

python benchmarks/streaming_rows.py                       # 196-1 and 196-7-1, against SGDClassifier
python benchmarks/streaming_rows.py --rows 100000 --out rows.json

Rows are made as they are read, so that memory holds the stream's own windows and no table.
Agreement is that of the model's answers with the teacher's on fresh rows. The peak is of the whole
process, with torch.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from harness import parser_of, write_json
from sklearn.linear_model import SGDClassifier

from vitrail.learning import fit_stream

INPUTS, BLOCK, FRESH = 196, 10_000, 20_000


def teacher(hidden: int) -> tuple[np.ndarray, np.ndarray]:
    """Signs of the first layer (hidden or 1, inputs), and of the second."""
    draws = np.random.default_rng(7)
    units = max(1, hidden)
    return 2 * draws.integers(0, 2, (units, INPUTS)) - 1, np.ones(units, np.int64)


def block(number: int, count: int, net: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Signs (count, inputs) and the teacher's answers; `number` is the draw's seed."""
    signs = 2 * np.random.default_rng(number).integers(0, 2, (count, INPUTS), dtype=np.int8) - 1
    hidden = np.where(signs.astype(np.float32) @ net[0].T.astype(np.float32) > 0, 1, -1)
    return signs, (hidden @ net[1] > 0).astype(np.int64)


def main() -> None:
    """Measure the nets of the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--memory", type=float, default=4.0, help="GiB")
    parser.add_argument("--hidden", type=int, nargs="*", default=[0, 7], help="0 is a linear net")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    found = []
    for hidden in args.hidden:
        net = teacher(hidden)

        def rows(net: tuple[np.ndarray, np.ndarray] = net) -> Iterator[tuple[np.ndarray, ...]]:
            for first in range(0, args.rows, BLOCK):
                yield block(first + 1, min(BLOCK, args.rows - first), net)

        begun = time.perf_counter()
        rival = SGDClassifier(random_state=0)
        for signs, labels in rows():
            rival.partial_fit(signs, labels, classes=[0, 1])
        rival_speed = args.rows / (time.perf_counter() - begun)
        model = fit_stream(
            rows,  # pyright: ignore[reportArgumentType] (tuples of two)
            hidden=(hidden,) if hidden else (),
            ceiling=int(args.memory * 2**30),
        )
        signs, labels = block(0, FRESH, net)
        row = {
            "net": f"{INPUTS}-{hidden}-1" if hidden else f"{INPUTS}-1",
            "rows": args.rows,
            "agreement": float((model.predict(signs) == labels).mean()),
            "rows per second": model.record["rows_per_second"],
            "seconds": model.record["seconds"],
            "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
            "SGDClassifier agreement": float(np.mean(rival.predict(signs) == labels)),
            "SGDClassifier rows per second": round(rival_speed),
            "ratio": model.record["rows_per_second"] / rival_speed,
        }
        found.append(row)
        print(json.dumps(row), flush=True)
        write_json(args.out, found)


if __name__ == "__main__":
    main()
