"""Page and picture of short rule sets beside other readable models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from .store import Record


def _mean(records: Sequence[Record], name: str) -> float:
    values = [record[name] for record in records if record.get(name) is not None]
    return float(np.mean(values)) if values else np.nan


def _shown(value: float, form: str) -> str:
    return "" if np.isnan(value) else format(value, form)


def to_markdown(records: Sequence[Record], labels: Mapping[str, str]) -> str:
    """Return means, paired differences, and AUC and rules by table, for each group."""
    lines = []
    for group in sorted({record["group"] for record in records}):
        own = [record for record in records if record["group"] == group]
        tables = sorted({record["table"] for record in own})
        lines += [f"{group}: {len(tables)} tables ({', '.join(t.split('/')[-1] for t in tables)})"]
        lines += ["", "| model | AUC | accuracy | rules | seconds |", "|---|---|---|---|---|"]
        for method, label in labels.items():
            some = [record for record in own if record["method"] == method]
            if not some:
                continue
            cells = [
                _shown(_mean(some, "auc"), ".3f"),
                _shown(_mean(some, "accuracy"), ".3f"),
                _shown(_mean(some, "rules"), ".1f"),
                _shown(_mean(some, "seconds"), ".1f"),
            ]
            lines.append(f"| {label} | {' | '.join(cells)} |")
        lines.append("")
        lines += _differences(own, labels)
        methods = [m for m in labels if any(record["method"] == m for record in own)]
        lines += ["AUC (number of rules):", ""]
        lines.append(f"| table | {' | '.join(labels[m] for m in methods)} |")
        lines.append("|---|" + "---|" * len(methods))
        for table in tables:
            cells = []
            for method in methods:
                some = [r for r in own if r["table"] == table and r["method"] == method]
                auc, rules = _mean(some, "auc"), _mean(some, "rules")
                count = f" ({rules:.0f})" if not np.isnan(rules) else ""
                cells.append(_shown(auc, ".3f") + count)
            lines.append(f"| {table.split('/')[-1]} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _differences(records: Sequence[Record], labels: Mapping[str, str]) -> list[str]:
    """Return a table of paired differences, the first model less the others, over tables."""
    first = next(iter(labels))
    own = {r["table"]: r for r in records if r["method"] == first and r["split"] == 0}
    lines = [f"{labels[first]} less the others, paired over tables:", ""]
    lines += [
        "| against | tables | AUC | accuracy | seconds, ratio of sums |",
        "|---|---|---|---|---|",
    ]
    for method, label in labels.items():
        pairs = [
            (own[r["table"]], r)
            for r in records
            if r["method"] == method != first and r["split"] == 0 and r["table"] in own
        ]
        if len(pairs) < 2:
            continue
        cells = [str(len(pairs))]
        for measure in ("auc", "accuracy"):
            lost = np.array([ours[measure] - other[measure] for ours, other in pairs])
            error = lost.std(ddof=1) / np.sqrt(len(lost))
            cells.append(f"{lost.mean():+.3f} ± {error:.3f}")
        ours, theirs = (sum(pair[k]["seconds"] for pair in pairs) for k in (0, 1))
        cells.append(f"{ours / theirs:.2g}")
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return [*lines, ""]


def draw(records: Sequence[Record], labels: Mapping[str, str], path: Path) -> None:
    """Draw accuracy and AUC against the number of rules, means over the tables of a group."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    groups = sorted({record["group"] for record in records})
    figure, axes = plt.subplots(
        len(groups), 2, figsize=(9.0, 3.4 * len(groups)), squeeze=False, layout="constrained"
    )
    for row, group in zip(axes, groups, strict=True):
        for ax, measure in zip(row, ("accuracy", "auc"), strict=True):
            for k, (method, label) in enumerate(labels.items()):
                some = [r for r in records if r["group"] == group and r["method"] == method]
                if not some:
                    continue
                rules, score = _mean(some, "rules"), _mean(some, measure)
                if np.isnan(rules):
                    ax.axhline(score, color=f"C{k}", linestyle=":", linewidth=1.2, label=label)
                else:
                    ax.plot(rules, score, "o", color=f"C{k}", label=label)
            ax.set_xlabel("number of rules")
            ax.set_ylabel("AUC" if measure == "auc" else measure)
            ax.set_title(group, loc="left", fontsize=10)
            ax.spines[["top", "right"]].set_visible(False)
        row[-1].legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.savefig(path, dpi=150)
    plt.close(figure)
