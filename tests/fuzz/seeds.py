"""Seeds that no run had before, and that the next can have again."""

import os
import random


def fresh_seeds(count: int) -> range:
    """As many seeds from a random one on, or from that of the environment."""
    first = int(os.environ.get("FUZZ_SEED", random.randrange(10**6)))
    print(f"FUZZ_SEED={first}")  # noqa: T201 (to run the same again)
    return range(first, first + count)
