"""Methods for a table, under their names on the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sklearn.pipeline import Pipeline

from kernelweave import estimators
from kernelweave.errors import InputError
from kernelweave.io import TablePreparer

from .kernels import offer_complete, offer_kernels, offer_structure
from .problem import Problem

COMPARED = ("metric", "linear", "svm")  # methods that are candidates of "auto" only
EPSILON = 0.1  # insensitivity of regression, in standard deviations of the target


@dataclass(frozen=True)
class Settings:
    """Options of a method; None stands for its default.

    Attributes
    ----------
    norm : float, "uniform" or None
        Of the weights.
    tol : float or None
        Relative gap to stop at.
    max_iter : int or None
        Maximum number of inner solves.
    per_feature : bool
        Whether to offer kernels on single columns.
    seed : int
        Seed of all random draws.
    class_weight : "balanced" or None
        "balanced": all classes count the same, however many rows they have.
    """

    norm: float | str | None = None
    tol: float | None = None
    max_iter: int | None = None
    per_feature: bool = True
    seed: int = 0
    class_weight: str | None = None

    def loose(self) -> Settings:
        """Return settings that suffice to compare models."""
        tol = max(1e-2, self.tol or 0.0)
        return replace(self, tol=tol, max_iter=min(50, self.max_iter or 50))


def _flat(problem: Problem, settings: Settings) -> dict[str, Any]:
    return {"kernels": offer_kernels(problem, per_feature=settings.per_feature)}


def _pairs(problem: Problem, settings: Settings) -> dict[str, Any]:
    # With an intercept, since rarely half of all pairs of rows are of one class.
    return _flat(problem, settings) | {"fit_intercept": True, "random_state": settings.seed}


def _rules(problem: Problem, settings: Settings) -> dict[str, Any]:
    counts = None if problem.regression else problem.y.value_counts()
    if counts is not None and len(counts) == 2 and counts.min() == 1:
        raise InputError(
            f"method rules: the class {str(counts.index[-1])!r} has one row only, which cannot be "
            "left out to choose the number of rules; use another method."
        )
    n_folds = max(2, min(5, len(problem.y) if counts is None else int(counts.max())))
    # Dates are years in a fit, but dates in exported queries, which cannot multiply them.
    lines = {"linear_terms": False} if problem.columns("date") else {}
    if problem.groups is None:
        return {"cv": n_folds, **lines}
    from .planning import make_folds  # which knows the candidates made of these methods

    return {"cv": make_folds(problem, n_folds, settings.seed), **lines}


@dataclass(frozen=True)
class Method:
    """A method for a table."""

    title: str
    classifier: str  # name of the estimator, imported when it is used
    regressor: str | None = None
    form: str = "frame"  # of the rows: see `make_preparer`
    max_rows: int = 5000  # default maximum number of rows to fit to: more would take minutes
    compared_rows: int = 2000  # maximum number of rows of fits that are compared
    # Parameter for the cost of errors; "Cs": the estimator itself chooses among several.
    cost: str | None = "C"
    takes_many_rows: bool = False  # whether a fit to more than 5000 is quick for some kernels
    seconds: float = 0.6  # of a fit to 1000 rows, about
    # Options of the command line that apply.
    options: frozenset[str] = frozenset({"tol", "max_iter", "class_weight"})
    arguments: Callable[[Problem, Settings], dict[str, Any]] = _flat  # kernels of the estimator


_WITH_NORM = frozenset({"norm", "tol", "max_iter", "class_weight"})

METHODS = {
    "mkl": Method(
        "multiple kernels",
        "MKLClassifier",
        "MKLRegressor",
        max_rows=50_000,
        takes_many_rows=True,
        options=_WITH_NORM,
    ),
    "radius": Method(
        "margin and radius", "RadiusMKLClassifier", max_rows=2000, options=_WITH_NORM, seconds=2.0
    ),
    "noisy": Method(
        "noise-tolerant kernels",
        "NoiseTolerantKernelClassifier",
        form="columns",
        max_rows=4000,
        cost=None,
        options=frozenset(),
        arguments=lambda problem, settings: {"kernels": offer_complete(problem)},
    ),
    "rules": Method(
        "rules",
        "RuleEnsembleClassifierCV",
        "RuleEnsembleRegressorCV",
        form="rules",
        max_rows=10_000,
        cost="Cs",
        arguments=_rules,
        seconds=2.0,
    ),
    "structure": Method(
        "sum-product structure",
        "SumProductMKLClassifier",
        form="columns",
        max_rows=2000,
        arguments=lambda problem, settings: {"structure": offer_structure(problem)},
        seconds=2.0,
    ),
    "pairs": Method(
        "kernels from pairs",
        "PairwiseKernelLearner",
        max_rows=20_000,
        cost=None,
        options=frozenset({"tol", "max_iter"}),
        arguments=_pairs,
    ),
}


def choose_method(problem: Problem, name: str = "auto", settings: Settings | None = None) -> str:
    """Return the name of the method to use; an error where it does not suit the problem.

    Parameters
    ----------
    problem : Problem
        The columns and the target.
    name : str
        A key of ``METHODS``, or "auto", which is multiple kernel learning.
    settings : Settings, optional
        Options; an error where the method does not have them.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.tables import make_problem
    >>> choose_method(make_problem(pd.DataFrame({"a": [1, 2], "y": ["p", "q"]}), "y"))
    'mkl'
    """
    if name == "auto":
        name = "mkl"
    if name not in METHODS:
        known = ", ".join(["auto", *COMPARED, *METHODS])
        raise InputError(f"method: must be one of {known}, got {name!r}.")
    method = METHODS[name]
    if problem.regression and method.regressor is None:
        raise InputError(
            f"method {name}: it is for classification, but the target {problem.y.name!r} has "
            "numbers with decimals, or more than 20 different ones; use the method mkl or rules, "
            "or the task 'classification'."
        )
    for option in ("norm", "tol", "max_iter", "class_weight"):
        given = None if settings is None else getattr(settings, option)
        if given is not None and option not in method.options:
            raise InputError(f"{option}: the method {name} does not have it, got {given!r}.")
    if name == "radius" and settings is not None and settings.norm not in (None, 1, 2, "uniform"):
        raise InputError(
            f"norm: must be 1, 2 or 'uniform' with the method radius, got {settings.norm!r}; 1 and "
            "2 only scale the weights there."
        )
    check_sources(problem, name)
    if name == "rules" and not problem.columns("number", "date", "category"):
        raise InputError("method rules: no column of numbers, dates or categories is left.")
    return name


def check_sources(problem: Problem, name: str) -> None:
    """Refuse sources, and rules for whole sources, with a method that has no kernels of them."""
    if problem.has_own_kernels and (name not in METHODS or METHODS[name].form != "frame"):
        raise InputError(
            f"method {name}: it has no kernels of sources, nor the rules 'off' and 'complete' for "
            "missing values; use the method mkl, or leave these options out."
        )


def make_model(problem: Problem, name: str, settings: Settings, C: float | None = None) -> Pipeline:
    """Return a pipeline of a `TablePreparer` and an estimator, not yet fitted.

    Parameters
    ----------
    problem : Problem
        The columns and the target.
    name : str
        A key of ``METHODS``.
    settings : Settings
        Options.
    C : float or None
        Cost of errors; for regression in units of the standard deviation of the target. None: one,
        or chosen by the estimator.

    Returns
    -------
    model : Pipeline
        With the steps ``"table"`` and ``"model"``.
    """
    method = METHODS[name]
    kind: Any = getattr(
        estimators, (method.regressor if problem.regression else None) or method.classifier
    )
    options: dict[str, Any] = {
        option: value
        for option in method.options
        if (value := getattr(settings, option)) is not None
    }
    if problem.regression:
        options.pop("class_weight", None)
    if "norm" in method.options:
        options.setdefault("norm", 1.0)
    if method.cost == "Cs":
        options |= {} if C is None else {"Cs": [C]}
    elif method.cost:
        options["C"] = 1.0 if C is None else C
    if kind.__name__ == "MKLRegressor":
        options["epsilon"] = EPSILON
    estimator = kind(**method.arguments(problem, settings), **options)
    return Pipeline([("table", make_preparer(problem, method.form)), ("model", estimator)])


def make_preparer(problem: Problem, form: str) -> TablePreparer:
    """Return the first step of a model, which gives rows their form.

    "frame" is for models that encode numbers, categories, dates and gaps themselves, "columns" has
    standardised numbers without gaps, and "rules" numbers in the units of the table, with gaps.
    """
    if form == "columns":
        rule = "refuse" if problem.missing == "refuse" else "fill"
        return TablePreparer(missing=rule, dates=problem.dates, plain=tuple(problem.grams))
    shared = {column for columns in problem.sources.values() for column in columns}
    texts = tuple(column for column in problem.columns("text") if column not in shared)
    return TablePreparer(
        standardize=False,
        missing="refuse" if problem.missing == "refuse" else "keep",
        dates=problem.dates,
        keep_dates=form == "frame",
        texts=texts,
    )


def for_method(problem: Problem, name: str) -> Problem:
    """Return the problem with the columns that a method can use: rules take no text or matrices."""
    lost = [*problem.columns("text"), *problem.grams] if name == "rules" else []
    if not lost:
        return problem
    why = "is left out: rules take no text and no matrices"
    notes = (*problem.notes, *(f"the column {column!r} {why}" for column in lost))
    return replace(problem.without(lost), notes=notes)
