"""Choose the model for a table: candidates compared on the same folds, or their combination.

Every candidate predicts rows that it was not fitted to. The first third of the folds tries all
settings of a candidate, and both scales of a skewed target; the other folds take the best of them.
Candidates that are clearly worse by then are not fitted again. A convex combination of the rest
is chosen where its predictions, with weights from other folds, are significantly better than those
of the best candidate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from kernelweave._types import Floats, Indices
from kernelweave.estimators.combination import undo_logarithm
from kernelweave.kernels.encoding import encode_once

from .blending import Calibration, best_scale, calibrate
from .candidates import Candidate, Task
from .methods import Settings, make_preparer
from .planning import sample_rows, search_folds
from .problem import Problem
from .scoring import (
    Scoring,
    paired_difference,
    row_losses,
    total_score,
)
from .sureness import SureFit, fit_surely

_WORSE = 3.0  # standard errors by which a candidate must be worse to leave the race
_BEHIND = 0.0  # the same for references, which stay as long as they are ahead
_SKEW = 1.0  # skewness of a positive target from which on its logarithm is tried
_ENOUGH_ROWS = 300  # rows left out from which on the score of the only candidate left is known
_COSTS = (1e-3, 1e3)  # limits of the values of C

Announce: TypeAlias = Callable[[str, float], None]
"""Called with the current step and the share of it that is done."""


Setting: TypeAlias = tuple[dict[str, Any], float | None]
"""Options of a candidate, and the offset of the logarithm of the target, or None."""


def silent(step: str, done: float) -> None:
    """Show nothing."""


@dataclass
class Entry:
    """A candidate in the race, and its predictions for rows that were left out."""

    candidate: Candidate
    settings: list[Setting]
    values: dict[int, Floats] = field(default_factory=dict)  # by setting: raw outputs of all rows
    tried: dict[int, float] = field(
        default_factory=dict
    )  # by setting: mean loss on the first folds
    grids: dict[int, dict[str, set[float]]] = field(default_factory=dict)  # that models used
    has_proba: bool = False
    active: bool = True

    @property
    def name(self) -> str:
        return self.candidate.name

    def setting(self, s: int) -> dict[str, Any]:
        """Return the options of a setting, with the grids that models so far used."""
        grids = {name: tuple(sorted(used)) for name, used in self.grids.get(s, {}).items()}
        return self.settings[s][0] | grids

    def note_grids(self, s: int, model: Any) -> None:
        """Keep which values of its grids a model used."""
        grids = self.grids.setdefault(s, {})
        for name, used in self.candidate.chosen(model).items():
            grids[name] = grids.get(name, set()) | used


@dataclass(frozen=True)
class Ranked:
    """A model as it was compared."""

    name: str  # of the candidate; of several with their weights
    scores: dict[str, float]  # by name, on the rows that it predicted
    rows: int  # how many these are
    # Mean of its losses minus those of the chosen model, and the standard error of that mean.
    behind: tuple[float, float]
    written: bool = True  # whether it can be written to a model file
    # The first score of the chosen model on the same rows, where they are fewer than all.
    chosen_score: float | None = None


@dataclass(frozen=True)
class Member:
    """A part of the chosen model."""

    candidate: Candidate
    setting: dict[str, Any]
    weight: float = 1.0
    logarithm: tuple[float, float] | None = None
    calibration: Calibration | None = None


@dataclass(frozen=True)
class Choice:
    """The chosen model, and how it compared."""

    members: tuple[Member, ...]  # one, or several with weights
    # The chosen model first, then the others by their losses, best first.
    ranking: tuple[Ranked, ...]
    scoring: Scoring  # how they were compared
    interval: tuple[float, float] | None  # 95% interval of the first score of the chosen model
    n_folds: int  # folds; 1 where one part of the rows was held out
    constant: dict[str, float]  # scores of the best constant prediction
    # rows, predicted: rows that the chosen model predicted without being fitted to them, by
    # position, and its predictions or probabilities
    rows: Indices
    predicted: Floats
    # (n_rows,): of its predictions for left-out rows, for intervals and sets: residuals, those of
    # logarithms where all members learn them; or margins of the true class.
    left_out: Floats

    @property
    def name(self) -> str:
        """Names of the members."""
        return self.ranking[0].name


class Race:
    """Candidates on the folds of a problem; ``fixed`` is the name of the one that is asked for."""

    def __init__(
        self,
        problem: Problem,
        candidates: Sequence[Candidate],
        scoring: Scoring,
        settings: Settings,
        folds: list[tuple[Indices, Indices]],
        announce: Announce,
        fixed: str | None = None,
    ) -> None:
        self.problem, self.scoring, self.settings = problem, scoring, settings
        self.folds, self.announce, self.fixed = folds, announce, fixed
        self.entries = [Entry(c, list_settings(c, problem)) for c in candidates]
        self.part = np.full(len(problem.y), -1)  # the fold in which a row was left out
        for k, (_, test) in enumerate(folds):
            self.part[test] = k
        self._tasks: dict[Any, tuple[Task, Any]] = {}  # by fold and form, with rows left out
        self._calibrated: dict[Any, Floats] = {}  # by entry, setting and number of rows

    @cached_property
    def codes(self) -> Any:
        """The target: numbers, or positions of classes."""
        return encode_target(self.problem)

    @property
    def n_outputs(self) -> int:
        return 1 if self.problem.regression else int(self.codes.max()) + 1

    def run(self) -> None:
        """Fit all candidates on all folds, fewer as the race goes on."""
        with threadpool_limits(1):  # once: looking for the libraries takes milliseconds
            self._run()

    def _run(self) -> None:
        search = range(search_folds(len(self.folds)))
        for k in search:
            self._fit_fold(k)
        for entry in self.entries:
            while further := self._further(entry):
                for k in search:
                    self._fit(entry, k, further)
        self._narrow()
        for k in range(len(search), len(self.folds)):
            if not self._is_over():
                self._fit_fold(k)
        self._tasks.clear()

    def _is_over(self) -> bool:
        """Tell whether further folds can change neither the choice nor its score by much."""
        active = [entry for entry in self.entries if entry.active and entry.candidate.written]
        rows = np.isfinite(next(iter(active[0].values.values()))).reshape(len(self.part), -1)
        return len(active) == 1 and int(np.count_nonzero(rows[:, 0])) >= _ENOUGH_ROWS

    def _fit_fold(self, k: int) -> None:
        racing = [entry for entry in self.entries if entry.active]
        for i, entry in enumerate(racing):
            where = f"fold {k + 1} of {len(self.folds)}" if len(self.folds) > 1 else "comparing"
            self.announce(f"{where}: {entry.name}", (k + i / len(racing)) / len(self.folds))
            self._fit(entry, k, sorted(entry.values) or range(len(entry.settings)))

    def _fit(self, entry: Entry, k: int, wanted: Sequence[int]) -> None:
        with warnings.catch_warnings(), encode_once():
            warnings.simplefilter("ignore")  # of models that are not written
            task, new = self._task(entry.candidate, k)
            for group in _sharing(entry, wanted):
                for s, model in self._fit_group(entry, group, task):
                    entry.note_grids(s, model)
                    entry.has_proba = self._has_proba(model)
                    self._keep(entry, s, self.folds[k][1], self._outputs(model, new))

    def _task(self, candidate: Candidate, k: int) -> tuple[Task, Any]:
        """Return the rows to fit to and those left out, in the form that a candidate takes."""
        train, test = self.folds[k]
        some = _readable(self.problem, candidate).take(train)
        some = some.take(sample_rows(some, candidate.max_rows, self.settings.seed))
        key = (k, candidate.form, some.X.shape)
        if key not in self._tasks:
            preparer = make_preparer(some, candidate.form)
            task = Task(preparer.fit_transform(some.X), some, self.settings)
            self._tasks[key] = task, preparer.transform(self.problem.X.iloc[test])
        return self._tasks[key]

    def _fit_group(self, entry: Entry, group: list[int], task: Task) -> Iterator[tuple[int, Any]]:
        """Fit settings that differ in C only; fits share kernels and start from each other."""
        setting, offset = entry.setting(group[0]), entry.settings[group[0]][1]
        y = task.problem.y if offset is None else np.log(task.problem.y + offset)
        model = entry.candidate.make(setting, task)
        if len(group) == 1:
            return iter([(group[0], model.fit(task.rows, y))])
        models = model.fit_path(task.rows, y, [entry.settings[s][0]["C"] for s in group])
        return zip(group, models, strict=True)

    def _further(self, entry: Entry) -> list[int]:
        """Return a further setting to try, where the best C of a method asked for is at an end."""
        settings = [setting for setting, _ in entry.settings]
        if not entry.candidate.plain or len(settings) == 1:
            return []
        losses = {settings[s]["C"]: float(np.nanmean(self.losses(entry, s))) for s in entry.values}
        values = sorted(losses)
        best = min(values, key=losses.__getitem__)
        if best == values[-1] and best < _COSTS[1]:
            more = 10.0 * best
        elif best == values[0] and losses[best] < losses[values[1]] and best > _COSTS[0]:
            more = best / 10.0
        else:
            return []
        entry.settings.append(({"C": more}, None))
        return [len(settings)]

    def _outputs(self, model: Any, rows: Any) -> Floats:
        """Return predictions, probabilities, or decision values with one column per class."""
        if self.problem.regression:
            return np.asarray(model.predict(rows), dtype=np.float64)
        proba = self._has_proba(model)
        values = np.asarray(model.predict_proba(rows) if proba else model.decision_function(rows))
        if values.ndim == 1:
            return values[:, None]
        # A class of few rows may be missing in a fold.
        known = np.searchsorted(self.classes, model.classes_)
        out = np.full((len(values), self.n_outputs), 0.0 if proba else float(values.min()))
        out[:, known] = values
        return out

    def _has_proba(self, model: Any) -> bool:
        """Return whether a model has probabilities; those of weighted classes do not count."""
        weighted = getattr(model, "class_weight", None) != self.settings.class_weight
        return hasattr(model, "predict_proba") and not weighted

    @cached_property
    def classes(self) -> Any:
        return np.unique(self.problem.y)

    def _keep(self, entry: Entry, s: int, test: Indices, values: Floats) -> None:
        shape = (len(self.problem.y), *values.shape[1:])
        entry.values.setdefault(s, np.full(shape, np.nan))[test] = values

    def predicted(self, entry: Entry, s: int) -> tuple[Indices, Floats]:
        """Return the rows that were predicted, and predictions or probabilities for them."""
        values = entry.values[s]
        rows = np.flatnonzero(np.isfinite(values.reshape(len(values), -1)[:, 0]))
        values, y = values[rows], self.codes[rows]
        if self.problem.regression:
            offset = entry.settings[s][1]
            if offset is None:
                return rows, values
            raw = undo_logarithm(values, offset, 1.0)
            return rows, (raw + offset) * best_scale(y + offset, raw + offset) - offset
        if entry.has_proba:
            return rows, values
        key = entry.name, s, len(rows)
        if key not in self._calibrated:
            found = calibrate(values, y, self._parts(rows), self.n_outputs)
            self._calibrated[key] = found
        return rows, self._calibrated[key]

    def _parts(self, rows: Indices) -> Indices:
        """Return the folds of rows; halves where there is one."""
        parts = self.part[rows]
        return parts if len(np.unique(parts)) > 1 else np.arange(len(rows)) % 2

    def losses(self, entry: Entry, s: int) -> Floats:
        """Return the losses of all rows, NaN for those not predicted."""
        values = entry.values[s]
        out = np.full(len(self.problem.y), np.nan)
        if self.scoring.chooses == "roc_auc" and values.ndim == 2 and values.shape[1] == 1:
            rows = np.flatnonzero(np.isfinite(values[:, 0]))  # ranks need no calibration
            predicted = np.column_stack([-values[rows], values[rows]])
        else:
            rows, predicted = self.predicted(entry, s)
        out[rows] = self.row_losses(rows, predicted)
        return out

    def row_losses(self, rows: Indices, predicted: Floats) -> Floats:
        """Return the losses of predictions for some rows."""
        return self.scoring.losses(self.codes[rows], predicted, rows, self.part[rows])

    def scores(self, rows: Indices, predicted: Floats) -> dict[str, float]:
        """Return the scores to show of predictions for some rows."""
        y, parts = self.codes[rows], self.part[rows]
        return {name: total_score(name, y, predicted, parts) for name in self.scoring.shows}

    def best(self, entry: Entry) -> int:
        """Return the setting with the smallest mean loss."""
        return min(entry.values, key=lambda s: float(np.nanmean(self.losses(entry, s))))

    def _narrow(self) -> None:
        """Keep the best setting of every candidate, and candidates that are not clearly worse."""
        for entry in self.entries:
            entry.tried = {s: float(np.nanmean(self.losses(entry, s))) for s in entry.values}
            keep = self._prefer_setting(entry)
            entry.values = {keep: entry.values[keep]}
        losses = {e.name: self.losses(e, self.best(e)) for e in self.entries}
        # References do not end the race of models that can be written.
        able = [e.name for e in self.entries if e.candidate.written]
        leader = min(able, key=lambda name: float(np.nanmean(losses[name])))
        for entry in self.entries:
            known = np.isfinite(losses[entry.name])
            gap, error = paired_difference(losses[leader][known], losses[entry.name][known])
            kept = entry.name in (leader, self.fixed)
            entry.active = kept or gap <= (_WORSE if entry.candidate.written else _BEHIND) * error

    def _prefer_setting(self, entry: Entry) -> int:
        """Return the setting with the smallest loss.

        A classifier that is written without a calibration also needs a threshold that suits:
        settings whose own labels are wrong clearly more often are left out.
        """
        able = list(entry.tried)
        if entry.candidate.plain and not self.problem.regression:
            wrong = {s: self._wrong_labels(entry, s) for s in able}
            least = min(wrong.values(), key=np.mean)
            gaps = {s: paired_difference(least, wrong[s]) for s in able}
            able = [s for s in able if gaps[s][0] <= gaps[s][1]]
        return min(able, key=entry.tried.__getitem__)

    def _wrong_labels(self, entry: Entry, s: int) -> Floats:
        values = entry.values[s]
        known = np.isfinite(values[:, 0])
        signs = values[known, 0] > 0
        labels = values[known].argmax(axis=1) if values.shape[1] > 1 else signs.astype(int)
        rule = "accuracy" if self.scoring.weights is None else "balanced_accuracy"
        return row_losses(rule, self.codes[known], np.eye(self.n_outputs)[labels])


def encode_target(problem: Problem) -> Any:
    """Return numbers, or positions of the classes in sorted order."""
    if problem.regression:
        return problem.y.to_numpy(dtype=np.float64)
    return np.searchsorted(np.unique(problem.y), problem.y.to_numpy())


def list_settings(candidate: Candidate, problem: Problem) -> list[Setting]:
    """Return the settings of a candidate, on both scales of a skewed target."""
    as_it_is = candidate.plain or not candidate.written
    offsets = [None, *([] if as_it_is else log_offsets(problem))]
    return list(product(candidate.settings(problem), offsets))


def log_offsets(problem: Problem) -> list[float]:
    """Return offsets with which the logarithm of a skewed target is tried, none or one."""
    if not problem.regression:
        return []
    y = problem.y.to_numpy(dtype=np.float64)
    spread = float(y.std())
    if y.min() < 0 or float(np.mean(((y - y.mean()) / spread) ** 3)) < _SKEW:
        return []
    positive = y[y > 0]
    return [0.0 if y.min() > 0 else float(positive.min())]


def build_model(
    members: Sequence[Member],
    problem: Problem,
    settings: Settings,
    left_out: Floats | None = None,
) -> SureFit:
    """Fit the chosen model to all rows of a problem, with probabilities or intervals.

    ``left_out`` holds the residuals or margins of `Choice`, for combinations and learned metrics.
    """
    from kernelweave.estimators import CombinedClassifier, CombinedRegressor

    alone = members[0]
    problem = _readable(problem, alone.candidate)
    preparer = make_preparer(problem, alone.candidate.form)
    task = Task(preparer.fit_transform(problem.X, problem.y), problem, settings, final=True)
    named = [(m.candidate.name, m.candidate.make(m.setting, task)) for m in members]
    if len(members) == 1 and alone.logarithm is None and alone.calibration is None:
        model = named[0][1]
        scores = {"margins", "residuals"} & set(model.get_params())
        if left_out is not None:  # from metrics that these rows had no part in
            model.set_params(**dict.fromkeys(scores, left_out))
        more = problem.fit_arguments(model)
        fitted = fit_surely(model, problem, lambda: model.fit(task.rows, problem.y, **more))
        return SureFit(Pipeline([("table", preparer), ("model", model)]), fitted.seconds)
    weights = [member.weight for member in members]
    if problem.regression:
        logs = [member.logarithm for member in members]
        combined: Any = CombinedRegressor(
            named, weights=weights, logarithms=logs, residuals=left_out
        )
    else:
        maps = [member.calibration for member in members]
        combined = CombinedClassifier(named, weights=weights, calibrations=maps, margins=left_out)
    combined.fit(task.rows, problem.y)
    return SureFit(Pipeline([("table", preparer), ("model", combined)]), 0.0)


def _readable(problem: Problem, candidate: Candidate) -> Problem:
    """Return the problem without row numbers of matrices, which only methods asked for read."""
    return problem if candidate.plain or not problem.grams else problem.without(list(problem.grams))


def _sharing(entry: Entry, wanted: Sequence[int]) -> list[list[int]]:
    """Return groups of settings that differ in C only."""
    groups: dict[Any, list[int]] = {}
    for s in wanted:
        setting, offset = entry.settings[s]
        rest = tuple(value for name, value in setting.items() if name != "C")
        groups.setdefault((offset, rest), []).append(s)
    return list(groups.values())
