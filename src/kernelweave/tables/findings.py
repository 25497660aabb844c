"""An evaluation in sentences, in tables of text, and in plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from kernelweave._summary import show_number
from kernelweave._text import visible

from .evaluation import Difference, Evaluation, Score
from .measures import MEASURES


@dataclass(frozen=True)
class Block:
    """A table of text with its title and what it means; columns ``texts`` hold no numbers."""

    title: str
    remark: str
    names: list[str]
    rows: list[list[str]]
    texts: tuple[int, ...] = (0,)


TextTable: TypeAlias = tuple[list[str], list[list[str]]]
"""Names of the columns, and rows of text."""

_CONFUSIONS = 10  # pairs of classes that are listed
_SOURCES = 20  # that are listed
_LARGEST = 5  # errors that are listed
_ALMOST = 0.005  # mean probability that is too sure or not sure enough


def describe_evaluation(found: Evaluation) -> list[str]:
    """Return the answer first: how good, beside a constant, how far to trust probabilities."""
    score = found.score()
    lines = [f"{_stated(score)}{_beside_constant(score)}"]
    present = [part.label for part in found.class_scores if part.n_rows]
    if len(found.class_scores) > 1 and len(present) == 1:  # which calibration cannot be seen from
        if np.isnan(score.value):
            lines = [f"{_stated(score)}, which all have the class {visible(present[0])}."]
    elif (bins := found.reliability) is not None and found.n_rows >= 2 * len(bins.counts):
        digits = 3 if f"{bins.error:.3f}" != f"{bins.tolerated:.3f}" else 5
        said = f"calibration error {bins.error:.{digits}f}"
        chance = f"up to {bins.tolerated:.{digits}f} is chance for this number of rows"
        if bins.error <= bins.tolerated:
            lines.append(f"Probabilities can be taken as they are: {said} ({chance}).")
        else:
            how = "" if abs(bins.excess) < _ALMOST else _sureness(bins.excess)
            lines.append(f"Probabilities are not right{how}: {said} ({chance}).")
    named = {"interval": "intervals", "set": "sets"}
    for part in found.coverage:
        if part.kind in named and part.asked == 0.9:
            off = "" if part.low <= part.asked <= part.high else _off(part.reached > part.asked)
            what = "target" if part.kind == "interval" else "class"
            lines.append(
                f"The 90% {named[part.kind]} hold the true {what} of {part.reached:.1%} of the "
                f"rows (95% interval {part.low:.1%} to {part.high:.1%}{off})."
            )
    return lines


def _stated(score: Score) -> str:
    title = score.title[0].upper() + score.title[1:]
    if np.isnan(score.value):
        return f"{title} is undefined on these rows"
    ends = ""
    if score.interval is not None:
        low, high = map(score.show, score.interval)
        ends = f" (95% interval {low} to {high})"
    return f"{title} {score.show(score.value)}{ends}"


def _beside_constant(score: Score) -> str:
    if np.isnan(score.value):
        return "."
    constant = f"a constant prediction ({score.show(score.constant)})"
    if score.gain is None:
        return f", beside {constant}."
    if score.gain[0] > 0:
        return f", significantly better than {constant}."
    word = "significantly worse" if score.gain[1] < 0 else "not significantly better"
    return f", {word} than {constant}."


def _sureness(excess: float) -> str:
    how = "too sure" if excess > 0 else "not sure enough"
    return f", the model is {how}"


def _off(more: bool) -> str:
    return ", more than asked for" if more else ", less than asked for"


def describe_differences(differences: Iterable[Difference], other: str) -> list[str]:
    """Return in words which of two models is better on the same rows."""
    better = [d.title for d in differences if d.better is True]
    worse = [d.title for d in differences if d.better is False]
    if not better and not worse:
        return [f"No score differs significantly from that of {other} on the same rows."]
    lines = []
    if better:
        lines.append(f"Significantly better than {other}: {', '.join(better)}.")
    if worse:
        lines.append(f"Significantly worse than {other}: {', '.join(worse)}.")
    return lines


def score_table(found: Evaluation) -> TextTable:
    """Return all scores with intervals, beside those of a constant prediction."""
    rows = [
        [s.title, s.show(s.value), _ends(s), s.show(s.constant), "smaller" if _smaller(s) else ""]
        for s in found.scores
    ]
    return ["score", "value", "95% interval", "constant", "better"], rows


def _smaller(score: Score) -> bool:
    return MEASURES[score.name].smaller


def _ends(item: Score | Difference) -> str:
    if item.interval is None:
        return "-"
    return " to ".join(item.show(end) for end in item.interval)


def class_table(found: Evaluation) -> TextTable:
    """Return recall and precision of every class."""
    rows = []
    for part in found.class_scores:
        shares = []
        for value, ends in (
            (part.recall, part.recall_interval),
            (part.precision, part.precision_interval),
        ):
            shares.append("-" if ends is None else f"{value:.1%} ({ends[0]:.0%} to {ends[1]:.0%})")
        rows.append([str(part.label), str(part.n_rows), *shares])
    return ["class", "rows", "found (recall)", "right if predicted (precision)"], rows


def confusion_table(found: Evaluation) -> TextTable:
    """Return the confusion matrix."""
    assert found.confusion is not None
    assert found.classes is not None
    names = [str(label) for label in found.classes]
    rows = [
        [name, *(_count(value) for value in line)]
        for name, line in zip(names, found.confusion, strict=True)
    ]
    return ["true / predicted", *names], rows


def _count(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.4g}"


def confused_table(found: Evaluation) -> TextTable:
    """Return the pairs of classes that are confused most often."""
    assert found.confusion is not None
    assert found.classes is not None
    errors = found.confusion * (1.0 - np.eye(len(found.classes)))
    rows = []
    for place in np.argsort(-errors, axis=None, kind="stable")[:_CONFUSIONS]:
        i, j = divmod(int(place), len(found.classes))
        many = float(errors[i, j])
        if many > 0:
            share = many / found.confusion[i].sum()
            names = str(found.classes[i]), str(found.classes[j])
            rows.append([*names, _count(many), f"{share:.0%}"])
    return ["true", "predicted", "rows", "of this class"], rows


def coverage_table(found: Evaluation) -> TextTable:
    """Return coverage and size of intervals, sets and quantiles."""
    sets = any(part.kind == "set" for part in found.coverage)
    rows = []
    for part in found.coverage:
        line = [part.kind, f"{part.asked:.0%}", f"{part.reached:.1%}"]
        line.append(f"{part.low:.1%} to {part.high:.1%}")
        if sets:
            line += [f"{part.size:.2f} of {part.beside:.0f}", f"{part.empty:.1%}"]
        elif part.kind == "interval":
            line += [show_number(part.size), show_number(part.beside)]
        else:
            line += ["", ""]
        rows.append(line)
    last = ["mean classes", "empty"] if sets else ["mean width", "constant width"]
    return ["kind", "asked for", "reached", "95% interval", *last], rows


def group_table(found: Evaluation) -> TextTable:
    """Return the main scores of every group."""
    wanted = [found.main, *(name for name in _SECOND if name != found.main)]
    have = [score.name for score in found.scores]
    names = [name for name in wanted if name in have][:2]
    rows = []
    for group in found.groups:
        known = {score.name: score for score in group.scores}
        mark = " (few rows)" if group.few else ""
        line = [f"{group.name}{mark}", str(group.n_rows)]
        for name in names:
            line += [known[name].show(known[name].value), _ends(known[name])]
        if found.main not in _KNOWN:
            line.append(known[found.main].show(known[found.main].constant))
        rows.append(line)
    heads = [part for name in names for part in (found.score(name).title, "95% interval")]
    last = [] if found.main in _KNOWN else ["constant"]
    return [str(found.by), "rows", *heads, *last], rows


_KNOWN = ("roc_auc", "r2")  # scores of which a constant prediction always has one value
_SECOND = ("log_loss", "accuracy", "mean_absolute_error", "pinball_loss")


def difference_table(found: Evaluation) -> TextTable:
    """Return scores of two models beside each other."""
    words = {True: "better", False: "worse", None: ""}
    rows = [
        [
            d.title,
            d.show(d.value),
            d.show(d.other),
            d.show(d.value - d.other),
            _ends(d),
            words[d.better],
        ]
        for d in found.differences
    ]
    return ["score", "this", "other", "difference", "95% interval", "this is"], rows


def source_table(found: Evaluation) -> TextTable:
    """Return the main score without each source."""
    score = found.score()
    rows = []
    for part in found.sources[:_SOURCES]:
        ends = "-" if part.interval is None else " to ".join(map(score.show, part.interval))
        rows.append([part.name, score.show(part.value), score.show(part.loss), ends])
    return ["exchanged", score.title, "loss", "95% interval"], rows


def describe_sources(found: Evaluation) -> str:
    """Return what the scores without each source mean."""
    said = (
        "The values of one source were exchanged between rows, and nothing was fitted again: the "
        "loss says how much this model takes from the source, not how good a model without it "
        "could be."
    )
    if (more := len(found.sources) - _SOURCES) > 0:
        said += f" {more} others lose less than those below."
    return said


def output_table(found: Evaluation) -> TextTable:
    """Return the scores of every target in one line."""
    names = [score.name for score in found.scores]
    titles = [MEASURES[name].title for name in names]
    rows = [
        [target, *(part.score(name).show(part.score(name).value) for name in names)]
        for target, part in found.outputs.items()
    ]
    return ["target", *titles], rows


def further_blocks(found: Evaluation) -> list[Block]:
    """Return the tables that were asked for: of another model, targets, groups and sources."""
    out = []
    if found.differences:
        out.append(
            Block(
                f"Beside {found.against}",
                "Both models predicted the same rows, and the interval is that of the difference.",
                *difference_table(found),
                (0, 5),
            )
        )
    if found.outputs:
        out.append(Block("Target by target", "", *output_table(found)))
    if found.groups:
        few = "A group of few rows says little." if any(g.few for g in found.groups) else ""
        out.append(Block(f"By {found.by}", few, *group_table(found)))
    if found.sources:
        out.append(Block("Without each source", describe_sources(found), *source_table(found)))
    return out


def describe_residuals(found: Evaluation) -> list[tuple[str, str]]:
    """Return names and sentences about the errors of a regression."""
    part = found.residuals
    if part is None:
        return []
    errors = part.actual - part.predicted
    ends = float(np.quantile(np.abs(errors), 0.5)), part.quantiles[0.05], part.quantiles[0.95]
    half, low, high = map(show_number, ends)
    facts = [
        ("errors", f"half are within {half}; 90% from {low} to {high}"),
        ("mean error", f"{show_number(part.mean)} (true less predicted)"),
    ]
    worst = [
        f"row {part.rows[k]} (is {show_number(part.actual[k])}, predicted "
        f"{show_number(part.predicted[k])})"
        for k in part.largest(_LARGEST)
    ]
    return [*facts, ("largest errors", ", ".join(worst))]


def evaluation_as_json(found: Evaluation) -> dict[str, Any]:
    """Return an evaluation in plain values; of the residuals only the largest rows."""
    out: dict[str, Any] = {
        item.name: _plain(getattr(found, item.name))
        for item in dataclasses.fields(found)
        if item.name not in ("residuals", "outputs")
    }
    out["residuals"] = None
    if (part := found.residuals) is not None:
        rows = part.largest(_LARGEST)
        out["residuals"] = {
            "mean": part.mean,
            "quantiles": {str(level): value for level, value in part.quantiles.items()},
            "largest": [
                {
                    "row": int(part.rows[k]),
                    "actual": float(part.actual[k]),
                    "predicted": float(part.predicted[k]),
                }
                for k in rows
            ],
        }
    out["outputs"] = {name: evaluation_as_json(part) for name, part in found.outputs.items()}
    return out


def _plain(value: Any) -> Any:
    """Return dataclasses, arrays and numbers in the types of JSON, which has no NaN."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {item.name: _plain(getattr(value, item.name)) for item in fields}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
