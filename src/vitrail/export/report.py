"""What a model costs on devices, as a table for the terminal and as one page."""

from __future__ import annotations

from collections.abc import Sequence

from vitrail.export.c import c_header
from vitrail.export.devices import ENTRIES, TARGETS, Cost, cost
from vitrail.export.golden import Rows
from vitrail.model import Model
from vitrail.pages import render

ENTRY_NAMES = {
    "predict_bits": "predict, of bits",
    "predict": "predict, with the encoder",
    "proba": "proba, with the encoder",
}
HEAD = ("", "flash", "code", "constants", "RAM", "stack, at most")


def costs(
    model: Model, name: str, rows: Rows, entries: Sequence[str] = tuple(ENTRIES)
) -> list[Cost]:
    """The costs of a model's header on every target whose compiler is installed."""
    header = c_header(model, name, rows)
    return [cost(header, name, target, entries) for target in TARGETS if target.installed]


def table_of(found: Cost) -> list[tuple[str, ...]]:
    """A line for each function: its name, then bytes."""
    return [
        (ENTRY_NAMES[name], *(f"{n:,}" for n in (b.flash, b.code, b.constants, b.data, b.stack)))
        for name, b in found.sizes.items()
    ]


def work_of(found: Cost) -> str:
    """What the emulator counted, in words."""
    if not found.sizes:
        return "it does not fit into the flash of this device; `vitrail compress` makes it smaller"
    if found.work is None:
        needed = found.target.emulator
        return f"instructions are counted where {needed} is installed" if needed else ""
    agreed = "known answers agree" if found.agree else "KNOWN ANSWERS DIFFER"
    return f"{found.work:,} {found.unit} per prediction by {found.target.emulator}; {agreed}"


def absent() -> list[str]:
    """Targets without a compiler on this machine, in words."""
    missing = [target for target in TARGETS if not target.installed]
    return [f"{target.title}: {target.compiler} is not installed" for target in missing]


RIVAL_HEAD = ("on a Cortex-M0+", "accuracy", "flash", "instructions")


def rival_line(name: str, accuracy: float | None, found: Cost) -> tuple[str, ...]:
    """A classifier among others: how often it is right, and what it costs with its encoder."""
    size = found.sizes.get("predict")
    return (
        name,
        "" if accuracy is None else f"{accuracy:.3f}",
        "does not fit" if size is None else f"{size.flash:,}",
        "" if found.work is None else f"{found.work:,}",
    )


def report_page(
    title: str,
    lead: Sequence[str],
    found: Sequence[Cost],
    others: Sequence[Sequence[str]] = (),
    notes: Sequence[str] = (),
) -> str:
    """One page that needs nothing but itself; `others` are lines of `rival_line`."""
    return render(
        "devices.html",
        title=f"{title} on devices",
        lead=" ".join(lead),
        found=found,
        most=max((size.flash for cost in found for size in cost.sizes.values()), default=1),
        head=HEAD,
        lines=lambda cost: zip(table_of(cost), cost.sizes.values(), strict=True),
        work_of=work_of,
        rival_head=RIVAL_HEAD,
        others=others,
        notes=". ".join([*absent(), *notes, ""]),
    )
