"""Questions for a person who reviews labels: which rows or pairs, and what contradicts them.

Rows are asked about in the order of their suspicion, the most suspicious first; after a fit with
the decisions of a round, the order is that of the new model. Of answers of several annotators the
least certain rows come first, of pairs those whose score is nearest to the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit
from sklearn.pipeline import Pipeline

from kernelweave._declaration import has_aspect
from kernelweave._summary import count
from kernelweave._text import clip
from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError
from kernelweave.noise import read_decisions
from kernelweave.noise.decisions import Decision
from kernelweave.report.review import Review, ReviewItem, cell

from .contradictions import Contradictions
from .label_errors import find_suspects
from .predicting import last_step

if TYPE_CHECKING:
    import pandas as pd

_ROUND, _LEAST = 0.05, 20  # share of the rows that a page asks about, and the least number of them
_NEAREST = 10  # rows that are compared with the label of a row
_MOST_COMPARED = 4000  # rows among which the nearest ones are searched
_DRAWN = 20_000  # pairs among which the most informative ones are searched
_TIMES = 3  # that a row occurs in these
_WORDS = {1: "same", -1: "different", 0: ""}


def make_review(
    model: Any,
    frame: pd.DataFrame,
    *,
    limit: int | None = None,
    decisions: Any = None,
    pairs: tuple[Indices, Indices] | None = None,
) -> Review:
    """Return the questions of a review page.

    Parameters
    ----------
    model : Pipeline
        A fitted model of `fit_table`.
    frame : pandas.DataFrame
        The table it was learned from.
    limit : int, optional
        Maximum number of questions; None: 5 % of the rows, at least 20.
    decisions : str, path, data frame or list, optional
        Decisions of earlier rounds: their rows are not asked about again.
    pairs : tuple of two arrays, optional
        Row numbers of pairs and their labels (0: none), for a model learned from pairs. None:
        pairs are drawn.

    Returns
    -------
    review : Review
        For `kernelweave.report.review.render_review`.
    """
    if not isinstance(model, Pipeline):
        raise InputError("review: the model must be one that kernelweave fit has written.")
    before = [] if decisions is None else read_decisions(decisions)
    estimator = last_step(model)
    if has_aspect(estimator, "pairs"):
        return _review_pairs(model, frame, limit, before, pairs)
    if pairs is not None:
        raise InputError("--pairs: this model was not learned from pairs.")
    if has_aspect(estimator, "annotators"):
        found = _uncertain_rows(model, frame)
    else:
        found = find_suspects(model, frame, decisions=before and decisions)
    done = {one.place[0] for one in before}
    found = found[~found["row"].isin(done)]
    n_all, n_left = _n_rows(model), len(found)
    found = found[: limit or max(_LEAST, int(_ROUND * n_all))]
    table = _Labelled(model, frame, before)
    given, suggested = (list(map(str, found[name])) for name in ("given", "suggested"))
    against = Contradictions.of(table.shown, table.labels)
    rows = found["row"].to_numpy()
    near = table.nearest(rows)
    said = found["answers"].tolist() if "answers" in found else [()] * len(found)
    items, used = [], set(rows.tolist())
    for k, row in enumerate(rows.tolist()):
        columns, why = against.explain(table.shown.loc[row], given[k], suggested[k])
        beside, sentence = near.explain(k, row, given[k], suggested[k])
        used |= {other for other, _ in beside}
        quality = float(found["quality"].iloc[k])
        reasons = (*said[k], *sentence, *why)
        item = ReviewItem((row,), given[k], suggested[k], quality, reasons, columns, beside)
        items.append(item)
    asked = f"this page asks about {count(len(items), 'row')}"
    if has_aspect(estimator, "annotators"):
        lead = f"Of {count(n_left, 'row')} with answers {asked}, the least certain first."
    else:
        doubtful = f"{count(n_left, 'label')} of {count(n_all, 'row')} look doubtful"
        lead = f"{doubtful}; {asked}, the most doubtful first."
    lead += " Fit again with the decisions: the next page then asks what would teach most."
    title = f"Review of {clip(table.target)}"
    return _page(title, lead, items, table.classes, table.shown, used, before)


def _n_rows(model: Pipeline) -> int:
    return int(model[0].n_samples_seen_)


def _file_rows(model: Pipeline) -> Indices:
    """Return the rows of the file that a model was fitted to."""
    rows = model[0].rows_
    return np.arange(_n_rows(model)) if rows is None else np.asarray(rows)


def _uncertain_rows(model: Pipeline, frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows with answers of several annotators, the least certain first."""
    import pandas as pd

    estimator = model[-1]
    votes = np.zeros_like(estimator.truth_)
    np.add.at(votes, (estimator._answer_rows, estimator._given), 1.0)
    asked = votes.any(axis=1)
    given = votes.argmax(axis=1)  # the most frequent answer
    order = np.argsort(-estimator.truth_, axis=1, kind="stable")
    suggested = np.where(order[:, 0] != given, order[:, 0], order[:, 1])
    sure = estimator.truth_.max(axis=1)
    rows = np.flatnonzero(asked & (sure < 1.0))
    rows = rows[np.argsort(sure[rows], kind="stable")]
    classes, file_rows = estimator.classes_, _file_rows(model)
    said = [
        ", ".join(f"{n:.0f} {clip(str(classes[k]), 40)}" for k, n in _most_frequent(votes[row]))
        for row in rows
    ]
    if file_rows.max() >= len(frame):
        raise InputError("--data: this is not the table that the model was learned from.")
    return pd.DataFrame(
        {
            "row": file_rows[rows],
            "quality": estimator.truth_[rows, given[rows]],
            "given": classes[given[rows]],
            "suggested": classes[suggested[rows]],
            "answers": [(f"Answers: {one}.",) for one in said],
        }
    )


def _most_frequent(votes: Floats) -> list[tuple[int, float]]:
    """Return classes and numbers of votes, the most frequent first."""
    order = np.argsort(-votes, kind="stable")
    return [(int(k), float(votes[k])) for k in order if votes[k]]


@dataclass(frozen=True)
class _Labelled:
    """The rows that a model was fitted to, as they are shown, with their labels."""

    model: Pipeline
    frame: pd.DataFrame
    before: Sequence[Decision]

    @property
    def target(self) -> str:
        return self.model[0].target_ or "labels"

    @property
    def classes(self) -> list[str]:
        return [str(label) for label in self.model[-1].classes_]

    @cached_property
    def rows(self) -> Indices:
        return _file_rows(self.model)

    @cached_property
    def shown(self) -> pd.DataFrame:
        """The columns of the table without the target."""
        return self.frame.loc[self.rows].drop(columns=[self.target], errors="ignore")

    @cached_property
    def labels(self) -> pd.Series:
        """Labels of the rows as text: those of the table or of the consensus, and decided ones."""
        import pandas as pd

        estimator = self.model[-1]
        if has_aspect(estimator, "annotators"):
            given = estimator.labels_
        elif has_aspect(estimator, "labels"):
            given = estimator.classes_[estimator._given]
        else:
            given = self.frame.loc[self.rows, self.target].to_numpy()
        out = pd.Series([str(label) for label in given], index=self.rows)
        for one in self.before:
            if one.is_certain and one.place[0] in out.index:
                out[one.place[0]] = one.label
        return out

    def nearest(self, rows: Indices) -> _Nearest:
        """Return the rows nearest to some by the learned kernel, where the model has one."""
        estimator, own = self.model[-1], self.model[0].feature_names_in_
        if not hasattr(estimator, "kernel") or not len(rows):
            return _Nearest(np.empty((len(rows), 0), dtype=np.intp), self.labels)
        pool = self.rows
        if len(pool) > _MOST_COMPARED:
            pool = np.random.default_rng(0).choice(pool, _MOST_COMPARED, replace=False)
        prepared = self.model[0].transform(self.frame.loc[pool, own])
        asked = self.model[0].transform(self.frame.loc[rows, own])
        block = estimator.kernel(asked, prepared)
        # Squared distances are k(x, x) + k(z, z) - 2 k(x, z); the first term orders nothing.
        block = block - 0.5 * _diagonal(estimator, prepared)
        block[rows[:, None] == pool[None, :]] = -np.inf
        order = np.argsort(-block, axis=1, kind="stable")[:, : min(50, len(pool) - 1)]
        return _Nearest(pool[order], self.labels)


def _diagonal(estimator: Any, rows: Any, step: int = 250) -> Floats:
    parts = [rows[k : k + step] for k in range(0, len(rows), step)]
    return np.concatenate([np.diag(estimator.kernel(part)) for part in parts])


@dataclass(frozen=True)
class _Nearest:
    """For each question, the rows nearest to its row, the nearest first."""

    rows: Indices  # (n_questions, n_nearest)
    labels: pd.Series

    def explain(
        self, k: int, row: int, given: str, suggested: str
    ) -> tuple[tuple[tuple[int, str], ...], tuple[str, ...]]:
        """Return rows to compare with, one of either label, and a sentence on the nearest."""
        near = [int(other) for other in self.rows[k]]
        if not near:
            return (), ()
        labels = [self.labels[other] for other in near]
        first = labels[:_NEAREST]
        beside = tuple(
            (near[labels.index(label)], label) for label in (suggested, given) if label in labels
        )
        like, own = first.count(suggested), first.count(given)
        said = (
            f"{like} of its {len(first)} nearest rows are labelled {clip(suggested, 40)}, {own} "
            f"{clip(given, 40)}."
        )
        return beside, (said,)


def _review_pairs(
    model: Pipeline,
    frame: pd.DataFrame,
    limit: int | None,
    before: Sequence[Decision],
    given: tuple[Indices, Indices] | None,
) -> Review:
    own = frame[list(model[0].feature_names_in_)]
    rows, labels = given if given is not None else _draw_pairs(len(frame))
    if len(rows) and rows.max() >= len(frame):
        raise InputError(f"--pairs: row {rows.max()} does not exist in the table of --data.")
    done = {tuple(sorted(one.place)) for one in before}
    kept = [k for k, pair in enumerate(rows.tolist()) if tuple(sorted(pair)) not in done]
    rows, labels = rows[kept], labels[kept]
    estimator = model[-1]
    margin = estimator.score_pairs(model[0].transform(own), rows) - estimator.threshold_
    margin = margin / max(float(np.std(margin)), 1e-12)
    # Labelled pairs: those that the scores contradict most; others: those nearest to the threshold.
    doubt = np.where(labels != 0, labels * margin, np.abs(margin))
    most = limit or max(_LEAST, int(_ROUND * len(rows)) if given is not None else _LEAST)
    items: list[ReviewItem] = []
    times, used = np.zeros(len(frame), dtype=int), set()
    for k in np.argsort(doubt, kind="stable"):
        left, right = rows[k].tolist()
        if len(items) == most or (labels[k] and doubt[k] > 0):
            break
        if not labels[k] and max(times[left], times[right]) >= _TIMES:
            continue
        times[[left, right]] += 1
        used |= {left, right}
        word = _WORDS[1 if margin[k] >= 0 else -1]
        side = "above" if margin[k] >= 0 else "below"
        why = f"Its score lies {abs(margin[k]):.2f} standard deviations {side} the threshold."
        quality = float(expit(4.0 * doubt[k]))
        items.append(ReviewItem((left, right), _WORDS[int(labels[k])], word, quality, (why,)))
    lead = (
        f"Do the two rows belong together? {count(len(items), 'pair')}, those that teach most "
        "first. Fit again with the decisions before the next page."
    )
    return _page("Review of pairs", lead, items, ["same", "different"], own, used, before)


def _draw_pairs(n_rows: int) -> tuple[Indices, Indices]:
    """Return pairs of different rows, each once."""
    drawn = np.random.default_rng(0).integers(0, n_rows, size=(_DRAWN, 2))
    drawn = np.unique(np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1), axis=0)
    return drawn, np.zeros(len(drawn), dtype=np.intp)


def _page(
    title: str,
    lead: str,
    items: list[ReviewItem],
    labels: list[str],
    shown: pd.DataFrame,
    used: set[int],
    before: Sequence[Decision],
) -> Review:
    texts = shown.loc[sorted(used)]
    rows = {
        int(row): [cell(value) for value in values]
        for row, values in zip(texts.index, texts.itertuples(index=False), strict=True)
    }
    lines = [
        dict(zip(("left", "right") if len(one.place) > 1 else ("row",), one.place, strict=True))
        | {"decision": one.kind, "given": one.given, "label": one.label}
        for one in before
    ]
    return Review(title, lead, items, labels, [str(c) for c in shown.columns], rows, lines)
