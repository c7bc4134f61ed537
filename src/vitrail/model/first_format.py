"""Models of format 1, as format 2 describes them.

They said `hidden` instead of a program, shares instead of votes, and one scale of margins: a
network's probability was σ(scale·(h − ½)), and networks were averaged by their shares. One network
keeps its answers and its probabilities to the fourth digit. The mean of many becomes a sum of
margins clipped where σ levels off, with probabilities in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from vitrail.errors import DataError
from vitrail.model.calibration import linear_table, logistic_table
from vitrail.model.voting import ONE
from vitrail.nn import mlp, program_of
from vitrail.nn.nodes import MAX_SIZE
from vitrail.nn.program import MAX_NODES
from vitrail.state import StateReader

VERSION = "1"
LATTICE = 2**20  # shares were multiples of its inverse
LEVEL_AT = 8.0  # σ is within 3·10⁻⁴ of 1 beyond


def converted(
    state: object, tensors: Mapping[str, Tensor]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Description and tensors of format 2; DataError where the old ones are malformed."""
    read = StateReader(state, "model")
    inputs, outputs = read.whole("num_inputs", 1, MAX_SIZE), read.whole("num_outputs", 1, MAX_SIZE)
    weights, scale = read.whole("num_weights", 1, 2**40), read.number("scale")
    hidden = read.optional_wholes("hidden", 1, MAX_SIZE)
    read.require(scale > 0, "has a scale that is not positive")
    program: dict[str, Any] = {"input_shape": [inputs], "nodes": None}
    if set(tensors) != {"best", "marginals", "networks", "shares"}:
        raise DataError("the model's tensors are not those of a vitrail model; train anew")
    held = tensors["marginals"].shape[-1:]
    read.require(held == (weights,), "has another number of weights than it says")
    if hidden is not None:
        read.require(len(hidden) < MAX_NODES, f"has more than {MAX_NODES} layers")
        sizes = (inputs, *hidden, outputs)
        count = sum(a * b for a, b in pairwise(sizes))
        read.require(weights == count, "has another number of weights than its layers")
        program = program_of(mlp(inputs, hidden, outputs), (inputs,)).to_dict()
    shares, marginals = tensors["shares"].double(), tensors["marginals"].double()
    sound = bool(((marginals >= 0) & (marginals <= 1)).all()) and bool((shares >= 0).all())
    if not sound or shares.ndim != 2 or not bool((shares.sum(0) == 1).all()):
        raise DataError("the model's probabilities are out of range; train anew")
    count = len(shares)
    alike = bool((shares * count - 1).abs().max() < count * count / LATTICE)
    votes = torch.ones_like(shares) if alike else (shares * LATTICE).round().clamp(min=1)
    fan_in = (hidden or (inputs,))[-1] if hidden is not None else inputs
    clip, table = _calibration(scale, count, fan_in)
    kept = {
        "best": tensors["best"],
        "networks": tensors["networks"],
        "votes": votes.to(torch.int32),
        "marginals": (marginals * ONE).round().to(torch.int32).to(torch.uint16),
        "calibration": table.expand(shares.shape[1], -1).to(torch.int32).to(torch.uint16),
    }
    pairs = read.flag("pairs")
    rest = {
        "scheme": "pairs" if pairs else "argmax",
        "program": {**program, "fingerprint": ""},
        "clip": clip,
        "thresholds": [],
        # `read` has checked that it is a mapping
        **{name: value for name, value in dict(state).items() if name not in _OLD},  # pyright: ignore
    }
    return rest, kept


_OLD = {"pairs", "num_inputs", "num_outputs", "num_weights", "scale", "hidden"}


def _calibration(scale: float, count: int, fan_in: int) -> tuple[int, Tensor]:
    """A clip and a table that say what σ(scale·(h − ½)), averaged, said; h − ½ is m/2."""
    if count > 1:
        return 2 * min(fan_in, math.ceil(2 / scale)) + 1, linear_table()
    clip = 2 * min(fan_in, math.ceil(LEVEL_AT / scale)) + 1
    return clip, logistic_table(scale * clip / 2)
