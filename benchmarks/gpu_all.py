"""On a machine with a GPU: every equality test of the kernels, then `vitrail bench --device cuda`.

python benchmarks/gpu_all.py [--json FILE] [--share 0.1]
"""

from __future__ import annotations

import argparse
import subprocess
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
        try:
            import pytest
        except ImportError:
            failed = without_pytest()
        else:
            options_of_pytest = [
                "-q",
                "-x",
                "--noconftest",
                "-W",
                "default",
                str(ROOT / "tests/gpu"),
            ]
            failed = int(pytest.main(options_of_pytest))
        print("kernels equal their definitions" if not failed else f"FAILED: {failed}", flush=True)
    from vitrail.bench import run_bench

    run_bench("cuda", json=options.json, share=options.share)
    return failed


def without_pytest() -> int:
    """The heart of tests/gpu where there is no test runner: flips on odd shapes."""
    code = """
import torch
from cases_of_kernels import beliefs, extreme_thresholds, last_messages, perceptrons, renumbered
from vitrail.kernels import cuda_draws, cuda_flip
from vitrail.random import Key
from vitrail.updates import flip
from vitrail.updates.draws import configurations
key, update = Key((3 << 33) | 7, 2**32 - 1), flip(5, backend="torch")
for arity in (1, 7, 196, 1000, 4097):
    factors = renumbered(perceptrons(5, arity)).to("cuda")
    threshold = extreme_thresholds((5, 2, arity)).cuda()
    drawn = cuda_draws.configurations(key, factors, threshold, 5)
    assert torch.equal(drawn, configurations(key, factors, threshold, 5)), arity
    expected = update._hits(key, factors, threshold, 5)
    for mine, theirs in zip(cuda_flip.hits(key, factors, threshold, 5), expected):
        assert torch.equal(mine.long(), theirs), arity
    belief, message = beliefs(arity).cuda(), last_messages(5, arity).cuda()
    theirs = update.messages(key, factors, belief, message)
    log_odds, starved = cuda_flip.messages(key, factors, belief, message, 5, update.limit)
    assert torch.equal(log_odds, theirs.log_odds) and torch.equal(starved, theirs.starved), arity
"""
    path = f"{ROOT / 'src'}:{ROOT / 'tests'}"
    return subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}).returncode


if __name__ == "__main__":
    sys.exit(main())
