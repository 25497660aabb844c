"""Section on the rules of an ensemble, and on the choice of C and of their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._summary import count, count_rules
from kernelweave._text import clip
from kernelweave.plots.rules import output_names, rule_path
from kernelweave.rules.scorecard import group_by_columns

from .charts import Chart, linear, logarithmic
from .rendering import Section
from .subject import Subject
from .tables import Cell, Column, Table, meter, number, percent, text_column

_MOST = 400  # rules shown at most
_OUTPUTS = 12  # columns of weights
_NOTE = 240  # characters of a sentence with names of classes
_TITLE = 16  # characters above one of them, so that three fit on a page
_NOTHING = 1e-6  # share of the largest weight below which a weight is rounding error


def section(subject: Subject) -> Section:
    """Return a table of the rules with bars for weights and coverage."""
    model = subject.estimator
    outputs = output_names(model)
    starts = [
        f"{b:+.3g}" if len(outputs) == 1 else f"{clip(name, 24)} {b:+.3g}"
        for name, b in zip(outputs[:_OUTPUTS], model.intercept_, strict=False)
    ]
    lengths = np.unique([rule.length for rule in model.rules_], return_counts=True)
    values = {
        "outputs": outputs,
        "max_outputs": _OUTPUTS,
        "classes": model.classes_ if "classes_" in model._declaration.saved else None,
        "start": ", ".join(starts),
        "found": count_rules(model),
        "rules": _table(model.rules_, outputs) if model.rules_ else None,
        "linear": _linear(model.linear_terms_, outputs) if _has_linear(model) else None,
        "lengths": ", ".join(
            f"{n} with {count(int(k), 'condition')}" for k, n in zip(*lengths, strict=True)
        ),
        "card": _card(subject),
        "search": _search(model) if "cv_results_" in model._declaration.saved else None,
    }
    return Section("rules", "Rules", values)


def _table(rules: Any, outputs: list[Any]) -> Table:
    one = len(outputs) == 1
    place = 2 if one else 1  # weights of many classes scroll, the coverage must not
    titles = ["weight"] if one else [clip(name, _TITLE) for name in outputs[:_OUTPUTS]]
    # Rules are ordered by all outputs, so no single column is sorted.
    columns = [text_column("rule"), *map(Column, titles)]
    columns.insert(place, Column("covers"))
    columns.insert(0, text_column("about"))
    largest = max((abs(w) for rule in rules for w in rule.weights), default=1.0) or 1.0
    rows = []
    for about, group in group_by_columns((rule, None) for rule in rules[:_MOST]):
        for rule, _ in group:
            weights = [_weight(w, largest) for w in rule.weights[:_OUTPUTS]]
            row: list[Any] = [rule.text, *weights]
            row.insert(place, meter(rule.coverage, percent(rule.coverage)))
            rows.append([about, *row])
    return Table("rules", columns, rows, len(rules))


def _has_linear(model: Any) -> bool:
    return bool(getattr(model, "linear_terms_", ()))  # older model files lack them


def _linear(terms: Any, outputs: list[Any]) -> Table:
    """Return the linear terms with their ranges and what one unit adds."""
    one = len(outputs) == 1
    titles = ["per unit"] if one else [clip(name, _TITLE) for name in outputs[:_OUTPUTS]]
    columns = [text_column("column"), *map(Column, ("from", "to", "mean", *titles))]
    rows: list[list[Any]] = [
        [
            term.feature,
            *(number(value, ".4g") for value in (term.low, term.high, term.mean)),
            *(number(w, "+.3g") for w in term.weights[:_OUTPUTS]),
        ]
        for term in terms
    ]
    return Table("linear terms", columns, rows)


def _card(subject: Subject) -> dict[str, Any] | None:
    """Return the scorecard, with the effect of rounding on the rows of the page."""
    model = subject.estimator
    if not model._added or len(model.intercept_) > _OUTPUTS:
        return None
    card = model.to_scorecard(subject.rows)
    titles = [text_column("rule"), *(Column(clip(name, _TITLE)) for name in card.outputs)]
    rows = [[rule, *(number(p, "+d") for p in points)] for _, rule, points in card.lines]
    notes = [clip(note, _NOTE) for note in card.notes]
    return {"table": Table("points", titles, rows[:_MOST], len(rows)), "notes": notes}


def _weight(value: float, largest: float) -> Cell:
    share = abs(value) / largest
    return meter(share, f"{value:+.3g}" if share > _NOTHING else "0", negative=value < 0)


def _search(model: Any) -> dict[str, Any] | None:
    """Return the score as a function of C or of the number of rules, where they were chosen."""
    found = model.cv_results_
    if len(found["C"]) < 2:
        return None
    by_rules = "max_rules" in found
    path = rule_path(found)
    places, means = (path.n_rules, path.score) if by_rules else (found["C"], found["mean_score"])
    low, high = float(means.min()), float(means.max())
    if low == high:  # accuracy and R\u00b2 alike end at one
        low, high = low - 0.1, max(low, min(high + 0.1, 1.0))
    what = "the number of rules" if by_rules else "C"
    where = f"{places[means.argmax()]:.3g} rules" if by_rules else f"C = {model.C_:g}"
    best = f"{means.max():.3g} at {where}"
    if by_rules:
        axis = linear(min(1.0, float(places.min())), float(places.max()), lambda p: f"{p:g}")
    else:
        axis = logarithmic(places.min(), places.max(), lambda p: f"{p:g}")
    chart = Chart(
        axis,
        f"Mean score over {what}; the best is {best}.",
        f"Mean score on held-out folds of the training rows; {what} was chosen by it.",
        title="number of rules" if by_rules else "C, the cost of errors",
        y=linear(low, high, lambda v: f"{v:.3g}"),
        level=(means.max(), f"best: {best}"),
        line=(places, means),
    )
    columns = [text_column("C"), *map(Column, ("mean score", "deviation", "rules"))]
    order = np.lexsort((found["n_rules"], found["C"]))
    rows = [
        [
            number(found["C"][k], "g"),
            number(found["mean_score"][k]),
            number(found["std_score"][k], ".2g"),
            number(found["n_rules"][k], ".1f"),
        ]
        for k in order
    ]
    similarity = getattr(model, "fold_similarity_", np.nan)  # older model files lack it
    return {
        "chart": chart,
        "table": Table("values of C", columns, rows),
        "what": f"{what} and C" if by_rules else what,
        "similarity": None if np.isnan(similarity) else percent(similarity),
    }
