"""Section on how good the model is: on new rows, when it was fitted, and on folds."""

from __future__ import annotations

from typing import Any

from kernelweave._summary import SMALLER, show_score
from kernelweave.errors import InputError
from kernelweave.io import FitRecord

from .answers import title_of
from .curves import draw_curves, from_plain
from .rendering import Section
from .subject import Subject
from .tables import Cell, Column, Table, number, text_column


def section(subject: Subject) -> Section:
    """Return all scores, each with the rows that it was measured on, and curves."""
    folds, found = subject.folds, subject.evaluation
    record = subject.record if subject.record is not None and subject.record.models else None
    models = () if record is None else record.models
    values: dict[str, Any] = {
        "where": subject.measured_on,
        "scores": None if found is None else _scores(found),
        "notes": () if found is None else found.notes,
        "blocks": [] if found is None else _blocks(found),
        "record": record,
        "compared": None if record is None else _compared(record),
        "smaller": [title_of(name) for name in _names(record) if name in SMALLER],
        "fewer": any(one.same_rows is not None for one in models),
        "pooled": record is not None and "folds" in record.measured,
        "folds": folds.values(),
        "reason": folds.reason if found is None and record is None else "",
        "lacks_data": subject.X is None or subject.y is None,
        "curves": _curves(subject),
        "of_fit": found is None,
    }
    return Section("performance", "Scores in detail", values)


def _blocks(found: Any) -> list[tuple[str, str, Table]]:
    """Return title, remark and table of comparisons, groups and sources."""
    out = []
    for block in found.blocks():
        columns = [Column(name, number=k not in block.texts) for k, name in enumerate(block.names)]
        out.append((block.title, block.remark, Table(block.title, columns, block.rows)))
    return out


def _names(record: FitRecord | None) -> list[str]:
    return list(record.models[0].scores) if record is not None and record.models else []


def _curves(subject: Subject) -> dict[str, Any] | None:
    """Return the charts of this model on new rows, or of the rows left out by its fit."""
    if subject.evaluation is not None:
        outputs = getattr(subject.evaluation, "outputs", None)
        return draw_curves(subject.evaluation) if not outputs else None
    if subject.record is None or subject.record.evaluation is None:
        return None
    try:
        return draw_curves(from_plain(dict(subject.record.evaluation)), pooled=True)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError("record: its evaluation is damaged, so it cannot be drawn.") from error


def _scores(found: Any) -> Table:
    columns = [text_column("score"), Column("value"), text_column("95% interval")]
    columns += [Column("constant prediction"), text_column("better than that?")]
    rows = []
    for score in found.scores:
        ends = score.interval
        between = "\u2013" if ends is None else f"{score.show(ends[0])} to {score.show(ends[1])}"
        sure = score.gain is not None and score.gain[0] > 0
        worse = score.gain is not None and score.gain[1] < 0
        word = "yes" if sure else "no, worse" if worse else "not significantly"
        title = score.title.replace("R2", "R\u00b2")
        cells = (Cell(score.show(v), float(v)) for v in (score.value, score.constant))
        value, constant = cells
        rows.append([title, value, between, constant, word])
    return Table("scores", columns, rows)


def _compared(record: FitRecord) -> Table:
    """Return all models that were compared, with all scores."""
    names = _names(record)
    fewer = any(one.same_rows is not None for one in record.models)
    has_verdicts = any(one.verdict for one in record.models)
    columns = [text_column("model"), *(Column(title_of(name)) for name in names), Column("rows")]
    columns += [Column("this model on these")] if fewer else []
    by = "" if record.compared_by is None else f", by {title_of(record.compared_by)}"
    columns += [text_column(f"against this model{by}")] if has_verdicts else []
    rows = []
    for k, one in enumerate(record.models):
        title = "this model" if k == 0 else one.name
        if k == 0 and one.name != title:
            title = f"this model: {one.name}"
        row: list[Any] = [title, *(_score(name, one.scores[name]) for name in names)]
        row.append(number(one.rows, ",d"))
        if fewer:
            row.append(Cell("", 0.0) if one.same_rows is None else _score(names[0], one.same_rows))
        rows.append(row + ([one.verdict] if has_verdicts else []))
    if record.constant:
        known = [
            _score(name, record.constant[name]) if name in record.constant else Cell("\u2013", 0.0)
            for name in names
        ]
        row = ["constant prediction", *known, number(record.models[0].rows, ",d")]
        rows.append(row + [""] * (fewer + has_verdicts))
    return Table("models compared", columns, rows)


def _score(name: str, value: float) -> Cell:
    return Cell(show_score(name, value), float(value))
