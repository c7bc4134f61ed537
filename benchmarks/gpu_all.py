"""On a machine with a GPU: every equality test of the kernels, then `vitrail bench --device cuda`.

python benchmarks/gpu_all.py [--json FILE] [--share 0.1]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Tests, then measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--skip-tests", action="store_true")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("there is no CUDA device here; nothing was run")
        return 0
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    failed = 0
    if not options.skip_tests:
        import pytest

        failed = int(
            pytest.main(["-q", "-x", "--noconftest", "-W", "default", str(ROOT / "tests/gpu")])
        )
        print("kernels equal their definitions" if not failed else f"FAILED: {failed}", flush=True)
    from vitrail.lab.bench import run_bench

    run_bench("cuda", json=options.json, share=options.share)
    return failed


if __name__ == "__main__":
    sys.exit(main())
