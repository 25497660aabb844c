"""Models that are written have probabilities and sets, or intervals."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import Linear, MKLClassifier, MKLRegressor
from kernelweave.errors import InputError
from kernelweave.tables import make_problem
from kernelweave.tables.sureness import fit_surely

RANDOM = np.random.default_rng(0)
X = pd.DataFrame(RANDOM.normal(size=(60, 2)), columns=["a", "b"])


def problem(y, rows=X):
    return make_problem(rows.assign(y=y), "y")


def test_options_are_set():
    """Classifiers are calibrated, regressors have intervals, and the time is measured."""
    found = problem(np.where(X["a"] > 0, "p", "q"))
    model = MKLClassifier([Linear()])
    sure = fit_surely(model, found, lambda: model.fit(found.X, found.y))
    assert sure.model is model
    assert sure.model.predict_proba(X).shape == (60, 2)
    assert sure.seconds > 0
    assert "_leave_out" not in vars(model)
    found = problem(X["a"] + 0.1 * X["b"])
    model = MKLRegressor([Linear()])
    sure = fit_surely(model, found, lambda: model.fit(found.X, found.y))
    assert sure.model.predict_interval(X).shape == (60, 2)


def test_classes_of_few_rows():
    """Too few rows, or rows that are copies of each other: the model is as it was."""
    few = problem(np.where(np.arange(60) < 4, "p", "q"))
    model = MKLClassifier([Linear()])
    sure = fit_surely(model, few, lambda: model.fit(few.X, few.y))
    assert not hasattr(sure.model, "predict_proba")
    copies = X.copy()
    copies.iloc[:6] = copies.iloc[0].to_numpy()
    found = problem(np.where(np.arange(60) < 6, "p", "q"), copies)
    model = MKLClassifier([Linear()])
    sure = fit_surely(model, found, lambda: model.fit(found.X.to_numpy(), found.y))
    assert (sure.model.calibration, sure.seconds) == (None, 0.0)


def test_other_errors_are_raised():
    """Only the refusal of a calibration is answered by a fit without it."""
    found = problem(np.where(X["a"] > 0, "p", "q"))

    def refuse():
        raise InputError("kernels: there are none.")

    with pytest.raises(InputError, match="kernels: there are none"):
        fit_surely(MKLClassifier([Linear()]), found, refuse)
