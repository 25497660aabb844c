"""Decisions of a person on labels that were reviewed, and labels with these decisions applied.

A list of decisions has a line for each reviewed row: ``row`` (from 0), ``decision`` (keep, change
or unsure), ``given`` (the label at the time) and ``label`` (the right one). Decisions on pairs have
``left`` and ``right`` in place of ``row``. Rows that are kept or changed are certain from then on.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Bools, Indices
from kernelweave._validation import is_frame, is_missing
from kernelweave.errors import DataError, InputError, InputTypeError

_KINDS = ("keep", "change", "unsure")
PAIR_LABELS = {"same": 1, "different": -1, "1": 1, "-1": -1}


@dataclass(frozen=True)
class Decision:
    """What a person decided on one label: the place, the kind, and both labels as text."""

    place: tuple[int, ...]  # the row, or the two rows of a pair
    kind: str
    given: str
    label: str

    @property
    def is_certain(self) -> bool:
        return self.kind != "unsure"


@dataclass(frozen=True)
class Decided:
    """Labels with decisions applied.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Labels of all rows, or of all pairs: those given, changed where that was decided.
    certain : ndarray of bool of shape (n_samples,)
        Whether a label was kept or changed by a person.
    unsure : ndarray of int
        Rows, or positions of pairs, on which the person was unsure.
    pairs : ndarray of shape (n_samples, 2) or None
        The pairs, decided ones that were not among those given at the end.
    """

    labels: NDArray[Any]
    certain: Bools
    unsure: Indices
    pairs: Indices | None = None

    @property
    def known(self) -> NDArray[Any]:
        """Labels of certain rows and None elsewhere, for ``fit(X, y, known=...)``."""
        out = np.full(len(self.labels), None, dtype=object)
        out[self.certain] = np.asarray(self.labels, dtype=object)[self.certain]
        return out


def read_decisions(source: Any) -> list[Decision]:
    """Return decisions from a file, a data frame, or a list of dicts; the last one of a row counts.

    Parameters
    ----------
    source : str, path, data frame or list
        A CSV file that the review page exported, or its content.

    Returns
    -------
    decisions : list of Decision
        In the order of their rows.
    """
    found: dict[tuple[int, ...], Decision] = {}
    for number, line in enumerate(_lines(source), 1):
        one = _decision(line, number)
        place = tuple(sorted(one.place))
        found[place] = one
    return [found[place] for place in sorted(found)]


def _lines(source: Any) -> Iterable[Mapping[str, Any]]:
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise DataError(f"decisions: {path} is not a text file in UTF-8.") from None
        return list(csv.DictReader(text.splitlines(keepends=True)))
    if is_frame(source):
        return list(nw.from_native(source, eager_only=True).iter_rows(named=True))
    if not isinstance(source, list | tuple) or not all(isinstance(x, Mapping) for x in source):
        raise InputTypeError(
            "decisions: must be a file, a data frame or a list of dicts with row, decision and "
            f"label, got {type(source).__name__}."
        )
    return source


def _decision(line: Mapping[str, Any], number: int) -> Decision:
    named = [name for name in ("row", "left", "right") if line.get(name) not in (None, "")]
    if named not in (["row"], ["left", "right"]) or "decision" not in line:
        raise DataError(
            f"decisions: entry {number} must have the columns row (or left and right), decision "
            "and label, as the review page writes them."
        )
    try:
        place = tuple(int(line[name]) for name in named)
    except (TypeError, ValueError):
        place = (-1,)
    if min(place) < 0:
        raise DataError(f"decisions: entry {number} has no row number from 0 on.")
    kind = str(line["decision"]).strip()
    if kind not in _KINDS:
        raise DataError(
            f"decisions: entry {number} must say keep, change or unsure, but says {kind!r}."
        )
    given, label = (_text(line.get(name)) for name in ("given", "label"))
    if kind != "unsure" and label == "":
        raise DataError(f"decisions: entry {number} says {kind}, but has no label.")
    return Decision(place, kind, given, label)


def _text(value: Any) -> str:
    if value is None or is_missing(value):
        return ""
    # Whole numbers of a frame are floats where others of their column are missing.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def apply_decisions(y: Any, decisions: Any, *, pairs: Any = None) -> Decided:
    """Return labels with the decisions of a person applied.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels of the rows; with ``pairs`` their labels, +1 for same and -1 for different.
    decisions : str, path, data frame or list
        The CSV file that the page of ``kernelweave review`` exports, or its content.
    pairs : array of shape (n_samples, 2), optional
        Row numbers of the pairs that ``y`` labels. Decided pairs that are not among them are
        added.

    Returns
    -------
    decided : Decided
        With `labels`, `certain`, `known` and `unsure`.

    Examples
    --------
    >>> from kernelweave import apply_decisions
    >>> lines = [{"row": 1, "decision": "change", "given": "cat", "label": "dog"}]
    >>> decided = apply_decisions(["cat", "cat", "dog"], lines)
    >>> decided.labels.tolist(), decided.certain.tolist()
    (['cat', 'dog', 'dog'], [False, True, False])
    >>> decided.known.tolist()
    [None, 'dog', None]
    """
    found = read_decisions(decisions)
    width = 1 if pairs is None else 2
    if any(len(one.place) != width for one in found):
        what = "rows, but pairs were given" if pairs is not None else "pairs; give these as pairs"
        raise InputError(f"decisions: they are on {what}.")
    return _apply(y, found) if pairs is None else _apply_to_pairs(y, found, pairs)


def _apply(y: Any, found: list[Decision]) -> Decided:
    given = np.asarray(y)
    labels, certain, unsure = given.astype(object), np.zeros(len(given), dtype=bool), []
    there = [label for label in labels.tolist() if not is_missing(label)]
    classes = {text: label for label in there for text in (_text(label), str(label))}
    for one in found:
        (row,) = one.place
        if row >= len(labels):
            raise InputError(
                f"decisions: row {row} does not exist; there are {len(labels)} labels."
            )
        now = _text(labels[row])
        if one.given and now and one.given not in (now, str(labels[row])):
            raise InputError(
                f"decisions: row {row} was labelled {one.given!r} when it was reviewed, but is "
                f"{now!r} here. Hint: apply decisions to the labels that were reviewed."
            )
        if not one.is_certain:
            unsure.append(row)
            continue
        if one.label not in classes and not all(isinstance(c, str) for c in classes.values()):
            listed = ", ".join(list(dict.fromkeys(map(str, there)))[:8])
            raise InputError(
                f"decisions: row {row} is labelled {one.label!r}, which is no class; these are: "
                f"{listed}."
            )
        labels[row], certain[row] = classes.get(one.label, one.label), True
    kept = labels if given.dtype.kind == "O" else np.array(labels.tolist())
    return Decided(kept, certain, np.array(unsure, dtype=np.intp))


def _apply_to_pairs(y: Any, found: list[Decision], pairs: Any) -> Decided:
    places = [tuple(map(int, pair)) for pair in np.asarray(pairs).tolist()]
    labels = [int(label) for label in np.asarray(y).tolist()]
    where = {tuple(sorted(pair)): k for k, pair in enumerate(places)}
    certain, unsure = set(), []
    for one in found:
        key = tuple(sorted(one.place))
        if not one.is_certain:
            unsure += [where[key]] if key in where else []
            continue
        if one.label not in PAIR_LABELS:
            raise InputError(
                f"decisions: the pair {one.place} must be labelled same or different, got "
                f"{one.label!r}."
            )
        if key not in where:
            where[key] = len(places)
            places.append(one.place)
            labels.append(0)
        labels[where[key]] = PAIR_LABELS[one.label]
        certain.add(where[key])
    flags = np.isin(np.arange(len(labels)), list(certain))
    return Decided(
        np.array(labels),
        flags,
        np.array(unsure, dtype=np.intp),
        np.array(places, dtype=np.intp).reshape(-1, 2),
    )


def merge_known(y: Any, known: Any) -> tuple[NDArray[Any], Bools | None]:
    """Return labels in which known ones take the place of those given, and where that is so."""
    given = np.asarray(y)
    if known is None:
        return given, None
    certain = find_known(known, len(given))
    labels = given.astype(object)
    labels[certain] = np.asarray(known, dtype=object)[certain]
    return (labels if given.dtype.kind == "O" else np.array(labels.tolist())), certain


def find_known(known: Any, n_rows: int) -> Bools:
    """Return which entries of a list of known labels are not missing."""
    cells = np.asarray(known, dtype=object)
    if cells.shape != (n_rows,):
        raise InputError(
            f"known: must have an entry for each of the {n_rows} rows, None where the label is not "
            f"known, got an array of shape {cells.shape}."
        )
    return np.array([not is_missing(one) for one in cells.tolist()], dtype=bool)
