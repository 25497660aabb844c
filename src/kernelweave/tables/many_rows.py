"""Which kernels can be fitted to all rows of a large table in reasonable time."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from kernelweave.banks.large import count_features
from kernelweave.kernels import Kernel

from .problem import Problem

_WORK = 2e10  # rows x features^2 x outputs that take about a minute on two cores


def kernels_for_all(model: Pipeline, problem: Problem) -> list[Kernel] | None:
    """Return the kernels that a model uses, if a fit to all rows with them is a matter of minutes.

    Parameters
    ----------
    model : Pipeline
        Fitted to a part of the rows.
    problem : Problem
        All rows.

    Returns
    -------
    kernels : list of Kernel or None
        None where time would be long: for kernels on many columns at once, on categories of many
        values or on texts, which take many features each.
    """
    estimator = model[-1]
    used = [estimator.kernels_[j] for j in np.flatnonzero(estimator.weights_ > 0)]
    rows: Any = clone(model[0]).fit_transform(problem.X, problem.y)
    tol = estimator.tol / max(1.0, estimator.C)  # as the fit will ask for
    n_features = count_features(used, rows, normalize=estimator.normalize, tol=tol)
    if n_features is None:
        return None
    work = float(len(problem.y)) * n_features**2 * len(estimator.intercept_)
    return used if work <= _WORK else None
