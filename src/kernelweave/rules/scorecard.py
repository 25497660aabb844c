"""Scorecards: rules with whole points that can be added up by hand."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from kernelweave._types import Floats
from kernelweave.errors import InputError

from .cuts import cut_between
from .export import Model
from .linear import LinearTerm, Term, is_linear
from .proposition import Proposition
from .rule import Rule
from .scores import cover_rules, score_rules

if TYPE_CHECKING:
    import pandas as pd

LARGEST = (5, 10, 20, 50, 100, 200, 500, 1000)  # points of the heaviest rule that are tried
FEW_CHANGES = 0.01  # share of decisions that rounding may change where the points are chosen
_BANDS = 10  # of a linear term, at most
_UNKNOWN = 100  # points of the heaviest rule where there are no rows to choose by

T = TypeVar("T")


def group_by_columns(items: Iterable[tuple[Rule, T]]) -> list[tuple[str, list[tuple[Rule, T]]]]:
    """Return rules, each with something that stays with it, by the columns of their conditions.

    Groups come in the order of their first rule, rules of a group in the order given.
    """
    groups: dict[str, list[tuple[Rule, T]]] = {}
    for rule, item in items:
        groups.setdefault(" and ".join(rule.columns) or "all rows", []).append((rule, item))
    return list(groups.items())


@dataclass(frozen=True)
class Scorecard:
    """Rules with whole points.

    Parameters
    ----------
    rules : tuple of Rule
        Those with points. A linear term becomes a rule for each of up to ten bands of its column;
        the coverage of these is zero, since their rows were not counted.
    points : tuple of tuple of int
        For each rule, one number for each output.
    base : tuple of int
        Points of every row, one number for each output.
    outputs : tuple of str
        Titles of the columns of points.
    decision : str
        A sentence that says what follows from the sum.
    scale : float
        Points of a score of one.
    n_dropped : int
        Rules whose points are all zero.
    is_regression : bool
        Whether the sum is a prediction, and not a score that decides.
    n_rows : int
        Rows on which the effect of rounding was measured; zero: it was not.
    changed : float
        Share of them that the card decides otherwise than the model. For regression: the largest
        difference of a prediction.
    """

    rules: tuple[Rule, ...]
    points: tuple[tuple[int, ...], ...]
    base: tuple[int, ...]
    outputs: tuple[str, ...]
    decision: str
    scale: float
    n_dropped: int
    is_regression: bool = False
    n_rows: int = 0
    changed: float = np.nan

    def totals(self, X: Any) -> Floats:
        """Return the points of every row, one column for each output.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.
        """
        covered = cover_rules(self.rules, X).astype(np.int64)
        points = np.array(self.points, dtype=np.int64).reshape(len(self.rules), len(self.base))
        return np.asarray(covered @ points + np.array(self.base), dtype=np.float64)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences below the table: how to decide, and what rounding changes."""
        dropped = f" {self.n_dropped} rules round to zero points and are left out."
        found = [self.decision + (dropped if self.n_dropped else "")]
        if not self.n_rows:
            found.append("The effect of rounding was not measured: no rows were given.")
        elif self.is_regression:
            most = f"by {self.changed:.3g} at most, on {self.n_rows} rows"
            found.append(f"Rounding changes a prediction {most}.")
        else:
            found.append(f"Rounding changes {self.changed:.2%} of {self.n_rows} decisions.")
        return tuple(found)

    @property
    def lines(self) -> list[tuple[str, str, tuple[int, ...]]]:
        """Columns, rule and points of each line, grouped by columns; the base comes first."""
        groups = group_by_columns(zip(self.rules, self.points, strict=True))
        listed = [(about, rule.text, p) for about, pairs in groups for rule, p in pairs]
        return [("", "base", self.base), *listed]

    def to_frame(self) -> pd.DataFrame:
        """Return the card as a table with the columns ``about``, ``rule`` and points."""
        import pandas as pd

        points = {name: [line[2][t] for line in self.lines] for t, name in enumerate(self.outputs)}
        texts = {
            "about": [line[0] for line in self.lines],
            "rule": [line[1] for line in self.lines],
        }
        return pd.DataFrame({**texts, **points})

    def to_csv(self) -> str:
        """Return the card as comma-separated text."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["about", "rule", *self.outputs])
        writer.writerows([about, rule, *points] for about, rule, points in self.lines)
        return stream.getvalue()

    def to_html(self) -> str:
        """Return the card as a table of HTML to print; all text of the data is escaped."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("rule", *self.outputs))
        rows, last = [], ""
        for about, rule, points in self.lines:
            if about != last:
                span = len(self.outputs) + 1
                rows.append(f'<tr><th colspan="{span}">{html.escape(about)}</th></tr>')
                last = about
            cells = "".join(f"<td>{p:+d}</td>" for p in points)
            rows.append(f"<tr><td>{html.escape(rule)}</td>{cells}</tr>")
        notes = "".join(f"<p>{html.escape(note)}</p>\n" for note in self.notes)
        body = "\n".join(rows)
        return f"<table>\n<tr>{head}</tr>\n{body}\n</table>\n{notes}"

    @property
    def text(self) -> str:
        """The card as plain text."""
        cells = [[f"{p:+d}" for p in points] for _, _, points in self.lines]
        widths = [
            max(len(name), *(len(row[t]) for row in cells)) for t, name in enumerate(self.outputs)
        ]
        left = max(len(rule) + 2 for _, rule, _ in self.lines)

        def line(name: str, values: Sequence[str]) -> str:
            ends = [f"{v:>{w}}" for v, w in zip(values, widths, strict=True)]
            return "  ".join([f"{name:<{left}}", *ends]).rstrip()

        found, last = [line("rule", self.outputs)], ""
        for (about, rule, _), row in zip(self.lines, cells, strict=True):
            if about != last:
                found, last = [*found, about], about
            found.append(line(f"  {rule}" if about else rule, row))
        return "\n".join([*found, *self.notes])

    def __str__(self) -> str:
        return self.text


def make_scorecard(
    model: Model, outputs: Sequence[str], X: Any = None, points: int | None = None
) -> Scorecard:
    """Round the weights of rules to whole points.

    Parameters
    ----------
    model : Model
        Rules, intercepts and classes.
    outputs : sequence of str
        Titles of the outputs; of one output it is not used.
    X : array-like or data frame of shape (n_samples, n_features), default=None
        Rows on which the effect of rounding is measured, such as the training rows.
    points : int, default=None
        Points of the heaviest rule. None: the first of 5, 10, 20, 50, 100, 200, 500 and 1000 with
        which at most 1 % of the decisions for ``X`` change; 100 without ``X``.
    """
    if points is not None and not (isinstance(points, int) and points > 0):
        raise InputError(f"points: must be a positive whole number, got {points!r}.")
    heaviest = max((_largest(term) for term in model.rules), default=0.0)
    heaviest = heaviest or max(map(abs, model.intercept)) or 1.0
    tried = (points,) if points is not None else (_UNKNOWN,) if X is None else LARGEST
    scores = None if X is None else score_rules(model.rules, list(model.intercept), X)
    for largest in tried:
        card = _round(model, outputs, largest / heaviest)
        if scores is None:
            break
        card = replace(card, n_rows=len(scores), changed=_change(model, card, scores, X))
        spread = float(scores.std()) if card.is_regression else 1.0
        if card.changed <= FEW_CHANGES * spread:
            break
    return card


def _largest(term: Term) -> float:
    """Return the most that a rule or a linear term can add to an output."""
    reach = 1.0
    if is_linear(term):
        reach = max(term.high - term.mean, term.mean - term.low)
    return reach * max(map(abs, term.weights))


def _bands(term: LinearTerm, scale: float) -> Iterator[Rule]:
    """Yield rules that hold in bands of equal width, with what the term adds in the middle of each.

    There are no more bands than points between both ends.
    """
    width = term.high - term.low
    most = scale * width * max(map(abs, term.weights))
    n_bands = max(1, min(_BANDS, round(most)))
    step = width / n_bands
    middles = [term.low + (k + 0.5) * step for k in range(n_bands)]
    cuts = [cut_between(*pair) for pair in pairwise(middles)]
    for k, middle in enumerate(middles if cuts else ()):
        ends = [(">", cut) for cut in cuts[k - 1 : k]] if k else []
        ends += [("<=", cut) for cut in cuts[k : k + 1]]
        conditions = tuple(Proposition(term.feature, term.position, o, cut) for o, cut in ends)
        yield Rule(conditions, tuple(w * (middle - term.mean) for w in term.weights), 0.0)


def _round(model: Model, outputs: Sequence[str], scale: float) -> Scorecard:
    rules: list[Rule] = []
    for term in model.rules:
        rules += _bands(term, scale) if is_linear(term) else [term]
    rounded = [tuple(round(w * scale) for w in rule.weights) for rule in rules]
    kept = [k for k, p in enumerate(rounded) if any(p)]
    several = len(model.intercept) > 1
    return Scorecard(
        tuple(rules[k] for k in kept),
        tuple(rounded[k] for k in kept),
        tuple(round(b * scale) for b in model.intercept),
        tuple(map(str, outputs)) if several else ("points",),
        _decision(model, scale),
        scale,
        len(rounded) - len(kept),
        is_regression=not model.classes,
    )


def _decision(model: Model, scale: float) -> str:
    if not model.classes:
        return f"The prediction is the sum of the points divided by {scale:.6g}."
    if len(model.intercept) == 1 or model.separate:
        first, second = model.classes
        each = " of a column" if model.separate else ""
        return f"A sum{each} above 0 predicts {second}, otherwise {first}."
    return "The class with the largest sum is predicted, the first of equal ones."


def _change(model: Model, card: Scorecard, scores: Floats, X: Any) -> float:
    """Return the share of decisions that differ, or the largest difference of a prediction."""
    totals = card.totals(X)
    if not model.classes:
        return float(np.abs(totals / card.scale - scores).max(initial=0.0))
    if scores.shape[1] == 1 or model.separate:
        return float(((totals > 0) != (scores > 0)).mean())
    return float((totals.argmax(axis=1) != scores.argmax(axis=1)).mean())
