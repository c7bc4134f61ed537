"""`python -m vitrail.lab.bench [--device cpu|cuda] [--json FILE] [--figure FILE]`."""

import argparse
from pathlib import Path

from vitrail.lab.bench import run_bench


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m vitrail.lab.bench")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument(
        "--share", type=float, default=1.0, help="part of the factors, for a quick look"
    )
    options = parser.parse_args()
    run_bench(options.device, json=options.json, figure=options.figure, share=options.share)


if __name__ == "__main__":
    main()
