"""Select the kernels that can be fitted to all rows of a large table in minutes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from kernelweave.banks.nystroem.build import count_features
from kernelweave.kernels import Kernel

from .problem import Problem

ENOUGH = 0.95  # share of the function's squared norm that the selected kernels must carry
_WORK = 2e10  # rows x features^2 x outputs that take about a minute on two cores


def kernels_for_all(model: Pipeline, problem: Problem) -> list[Kernel] | None:
    """Return the kernels that carry most of the norm of a model fitted to some rows.

    None where a Nystroem fit of them to all rows would take long: for several kernels on many
    columns at once, on categories of many values or on texts.
    """
    estimator = model[-1]
    order = np.argsort(-estimator.contributions_, kind="stable")
    needed = int(np.searchsorted(np.cumsum(estimator.contributions_[order]), ENOUGH)) + 1
    kernels = [estimator.kernels_[j] for j in sorted(order[:needed])]
    rows: Any = clone(model[0]).fit_transform(problem.X, problem.y)
    tol = estimator.tol / max(1.0, estimator.C)  # the accuracy that the fit will require
    features = count_features(kernels, rows, normalize=estimator.normalize, tol=tol)
    if features is None:
        return None
    work = float(len(problem.y)) * sum(features) ** 2 * len(estimator.intercept_)
    return kernels if work <= _WORK else None
