"""What was chosen, against what and by how much, in sentences."""

from __future__ import annotations

import shlex
from typing import Any

from kernelweave._summary import TITLES, show_score

from .choosing import Choice, Ranked

_SURE = 2.0  # standard errors from which a difference is called significant


def describe_choice(choice: Choice) -> list[str]:
    """Return the answer first, then comparisons with other models, then doubts."""
    measure, first = choice.scoring.shows[0], choice.ranking[0]
    logs = [member.logarithm is not None for member in choice.members]
    scale = "" if not any(logs) else ", learned on a logarithmic scale"
    if any(logs) and not all(logs):
        scale = ", in part learned on a logarithmic scale"
    interval = ""
    if choice.interval is not None:
        ends = [show_score(measure, end) for end in choice.interval]
        interval = f" (95% interval {ends[0]} to {ends[1]})"
    score = show_score(measure, first.scores[measure])
    lines = [f"Chosen: {first.name}{scale}. {TITLES[measure]} {score}{interval} on rows left out."]
    able = [other for other in choice.ranking[1:] if other.written]
    if able and able[0].behind[0] >= 0:  # better ones have a line of their own
        lines.append(f"Next best: {_beside(choice, able[0])}.")
    return [*lines, *doubt_choice(choice)]


def name_unmeasured(file: str, target: str) -> str:
    """Return which models were not compared, and the command that does it."""
    command = f"kernelweave compare {shlex.quote(file)} --target {shlex.quote(target)}"
    return (
        "CatBoost, LightGBM and xRFM were not compared, and may be better; where they are "
        f"installed, this compares them: {command}"
    )


def doubt_choice(choice: Choice) -> list[str]:
    """Return sentences on models that are better, and on a model that may have learned nothing."""
    lines, measure, first = [], choice.scoring.shows[0], choice.ranking[0]
    better = [other for other in choice.ranking[1:] if other.behind[0] < 0]
    unsure = [other for other in better if not _is_sure(other)]
    if len(unsure) < 2:
        unsure = []  # one has a sentence as the others have
    for other in better:
        if other not in unsure:
            said = _beside(choice, other) + _written(other)
            lines.append(f"Better on rows left out: {said}.")
    if unsure:
        said = "; ".join(_named(choice, other) + _written(other) for other in unsure)
        lines.append(f"Better on rows left out, but not significantly: {said}.")
    low = first.scores[measure] if choice.interval is None else choice.interval[0]
    if low <= choice.constant[measure]:  # of all scores that come first, larger is better
        lines.append(
            "It is not significantly better than a constant prediction, so the columns may carry "
            "little information about the target."
        )
    return lines


def _beside(choice: Choice, other: Ranked) -> str:
    """Return another model with its score, and how sure the difference is."""
    sure = "significantly" if _is_sure(other) else "but not significantly"
    word = "worse" if other.behind[0] >= 0 else "better"
    return f"{_named(choice, other)} ({sure} {word})"


def _is_sure(other: Ranked) -> bool:
    gap, error = other.behind
    return abs(gap) > _SURE * error


def _written(other: Ranked) -> str:
    return "" if other.written else ", which kernelweave cannot write"


def _named(choice: Choice, other: Ranked) -> str:
    """Return another model with its score."""
    measure = choice.scoring.shows[0]
    value = show_score(measure, other.scores[measure])
    if other.chosen_score is not None:
        beside = show_score(measure, other.chosen_score)
        value += f" against {beside} on the same {other.rows} rows"
    return f"{other.name}, {TITLES[measure]} {value}"


def score_table(choice: Choice) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns and the rows of a table of all models."""
    shows = choice.scoring.shows
    fewer = any(item.chosen_score is not None for item in choice.ranking)
    rows = []
    for k, item in enumerate(choice.ranking):
        mark = " (chosen)" if k == 0 else "" if item.written else " (reference)"
        scores = [show_score(s, item.scores[s]) for s in shows]
        beside = "" if item.chosen_score is None else show_score(shows[0], item.chosen_score)
        rows.append([f"{item.name}{mark}", *scores, str(item.rows), *([beside] if fewer else [])])
    last = ["chosen on these rows"] if fewer else []
    return ["model", *(TITLES[s] for s in shows), "rows", *last], rows


def choice_as_json(choice: Choice) -> dict[str, Any]:
    """Return a choice in plain values."""
    return {
        "chosen": choice.name,
        "folds": choice.n_folds,
        "scoring": choice.scoring.chooses,
        "interval": choice.interval,
        "members": [
            {
                "model": member.candidate.name,
                "weight": member.weight,
                "setting": member.setting,
                "logarithmic": member.logarithm is not None,
            }
            for member in choice.members
        ],
        "compared": [
            {
                "model": item.name,
                "rows": item.rows,
                "behind": item.behind[0],
                "standard_error": item.behind[1],
                "written": item.written,
                **item.scores,
            }
            for item in choice.ranking
        ],
    }
