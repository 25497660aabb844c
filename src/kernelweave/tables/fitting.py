"""Fit a model to a table and evaluate it on held-out rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from kernelweave.errors import InputError

from .columns import note_columns
from .held_out import judge_model
from .kernels import MANY_COLUMNS
from .methods import METHODS, Settings, choose_method, for_method, make_model
from .problem import Problem, make_problem
from .row_limits import ENOUGH, kernels_for_all
from .search import SEARCH_ROWS, Announce, Search, sample_rows, search_cost, silent

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TableFit:
    """A model, and what is to be known about it.

    Attributes
    ----------
    model : Pipeline
        A `TablePreparer` and an estimator, fitted.
    method : str
        Name of the method.
    problem : Problem
        What it was learned from.
    n_rows : int
        Rows that the model was fitted to.
    search : Search or None
        How C was chosen.
    held_out : dict or None
        ``rows``, ``measure``, ``score``, ``interval`` (the ends of its 95% interval, or None),
        ``plain_svm``, ``plain_svm_rows`` (that the SVM was fitted to) and ``guess`` (one answer for
        all), on rows that were held out; ``same_model`` tells whether the model was not fitted
        again, to all rows, afterwards.
    seconds : float
        What the last fit took.
    notes : tuple of str
        A sentence for everything that was done on the way.
    """

    model: Pipeline
    method: str
    problem: Problem
    n_rows: int
    search: Search | None
    held_out: dict[str, Any] | None
    seconds: float
    notes: tuple[str, ...]


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
    announce: Announce = silent,
) -> TableFit:
    """Choose kernels by the kinds of the columns, choose C, fit, and judge on held-out rows.

    C is chosen on some of the rows that are not held out. The model that is returned was fitted to
    all rows with it, unless these are more than ``max_rows``: then it is the one that was judged.

    Where ``max_rows`` is left to the method "mkl" and the rows are many, a first fit to 5000 of
    them picks the kernels. Those that matter are then fitted to all rows if that is a matter of
    minutes; otherwise the first fit is what is judged and returned. A note says which.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    target : str
        The column to predict.
    method : str
        "auto", "mkl", "radius", "noisy", "rules", "structure" or "pairs".
    task : {"auto", "classification", "regression"}
        What the target is.
    C : float or "auto"
        Cost of errors; "auto" chooses it by cross-validation. For a quantity in units of its
        standard deviation.
    ignore : sequence of str
        Columns to leave out.
    grams : dict, optional
        Ready Gram matrices by name; see `make_problem`.
    settings : Settings, optional
        Options of the method.
    test_share : float
        Share of the rows to hold out; 0 skips the judgement.
    max_rows : int, optional
        Rows to fit to at most; None leaves it to the method.
    announce : callable
        Told what is being done.

    Returns
    -------
    fit : TableFit
        The model and what is to be known about it.

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
    name = choose_method(problem, method, settings)
    if C != "auto" and not METHODS[name].has_cost:
        raise InputError(f"C: the method {name} has none, got {C!r}; leave it out.")
    problem = for_method(problem, name)
    limit = METHODS[name].max_rows if max_rows is None else max_rows
    notes = [*problem.notes, *note_columns(problem.kinds, kept=name == "rules")]
    if len(problem.columns("number", "date")) > MANY_COLUMNS and name == "mkl":
        notes.append(f"more than {MANY_COLUMNS} columns of numbers are offered together only")
    learn, judge = _split(problem, test_share, settings.seed) if test_share else (problem, None)
    every, sampled = learn, len(learn.y) > limit
    if sampled:
        learn = every.take(sample_rows(every, limit, settings.seed))
    search = None
    if C == "auto":
        search = search_cost(learn, name, settings, announce=announce)
        C = 1.0 if search is None else search.C * _factor(search, name, len(learn.y))
        if search is None and METHODS[name].has_cost:
            notes.append("the rows are too few to choose C, so it is 1")
        if search is not None and search.n_rows < len(learn.y):
            divided = f", and divided by {search.C / float(C):.3g} for all" if C != search.C else ""
            notes.append(f"C was chosen on {SEARCH_ROWS} rows drawn by chance{divided}")
    cost, kernels = float(C), None
    model, held_out, seconds = None, None, 0.0
    if sampled and max_rows is None and METHODS[name].takes_many_rows:
        announce(f"fitting to {limit} rows", 0.0)
        model, seconds = _fit(learn, name, settings, cost)
        announce("looking at what all rows would take", 0.0)
        kernels = kernels_for_all(model, problem)
        if kernels is not None:
            notes.append(
                f"all rows are fitted to {len(kernels)} of {len(model[-1].kernels_)} kernels, "
                f"those that carry {ENOUGH:.0%} of a fit to {limit} rows drawn by chance "
                f"(--max-rows {limit} keeps to that fit)"
            )
            learn, sampled, model = every, False, None
    if sampled:
        notes.append(
            f"{limit} of {len(problem.y)} rows are fitted to, drawn by chance, since {name} would "
            f"take long on all of them (--max-rows changes that{_hint(name)})"
        )
    if model is None and (judge is not None or sampled):
        announce(f"fitting to {len(learn.y)} rows", 0.0)
        model, seconds = _fit(learn, name, settings, cost, kernels)
    if judge is not None and model is not None:
        announce(f"judging on {len(judge.y)} rows", 0.0)
        held_out = judge_model(model, name, learn, judge, cost, settings.seed)
        held_out["same_model"] = sampled
        notes += _doubts(held_out)
    if model is None or not sampled:
        announce(f"fitting to all {len(problem.y)} rows", 0.0)
        model, seconds = _fit(problem, name, settings, cost, kernels)
    if getattr(model[-1], "n_nodes_", 0) >= getattr(model[-1], "max_nodes", 1):
        notes.append(
            f"the search for rules ended at {model[-1].n_nodes_} conjunctions, so better ones may "
            "be missing; a smaller --C needs fewer"
        )
    n_rows = int(model[0].n_samples_seen_)
    return TableFit(model, name, problem, n_rows, search, held_out, seconds, tuple(notes))


def _doubts(held_out: dict[str, Any]) -> list[str]:
    """Say that nothing was learned, if so."""
    low = held_out["score"] if held_out["interval"] is None else held_out["interval"][0]
    if low > held_out["guess"]:
        return []
    return [
        "on held-out rows the model is not surely better than one answer for all, so the columns "
        "may tell little about the target"
    ]


def _factor(search: Search, name: str, n_rows: int) -> float:
    """Return what a C that was found on some rows is multiplied by for all."""
    return search.n_rows / n_rows if METHODS[name].keeps_total else 1.0


def _hint(name: str) -> str:
    return "" if name == "rules" else "; --method rules takes up to 10000"


def _fit(
    problem: Problem, name: str, settings: Settings, C: float, kernels: Any = None
) -> tuple[Pipeline, float]:
    """Fit, to kernels of its own choice unless told; convergence is looked up afterwards."""
    model = make_model(problem, name, settings, C)
    if kernels is not None:
        model[-1].set_params(kernels=kernels)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(problem.X, problem.y)
    return model, time.perf_counter() - began


def _split(problem: Problem, share: float, seed: int) -> tuple[Problem, Problem]:
    """Hold some rows out, with all classes on both sides where that can be."""
    counts = problem.y.value_counts()
    n_test = share * len(problem.y)
    both = not problem.regression and counts.min() > 1 and n_test >= len(counts)
    train, test = train_test_split(
        range(len(problem.y)),
        test_size=share,
        random_state=seed,
        stratify=problem.y if both else None,
    )
    return problem.take(sorted(train)), problem.take(sorted(test))
