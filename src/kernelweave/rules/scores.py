"""Scores of rows: which rules hold, and the sum of their weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from kernelweave._threads import run_each
from kernelweave._types import Bools, Floats
from kernelweave.errors import InputError

from .linear import LinearTerm, Term, is_linear
from .proposition import Proposition
from .rule import Rule, finite
from .table import Table, read_table

# Rules summed before their sum is added to the score. Exported models add in the same order, so
# that scores agree to the last bit; a database may refuse one sum of thousands of terms.
BLOCK = 64


def cover_rules(rules: Sequence[Rule], X: Any) -> Bools:
    """Return which rules hold for which rows.

    Parameters
    ----------
    rules : sequence of Rule
        The rules.
    X : array-like or data frame of shape (n_samples, n_features)
        Columns of a frame are found by name, others by position.

    Returns
    -------
    true : ndarray of bool of shape (n_samples, n_rules)
        Each column is contiguous in memory.

    Examples
    --------
    >>> from kernelweave.rules import Proposition, Rule, cover_rules
    >>> young = Rule((Proposition("age", 0, "<=", 30),), 1.0, 0.5)
    >>> cover_rules([young], [[20], [40]]).tolist()
    [[True], [False]]
    """
    table = read_table(X)
    holds = _amounts(table)
    true = np.empty((table.n_rows, len(rules)), dtype=bool, order="F")
    for j, rule in enumerate(rules):
        true[:, j] = holds(rule)
    return true


def read_terms(terms: Sequence[Term], X: Any) -> Floats:
    """Return what the weights of rules and linear terms are multiplied with, in one column each.

    That is one where a rule holds and zero elsewhere, and the distance of a clipped column from its
    mean.
    """
    table = read_table(X)
    amounts = _amounts(table)
    out = np.empty((table.n_rows, len(terms)), order="F")
    for j, term in enumerate(terms):
        out[:, j] = amounts(term)
    return out


def cached_truths(table: Table) -> Callable[[Proposition | LinearTerm], Any]:
    """Return a function from a condition to the rows where it holds; columns are read once."""
    column = cache(table.find)

    @cache
    def true(condition: Proposition | LinearTerm) -> Any:
        return condition.amounts(column(condition.feature, condition.position))

    return true


def _amounts(table: Table) -> Callable[[Term], Any]:
    """Return a function from a term to its amounts; columns and conditions are cached."""
    true = cached_truths(table)

    def amounts(term: Term) -> Any:
        found: Any = np.ones(table.n_rows, dtype=bool)
        for condition in term.conditions:
            found = found * true(condition)  # of truth values: both hold
        return found

    return amounts


def score_rules(
    rules: Sequence[Term], intercept: float | Sequence[float] | Floats, X: Any
) -> Floats:
    """Add up the weights of the rules that hold: ``intercept + sum of weight * [rule holds]``.

    Of a linear term, the weight is multiplied with the distance of the clipped column from its
    mean.

    The sum runs over blocks of rules in a fixed order, the same as in `to_sql` and `to_python`.
    Rows are read a block at a time, so that no column is held as a whole in another form.

    Parameters
    ----------
    rules : sequence of Rule or LinearTerm
        Each with as many weights as there are outputs.
    intercept : float or sequence of float
        One for each output.
    X : array-like or data frame of shape (n_samples, n_features)
        Columns of a frame are found by name, others by position.

    Returns
    -------
    scores : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        One column for each output; a vector where ``intercept`` is a number.

    Examples
    --------
    >>> from kernelweave.rules import Proposition, Rule, score_rules
    >>> young = Rule((Proposition("age", 0, "<=", 30),), 1.0, 0.5)
    >>> score_rules([young], -0.25, [[20], [40]])
    array([ 0.75, -0.25])
    """
    start = check_outputs(rules, intercept)
    table = read_table(X)
    scores = np.empty((table.n_rows, len(start)))

    def work(rows: slice) -> None:
        scores[rows] = _score(rules, start, table.rows(rows))

    run_each(work, table.blocks())
    return scores[:, 0] if np.ndim(intercept) == 0 else scores


def _score(rules: Sequence[Term], start: tuple[float, ...], table: Table) -> Floats:
    amounts = _amounts(table)
    scores = np.tile(np.array(start), (table.n_rows, 1))
    for block in blocks(rules):
        part = np.zeros_like(scores)
        for rule in block:
            part += amounts(rule)[:, None] * np.array(rule.weights)
        scores += part
    return scores


def blocks(rules: Sequence[Term]) -> Iterator[Sequence[Term]]:
    """Yield the rules that are summed before their sum is added to the score."""
    for start in range(0, len(rules), BLOCK):
        yield rules[start : start + BLOCK]


def check_outputs(
    rules: Sequence[Term], intercept: float | Sequence[float] | Floats
) -> tuple[float, ...]:
    """Return the intercepts as a tuple, and refuse rules with another number of weights."""
    several = np.ndim(intercept) > 0
    values = np.asarray(intercept).ravel().tolist() if several else [intercept]
    start = tuple(finite("intercept", value) for value in values)
    if not start:
        raise InputError("intercept must be a number, or one for each output, got none.")
    for i, rule in enumerate(rules):
        if len(rule.weights) != len(start):
            raise InputError(
                f"rules: each needs as many weights as there are intercepts, {len(start)}, but "
                f"rule {i} has {len(rule.weights)}."
            )
    return start


@dataclass(frozen=True)
class Explanation:
    """The rules and weights behind the score of a row.

    Attributes
    ----------
    rules : tuple of Rule
        The rules that hold for the row, those with the largest weights first.
    intercept : tuple of float
        One for each output.
    scores : tuple of float
        The intercept, the weights of these rules and what linear terms add, added up.
    linear : tuple of (LinearTerm, tuple of float)
        The linear terms, and what each adds, one number for each output.
    """

    rules: tuple[Rule, ...]
    intercept: tuple[float, ...]
    scores: tuple[float, ...]
    linear: tuple[tuple[LinearTerm, tuple[float, ...]], ...] = ()

    @property
    def text(self) -> str:
        """One line for each rule and linear term, the intercept and the score."""
        lines = [(rule.weights, rule.text) for rule in self.rules]
        lines += [(added, term.text) for term, added in self.linear]
        lines += [(self.intercept, "intercept"), (self.scores, "score")]
        return "\n".join(
            " ".join(f"{value:+10.4g}" for value in values) + f"  {text}" for values, text in lines
        )

    def __str__(self) -> str:
        return self.text


def explain_rows(
    rules: Sequence[Term], intercept: float | Sequence[float] | Floats, X: Any
) -> tuple[Explanation, ...]:
    """Return for each row the rules that hold and the sum of their weights.

    Parameters
    ----------
    rules : sequence of Rule or LinearTerm
        Each with as many weights as there are outputs.
    intercept : float or sequence of float
        One for each output.
    X : array-like or data frame of shape (n_samples, n_features)
        Columns of a frame are found by name, others by position.

    Returns
    -------
    explanations : tuple of Explanation
        One for each row.

    Examples
    --------
    >>> from kernelweave.rules import Proposition, Rule, explain_rows
    >>> young = Rule((Proposition("age", 0, "<=", 30),), 1.0, 0.5)
    >>> print(explain_rows([young], -0.25, [[20], [40]])[0])
            +1  age <= 30
         -0.25  intercept
         +0.75  score
    """
    start = check_outputs(rules, intercept)
    scores = score_rules(rules, start, X)
    linear = [term for term in rules if is_linear(term)]
    plain = [term for term in rules if not is_linear(term)]
    largest = np.array([max(map(abs, rule.weights)) for rule in plain])
    order = np.argsort(-largest, kind="stable")
    covered = cover_rules(plain, X)[:, order]
    weights = np.array([term.weights for term in linear]).reshape(len(linear), len(start))
    added = (read_terms(linear, X)[:, :, None] * weights).tolist()
    return tuple(
        Explanation(
            tuple(plain[order[j]] for j in np.flatnonzero(row)),
            start,
            tuple(score.tolist()),
            tuple(zip(linear, map(tuple, own), strict=True)),
        )
        for row, score, own in zip(covered, scores, added, strict=True)
    )
