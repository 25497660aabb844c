"""The comparison on linked documents as a Markdown page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from .page import make_table
from .pairwise_data import DATA, DRAWS, PER_CLASS
from .pairwise_methods import METHODS, RESTARTS
from .pairwise_protocol import FLIPPED, KINDS, SIZES
from .pairwise_published import TABLE_2
from .store import Record

Values = dict[tuple[str, str], Any]
SIMPLE = ("lk", "lkcnpc", "naive", "lk-tfidf", "lkcnpc-tfidf", "naive-tfidf")


def collect(records: Sequence[Record], part: str, field: str) -> Values:
    """Return the values of a field by data set and system, in the order of the trials."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for record in records:
        if record["part"] == part and field in record:
            place = found.setdefault((record["data"], record["method"]), [])
            place.append((record["trial"], record[field]))
    return {key: np.array([v for _, v in sorted(values)]) for key, values in found.items()}


def to_markdown(records: Sequence[Record], seed: int) -> str:
    """Return all tables."""
    parts = [
        _how(records, seed),
        _published(records),
        _table(records, "ours", "## Other labels, other documents, controls"),
        _table(records, "beyond", "## Beyond the paper: options chosen by held-out links"),
        _leads(records),
        _settings(records),
        _figure(records),
        _classes(records),
    ]
    return "\n".join(part for part in parts if part)


def _how(records: Sequence[Record], seed: int) -> str:
    trials = 1 + max(record["trial"] for record in records)
    short = sum(record.get("converged") is False for record in records)
    done = sum("converged" in record for record in records)
    return (
        f"{trials} trials, first seed {seed}: links are the same in all, pairs without a link, the "
        f"known hundredth, walks and splits are drawn anew. Mean, and standard deviation over "
        f"trials in brackets. NMI with the arithmetic mean; k-means with {RESTARTS} restarts. "
        f"{done - short} of {done} fits that search for weights met their tolerance.\n"
        + _undivided(records)
    )


def _undivided(records: Sequence[Record]) -> str:
    """Say which kernels were clustered in another way because of negative row sums."""
    names = {r["method"] for r in records if r.get("normalized") is False}
    if not names:
        return ""
    labels = ", ".join(METHODS[m].label for m in METHODS if m in names)
    return (
        "\nKernels of these systems have negative row sums, so they were not divided by row sums "
        f"and eigenvectors were not scaled to unit length: {labels}.\n"
    )


def _published(records: Sequence[Record]) -> str:
    nmi = collect(records, "table", "nmi")
    refused = {(r["data"], r["method"]): r["refused"] for r in records if "refused" in r}
    rows = []
    for name, method in METHODS.items():
        key = method.published
        if key is None:
            continue
        row = [method.label]
        for data in DATA:
            ours, (mean, spread) = nmi.get((data, name)), TABLE_2[data][key]
            off = "" if ours is None else f"{ours.mean() - mean:+.3f}"
            cell = "refused" if (data, name) in refused else show(ours)
            row += [f"{mean:.3f} ({spread:.3f})", cell, off]
        rows.append(row)
    head = ["NMI"]
    for title in DATA.values():
        head += [f"{title}, published", "ours", "difference"]
    said = [f"\n{METHODS[m].label}, {DATA[d]}: refused. {why}\n" for (d, m), why in refused.items()]
    return "## Table 2, published and run again\n\n" + make_table(head, rows) + "".join(said)


def show(values: Any, digits: int = 3) -> str:
    """Return mean and sample deviation."""
    if values is None or not len(values):
        return "-"
    spread = f" ({values.std(ddof=1):.{digits}f})" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def _table(records: Sequence[Record], group: str, title: str) -> str:
    measures = [collect(records, "table", field) for field in ("nmi", "ari")]
    seconds = collect(records, "table", "seconds")
    rows = []
    for name, method in METHODS.items():
        if method.group == group and any((data, name) in measures[0] for data in DATA):
            row = [show(found.get((data, name))) for data in DATA for found in measures]
            spent = np.concatenate(
                [seconds[data, name] for data in DATA if (data, name) in seconds]
            )
            rows.append([method.label, *row, f"{spent.mean():.1f}"])
    if not rows:
        return ""
    names = [f"{title} {measure}" for title in DATA.values() for measure in ("NMI", "ARI")]
    return f"{title}\n\n" + make_table(["", *names, "seconds"], rows)


def leads(records: Sequence[Record], data: str, name: str) -> Any:
    """Return by how much a system leads the best simple one of the same trial; None if unknown."""
    nmi = collect(records, "table", "nmi")
    values = [nmi[data, m] for m in (name, *SIMPLE) if (data, m) in nmi]
    if (data, name) not in nmi or len(values) < 2 or len({len(v) for v in values}) > 1:
        return None
    return values[0] - np.max(values[1:], axis=0)


def _leads(records: Sequence[Record]) -> str:
    rows = []
    for name, method in METHODS.items():
        if method.group != "beyond" and not name.startswith(("gdm-", "itml")):
            continue
        found = [leads(records, data, name) for data in DATA]
        if all(lead is None for lead in found):
            continue
        cells = [
            ("-", "-") if v is None else (f"{v.mean():+.3f}", f"{v.min():+.3f}") for v in found
        ]
        rows.append([method.label, *(cell for both in cells for cell in both)])
    if not rows:
        return ""
    head = ["lead over the best of LK, LKCnpc and labels taken as true in the same trial"]
    for title in DATA.values():
        head += [f"{title}, mean", "smallest"]
    return make_table(head, rows)


def _settings(records: Sequence[Record]) -> str:
    chosen: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        if "setting" in record:
            place = chosen.setdefault((record["method"], record["data"]), Counter())
            place[record["setting"]] += 1
    if not chosen:
        return ""
    lines = []
    for (name, data), counts in chosen.items():
        said = "; ".join(f"{count} x {setting}" for setting, count in counts.most_common())
        lines.append(f"- {METHODS[name].label}, {DATA[data]}: {said}\n")
    return "What was chosen:\n\n" + "".join(lines)


def _figure(records: Sequence[Record]) -> str:
    nmi = collect(records, "figure", "nmi")
    if not nmi:
        return ""
    sizes = [size for size in SIZES if any(key[1].endswith(f"@{size}") for key in nmi)]
    rows = [
        [f"{title}, {label}", *(show(nmi.get((data, f"{kind}@{size}"))) for size in sizes)]
        for data, title in DATA.items()
        for kind, label in KINDS.items()
    ]
    head = ["NMI by number of pairs", *(f"{size}" for size in sizes)]
    title = f"## Figure 1: drawn pairs, {FLIPPED:.0%} of them labelled wrongly"
    return f"{title}\n\n" + make_table(head, rows)


def _classes(records: Sequence[Record]) -> str:
    accuracy = collect(records, "table", "accuracy")
    rows = [
        [method.label, *(show(accuracy.get((data, name))) for data in DATA)]
        for name, method in METHODS.items()
        if any((data, name) in accuracy for data in DATA)
    ]
    if not rows:
        return ""
    head = ["accuracy", *DATA.values()]
    title = f"## Classification with {PER_CLASS} labels a class"
    text = (
        "An SVM on the learned kernel, scaled to unit diagonal; C by "
        "five-fold cross-validation on the labelled documents; mean of "
        f"{DRAWS} draws of them in every trial. The links of all documents were used to learn "
        "the kernel.\n"
    )
    return f"{title}\n\n{text}\n" + make_table(head, rows)
