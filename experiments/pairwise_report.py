"""The comparison on linked documents as a Markdown page and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .page import make_table
from .pairwise_protocol import CLASSIFIED, DATA, METHODS, SIZES
from .pairwise_published import TABLE_2
from .store import Record

_KINDS = {"true": "perfect labels", "noise": "corrected", "naive": "taken as true"}
_COLOURS = {"true": "#6b7280", "noise": "#1f5f8b", "naive": "#c2410c"}


def collect(records: Sequence[Record], part: str, field: str) -> dict[tuple[str, str], Any]:
    """Return the values of a field by data set and method, in the order of the trials."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for record in records:
        if record["part"] == part:
            place = found.setdefault((record["data"], record["method"]), [])
            place.append((record["trial"], record[field]))
    return {key: np.array([v for _, v in sorted(values)]) for key, values in found.items()}


def show(values: Any, digits: int = 3) -> str:
    """Return mean and sample deviation."""
    if values is None or not len(values):
        return "-"
    spread = f" ({values.std(ddof=1):.{digits}f})" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def to_markdown(records: Sequence[Record]) -> str:
    """Return all tables."""
    parts = [
        _published(records),
        _table(records, "ours", "## Other readings of the labels and of the documents"),
        _table(records, "beyond", "## Beyond the paper: options chosen by held-out links"),
        _leads(records),
        _figure(records),
        _classes(records),
    ]
    return "\n".join(part for part in parts if part)


def _published(records: Sequence[Record]) -> str:
    nmi = collect(records, "table", "nmi")
    rows = []
    for name, method in METHODS.items():
        if method.group != "paper":
            continue
        row = [method.label]
        for data in DATA:
            printed = TABLE_2[data].get(name)
            ours = nmi.get((data, name))
            off = "-" if ours is None or printed is None else f"{ours.mean() - printed[0]:+.3f}"
            row += [f"{printed[0]:.3f} ({printed[1]:.3f})" if printed else "-", show(ours), off]
        rows.append(row)
    head = ["NMI"]
    for title, _ in DATA.values():
        head += [f"{title}, published", "ours", "difference"]
    return "## Table 2, published and run again\n\n" + make_table(head, rows)


def _table(records: Sequence[Record], group: str, title: str) -> str:
    nmi, ari = collect(records, "table", "nmi"), collect(records, "table", "ari")
    rows = [
        [method.label]
        + [
            cell
            for data in DATA
            for cell in (show(nmi.get((data, name))), show(ari.get((data, name))))
        ]
        for name, method in METHODS.items()
        if method.group == group and any((data, name) in nmi for data in DATA)
    ]
    if not rows:
        return ""
    head = [
        "",
        *(f"{name} {measure}" for name, _ in DATA.values() for measure in ("NMI", "ARI")),
    ]
    return f"{title}\n\n" + make_table(head, rows)


def _leads(records: Sequence[Record]) -> str:
    """Compare shrink with the best simple method of the same trial."""
    nmi = collect(records, "table", "nmi")
    simple = ["lk", "lkcnpc", "naive", "lk-tfidf", "lkcnpc-tfidf", "naive-tfidf"]
    rows = []
    for name in ("shrink-diag", "shrink-words", "shrink-graph"):
        row = [METHODS[name].label]
        for data in DATA:
            values = [nmi[data, m] for m in simple if (data, m) in nmi]
            own = nmi.get((data, name))
            if own is None or not values or len({len(v) for v in [own, *values]}) > 1:
                row += ["-", "-"]
                continue
            lead = own - np.max(values, axis=0)
            row += [f"{lead.mean():+.3f}", f"{lead.min():+.3f}"]
        rows.append(row)
    head = ["lead over the best of LK, literal and naive of the same trial"]
    for title, _ in DATA.values():
        head += [f"{title}, mean", "smallest"]
    return make_table(head, rows)


def _figure(records: Sequence[Record]) -> str:
    nmi = collect(records, "figure", "nmi")
    if not nmi:
        return ""
    rows = []
    for data, (title, _) in DATA.items():
        for kind, label in _KINDS.items():
            cells = [show(nmi.get((data, f"{kind}@{size}"))) for size in SIZES]
            rows.append([f"{title}, {label}", *cells])
    head = ["NMI by number of pairs", *(f"{size}" for size in SIZES)]
    return "## Figure 1: drawn pairs, a fifth labelled wrongly\n\n" + make_table(head, rows)


def _classes(records: Sequence[Record]) -> str:
    accuracy = collect(records, "classes", "accuracy")
    rows = [
        [label, *(show(accuracy.get((data, name))) for data in DATA)]
        for name, label in CLASSIFIED.items()
        if any((data, name) in accuracy for data in DATA)
    ]
    if not rows:
        return ""
    head = ["accuracy, 20 labels a class", *(title for title, _ in DATA.values())]
    return "## Classification with few labels\n\n" + make_table(head, rows)


def draw(records: Sequence[Record], path: Path) -> None:
    """Draw Figure 1."""
    import matplotlib.pyplot as plt

    nmi = collect(records, "figure", "nmi")
    figure, axes = plt.subplots(1, len(DATA), figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax, (data, (title, _)) in zip(axes, DATA.items(), strict=True):
        for kind, label in _KINDS.items():
            there = [size for size in SIZES if (data, f"{kind}@{size}") in nmi]
            values = [nmi[data, f"{kind}@{size}"] for size in there]
            if not values:
                continue
            means = np.array([v.mean() for v in values])
            spread = np.array([v.std(ddof=1) if len(v) > 1 else 0.0 for v in values])
            ax.plot(there, means, marker="o", label=label, color=_COLOURS[kind])
            ax.fill_between(there, means - spread, means + spread, alpha=0.12, color=_COLOURS[kind])
        ax.set_xscale("log")
        ax.set_title(title)
        ax.set_xlabel("pairs")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("NMI")
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
