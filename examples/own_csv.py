"""Your own CSV: train, see accuracy and confidence, keep the model and a page about it.

    python examples/own_csv.py [TABLE.csv TARGET]

Without a table it makes one: 400 flowers with numbers, words and empty cells.
"""

import csv
import random
import subprocess
import sys
from pathlib import Path


def made_up(path: Path) -> tuple[Path, str]:
    """A table to follow along: tall plants with many petals are lilies."""
    draw = random.Random(0)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["petals", "height", "colour", "kind"])
        for _ in range(400):
            petals, height = draw.randint(3, 8), round(draw.uniform(5, 90), 1)
            colour = draw.choice(["red", "white", "yellow", ""])
            lily = petals >= 5 and height > 40
            rows.writerow([petals, height, colour, "lily" if lily else "daisy"])
    return path, "kind"


def vitrail(*arguments: object) -> None:
    """The command line, as you would type it."""
    print("$ vitrail", *arguments)
    subprocess.run([sys.executable, "-m", "vitrail", *map(str, arguments)], check=True)


table, target = sys.argv[1:3] if len(sys.argv) > 2 else made_up(Path("flowers.csv"))
vitrail("fit", table, "--target", target, "-o", "own.safetensors", "--report", "own.html")
vitrail("evaluate", "own.safetensors", table)
vitrail("predict", "own.safetensors", table, "-o", "answers.csv", "--proba")
