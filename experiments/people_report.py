"""The page of the experiment on labels that people gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .page import make_table
from .people_protocol import PARTS, STEP
from .store import Record


def to_markdown(records: Sequence[Record]) -> str:
    """Return the tables of all parts that have results."""
    pages = [_part(part, [r for r in records if r["part"] == part]) for part in PARTS]
    return "\n".join(page for page in pages if page)


def _part(part: str, records: list[Record]) -> str:
    if not records:
        return ""
    answers = {
        "truth": "Training rows whose most probable class is gold (products: F1)",
        "test": "New rows (products: F1)",
        "auc": "Area under the curve of wrong answers",
    }
    titles = {
        "review": {"needed": "Reviewed rows in per cent"},
        "answers": answers,
        "checks": answers,
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
        text += _curves(records)
    else:
        text += _differences(part, records)
    return text


def _differences(part: str, records: list[Record]) -> str:
    """Return what our method gains on the same draws, with the draws won and lost."""
    own, fields = {
        "answers": ("kernel EM", {"truth": "training rows", "test": "new rows"}),
        "checks": ("kernel EM", {"truth": "training rows"}),
        "labels": ("tolerant, auto", {"test": "new rows", "auc": "area under the curve"}),
    }[part]
    text = ""
    sets = [data for data in PARTS[part].data if any(r["data"] == data for r in records)]
    for field, what in fields.items():
        rows = []
        for method in PARTS[part].methods:
            cells = []
            for data in sets:
                gains = _gains(records, data, (own, method), field)
                error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
                won, lost = int((gains > 0).sum()), int((gains < 0).sum())
                cells.append(
                    f"{gains.mean():+.1f} \u00b1 {error:.1f} ({won}/{lost})" if len(gains) else "-"
                )
            if method != own and set(cells) != {"-"}:
                rows.append([method, *cells])
        text += (
            f"\nPaired differences in points, {own} minus the others, {what}; in brackets draws "
            f"won and lost:\n\n{make_table(['minus', *sets], rows)}"
        )
    return text


def _gains(records: list[Record], data: str, methods: tuple[str, str], field: str) -> Any:
    """Return the differences of two methods on the draws that both have."""
    one, other = (
        {
            r["seed"]: r[field]
            for r in records
            if (r["data"], r["method"]) == (data, method) and field in r
        }
        for method in methods
    )
    return np.array([one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())])


def _curves(records: list[Record]) -> str:
    """Return the accuracy after some shares of the rows were reviewed, a mean over the draws."""
    text = "\nAccuracy (products: F1) by the share of rows reviewed; the target in brackets:\n"
    shares = [round(i * STEP * 2, 2) for i in range(5)]
    head = ["", *(f"{share:.0%}" for share in shares)]
    for data in PARTS["review"].data:
        rows = []
        for method in PARTS["review"].methods:
            own = [
                r for r in records if (r["data"], r["method"]) == (data, method) and "curve" in r
            ]
            if own:  # a run ends at the target, and stays there
                means = [
                    np.mean([r["curve"][min(2 * i, len(r["curve"]) - 1)] for r in own])
                    for i in range(len(shares))
                ]
                rows.append([method, *(f"{mean:.1f}" for mean in means)])
        if rows:
            target = np.mean([r["target"] for r in records if r["data"] == data])
            text += f"\n{data} ({target:.1f}):\n\n{make_table(head, rows)}"
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
