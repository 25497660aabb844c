"""Choose the winner of a race, or a combination that is significantly better."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logit

from kernelweave._types import Floats
from kernelweave.estimators.combination import undo_logarithm
from kernelweave.estimators.left_out_scores import class_margins

from .blending import (
    Blend,
    Calibration,
    best_scale,
    blend,
    halves,
    learn_calibration,
    share_calibration,
)
from .candidates import LINEAR, METRIC, is_rare
from .choosing import Choice, Entry, Member, Race, Ranked, encode_target
from .measures import Classes, Values
from .problem import Problem
from .scoring import constant_score, paired_difference, score_interval

_BETTER = 2.0  # standard errors of a significant difference
# Difference of losses that does not outweigh what is known of candidates: relative, and for
# regression in units of the variance of the target, those of R squared.
_HARDLY, _HARDLY_R2 = 0.02, 0.01
_GAIN = 0.005  # relative gain below which a combination is not worth its size
_EQUAL = np.array([0.5, 0.5])  # weights of the two models of a rare class
_SURELY = 1e-12  # log-odds are those of probabilities at least this far from 0 and 1


def decide(race: Race) -> Choice:
    """Return the best candidate that can be written, the fixed one, or a combination."""
    chosen = {e.name: race.best(e) for e in race.entries}
    losses = {e.name: race.losses(e, chosen[e.name]) for e in race.entries}
    means = {name: float(np.nanmean(values)) for name, values in losses.items()}
    able = [e for e in race.entries if e.candidate.written and e.active]
    if race.fixed is not None:
        able = [e for e in able if e.name == race.fixed]
    winner = _prefer(able, losses, means, race)
    members = [(winner, 1.0)]
    predictions = {e.name: race.predicted(e, chosen[e.name]) for e in race.entries}
    rows, predicted = predictions[winner.name]
    own, name = losses[winner.name], winner.name
    both, shared = _both(race, able, winner), {}
    if len(able) > 1:
        if both and race.settings.class_weight is None:
            odds = [_log_odds(race, e, chosen[e.name])[rows] for e in both]
            found = share_calibration(odds, race.codes[rows])
            shared = {e.name: one for e, one in zip(both, found, strict=True)}
            mixed = Blend(_EQUAL, halves(odds, race.codes[rows], race._parts(rows)))
        elif both:  # with probabilities of their own, of classes that count alike
            stack = np.stack([predictions[e.name][1] for e in both])
            mixed = Blend(_EQUAL, stack.mean(axis=0))
        else:
            stack = np.stack([predictions[e.name][1] for e in able])
            mixed = blend(stack, race.codes[rows], race._parts(rows), race.problem.regression)
        mixed_losses = race.row_losses(rows, mixed.crossed)
        gain, error = paired_difference(mixed_losses, own[rows])
        if both or (gain > _BETTER * error and gain > _GAIN * means[winner.name]):
            members = [(e, w) for e, w in zip(both or able, mixed.weights, strict=True) if w > 0]
            predicted = mixed.crossed
            own = np.full(len(own), np.nan)
            own[rows] = mixed_losses
            name = " + ".join(f"{w:.0%} {e.name}" for e, w in sorted(members, key=lambda m: -m[1]))
    others, measure = [], race.scoring.shows[0]
    for entry in race.entries:
        if len(members) == 1 and entry is winner:
            continue
        some, values = predictions[entry.name]
        behind = paired_difference(own[some], losses[entry.name][some])
        # Candidates that left the race predicted fewer rows, on which all scores may differ.
        fewer = race.scores(some, predicted[np.isin(rows, some)]) if len(some) < len(rows) else {}
        others.append(
            Ranked(
                entry.name,
                race.scores(some, values),
                len(some),
                behind,
                entry.candidate.written,
                fewer.get(measure),
            )
        )
    first = Ranked(name, race.scores(rows, predicted), len(rows), (0.0, 0.0))
    ranking = [first, *sorted(others, key=lambda item: item.behind[0])]
    y = race.codes[rows]
    interval = score_interval(measure, y, predicted, race.part[rows])
    parts = tuple(_member(race, e, chosen[e.name], w, shared.get(e.name)) for e, w in members)
    constant = {name: constant_score(name, y) for name in race.scoring.shows}
    return Choice(
        parts,
        tuple(ranking),
        race.scoring,
        interval,
        len(race.folds),
        constant,
        rows,
        predicted,
        _left_out_scores(y, predicted, parts, race.problem.regression),
    )


def _left_out_scores(
    y: Any, predicted: Floats, members: tuple[Member, ...], regression: bool
) -> Floats:
    """Return the residuals or margins of left-out rows, as `CombinedRegressor` takes them."""
    if not regression:
        return np.asarray(class_margins(predicted)[np.arange(len(y)), y])
    offsets = {None if m.logarithm is None else m.logarithm[0] for m in members}
    if len(offsets) == 1 and (offset := offsets.pop()) is not None:
        return np.asarray(np.log(y + offset) - np.log(predicted + offset))
    return np.asarray(y - predicted)


def _prefer(
    able: list[Entry], losses: dict[str, Floats], means: dict[str, float], race: Race
) -> Entry:
    """Return the candidate with the smallest mean loss, the first one where it is hardly worse.

    The first candidate, the learned metric, was the best on most tables, has probabilities of its
    own and tells which columns matter. Where a class is rare, scores are so noisy that it is
    preferred unless another is significantly better; then it is averaged with the linear model.
    """
    best, first = min(able, key=lambda e: means[e.name]), able[0]
    both = np.isfinite(losses[best.name]) & np.isfinite(losses[first.name])
    gap, error = paired_difference(losses[best.name][both], losses[first.name][both])
    if is_rare(race.problem):
        return first if gap <= _BETTER * error else best
    hardly = _HARDLY * means[best.name]
    if race.scoring.chooses == "r2":
        hardly = min(hardly, _HARDLY_R2 * float(np.var(race.codes)))
    return first if gap <= min(error, hardly) else best


def _both(race: Race, able: list[Entry], winner: Entry) -> list[Entry]:
    """Return the learned metric and the linear model where they are averaged: for a rare class.

    With a few dozen rows of a class, which of the two is better is mostly noise, and their mean is
    close to the better one.
    """
    linear = [e for e in able if e.candidate is LINEAR]
    rare = is_rare(race.problem) and winner.candidate is METRIC
    return [winner, *linear] if rare and linear else []


def _log_odds(race: Race, entry: Entry, s: int) -> Floats:
    """Return decision values of two classes, log-odds of a model that has probabilities."""
    values = entry.values[s]
    if not entry.has_proba:
        return values[:, 0]
    return logit(np.clip(values[:, 1], _SURELY, 1.0 - _SURELY))


def _member(
    race: Race, entry: Entry, s: int, weight: float, calibration: Calibration | None
) -> Member:
    """Return a part of the chosen model, with its scale or calibration on all left-out rows."""
    setting, offset = entry.settings[s]
    values = entry.values[s]
    rows = np.flatnonzero(np.isfinite(values.reshape(len(values), -1)[:, 0]))
    y, logarithm = race.codes[rows], None
    if offset is not None:
        raw = undo_logarithm(values[rows], offset, 1.0)
        logarithm = (offset, best_scale(y + offset, raw + offset))
    learned = race.problem.regression or entry.has_proba or entry.candidate.plain
    if calibration is None and not learned:
        calibration = learn_calibration(values[rows], y, race.n_outputs)
    return Member(entry.candidate, setting, float(weight), logarithm, calibration)


def chosen_predictions(choice: Choice, problem: Problem) -> Classes | Values:
    """Return the predictions by which a model was chosen."""
    y, predicted = encode_target(problem)[choice.rows], choice.predicted
    if problem.regression:
        return Values(y, predicted)
    classes = tuple(np.unique(problem.y).tolist())
    said = predicted.argmax(axis=1)
    return Classes(y, said, classes, len(classes) - 1, scores=predicted, proba=predicted)
