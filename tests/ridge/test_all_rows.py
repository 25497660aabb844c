"""Ridge regression on all rows: three solvers agree."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score

from kernelweave import MetricKernelRegressor
from kernelweave.estimators import metric_base
from kernelweave.ridge.metric import solve_ridge
from metric_cases import FRAME, PRICE, N


def test_conjugate_gradients_give_the_exact_fit():
    X, y = make_friedman1(900, random_state=0)
    options = {"ridges": (0.1,), "n_steps": 1}
    exact = MetricKernelRegressor(max_exact=900, **options).fit(X[:700], y[:700])
    full = MetricKernelRegressor(max_exact=500, n_landmarks=200, **options).fit(X[:700], y[:700])
    assert (exact.solver_, full.solver_) == ("cholesky", "conjugate gradients")
    np.testing.assert_array_equal(full.support_, np.arange(700))
    np.testing.assert_array_equal(full.metric_, exact.metric_)  # 700 rows are below metric_rows
    score = r2_score(y[700:], full.predict(X[700:]))
    assert score > r2_score(y[700:], exact.predict(X[700:])) - 0.01  # its ridge is chosen anew
    # Errors of folds, which leave out more than one row, are a little larger.
    assert exact.loo_error_ * 0.9 < full.loo_error_ < exact.loo_error_ * 1.4
    again = clone(full).set_params(n_jobs=2).fit(X[:700], y[:700])
    np.testing.assert_array_equal(again.predict(X), full.predict(X))


def test_all_rows_as_landmarks_give_the_exact_fit():
    marks = MetricKernelRegressor(max_exact=20, max_full=0, n_landmarks=N).fit(FRAME, PRICE)
    assert marks.solver_ == "nystroem"
    assert marks.trace_left_out_ < 1e-9
    K = marks.kernel_(FRAME)
    exact = solve_ridge(K.copy(), marks.ridge_, PRICE[:, None], np.ones(N))
    values = (K @ exact.dual_coef + exact.intercept)[:, 0]
    np.testing.assert_allclose(marks.predict(FRAME), values, atol=1e-6)
    left_out = PRICE - exact.loo_residuals[:, 0]
    np.testing.assert_allclose(marks.loo_values_, left_out, atol=1e-6)


@pytest.mark.parametrize(("waves", "noise", "n_landmarks"), [(6.0, 0.0, 160), (1.0, 1.0, 40)])
def test_landmarks_are_added_while_they_help(waves, noise, n_landmarks, monkeypatch):
    monkeypatch.setattr(metric_base, "LANDMARKS", (40, 160))
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (500, 2))
    y = np.sin(waves * X).sum(axis=1) + noise * random.normal(size=500)
    options = {"max_exact": 0, "max_full": 0, "metric_rows": 200, "n_steps": 0}
    found = MetricKernelRegressor(**options).fit(X, y)
    assert (found.solver_, len(found.support_)) == ("nystroem", n_landmarks)
    given = MetricKernelRegressor(**options, n_landmarks=40).fit(X, y)
    assert len(given.support_) == 40
    assert found.loo_error_ <= given.loo_error_ + 1e-12
    limited = MetricKernelRegressor(**options, memory_limit=1.3e6).fit(X, y)
    assert len(limited.support_) < 160
