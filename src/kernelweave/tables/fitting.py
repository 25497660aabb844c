"""Compare models on the rows of a table, and fit the chosen one to all of them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from kernelweave.errors import InputError

from .candidates import LINEAR, METRIC, SVM, Candidate, method_candidate
from .choosing import (
    Announce,
    Choice,
    Member,
    Race,
    Ranked,
    build_model,
    encode_target,
    list_settings,
    silent,
)
from .columns import note_columns
from .deciding import chosen_predictions, decide
from .hints import table_hints
from .measures import Classes, Values
from .methods import (
    COMPARED,
    METHODS,
    Settings,
    check_sources,
    choose_method,
    for_method,
    make_model,
)
from .planning import MAX_ROWS, can_be_compared, make_folds, make_plan, sample_rows
from .problem import Problem, make_problem
from .row_limits import fit_many_rows
from .scoring import Scoring, choose_scoring
from .search import Search

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
        How the model compared with others on rows that were left out; None where nothing was
        compared.
    search : Search or None
        How C was chosen, for a method that was asked for.
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
    groups: str | None = None,
    settings: Settings | None = None,
    test_share: float | None = None,
    max_rows: int | None = None,
    scoring: str = "auto",
    seconds: float | None = None,
    decisions: Any = None,
    sources: Mapping[str, Sequence[str]] | None = None,
    missing: str = "fill",
    announce: Announce = silent,
) -> TableFit:
    """Compare candidates on folds of a table, and fit the best one, or a combination, to all rows.

    With the method "auto", a model in a learned metric, a linear model, an SVM and, where there is
    time or text, multiple kernel learning are compared on the same folds, beside gradient boosting.
    The best of them, or a convex combination if it is significantly better, is fitted to all rows,
    up to 50 000. Any other method is fitted with the C that is best on the same folds, beside the
    same models. "auto" is "mkl" where C, options of kernels or Gram matrices are given, and where
    the rows are too few to compare anything.

    With the method "mkl", a large table and no ``max_rows``, a first fit to 5000 rows selects the
    kernels. These are then fitted to all rows if that takes minutes at most; otherwise the first
    fit is returned. A note says which.

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
        Cost of errors; "auto" chooses it by the rows left out. For regression in units of the
        standard deviation of the target.
    ignore : sequence of str
        Columns to leave out.
    grams : dict, optional
        Ready Gram matrices by name; see `make_problem`.
    groups : str, optional
        The column that says which rows belong together, as those of one person: folds leave out
        whole groups, so that scores are those of new ones.
    settings : Settings, optional
        Options of the method.
    test_share : float, optional
        Share of the rows to hold out once, in place of folds. 0: a method that is asked for is not
        compared with others. None: as many folds as the time allows.
    max_rows : int, optional
        Maximum number of rows to fit to; None leaves it to the method.
    scoring : str
        Score by which candidates are compared: "auto" is "roc_auc" of two classes, "log_loss" of
        more (and of weighted ones) and "r2" of numbers; others are "accuracy",
        "balanced_accuracy" and "absolute_error".
    seconds : float, optional
        About how long the comparison may take, by which candidates and folds are chosen; None: 3
        seconds for 1000 rows, a minute at most.
    decisions : str, path, data frame or list, optional
        Decisions of a person on labels, as the page of `kernelweave review` exports them: labels
        are changed accordingly, and the method "noisy" takes them as certain. Decisions on pairs
        are for the method "pairs".
    sources : dict of str to sequence of str, optional
        Columns of each source, by names or patterns; see `make_problem`. "auto" is then "mkl".
    missing : {"fill", "refuse", "off", "complete"}
        What is done with missing values; see `make_problem`. With "off" or "complete", "auto" is
        "mkl".
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
    columns: dict[str, Any] = {
        "ignore": ignore,
        "grams": grams,
        "groups": groups,
        "sources": sources,
    }
    problem = make_problem(frame, target, task=task, missing=missing, **columns)
    if decisions is not None:
        problem = problem.decide(decisions)
    given = (settings.norm, settings.tol, settings.max_iter)
    own = problem.grams or problem.has_own_kernels
    plain = C == "auto" and not own and all(option is None for option in given)
    if method in CANDIDATES:
        check_sources(problem, method)
    if method not in CANDIDATES and not (method == "auto" and plain and can_be_compared(problem)):
        method = choose_method(problem, method, settings)
        if C != "auto" and not METHODS[method].cost:
            raise InputError(f"C: the method {method} has none, got {C!r}; leave it out.")
        problem = for_method(problem, method)
        make_model(problem, method, settings)[-1]._validate_params()  # before a long comparison
    return choose_model(
        problem,
        method,
        settings,
        C=None if C == "auto" else float(C),
        scoring=scoring,
        seconds=seconds,
        max_rows=max_rows,
        test_share=test_share,
        announce=announce,
    )


def choose_model(
    problem: Problem,
    method: str,
    settings: Settings,
    *,
    C: float | None = None,
    scoring: str = "auto",
    seconds: float | None = None,
    max_rows: int | None = None,
    test_share: float | None = None,
    announce: Announce = silent,
) -> TableFit:
    """Compare candidates, and fit the chosen one to all rows."""
    named = METHODS.get(method)
    fixed: Any = CANDIDATES.get(method) or (method_candidate(method, C) if named else None)
    whole, notes, fewer = problem, [], []
    limit = max_rows or (named.max_rows if named else MAX_ROWS)
    if len(problem.y) > limit:
        problem = problem.take(sample_rows(problem, limit, settings.seed))
        fewer.append(
            f"{limit} of {len(whole.y)} rows are used, drawn at random; the others would make the "
            "model more accurate, as a rule slightly (--max-rows changes that)"
        )
    share = 0.25 if test_share is None else test_share
    choice, search = None, None
    if method == "pairs":
        choice = _score_pairs(problem, fixed, settings, share, announce)
    elif not can_be_compared(problem):
        notes.append("the rows are too few to compare models")
        if named and named.cost == "C" and C is None:
            notes.append("the rows are too few to choose C, so it is 1")
    elif fixed is None or share > 0 or len(list_settings(fixed, problem)) > 1:
        plan = make_plan(problem, seconds, fixed, alone=fixed is not None and share == 0)
        n_folds = 1 if test_share else plan.n_folds
        codes, balanced = encode_target(problem), settings.class_weight is not None
        rule = choose_scoring(codes, problem.regression, scoring, balanced)
        folds = make_folds(problem, n_folds, settings.seed, share or 0.25)
        name = None if fixed is None else fixed.name
        race = Race(problem, plan.candidates, rule, settings, folds, announce, name)
        race.run()
        choice = decide(race)
        if named:
            search = Search.of(race.entries[0], race)
    members = choice.members if choice else (_usual(fixed, problem),)
    announce(f"fitting to all {len(problem.y)} rows", 0.0)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the caller reads converged_
        if named and named.takes_many_rows and not max_rows:
            fit, more, sampled = fit_many_rows(members, problem, settings, announce)
            notes += more
            fewer += sampled
        else:
            left_out = None if choice is None else choice.left_out
            fit = build_model(members, problem, settings, left_out)
    spent = time.perf_counter() - began
    kept, encoded = (
        (False, True) if named is None else (named.form == "rules", named.form == "frame")
    )
    notes = [
        *whole.notes,
        *note_columns(whole.kinds, kept=kept, encoded=encoded),
        *notes,
    ]
    return TableFit(
        fit.model,
        method,
        problem,
        int(fit.model[0].n_samples_seen_),
        choice,
        search,
        spent,
        fit.seconds,
        tuple(notes),
        (*fewer, *table_hints(problem, settings.seed)),
        None if choice is None or method == "pairs" else chosen_predictions(choice, problem),
    )


def _usual(candidate: Candidate, problem: Problem) -> Member:
    """Return a candidate with the setting in the middle of its list."""
    settings = candidate.settings(problem)
    return Member(candidate, settings[len(settings) // 2])


def _score_pairs(
    problem: Problem, candidate: Candidate, settings: Settings, share: float, announce: Announce
) -> Choice | None:
    """Return how well kernels from pairs order pairs of held-out rows; no model is beside them."""
    if not share or not can_be_compared(problem):
        return None
    ((train, test),) = make_folds(problem, 1, settings.seed, share)
    announce(f"fitting to {len(train)} rows", 0.0)
    member, rest = Member(candidate, {}), problem.take(test)
    model = build_model((member,), problem.take(train), settings).model
    # Pairs share rows, so they are not independent: there is no interval.
    scores = {"pairs": float(model.score(rest.X, rest.y))}
    ranked = Ranked(candidate.name, scores, len(test), (0.0, 0.0))
    none = np.empty(0)  # pairs are scored, not rows
    scoring = Scoring("pairs", ("pairs",))
    return Choice((member,), (ranked,), scoring, None, 1, {"pairs": 0.5}, test, none, none)
