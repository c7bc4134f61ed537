"""Nets with activations of a few bits in C: tables of the layers, and the loops that run them."""

from __future__ import annotations

from typing import Any

from vitrail.export.c.encoder import bit_columns
from vitrail.export.c.text import render, size_of, table, unsigned
from vitrail.export.plan import ExportError
from vitrail.export.whole import AT_ONCE, MOST_VALUE, WholeLayer, WholePlan
from vitrail.model import Model
from vitrail.model.voting import HALF, LEVELS

EACH = 32  # bytes per line


def whole_code(model: Model, plan: WholePlan) -> str:
    """All but labels and checks: tables, the struct of a row, `tiny_predict`, `tiny_proba`."""
    parts = [_part(layer) for layer in plan.layers]
    kinds = {name: unsigned(max(part[name] for part in parts)) for name in parts[0]}
    padded = any(layer.windows.padding != (0, 0) for layer in plan.layers)
    varying = [
        name
        for name in kinds
        if name not in FEW
        or any(part[name] != FEW[name] for part in parts)
        or (padded and name.startswith("padding"))  # code reads both or none
    ]
    varying.sort(key=lambda name: -size_of(kinds[name]))  # so that there are no gaps between
    layers = [[part[name] for name in varying] for part in parts]
    table_of_levels, clip = model.calibration[0].tolist(), model.clip
    cut = next((level for level, q in enumerate(table_of_levels) if q > HALF), LEVELS)
    middle = LEVELS // 2
    if plan.outputs > 1 and not table_of_levels[middle - 1] < table_of_levels[middle]:
        raise ExportError("the probabilities of this model do not tell its classes apart")
    encoder = bit_columns(model.encoder)  # pyright: ignore[reportArgumentType] (of bytes, see plan)
    names = model.encoder.names  # pyright: ignore[reportAttributeAccessIssue]
    even, odd = (
        max((layer.outputs for layer in plan.layers[first::2] if layer.levels), default=1)
        for first in (0, 1)
    )
    stored = [byte for layer in plan.layers for byte in layer.stored()]
    return render(
        "whole",
        classes=model.num_classes,
        fields=[(name, kinds[name]) for name in varying],
        layers=layers,
        weights=table("uint8_t", "tiny_weights", stored, EACH),
        window=max(-(-layer.fan_in // AT_ONCE) * AT_ONCE for layer in plan.layers) + AT_ONCE,
        sums=max(layer.units // layer.groups * layer.digits for layer in plan.layers),
        low=plan.layers[0].low,
        padded=padded,
        grouped="groups" in varying,
        groups=" + group * g->depth" if "groups" in varying else "",
        groups_of_units=" + group * g->units" if "groups" in varying else "",
        sum=unsigned(max(map(_most_sum, plan.layers, [None, *plan.layers]))),
        pooled="pool_rows" in varying,
        even=even,
        odd=odd,
        outputs=plan.outputs,
        names=names,
        ends=f"{names[0]} to {names[-1]}",
        type=encoder["type"],
        least=encoder["low"],
        most=encoder["high"],
        smallest=encoder["smallest"],
        largest=encoder["largest"],
        bad=f"row->x[i] > {encoder['high']}",
        levels=table_of_levels,
        clip=clip,
        cut=_first_lead(cut, clip),
    )


FEW = {
    "padding_rows": 0, "padding_columns": 0, "groups": 1,
    "pool_rows": 0, "pool_columns": 0, "pool_depth": 0, "pool_height": 0, "pool_width": 0,
    "pool_stride_rows": 0, "pool_stride_columns": 0,
}  # fmt: skip
"""Fields that are left out where all layers have these."""


def _part(layer: WholeLayer) -> dict[str, int]:
    windows, levels, pool = layer.windows, layer.levels, layer.pool
    size = len(layer.stored())
    scales = size - 2 * layer.units * (levels is not None)
    sizes: dict[str, Any] = {
        "size": size,
        "scales": scales,
        "levels": layer.units,  # in all groups
        "channels": windows.channels,
        "depth": windows.channels // layer.groups,
        "height": windows.size[0],
        "width": windows.size[1],
        "kernel_rows": windows.kernel[0],
        "kernel_columns": windows.kernel[1],
        "run": windows.kernel[1] * windows.channels,
        "stride_rows": windows.stride[0],
        "stride_columns": windows.stride[1],
        "padding_rows": windows.padding[0],
        "padding_columns": windows.padding[1],
        "rows": windows.places[0],
        "columns": windows.places[1],
        "groups": layer.groups,
        "units": layer.units // layer.groups,
        "digits": layer.digits,
        "sums": layer.units // layer.groups * layer.digits,
        "top": levels.top if levels else 0,
        "fine": levels.fine if levels else 0,
        "shift": levels.shift if levels else 0,
    }
    return sizes | {
        "pool_rows": pool.places[0] if pool else 0,
        "pool_columns": pool.places[1] if pool else 0,
        "pool_depth": layer.units if pool else 0,
        "pool_height": pool.kernel[0] if pool else 0,
        "pool_width": pool.kernel[1] if pool else 0,
        "pool_stride_rows": pool.stride[0] if pool else 0,
        "pool_stride_columns": pool.stride[1] if pool else 0,
    }


def _most_sum(layer: WholeLayer, before: WholeLayer | None) -> int:
    """The largest sum of values that a layer reads."""
    return layer.fan_in * (before.levels.top if before and before.levels else MOST_VALUE)


def _first_lead(cut: int, clip: int) -> int:
    """The smallest lead whose level is at least `cut`."""
    leads = range(-((clip - 1) // 2), (clip + 1) // 2 + 1)
    return next(
        (lead for lead in leads if (2 * lead - 1 + clip) * LEVELS // (2 * clip) >= cut), 2**30
    )
