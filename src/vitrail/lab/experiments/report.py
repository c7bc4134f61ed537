"""One page with everything: figures, claims, tables, settings, environment."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from vitrail.lab.experiments.claims import Verdict
from vitrail.lab.experiments.reproduce import ALL, FIGURES, FigurePlan, Result, environment
from vitrail.pages import write_page

MARKS = {Verdict.HOLDS: "✓", Verdict.PARTLY: "◐", Verdict.FAILS: "✗", Verdict.OPEN: "?"}
PLURALS = {Verdict.HOLDS: "hold", Verdict.PARTLY: "hold in part", Verdict.FAILS: "do not hold"}


def write_report(results: Sequence[Result], path: Path) -> Path:
    """Write the page for these figures; a reader never sees half of it."""
    names = [result.plan.experiment.name for result in results]
    figure = ALL if names == list(FIGURES) else ", ".join(names)
    quick = any(result.plan.quick for result in results)
    return write_page(
        path,
        "figures.html",
        title="vitrail: the paper's figures, reproduced",
        lead=_lead(results, quick),
        results=results,
        marks=MARKS,
        data=_data,
        settings=_settings,
        command=f"vitrail reproduce {figure}{' --quick' * quick}",
        environment=environment(),
    )


def _lead(results: Sequence[Result], quick: bool) -> str:
    counts = Counter(claim.verdict for result in results for claim in result.claims)
    words = ", ".join(f"{counts[v]} {_plural(v, counts[v])}" for v in Verdict if v in counts)
    text = (
        "Every figure of the paper, measured again with vitrail. "
        f"Of {sum(counts.values())} claims checked: {words}."
    )
    if quick:
        text += (
            " This was a quick run on few repeats and reduced grids: its verdicts show that the "
            "machinery works, and are no evidence about the paper."
        )
    return text


def _plural(verdict: Verdict, count: int) -> str:
    return str(verdict) if count == 1 else PLURALS.get(verdict, str(verdict))


def _settings(plan: FigurePlan) -> str:
    return json.dumps(plan.settings, indent=2, ensure_ascii=False)


def _data(path: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()
