"""The rules of an ensemble, and how its cost of errors was chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._summary import count, listed
from kernelweave._text import clip
from kernelweave.plots.rules import output_names

from .charts import Plot, linear, logarithmic
from .html import (
    Cell,
    Column,
    Markup,
    Section,
    figure,
    join,
    meter,
    note,
    paragraph,
    percent,
    table,
    tag,
)
from .subject import Subject

_MOST = 400  # rules that a page has room for
_OUTPUTS = 12  # columns of weights
_TITLE = 16  # letters above one of them, so that three fit on a page
_NOTHING = 1e-6  # share of the largest weight from which on one is rounding


def section(subject: Subject) -> Section | None:
    """Return a table of the rules with bars for what they add and how many rows they cover."""
    model = subject.estimator
    if not hasattr(model, "rules_"):
        return None
    outputs, rules = output_names(model), model.rules_
    one = len(outputs) == 1
    titles = ["weight"] if one else [clip(name, _TITLE) for name in outputs[:_OUTPUTS]]
    # The order of the rules is theirs over all outputs, so no single column is sorted by it.
    columns = [Column("rule", number=False), *map(Column, titles)]
    columns.insert(_place(one), Column("covers"))  # weights of many classes scroll, this must not
    largest = max((abs(w) for rule in rules for w in rule.weights), default=1.0) or 1.0
    rows = []
    for rule in rules[:_MOST]:
        weights = [_weight(w, largest) for w in rule.weights[:_OUTPUTS]]
        row: list[Any] = [rule.text or "always", *weights]
        row.insert(_place(one), meter(rule.coverage, percent(rule.coverage)))
        rows.append(row)
    listing = table("rules", columns, rows, n_all=len(rules)) if rules else None
    body = [
        paragraph(_words(model, outputs)),
        tag("div", listing, class_=None if one else "slim"),
        note(_lengths(rules)) if rules else None,
        _search(model),
    ]
    return Section("rules", "Rules", join(body))


def _place(one: bool) -> int:
    return 2 if one else 1


def _weight(value: float, largest: float) -> Cell:
    share = abs(value) / largest
    shown = f"{value:+.3g}" if share > _NOTHING else "0"
    return meter(share, shown, negative=value < 0)


def _words(model: Any, outputs: list[Any]) -> str:
    start = ", ".join(
        f"{b:+.3g}" if len(outputs) == 1 else f"{clip(name, 24)} {b:+.3g}"
        for name, b in zip(outputs[:_OUTPUTS], model.intercept_, strict=False)
    )
    what = "score" if hasattr(model, "classes_") else "prediction"
    if len(outputs) > 1:
        means = f" There is a {what} for each of {listed(outputs, _OUTPUTS)}."
        if len(outputs) > _OUTPUTS:
            means += f" The table shows the first {_OUTPUTS}."
    elif what == "score":
        means = f" Above zero, the prediction is {clip(model.classes_[-1], 40)}."
    else:
        means = ""
    return (
        f"A {what} begins at {start}, and every rule that holds for a row adds its weight.{means} "
        "The rules that matter most come first."
    )


def _lengths(rules: Any) -> str:
    lengths, counts = np.unique([rule.length for rule in rules], return_counts=True)
    parts = [f"{n} with {count(int(k), 'condition')}" for k, n in zip(lengths, counts, strict=True)]
    return (
        f"{count(len(rules), 'rule')}: {', '.join(parts)}. \u201cCovers\u201d is the share of the "
        "training rows for which a rule holds."
    )


def _search(model: Any) -> Markup | None:
    """Return how the scores of an estimator that chose its C depend on it."""
    found = getattr(model, "cv_results_", None)
    if found is None or len(found["C"]) < 2:
        return None
    costs, means = found["C"], found["mean_score"]
    x = logarithmic(costs.min(), costs.max(), lambda p: f"{p:g}")
    low, high = float(means.min()), float(means.max())
    if low == high:  # accuracy and R\u00b2 alike end at one
        low, high = low - 0.1, max(low, min(high + 0.1, 1.0))
    plot = Plot(x, linear(low, high, "{:.3g}"))
    best = f"best: {means.max():.3g} at C = {model.C_:g}"
    marks = [plot.level(means.max(), best), plot.line(costs, means)]
    label = f"Mean score over C; the best is {means.max():.3g} at C = {model.C_:g}."
    columns = [
        Column("C", number=False),
        Column("mean score"),
        Column("deviation"),
        Column("rules"),
    ]
    rows = [
        [
            Cell(f"{C:g}", float(C)),
            Cell(f"{m:.4g}", float(m)),
            Cell(f"{s:.2g}", float(s)),
            Cell(f"{n:.1f}", float(n)),
        ]
        for C, m, s, n in zip(costs, means, found["std_score"], found["n_rules"], strict=True)
    ]
    return join(
        [
            Markup("<h3>How C was chosen</h3>"),
            figure(
                plot.render("C, the cost of errors", marks, label),
                "Mean score on held-out folds of the training rows; C was chosen by it.",
            ),
            table("values of C", columns, rows),
        ]
    )
