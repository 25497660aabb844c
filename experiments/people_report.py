"""The page of the experiment on labels that people gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .page import make_table
from .people_protocol import PARTS
from .store import Record


def to_markdown(records: Sequence[Record]) -> str:
    """Return the tables of all parts that have results."""
    pages = [_part(part, [r for r in records if r["part"] == part]) for part in PARTS]
    return "\n".join(page for page in pages if page)


def _part(part: str, records: list[Record]) -> str:
    if not records:
        return ""
    titles = {
        "review": {"needed": "Reviewed rows in per cent"},
        "answers": {
            "truth": "Training rows whose most probable class is gold (products: F1)",
            "test": "New rows (products: F1)",
            "auc": "Area under the curve of wrong answers",
        },
        "labels": {
            "test": "New rows (products: F1)",
            "auc": "Area under the curve of wrong labels, by quality",
            "auc of probability": "The same by `wrong_label_probability_`",
            "level": "Estimated share of wrong labels",
        },
    }[part]
    text = f"## {PARTS[part].title}\n"
    for field, title in titles.items():
        text += f"\n{title}:\n\n{_table(part, records, field)}"
    if part == "review":
        text += f"\nRows that our order needs, as a share of those of others:\n\n{_ratios(records)}"
    return text


def _values(records: Sequence[Record], data: str, method: str, field: str) -> Any:
    found = [r[field] for r in records if (r["data"], r["method"]) == (data, method) and field in r]
    return np.array(found, dtype=float)


def _table(part: str, records: list[Record], field: str) -> str:
    sets = [data for data in PARTS[part].data if any(r["data"] == data for r in records)]
    rows = []
    for method in PARTS[part].methods:
        cells = []
        for data in sets:
            found = _values(records, data, method, field)
            error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
            cells.append(f"{found.mean():.1f} \u00b1 {error:.1f}" if len(found) else "-")
        if set(cells) != {"-"}:
            rows.append([method, *cells])
    if part == "labels" and field == "level":
        shares = [
            f"{np.mean([r['wrong'] for r in records if r['data'] == data]):.1f}" for data in sets
        ]
        rows.append(["true", *shares])
    return make_table(["", *sets], rows)


def _ratios(records: list[Record]) -> str:
    """Return the mean of our rows over the mean of theirs, for each set, and their mean."""
    sets = [data for data in PARTS["review"].data if any(r["data"] == data for r in records)]
    rows = []
    for method in PARTS["review"].methods[1:]:
        ratios = []
        for data in sets:
            own, other = (_values(records, data, m, "needed") for m in ("ours", method))
            known = len(own) and len(other) and other.mean() > 0
            ratios.append(own.mean() / other.mean() if known else np.nan)
        mean = float(np.nanmean(ratios)) if np.isfinite(ratios).any() else np.nan
        rows.append([method, *(f"{ratio:.2f}" for ratio in ratios), f"{mean:.2f}"])
    return make_table(["", *sets, "mean"], rows)
