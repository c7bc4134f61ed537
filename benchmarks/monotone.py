"""Monotone columns beside the same fit without them, and beside boosting.

    python benchmarks/monotone.py FOLDER [--splits 5] [--first 0] [--only haberman]

Directions come from what the columns mean, not from the rows: more affected nodes, larger tumours
or longer loans raise the risk. Every split holds out a fifth of the rows, the same for all.
`against` is the share of held-out rows of which a probability of the free fit moves against a
direction somewhere, as one column goes through the deciles of training. Boosting is scikit-learn's
HistGradientBoostingClassifier, free and with the same directions. Log-loss is clipped at 1e-3.
Tables measured before stay in the record.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import parser_of, save_record, tables
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.preprocessing import OrdinalEncoder

from vitrail import BinaryNetClassifier
from vitrail.learning.examples import split_rows

RECORD = Path(__file__).parent.parent / "docs" / "records" / "monotone.json"
CLIP = 1e-3
HELD = 0.2
DECILES = np.linspace(0, 1, 11)
DIRECTIONS: dict[str, dict[str, int]] = {
    "breast_cancer_diagnostic": {f"x{i}": -1 for i in (0, 2, 3, 6, 7, 20, 22, 23, 26, 27)},
    "breast_cancer_wisconsin": {f"x{i}": 1 for i in range(1, 10)},
    "german_credit": {"x2": 1, "x5": 1, "x8": 1, "x13": -1},
    "haberman": {"Number_of_positive_axillary_nodes_detected": 1},
    "heart_statlog": {
        "age": 1, "resting_blood_pressure": 1, "serum_cholestoral": 1, "oldpeak": 1,
        "maximum_heart_rate_achieved": -1, "number_of_major_vessels": 1,
    },
}  # fmt: skip
"""P(second class): benign; malignant; bad credit; died within five years; disease present."""
COLUMNS = {
    "table": "{table}",
    "monotone columns": "{columns}",
    "free": "{free_accuracy:.3f} / {free_loss:.3f}",
    "monotone": "{monotone_accuracy:.3f} / {monotone_loss:.3f}",
    "change of accuracy": "{accuracy_change:+.3f} ± {accuracy_error:.3f}",
    "change of log-loss": "{loss_change:+.3f} ± {loss_error:.3f}",
    "rows against, free": "{against:.0%}",
    "boosting, free": "{boosting_free_accuracy:.3f} / {boosting_free_loss:.3f}",
    "boosting, monotone": "{boosting_monotone_accuracy:.3f} / {boosting_monotone_loss:.3f}",
}


def scores(net: Any, rows: pd.DataFrame, labels: np.ndarray) -> tuple[float, float]:
    """Accuracy and log-loss."""
    shares = net.predict_proba(rows)
    own = shares[np.arange(len(labels)), np.searchsorted(net.classes_, labels)]
    answers = net.classes_[shares.argmax(1)]
    return float((answers == labels).mean()), float(-np.log(np.clip(own, CLIP, None)).mean())


def against(net: Any, seen: pd.DataFrame, unseen: pd.DataFrame, order: dict[str, int]) -> float:
    """The share of rows of which a probability moves against a direction somewhere."""
    broken = np.zeros(len(unseen), bool)
    for column, direction in order.items():
        values = np.unique(np.nanquantile(seen[column], DECILES, method="nearest"))
        table = unseen.loc[unseen.index.repeat(len(values))].reset_index(drop=True)
        table[column] = np.tile(values, len(unseen))
        shares = net.predict_proba(table)[:, 1].reshape(len(unseen), -1)
        broken |= (direction * np.diff(shares) < 0).any(1)
    return float(broken.mean())


def measured(name: str, rows: pd.DataFrame, labels: np.ndarray, splits: range) -> dict[str, Any]:
    """The row of a table: means over splits, and paired differences with standard errors."""
    order, found = DIRECTIONS[name], []
    words = [column for column in rows if not pd.api.types.is_numeric_dtype(rows[column])]
    for split in splits:
        kept, held = split_rows(labels, HELD, split)
        parts = [(rows.iloc[one].reset_index(drop=True), labels[one]) for one in (kept, held)]
        (seen, seen_labels), (unseen, unseen_labels) = parts
        coder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        plain = [part.copy() for part in (seen, unseen)]
        if words:
            plain[0][words] = coder.fit_transform(seen[words].astype(str))
            plain[1][words] = coder.transform(unseen[words].astype(str))
        line: dict[str, float] = {}
        for kind, given in (("free", None), ("monotone", order)):
            net = BinaryNetClassifier(random_state=split, monotonic_cst=given)
            net.fit(seen, seen_labels)
            line[f"{kind}_accuracy"], line[f"{kind}_loss"] = scores(net, unseen, unseen_labels)
            moved = against(net, seen, unseen, order)
            if given is not None and moved:
                raise AssertionError(f"{name}: a monotone fit moves against its directions")
            line["against"] = line.get("against", moved)
            rival = HistGradientBoostingClassifier(random_state=split, monotonic_cst=given)
            rival.fit(plain[0].astype(float), seen_labels)
            line[f"boosting_{kind}_accuracy"], line[f"boosting_{kind}_loss"] = scores(
                rival, plain[1].astype(float), unseen_labels
            )
        found.append(line)
        print(name, split, {key: round(value, 3) for key, value in line.items()}, flush=True)
    table = pd.DataFrame(found)
    row: dict[str, Any] = {"table": name, "columns": len(order), **table.mean().to_dict()}
    size = len(found) ** 0.5
    for part in ("accuracy", "loss"):
        change = np.array([line[f"monotone_{part}"] - line[f"free_{part}"] for line in found])
        row[f"{part}_change"] = float(change.mean())
        row[f"{part}_error"] = float(change.std(ddof=1) / size)
    return row


def main() -> None:
    """Measure the tables and store the record."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default=",".join(DIRECTIONS))
    options = parser.parse_args()
    splits = range(options.first, options.first + options.splits)
    known: dict[str, Any] = {}
    if RECORD.exists():
        known = {row["table"]: row for row in json.loads(RECORD.read_text("utf-8"))["rows"]}
    for name, rows, labels in tables(options.folder, options.only):
        known[name] = measured(name, rows, labels, splits)
        command = f"python benchmarks/monotone.py FOLDER --splits {options.splits}"
        save_record("monotone", command, COLUMNS, [known[one] for one in sorted(known)])


if __name__ == "__main__":
    main()
