"""The first screen: how good the model is, beside which others, and what decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave._summary import TITLES, listed, show_score
from kernelweave.io import FitRecord

if TYPE_CHECKING:
    from .subject import Subject

_CONSTANT = "constant prediction"


@dataclass(frozen=True)
class Rank:
    """A model on the scale of a score: name, score as text, place from 0 to 1, and a verdict."""

    name: str
    text: str
    at: float
    word: str = ""
    own: bool = False
    low: float | None = None  # ends of the interval of the model itself, from 0 to 1
    high: float | None = None


@dataclass(frozen=True)
class Answer:
    """How good the model is: one score, where it was measured, and its rank among others."""

    title: str
    value: str
    ends: str  # the interval in words; empty where it is unknown
    where: str
    verdict: tuple[str, ...]  # whether it is better than the others, in sentences
    ranks: tuple[Rank, ...]


def title_of(name: str) -> str:
    """Return a score in words."""
    return "R\u00b2" if name == "r2" else TITLES.get(name, name)


def how_good(subject: Subject) -> Answer | str:
    """Return the best answer that there is, or why there is none.

    The score of this very model on new rows comes first, then what its fit has measured, then
    models that are fitted again on folds of the rows given.
    """
    if subject.evaluation is not None:
        return _of_evaluation(subject.evaluation, subject.measured_on)
    if subject.record is not None and subject.record.models:
        return _of_record(subject.record)
    found = subject.folds
    return found.reason or _of_folds(found)


def _of_evaluation(found: Any, where: str) -> Answer | str:
    score = found.score()
    doubt: tuple[str, ...] = ()
    if not np.isfinite(score.value):  # the AUC of rows of one class, R2 of equal targets
        doubt = (f"{title_of(score.name)} is undefined on these rows.",)
        known = {one.name: one for one in found.scores if np.isfinite(one.value)}
        if not known:
            return doubt[0]
        score = known.get("accuracy", next(iter(known.values())))
    lines = [(_CONSTANT, score.constant, "")]
    better = score.gain is not None and score.gain[0] > 0
    verdict = _beside_constant(better, score.show(score.constant))
    title = "R\u00b2" if score.name == "r2" else score.title
    said = (*doubt, verdict)
    return _answer(title, score.value, score.interval, where, said, lines, score.show)


def _beside_constant(better: bool, score: str) -> str:
    how = "Better than" if better else "Not significantly better than"
    return f"{how} a constant prediction ({score})."


def _of_record(record: FitRecord) -> Answer:
    name, own, others = record.measure or "", record.models[0], record.models[1:]

    def show(value: float) -> str:
        return show_score(name, value)

    lines = [(one.name, one.scores[name], _word(one, show)) for one in others]
    verdict = [sentence for sentence in [_beside(others, record.compared_by)] if sentence]
    if name in record.constant:
        constant = record.constant[name]
        low = own.scores[name] if record.interval is None else record.interval[0]
        lines.append((_CONSTANT, constant, ""))
        verdict.insert(0, _beside_constant(low > constant, show(constant)))
    return _answer(
        title_of(name),
        own.scores[name],
        record.interval,
        record.measured,
        tuple(verdict),
        lines,
        show,
    )


def _word(other: Any, show: Any) -> str:
    """Return a remark where a model was compared on fewer rows."""
    if other.same_rows is None:
        return ""
    return f"on {other.rows:,} rows, where this model has {show(other.same_rows)}"


def _beside(others: Sequence[Any], by: str | None) -> str:
    """Return which models this one is better than, as good as, and worse than.

    ``by`` names the score that decided, where it is not the one that is shown.
    """
    words = {"worse": "better than", "about the same": "about as good as", "better": "worse than"}
    parts = []
    for verdict, said in words.items():
        names = [one.name for one in others if one.verdict == verdict]
        if names:
            parts.append(f"{said} {listed(names)}")
    text = "; ".join(parts)
    if text and by is not None:
        text = f"by {title_of(by)}, which decided, {text}"
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _of_folds(found: Any) -> Answer:
    first = found.first
    interval = None if np.isnan(first.low) else (first.low, first.high)
    lines, verdict = [], []
    if found.constant is not None:
        lines.append((_CONSTANT, found.constant, ""))
        low = first.mean if interval is None else interval[0]
        verdict.append(_beside_constant(low > found.constant, first.show(found.constant)))
    verdict.append("The model was fitted again for every fold: this is the score of its method.")
    return _answer(first.name, first.mean, interval, found.where, tuple(verdict), lines, first.show)


def _answer(
    title: str,
    value: float,
    interval: tuple[float, float] | None,
    where: str,
    verdict: tuple[str, ...],
    others: Sequence[tuple[str, float, str]],
    show: Any,
) -> Answer:
    known = [value, *(interval or ()), *(score for _, score, _ in others)]
    known = [float(v) for v in known if np.isfinite(v)]
    low, high = min(known), max(known)

    def at(score: float) -> float:
        inside = 0.5 if high == low else (score - low) / (high - low)
        return 0.02 + 0.96 * float(np.clip(inside, 0.0, 1.0))

    ends = [None, None] if interval is None else [at(end) for end in interval]
    ranks = [Rank("this model", show(value), at(value), "", True, *ends)]
    ranks += [Rank(name, show(v), at(v), word) for name, v, word in others if np.isfinite(v)]
    words = ""
    if interval is not None:
        words = f"95% interval {show(interval[0])} to {show(interval[1])}"
    return Answer(title, show(value), words, where, verdict, tuple(ranks) if others else ())
