"""What a first training fixes before it sees bits: encoder, coding, constant inputs, nets."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrail.learning.checks import is_auto
from vitrail.learning.images import reading
from vitrail.learning.posterior import FitOptions
from vitrail.learning.preprocessing import Preprocessing, auto_bias, auto_coding
from vitrail.learning.problem import AUTO
from vitrail.learning.resolve import by_chains
from vitrail.model.voting import Scheme
from vitrail.tables.encoders import fit_encoder
from vitrail.tables.labels import LabelCoder

MAX_PAIR_CLASSES = 12  # beyond, a net per pair has more bits than it is worth
SCHEMES: dict[str, Scheme] = {"argmax": "argmax", "ovo": "pairs", "ovr": "one-vs-rest"}


def prepare(
    table: Any,
    weight: np.ndarray,
    coder: LabelCoder,
    options: FitOptions,
    image_shape: tuple[int, ...] | None,
) -> Preprocessing:
    """How rows of this kind become inputs of nets; weight: of each row, (rows,)."""
    ones = None if isinstance(options.bias, str) else int(options.bias)
    image = reading(table, image_shape, options.module, ones)
    encoder = fit_encoder(table, weight) if image is None else image.encoder(table)
    chained = by_chains(options, len(coder.classes))
    coding: Any = "binary" if chained else auto_coding(encoder)
    coding = coding if is_auto(options.inputs) else options.inputs
    usual = 0 if options.module is not None else auto_bias(coding)
    bias = image.ones if image else usual if ones is None else ones
    scheme = _scheme(options, len(coder.classes), chained)
    return Preprocessing(encoder, coder, coding, bias, scheme, image.shape if image else None)


def _scheme(options: FitOptions, num_classes: int, chained: bool) -> Scheme:
    """What the nets tell apart; two classes need one net with one output."""
    if num_classes <= 2:
        return "argmax"
    if options.multiclass != AUTO:
        return SCHEMES[options.multiclass]
    if chained:
        return "one-vs-rest"
    deep = not isinstance(options.hidden, str) and len(options.hidden) > 1
    few = options.module is None and not deep and num_classes <= MAX_PAIR_CLASSES
    return "pairs" if few else "argmax"
