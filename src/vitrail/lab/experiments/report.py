"""One page with everything: figures, claims, tables, settings, environment.

The page needs nothing but itself: style and drawings are inside it. It reads on a phone and on a
desk, in the light and in the dark. `report.html` and `report.css` beside this file are its form.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from vitrail.lab.experiments.claims import Claim, Verdict
from vitrail.lab.experiments.experiment import Table
from vitrail.lab.experiments.reproduce import (
    ALL,
    FIGURES,
    Result,
    environment,
    settings_of,
    summary,
)

FORM = Path(__file__).with_name("report.html")
STYLE = Path(__file__).with_name("report.css")
MARKS = {Verdict.HOLDS: "✓", Verdict.PARTLY: "◐", Verdict.FAILS: "✗", Verdict.OPEN: "?"}


def write_report(results: Sequence[Result], path: Path) -> Path:
    """Write the page for these figures; a reader never sees half of it."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(page(results), encoding="utf-8")
    part.replace(path)
    return path


def page(results: Sequence[Result]) -> str:
    """The page as text."""
    return Template(FORM.read_text(encoding="utf-8")).substitute(
        style=STYLE.read_text(encoding="utf-8"),
        lead=_lead(results),
        overview=_overview(results),
        figures="\n".join(_figure(result) for result in results),
        work=_work(results),
        environment=_pairs(environment()),
    )


def _lead(results: Sequence[Result]) -> str:
    counts = summary(results)
    words = ", ".join(f"{counts[v]} {_plural(v, counts[v])}" for v in Verdict if v in counts)
    total = sum(counts.values())
    text = f"Of {total} claims checked: {words}."
    if any(result.plan.quick for result in results):
        text += (
            " This was a quick run on few repeats and reduced grids: its verdicts show that the "
            "machinery works, and are no evidence about the paper."
        )
    return escape(text)


def _work(results: Sequence[Result]) -> str:
    names = [result.plan.experiment.name for result in results]
    figure = ALL if names == list(FIGURES) else ", ".join(names)
    quick = " --quick" if any(result.plan.quick for result in results) else ""
    minutes = sum(result.seconds for result in results) / 60
    return (
        f"Made by <code>vitrail reproduce {escape(figure)}{quick}</code> in {minutes:.0f} minutes "
        "of one core."
    )


def _plural(verdict: Verdict, count: int) -> str:
    if count == 1:
        return str(verdict)
    return {
        Verdict.HOLDS: "hold",
        Verdict.PARTLY: "hold in part",
        Verdict.FAILS: "do not hold",
    }.get(verdict, str(verdict))


def _overview(results: Sequence[Result]) -> str:
    rows = [
        f'<tr><td><a href="#{result.plan.experiment.name}">{result.plan.experiment.name}</a></td>'
        f"<td>{escape(claim.paper)}</td><td>{_badge(claim.verdict)}</td></tr>"
        for result in results
        for claim in result.claims
    ]
    head = "<tr><th>figure</th><th>the paper says</th><th>here it</th></tr>"
    return f'<div class="scroll"><table class="claims">{head}{"".join(rows)}</table></div>'


def _figure(result: Result) -> str:
    experiment = result.plan.experiment
    tables = "".join(_table(table) for table in result.tables)
    settings = json.dumps(settings_of(result.plan), indent=2, ensure_ascii=False)
    return f"""<section id="{experiment.name}">
<h2><span>{experiment.name}</span> {escape(experiment.title)}</h2>
<p>{escape(experiment.about)}</p>
<figure>
<img class="wide" src="{_data(result.wide)}" alt="{escape(experiment.title)}">
<img class="narrow" src="{_data(result.narrow)}" alt="{escape(experiment.title)}">
</figure>
{"".join(_claim(claim) for claim in result.claims)}
<details><summary>Numbers</summary>{tables}
<p>All of them: <code>{experiment.name}.csv</code> beside this page.</p></details>
<details><summary>Settings</summary><pre>{escape(settings)}</pre>
<p>{len(result.plan.units)} units of work, {result.seconds / 60:.1f} minutes of one core.</p>
</details>
</section>"""


def _claim(claim: Claim) -> str:
    return (
        f'<article><p class="says">{escape(claim.paper)}</p>{_badge(claim.verdict)}'
        f"<p>{escape(claim.measured)}</p>"
        + (f"<p>What would make it hold: {escape(claim.advice)}</p>" if claim.advice else "")
        + "</article>"
    )


def _badge(verdict: Verdict) -> str:
    return f'<span class="verdict {verdict.name.lower()}">{MARKS[verdict]} {verdict}</span>'


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return (
        f"<h3>{escape(table.title)}</h3>"
        f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'
    )


def _pairs(values: dict[str, str]) -> str:
    return "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in values.items()
    )


def _data(path: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()
