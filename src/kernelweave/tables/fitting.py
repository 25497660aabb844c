"""Fit a model to a table and evaluate it on held-out rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from kernelweave.errors import InputError
from kernelweave.kernels import Kernel

from .candidates import LINEAR, METRIC, SVM
from .choosing import Choice, Race, build_model, decide, encode_target
from .columns import note_columns
from .held_out import evaluate_model, hold_out
from .hints import table_hints
from .kernels import MANY_COLUMNS
from .left_out import chosen_predictions, held_out_predictions
from .measures import Classes, Values
from .methods import COMPARED, METHODS, Settings, choose_method, for_method, make_model
from .planning import LEAST_ROWS, MAX_ROWS, make_folds, make_plan
from .problem import Problem, make_problem
from .row_limits import ENOUGH, kernels_for_all
from .scoring import choose_scoring
from .search import SEARCH_ROWS, Announce, Search, sample_rows, search_cost, silent
from .sureness import fit_surely

if TYPE_CHECKING:
    import pandas as pd

CANDIDATES = dict(zip(COMPARED, (METRIC, LINEAR, SVM), strict=True))


@dataclass(frozen=True)
class TableFit:
    """A fitted model, and how it was obtained.

    Attributes
    ----------
    model : Pipeline
        A `TablePreparer` and an estimator, fitted.
    method : str
        Name of the method.
    problem : Problem
        The columns and the target.
    n_rows : int
        Rows that the model was fitted to.
    choice : Choice or None
        How the model was chosen among candidates; None where one method was asked for.
    search : Search or None
        How C was chosen.
    held_out : dict or None
        Scores on held-out rows: ``rows``, ``measure``, ``score``, ``interval`` (its 95% interval,
        or None), ``svm_baseline``, ``svm_baseline_rows`` (that the SVM was fitted to),
        ``constant_prediction``, and ``same_model`` (whether the evaluated model is the one
        returned, not one fitted again to all rows).
    seconds : float
        Time of the last fit.
    sure_seconds : float
        The part of it that calibration, sets or intervals took.
    notes : tuple of str
        A sentence for every step that changed the data or the model.
    warnings : tuple of str
        Sentences that a reader must know before the scores: copies of rows, columns that give the
        target away, rare classes, rows that were not used, a model that may have learned nothing.
    left_out : Classes or Values or None
        Predictions for rows that were left out, or held out, beside the truth.
    """

    model: Pipeline
    method: str
    problem: Problem
    n_rows: int
    choice: Choice | None
    search: Search | None
    held_out: dict[str, Any] | None
    seconds: float
    sure_seconds: float
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    left_out: Classes | Values | None = None


def fit_table(
    frame: pd.DataFrame,
    target: str,
    *,
    method: str = "auto",
    task: str = "auto",
    C: float | str = "auto",
    ignore: Sequence[str] = (),
    grams: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    test_share: float = 0.25,
    max_rows: int | None = None,
    scoring: str = "auto",
    seconds: float | None = None,
    announce: Announce = silent,
) -> TableFit:
    """Compare candidates on folds of a table, and fit the best one, or a combination, to all rows.

    With the method "auto", a model in a learned metric, a linear model, an SVM and, where there is
    time or text, multiple kernel learning are compared on the same folds, beside gradient boosting.
    The best of them, or a convex combination if it is significantly better, is fitted to all rows,
    up to 50 000. "metric", "linear" and "svm" fit that candidate, with the same comparison.

    The other methods choose kernels by the kinds of the columns and C by cross-validation, and are
    evaluated on held-out rows; so is "auto" where C, options of kernels or Gram matrices are given,
    which is then "mkl". C is chosen on some of the rows that are not held out. The model that is
    returned was fitted to all rows with it, unless these are more than ``max_rows``: then it is the
    evaluated one.

    With the method "mkl", a large table and no ``max_rows``, a first fit to 5000 rows selects the
    kernels. These are then fitted to all rows if that takes minutes at most; otherwise the first
    fit is evaluated and returned. A note says which.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    target : str
        The column to predict.
    method : str
        "auto", "metric", "linear", "svm", "mkl", "radius", "noisy", "rules", "structure" or
        "pairs".
    task : {"auto", "classification", "regression"}
        What the target is.
    C : float or "auto"
        Cost of errors; "auto" chooses it by cross-validation. For regression in units of the
        standard deviation of the target.
    ignore : sequence of str
        Columns to leave out.
    grams : dict, optional
        Ready Gram matrices by name; see `make_problem`.
    settings : Settings, optional
        Options of the method.
    test_share : float
        Share of the rows to hold out; 0 skips the evaluation. Folds need none.
    max_rows : int, optional
        Maximum number of rows to fit to; None leaves it to the method.
    scoring : str
        Score by which candidates are compared: "auto" is the log-loss of classes and R squared of
        numbers; "roc_auc", "accuracy", "balanced_accuracy", "absolute_error".
    seconds : float, optional
        About how long the comparison may take, by which candidates and folds are chosen; None: 3
        seconds for 1000 rows, a minute at most.
    announce : callable
        Called with the current step and the share of it that is done.

    Returns
    -------
    fit : TableFit
        The model and how it was obtained.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> x = np.linspace(-3, 3, 90)
    >>> frame = pd.DataFrame({"x": x, "unit": "kg", "y": np.where(np.abs(x) > 1, "out", "in")})
    >>> fit = fit_table(frame, "y", C=10.0)
    >>> fit.notes
    ("the column 'unit' is left out: it has one value only",)
    >>> fit.model.predict(pd.DataFrame({"x": [0.0, 2.5]})).tolist()
    ['in', 'out']
    """
    settings = settings or Settings()
    problem = make_problem(frame, target, ignore=ignore, task=task, grams=grams)
    given = (settings.norm, settings.tol, settings.max_iter)
    plain = C == "auto" and not problem.grams and all(option is None for option in given)
    if method in CANDIDATES or (method == "auto" and plain and can_be_compared(problem)):
        return choose_model(
            problem,
            method,
            settings,
            scoring=scoring,
            seconds=seconds,
            max_rows=max_rows,
            announce=announce,
        )
    name = choose_method(problem, method, settings)
    if C != "auto" and not METHODS[name].has_cost:
        raise InputError(f"C: the method {name} has none, got {C!r}; leave it out.")
    job = _Job(for_method(problem, name), name, settings, announce)
    rows = _divide(job, test_share, max_rows)
    cost = _choose_cost(job, rows.train, C)
    plan = _plan(job, rows, cost.C)
    fit = plan.first
    if fit is None and (rows.test is not None or plan.sampled):
        fit = job.fit(plan.train, cost.C, plan.kernels)
    held_out, left_out, doubts = None, None, []
    if fit is not None and rows.test is not None:
        announce(f"evaluating on {len(rows.test.y)} rows", 0.0)
        held_out = evaluate_model(fit.model, name, plan.train, rows.test, cost.C, settings.seed)
        held_out["same_model"] = plan.sampled
        doubts = _doubts(held_out)
        left_out = None if name == "pairs" else held_out_predictions(fit.model, rows.test)
    if fit is None or not plan.sampled:
        fit = job.fit(job.problem, cost.C, plan.kernels)
    return TableFit(
        fit.model,
        name,
        job.problem,
        int(fit.model[0].n_samples_seen_),
        None,
        cost.search,
        held_out,
        fit.seconds,
        fit.sure_seconds,
        (*_describe(job), *cost.notes, *plan.notes, *_note_limit(name, fit.model[-1])),
        (*doubts, *plan.warnings, *table_hints(job.problem, settings.seed)),
        left_out,
    )


def can_be_compared(problem: Problem) -> bool:
    """Tell whether a table has the rows to compare candidates, of the smallest class too."""
    enough = len(problem.y) >= LEAST_ROWS
    return enough and (problem.regression or problem.y.value_counts().iloc[1] >= 4)


def choose_model(
    problem: Problem,
    method: str,
    settings: Settings,
    *,
    scoring: str = "auto",
    seconds: float | None = None,
    max_rows: int | None = None,
    announce: Announce = silent,
) -> TableFit:
    """Compare candidates, and fit the chosen one to all rows."""
    if not can_be_compared(problem):
        raise InputError(
            f"method {method}: {LEAST_ROWS} rows or more, and 4 of each class, are needed to "
            f"compare it, got {len(problem.y)} rows; use the method mkl."
        )
    whole, fewer = problem, []
    limit = MAX_ROWS if max_rows is None else max_rows
    if len(problem.y) > limit:
        problem = problem.take(sample_rows(problem, limit, settings.seed))
        fewer.append(
            f"{limit} of {len(whole.y)} rows are used, drawn at random; the others would make the "
            "model more accurate, as a rule slightly (--max-rows changes that)"
        )
    fixed = CANDIDATES.get(method)
    rule = choose_scoring(
        encode_target(problem), problem.regression, scoring, settings.class_weight is not None
    )
    plan = make_plan(problem, seconds, fixed)
    folds = make_folds(problem, plan.n_folds, settings.seed)
    name = None if fixed is None else fixed.name
    race = Race(problem, plan.candidates, rule, settings, folds, announce, name)
    race.run()
    choice = decide(race)
    announce(f"fitting to all {len(problem.y)} rows", 0.0)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the caller reads converged_
        fit = build_model(choice, problem, settings)
    spent = time.perf_counter() - began
    return TableFit(
        fit.model,
        method,
        problem,
        len(problem.y),
        choice,
        None,
        None,
        spent,
        fit.seconds,
        (*whole.notes, *note_columns(whole.kinds, encoded=True)),
        (*fewer, *table_hints(problem, settings.seed)),
        chosen_predictions(choice, problem),
    )


@dataclass(frozen=True)
class _Fit:
    model: Pipeline
    seconds: float
    sure_seconds: float


@dataclass(frozen=True)
class _Job:
    """What all steps share."""

    problem: Problem
    name: str
    settings: Settings
    announce: Announce

    def fit(self, rows: Problem, C: float, kernels: list[Kernel] | None = None) -> _Fit:
        """Fit to some rows; None: with the kernels of the method."""
        every = "all " if rows is self.problem else ""
        self.announce(f"fitting to {every}{len(rows.y)} rows", 0.0)
        model = make_model(rows, self.name, self.settings, C)
        if kernels is not None:
            model[-1].set_params(kernels=kernels)
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the caller reads converged_
            sure = fit_surely(model[-1], rows, lambda: model.fit(rows.X, rows.y))
        return _Fit(sure.model, time.perf_counter() - began, sure.seconds)


@dataclass(frozen=True)
class _Rows:
    """Rows to fit to (at most ``limit`` of ``rest``), and rows held out."""

    train: Problem
    rest: Problem
    test: Problem | None
    limit: int
    may_exceed: bool  # whether the limit is the method's own, which some kernels allow to exceed

    @property
    def sampled(self) -> bool:
        return len(self.rest.y) > self.limit


def _divide(job: _Job, test_share: float, max_rows: int | None) -> _Rows:
    method, seed = METHODS[job.name], job.settings.seed
    rest, test = hold_out(job.problem, test_share, seed) if test_share else (job.problem, None)
    limit = method.max_rows if max_rows is None else max_rows
    train = rest.take(sample_rows(rest, limit, seed)) if len(rest.y) > limit else rest
    return _Rows(train, rest, test, limit, max_rows is None and method.takes_many_rows)


@dataclass(frozen=True)
class _Cost:
    C: float
    search: Search | None = None
    notes: tuple[str, ...] = ()


def _choose_cost(job: _Job, train: Problem, C: float | str) -> _Cost:
    if C != "auto":
        return _Cost(float(C))
    method = METHODS[job.name]
    search = search_cost(train, job.name, job.settings, announce=job.announce)
    if search is None:
        few = ("the rows are too few to choose C, so it is 1",) if method.has_cost else ()
        return _Cost(1.0, None, few)
    n = len(train.y)
    cost = search.C * (search.n_rows / n if method.keeps_total else 1.0)
    if search.n_rows == n:
        return _Cost(cost, search)
    divided = f", and divided by {search.C / cost:.3g} for all" if cost != search.C else ""
    note = f"C was chosen on {SEARCH_ROWS} rows drawn at random{divided}"
    return _Cost(cost, search, (note,))


@dataclass(frozen=True)
class _Plan:
    """Rows and kernels (None: those of the method) of the fit that is evaluated."""

    train: Problem
    sampled: bool
    kernels: list[Kernel] | None = None
    first: _Fit | None = None  # the fit to `train`, where it was needed to choose
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def _plan(job: _Job, rows: _Rows, C: float) -> _Plan:
    """Decide whether all rows are fitted to, by a fit to some of them."""
    if not rows.sampled:
        return _Plan(rows.train, False)
    first = None
    if rows.may_exceed:
        first = job.fit(rows.train, C)
        job.announce("estimating the time for all rows", 0.0)
        kernels = kernels_for_all(first.model, job.problem)
        if kernels is not None:
            note = (
                f"all rows are fitted to {len(kernels)} of {len(first.model[-1].kernels_)} "
                f"kernels, those that carry {ENOUGH:.0%} of a fit to {rows.limit} rows drawn at "
                f"random (--max-rows {rows.limit} keeps to that fit)"
            )
            return _Plan(rows.rest, False, kernels, None, (note,))
    hint = "" if job.name == "rules" else "; --method rules takes up to 10000"
    warning = (
        f"{rows.limit} of {len(job.problem.y)} rows are fitted to, drawn at random, since "
        f"{job.name} would take long on all of them (--max-rows changes that{hint})"
    )
    return _Plan(rows.train, True, None, first, warnings=(warning,))


def _describe(job: _Job) -> list[str]:
    """Return notes on the columns."""
    problem = job.problem
    notes = [*problem.notes, *note_columns(problem.kinds, kept=job.name == "rules")]
    if len(problem.columns("number", "date")) > MANY_COLUMNS and job.name == "mkl":
        notes.append(f"more than {MANY_COLUMNS} columns of numbers are offered together only")
    return notes


def _doubts(held_out: dict[str, Any]) -> list[str]:
    """Return sentences where the model may have learned nothing, or an SVM is better."""
    out, score, svm = [], held_out["score"], held_out["svm_baseline"]
    low = score if held_out["interval"] is None else held_out["interval"][0]
    if low <= held_out["constant_prediction"]:
        out.append(
            "on held-out rows the model is not significantly better than a constant prediction, "
            "so the columns may carry little information about the target"
        )
    if svm is not None and svm > score:
        form = ".1%" if held_out["measure"] == "accuracy" else ".3f"
        out.append(
            f"an SVM baseline was better on the held-out rows: {held_out['measure']} {svm:{form}} "
            f"against {score:{form}}"
        )
    return out


def _note_limit(name: str, estimator: Any) -> list[str]:
    """Return a note where the search for rules was cut short."""
    if name != "rules" or estimator.n_nodes_ < estimator.max_nodes:
        return []
    return [
        f"the search for rules ended at {estimator.n_nodes_} conjunctions, so better ones may be "
        "missing; a smaller --C needs fewer"
    ]
