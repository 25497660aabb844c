"""The page on which a person reviews labels that look wrong, or pairs that teach most.

The page holds its items as data and shows one at a time; decisions stay in the browser, under the
digest of the content, and are exported as CSV for `kernelweave.apply_decisions`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kernelweave._text import visible
from kernelweave.errors import DataError

from .page import asset, policy
from .rendering import environment
from .reproduce import versions


@dataclass(frozen=True)
class ReviewItem:
    """A label, or the label of a pair, to decide on.

    Attributes
    ----------
    place : tuple of int
        The row of the table, from 0, or the two rows of a pair.
    given, suggested : str
        The label as it is (empty: none), and the one that the model suggests.
    quality : float
        Between 0 and 1: how likely the given label is right.
    why : tuple of str
        Sentences on what contradicts the label.
    columns : tuple of int
        Columns, by position, that contradict the label, the strongest first.
    beside : tuple of (int, str)
        Rows to compare with, and their labels.
    """

    place: tuple[int, ...]
    given: str
    suggested: str
    quality: float
    why: tuple[str, ...] = ()
    columns: tuple[int, ...] = ()
    beside: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Review:
    """What a person is asked: items in the order of the questions, and the rows they concern.

    Attributes
    ----------
    title : str
        Heading of the page.
    lead : str
        What the items are, in a sentence or two.
    items : sequence of ReviewItem
        Questions, the first one first.
    labels : sequence of str
        Labels to choose from.
    columns : sequence of str
        Names of the columns that are shown.
    rows : dict
        Values of the rows that items name, as text in the order of ``columns``.
    before : sequence of dict
        Decisions of earlier rounds; they are exported again.
    """

    title: str
    lead: str
    items: Sequence[ReviewItem]
    labels: Sequence[str]
    columns: Sequence[str]
    rows: Mapping[int, Sequence[str]]
    before: Sequence[Mapping[str, Any]] = field(default_factory=tuple)

    @property
    def pairs(self) -> bool:
        """Whether the items are pairs of rows."""
        return bool(self.items) and len(self.items[0].place) == 2


def render_review(review: Review) -> str:
    """Return the page as HTML that loads nothing.

    Parameters
    ----------
    review : Review
        The questions.

    Returns
    -------
    page : str
        HTML.

    Examples
    --------
    >>> from kernelweave.report.review import Review, ReviewItem, render_review
    >>> item = ReviewItem((3,), "cat", "dog", 0.1, ("4 of its 5 nearest rows are dogs.",))
    >>> rows = {3: ["barks"]}
    >>> page = render_review(Review("Pets", "One label.", [item], ["cat", "dog"], ["voice"], rows))
    >>> "barks" in page
    True
    """
    content = {
        "items": [asdict(item) for item in review.items],
        "labels": list(review.labels),
        "columns": list(review.columns),
        "rows": {str(row): list(values) for row, values in review.rows.items()},
        "before": [dict(line) for line in review.before],
        "pairs": review.pairs,
    }
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]
    style, script = asset("page.css") + asset("review.css"), asset("review.js") + asset("theme.js")
    return (
        environment()
        .get_template("review.html")
        .render(
            policy=policy(style, script),
            title=review.title,
            lead=review.lead,
            n_items=len(review.items),
            pairs=review.pairs,
            digest=digest,
            # Within a script element only "</" and "<!--" could end or change the data.
            content=text.replace("<", "\\u003c"),
            version=dict(versions())["kernelweave"],
            style=style,
            script=script,
        )
    )


def write_review(review: Review, path: str | os.PathLike[str]) -> Path:
    """Write the page to a file; an existing one is replaced.

    Parameters
    ----------
    review : Review
        The questions.
    path : str or path
        The file.

    Returns
    -------
    path : Path
        The file.
    """
    from kernelweave.io.archive import replacing

    where = Path(path)
    try:
        with replacing(where) as stream:
            stream.write(render_review(review).encode("utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"The file {where} cannot be written: {reason}.") from error
    return where


def cell(value: Any) -> str:
    """Return a value of a table as short text for the page."""
    if isinstance(value, float):
        return "" if value != value else f"{value:.5g}"
    text = visible(value)
    return text if len(text) <= 300 else f"{text[:299]}\u2026"
