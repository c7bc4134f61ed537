"""What a model costs on devices, as a table for the terminal and as one page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from vitrail.export.c import c_header
from vitrail.export.devices import TARGETS, Cost, costs
from vitrail.export.golden import Rows
from vitrail.model import Model

FORM = Path(__file__).with_name("report.html")
ENTRY_NAMES = {
    "predict_bits": "predict, of bits",
    "predict": "predict, with the encoder",
    "proba": "proba, with the encoder",
}
HEAD = ("", "flash", "code", "constants", "RAM", "stack, at most")


def measured(model: Model, name: str, rows: Rows) -> list[Cost]:
    """The costs of a model's header on every target that has its compiler here."""
    return costs(c_header(model, name, rows), name)


def table_of(found: Cost) -> list[tuple[str, ...]]:
    """A line for each function: its name, then bytes."""
    return [
        (ENTRY_NAMES[entry], *map(str, (b.flash, b.code, b.constants, b.data, b.stack)))
        for entry, b in found.sizes.items()
    ]


def work_of(found: Cost) -> str:
    """What the emulator counted, in words."""
    if not found.sizes:
        return "it does not fit into the flash of this device; `vitrail compress` makes it smaller"
    if found.work is None:
        return f"no emulator ran it ({found.target.emulator or 'none is used'})"
    agreed = "known answers agree" if found.agree else "KNOWN ANSWERS DIFFER"
    return f"{found.work:,} {found.unit} a prediction by {found.target.emulator}; {agreed}"


def absent() -> list[str]:
    """Targets without a compiler on this machine, in words."""
    missing = [target for target in TARGETS if not target.installed]
    return [f"{target.title}: {target.compiler} is not installed" for target in missing]


def accuracy_of(model: Model, right: int | None = None, rows: int = 0) -> str:
    """How often the model was right: on rows given now, and when it was trained."""
    parts = [f"{right} of {rows} rows right here"] if right is not None and rows else []
    for key in ("test_accuracy", "train_accuracy"):
        if key in model.record:
            parts.append(f"{key.replace('_', ' ')} {model.record[key]:.4f} when trained")
    return "; ".join(parts)


BESIDE = ("on a Cortex-M0+", "accuracy", "flash", "instructions")


def beside_line(name: str, accuracy: float | None, found: Cost) -> tuple[str, ...]:
    """A classifier among others: how often it is right, and what it costs with its encoder."""
    size = found.sizes.get("predict")
    return (
        name,
        "" if accuracy is None else f"{accuracy:.3f}",
        "does not fit" if size is None else str(size.flash),
        "" if found.work is None else str(found.work),
    )


def report_page(
    title: str,
    lead: Sequence[str],
    found: Sequence[Cost],
    others: Sequence[Sequence[str]] = (),
    notes: Sequence[str] = (),
) -> str:
    """One page that needs nothing but itself; `others` are lines of `beside_line`."""
    most = max((b.flash for cost in found for b in cost.sizes.values()), default=1)
    return Template(FORM.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        lead=escape(" ".join(lead)),
        targets="\n".join([*(_section(cost, most) for cost in found), _beside(others)]),
        notes=escape(". ".join([*absent(), *notes, ""])),
    )


def _section(found: Cost, most: int) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in (*HEAD, ""))
    lines = []
    for line, size in zip(table_of(found), found.sizes.values(), strict=True):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in line)
        parts = {"code": size.code, "constants": size.constants, "data": size.data}
        bars = "".join(
            f'<span class="{kind}" style="width:{100 * part / most:.1f}%"></span>'
            for kind, part in parts.items()
        )
        lines.append(f'<tr>{cells}<td><div class="bar">{bars}</div></td></tr>')
    title = f"<h2>{escape(found.target.title)}</h2><p>{escape(work_of(found))}</p>"
    body = "\n".join(lines)
    return f'{title}\n<div class="wide"><table>\n<tr>{head}</tr>\n{body}\n</table></div>'


def _beside(lines: Sequence[Sequence[str]]) -> str:
    if not lines:
        return ""
    rows = [
        "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in line) + "</tr>"
        for kind, line in [("th", BESIDE), *(("td", line) for line in lines)]
    ]
    body = "\n".join(rows)
    return f'<h2>Beside what others export</h2>\n<div class="wide"><table>\n{body}\n</table></div>'
