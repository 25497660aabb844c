"""Searches that end early keep true bounds."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave import (
    RadiusKernelClassifier,
    RadiusMKLClassifier,
)
from kernelweave._threads import threads
from radius_cases import (
    make_data,
)
from radius_problems import CASES, optimum


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Spare these small arrays the threads, which wait for each other."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with threads(1):
        yield


@pytest.mark.parametrize("case", CASES[::2], ids=str)
def test_loose_and_short_fits_never_understate_their_gap(case):
    value, _ = optimum(case)
    options = [{"tol": tol, "solver": s} for tol in (0.5, 1e-2) for s in ("lbfgs", "projection")]
    options += [{"tol": 1e-9, "max_iter": k} for k in (1, 2, 4)]
    for option in options:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = case.fit(**option)
        assert model.objective_ >= value * (1 - 1e-8)
        assert model.lower_bound_ <= value * (1 + 1e-8)
        assert model.lower_bound_ <= model.objective_
        assert model.n_iter_ <= option.get("max_iter", 200)
        assert model.converged_ == (model.duality_gap_ <= model.tol * model.objective_)
        assert model.converged_ or "max_iter" in option


@pytest.mark.parametrize("case", CASES[1::6], ids=str)
def test_history_closes_in_on_the_result(case):
    value, _ = optimum(case)
    model = case.fit()
    upper = np.array([step.upper for step in model.history_])
    lower = np.array([step.lower for step in model.history_])
    assert (np.diff(upper) <= 1e-9 * value).all()
    assert (np.diff(lower) >= 0).all()
    assert (upper >= value * (1 - 1e-8)).all()
    assert (lower <= value * (1 + 1e-8)).all()
    assert upper[-1] == model.objective_
    assert model.history_[-1].solves == model.n_iter_


def test_a_fit_cut_short_warns_where_it_was_called():
    X, y = make_data()
    with pytest.warns(
        ConvergenceWarning, match=r"after 2 solves at a relative duality gap of"
    ) as w:
        RadiusMKLClassifier(max_iter=2, tol=1e-6).fit(X, y)
    assert w[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match=r"after 2 solves before it was stationary") as w:
        RadiusMKLClassifier(criterion="chapelle", norm=1, max_iter=2, tol=1e-6).fit(X, y)
    assert w[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match=r"after 3 solves before it was stationary") as w:
        RadiusKernelClassifier(max_iter=3).fit(X, y)
    assert w[0].filename == __file__
