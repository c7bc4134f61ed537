"""The page of a reproduction: figures, claims, tables, settings, environment."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from vitrail.lab.experiments.claims import Verdict
from vitrail.lab.experiments.reproduce import ALL, FIGURES, Result
from vitrail.lab.experiments.units import environment
from vitrail.pages import write_page

QUICK = (
    " This was a quick run with few repeats and reduced grids: its verdicts show that the programs "
    "run, and are no evidence about the paper."
)
MARKS = {Verdict.HOLDS: "✓", Verdict.PARTLY: "◐", Verdict.FAILS: "✗", Verdict.OPEN: "?"}
PLURALS = {Verdict.HOLDS: "hold", Verdict.PARTLY: "hold in part", Verdict.FAILS: "do not hold"}


def write_report(results: Sequence[Result], path: Path) -> Path:
    """Write the page for these figures."""
    names = [result.plan.experiment.name for result in results]
    figure = ALL if names == list(FIGURES) else ", ".join(names)
    quick = any(result.plan.quick for result in results)
    counts = Counter(claim.verdict for result in results for claim in result.claims)
    plurals = {verdict: PLURALS.get(verdict, verdict) for verdict in Verdict}
    words = (f"{n} {v if n == 1 else plurals[v]}" for v in Verdict if (n := counts[v]))
    return write_page(
        path,
        "figures.html",
        title="vitrail: the paper's figures, reproduced",
        lead="Every figure of the paper, measured again with vitrail. "
        f"Of {counts.total()} claims checked: {', '.join(words)}." + QUICK * quick,
        results=results,
        marks=MARKS,
        data=lambda drawing: base64.b64encode(drawing.read_bytes()).decode(),
        settings=lambda plan: json.dumps(plan.settings, indent=2, ensure_ascii=False),
        command=f"vitrail reproduce {figure}{' --quick' * quick}",
        environment=environment(),
    )
