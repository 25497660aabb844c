"""The learning problem of a table: features, target, and the kind of target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import has_fit_parameter

from kernelweave._validation import refuse_gaps
from kernelweave.errors import DataError, InputError
from kernelweave.io.dates import FORMATS

from .columns import ColumnKind, describe_columns
from .reading import is_number

if TYPE_CHECKING:
    import pandas as pd

    from kernelweave.noise.decisions import Decision

TASKS = ("auto", "classification", "regression")
MISSING = ("fill", "refuse", "off", "complete")
_MANY = 20  # different numbers in a target beyond which it is taken as regression


@dataclass(frozen=True)
class Problem:
    """Columns to learn from, and a target.

    Attributes
    ----------
    X : pandas.DataFrame
        Columns to learn from; the index counts the rows of the file from 0.
    y : pandas.Series
        The target.
    regression : bool
        Whether the target is a number, not a class.
    kinds : tuple of ColumnKind
        Kinds of the columns of ``X`` and of those left out.
    grams : dict
        Ready Gram matrices, by the column of ``X`` with their row numbers.
    notes : tuple of str
        Sentences on rows that were left out.
    decisions : tuple of Decision
        Decisions of a person, applied to ``y``; see `decide`.
    groups : pandas.Series or None
        For each row the number of its group, as of a person with several rows. Folds leave out
        whole groups.
    sources : dict of str to tuple of str
        Columns that are measured together, and missing together.
    missing : {"fill", "refuse", "off", "complete"}
        What is done with missing values; the last two concern whole sources.
    """

    X: pd.DataFrame
    y: pd.Series[Any]
    regression: bool
    kinds: tuple[ColumnKind, ...]
    grams: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    groups: pd.Series[Any] | None = None
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: str = "fill"

    @property
    def has_own_kernels(self) -> bool:
        """Whether sources and gaps ask for kernels that only some methods have."""
        return bool(self.sources) or self.missing in ("off", "complete")

    def columns(self, *kinds: str) -> list[str]:
        """Return the names of the columns of these kinds."""
        return [c.name for c in self.kinds if c.kind in kinds]

    def take(self, rows: Any) -> Problem:
        """Return the problem on some rows, given by position."""
        groups = None if self.groups is None else self.groups.iloc[rows]
        return replace(self, X=self.X.iloc[rows], y=self.y.iloc[rows], groups=groups)

    def without(self, columns: Sequence[str]) -> Problem:
        """Return the problem without some columns."""
        kinds = tuple(c for c in self.kinds if c.name not in columns)
        grams = {name: gram for name, gram in self.grams.items() if name not in columns}
        rest = {k: tuple(c for c in own if c not in columns) for k, own in self.sources.items()}
        sources = {name: own for name, own in rest.items() if own}
        X = self.X.drop(columns=list(columns))
        return replace(self, X=X, kinds=kinds, grams=grams, sources=sources)

    def decide(self, decisions: Any) -> Problem:
        """Return the problem with the decisions of a person; rows are those of the file."""
        from kernelweave.noise import apply_decisions, read_decisions  # takes long to import

        found = tuple(read_decisions(decisions))
        if not found or len(found[0].place) > 1:  # decisions on pairs change no label
            return replace(self, decisions=found)
        whole = np.full(int(self.y.index.max()) + 1, None, dtype=object)
        whole[self.y.index] = self.y.to_numpy(dtype=object)
        labels = apply_decisions(whole, decisions).labels[self.y.index]
        y = self.y.astype(object).copy()
        y[:] = labels
        n = sum(one.is_certain for one in found)
        note = f"{n} label(s) were decided by a person and count as certain"
        typed = y if self.y.dtype.kind == "O" else y.astype(self.y.dtype)
        return replace(self, y=typed, decisions=found, notes=(*self.notes, note))

    def fit_arguments(self, estimator: Any) -> dict[str, Any]:
        """Return what decisions add to the arguments of `fit`, for estimators that know of them."""
        if not self.decisions:
            return {}
        if has_fit_parameter(estimator, "known"):
            certain = [one.place[0] for one in self.decisions if one.is_certain]
            known = self.y.astype(object).where(self.y.index.isin(certain), None)
            return {"known": known.to_numpy(dtype=object)}
        if has_fit_parameter(estimator, "pairs") and len(self.decisions[0].place) > 1:
            return self._decided_pairs(estimator)
        return {}

    def _decided_pairs(self, estimator: Any) -> dict[str, Any]:
        """Return pairs drawn from the classes, with those that a person has decided on."""
        from kernelweave.noise import apply_decisions
        from kernelweave.pairs import read_pairs

        place = {row: k for k, row in enumerate(self.y.index.tolist())}
        lines = [
            {"left": place[a], "right": place[b], "decision": one.kind, "label": one.label}
            for one in self.decisions
            for a, b in [one.place]
            if a in place and b in place
        ]
        options = {"n_pairs": estimator.n_pairs, "random_state": estimator.random_state}
        drawn, labels = read_pairs(None, None, self.y.to_numpy(), len(self.y), **options)
        decided = apply_decisions(labels, lines, pairs=drawn)
        return {"pairs": decided.pairs, "labels": decided.labels}

    @property
    def dates(self) -> dict[str, str] | None:
        """Formats of the columns of dates when they are written as text; None without dates."""
        return {c.name: c.format or FORMATS[0] for c in self.kinds if c.kind == "date"} or None


def make_problem(
    frame: pd.DataFrame,
    target: str,
    *,
    ignore: Sequence[str] = (),
    task: str = "auto",
    grams: Mapping[str, Any] | None = None,
    groups: str | None = None,
    sources: Mapping[str, Sequence[str]] | None = None,
    missing: str = "fill",
) -> Problem:
    """Split a table into columns to learn from and a target.

    Rows without a target, and columns without information, are left out.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    target : str
        The column to predict.
    ignore : sequence of str
        Columns to leave out.
    task : {"auto", "classification", "regression"}
        What the target is; "auto": regression if it has numbers with decimals, or more than 20
        different numbers.
    grams : dict, optional
        Ready Gram matrices by name. A column of this name holds their row numbers; where there is
        none, row i of the table is row i of the matrix.
    groups : str, optional
        The column that says which rows belong together, as those of one person. It is left out; a
        row without a value is a group of its own.
    sources : dict of str to sequence of str, optional
        Columns of each source, by names or patterns such as ``"lab_*"``: they are measured
        together, get kernels of their own, and may be missing together.
    missing : {"fill", "refuse", "off", "complete"}
        Missing values are filled and marked, or an error. "off" and "complete": a source that a
        row lacks does not count, or is estimated from the others; single values are filled.

    Returns
    -------
    problem : Problem
        With notes on what was left out.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, 55, 47], "ill": ["no", "yes", None], "unit": "kg"})
    >>> problem = make_problem(frame, "ill")
    >>> problem.X.columns.tolist(), problem.regression
    (['age'], False)
    >>> problem.notes
    ("1 row(s) without a value of 'ill' are left out",)
    """
    if task not in TASKS:
        raise InputError(f"task: must be one of {', '.join(map(repr, TASKS))}, got {task!r}.")
    for column in (target, *ignore, *([groups] if groups else [])):
        check_column(frame, column)
    if groups == target:
        raise InputError(f"groups: must be another column than the target, got {groups!r}.")
    frame, notes = add_row_numbers(frame, grams or {}), []
    unknown = frame[target].isna()
    if unknown.any():
        frame = frame[~unknown]
        notes.append(f"{unknown.sum()} row(s) without a value of {target!r} are left out")
    if not len(frame):
        raise DataError(f"The column {target!r} has no values.")
    y, regression = _typed_target(frame[target], task)
    hidden = [*ignore, *([groups] if groups and groups not in ignore else [])]
    X = frame.drop(columns=[target, *hidden, *(grams or {})])
    kinds = describe_columns(X)
    useless = [c.name for c in kinds if c.kind == "none"]
    if len(useless) == len(X.columns) and not grams:
        why = "; ".join(f"{c.name!r}: {c.why}" for c in kinds)
        raise DataError(f"No column is left to learn from{f' ({why})' if why else ''}.")
    X = X.drop(columns=useless)
    found, lacking = read_sources(X, sources or {}, missing, useless)
    for name, absent in lacking.items():
        if absent.any():
            notes.append(f"{absent.sum()} of {len(X)} rows lack the source {name!r}")
    kinds = [_beside(kind, X, found, lacking) for kind in kinds]
    X = X.assign(**{name: frame[name] for name in grams or {}})
    together = None if groups is None else _number_groups(frame[groups])
    if together is not None:
        notes.append(
            f"rows with the same {groups!r} stay together when rows are left out "
            f"({together.nunique()} groups); {groups!r} itself is not learned from"
        )
    return Problem(
        X,
        y,
        regression,
        tuple(kinds),
        dict(grams or {}),
        tuple(notes),
        groups=together,
        sources=found,
        missing=missing,
    )


def _number_groups(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the number of the group of every row; a gap is a group of its own."""
    import pandas as pd

    codes, values = pd.factorize(column)
    gaps = codes < 0
    codes[gaps] = len(values) + np.arange(gaps.sum())
    if len(values) + gaps.sum() < 2:
        raise InputError(f"groups: the column {column.name!r} has one value only.")
    return pd.Series(codes, column.index)


def read_sources(
    X: pd.DataFrame,
    sources: Mapping[str, Sequence[str]],
    missing: str,
    useless: Sequence[str] = (),
) -> tuple[dict[str, tuple[str, ...]], dict[str, Any]]:
    """Return the columns of each source, and which rows lack it; check the rule for gaps.

    ``useless`` columns may be named, too: they were in the table, and nothing is learned from them.
    """
    if missing not in MISSING:
        raise InputError(f"missing: must be one of {', '.join(MISSING)}, got {missing!r}.")
    if missing == "complete" and len(sources) < 2:
        raise InputError(
            "missing: 'complete' estimates a source from the others, so it needs two sources or "
            f"more, got {len(sources)}."
        )
    if missing == "refuse":
        refuse_gaps(nw.from_native(X))
    found = {}
    for name, patterns in sources.items():
        found[name] = tuple(c for c in X.columns if any(fnmatchcase(c, p) for p in patterns))
        known = [*X.columns, *(useless if found[name] else ())]
        unknown = [p for p in patterns if not any(fnmatchcase(c, p) for c in known)]
        if unknown:
            raise DataError(
                f"source {name!r}: no column to learn from is named {' or '.join(unknown)}."
            )
    lacking = {name: X[[*columns]].isna().all(axis=1) for name, columns in found.items()}
    for name, rows in lacking.items():
        if rows.all():
            raise DataError(f"source {name!r}: all rows lack it; leave it out.")
    return found, lacking


def _beside(
    kind: ColumnKind,
    X: pd.DataFrame,
    sources: Mapping[str, tuple[str, ...]],
    lacking: Mapping[str, Any],
) -> ColumnKind:
    """Return the kind of a column without the gaps of rows that lack its whole source."""
    absent = [lacking[name] for name, columns in sources.items() if kind.name in columns]
    if not absent:
        return kind
    return replace(kind, missing=int((X[kind.name].isna() & ~absent[0]).sum()))


def add_row_numbers(frame: pd.DataFrame, grams: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table with a column of row numbers for every Gram matrix, by their names."""
    for name, gram in grams.items():
        if name in frame.columns:
            continue
        if len(gram) != len(frame):
            raise DataError(
                f"The matrix {name!r} has {len(gram)} rows, but the table {len(frame)}; give the "
                f"table a column {name!r} with the row of the matrix for each of its rows."
            )
        frame = frame.assign(**{name: np.arange(len(frame))})
    return frame


def check_column(frame: pd.DataFrame, column: str) -> None:
    """Refuse the name of a column that a table does not have."""
    names = list(map(str, frame.columns))
    if column in names:
        return
    if near := get_close_matches(column, names, n=3):
        hint = f"did you mean {' or '.join(map(repr, near))}?"
    else:
        listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        hint = f"its columns are: {listed}"
    raise DataError(f"The table has no column {column!r}; {hint}")


def _typed_target(y: pd.Series[Any], task: str) -> tuple[pd.Series[Any], bool]:
    """Return the target in the type that its method needs, and whether that is regression."""
    number = is_number(y)
    if number:
        y = y.astype(bool) if y.dtype.kind == "b" else y.astype(y.to_numpy().dtype)
    whole = not number or bool((y == np.floor(y)).all())
    regression = (
        number and (not whole or y.nunique() > _MANY) if task == "auto" else (task == "regression")
    )
    if regression:
        if not number:
            raise InputError(
                f"task: for regression, the target {y.name!r} must hold numbers, but has "
                f"{y.iloc[0]!r}."
            )
        y = y.astype(float)
        if not np.isfinite(y).all() or y.std() == 0:
            raise InputError(f"The target {y.name!r} must have finite and different values.")
        return y, True
    if not whole:
        raise InputError(
            f"task: the target {y.name!r} holds numbers with decimals, which are no classes."
        )
    n_classes = y.nunique()
    if n_classes < 2:
        raise InputError(f"The target {y.name!r} has one class only: {str(y.iloc[0])!r}.")
    if task == "auto" and n_classes > 0.5 * len(y) and n_classes > _MANY:
        raise InputError(
            f"The target {y.name!r} has {n_classes} different values in {len(y)} rows, which are "
            "too many for classes; is it the right column?"
        )
    if number:
        return (y if y.dtype.kind == "b" else y.astype(np.int64)), False
    return y.astype(object).map(str), False
