"""Learned metrics on other tables and within limits."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score

from kernelweave import MetricKernelRegressor
from kernelweave.estimators import metric_base
from metric_cases import FRAME, PRICE, N


def test_the_size_of_blocks_changes_rounding_only(monkeypatch):
    model = MetricKernelRegressor().fit(FRAME, PRICE)
    predicted = model.predict(FRAME)
    monkeypatch.setattr(metric_base, "_BLOCK_BYTES", 8 * N * 7)  # seven rows at a time
    np.testing.assert_allclose(model.predict(FRAME), predicted, atol=1e-12)


@pytest.mark.parametrize(
    "convert", [pl.from_pandas, lambda frame: pl.from_pandas(frame).to_arrow()]
)
def test_frames_of_any_library(convert):
    expected = MetricKernelRegressor().fit(FRAME, PRICE).predict(FRAME)
    model = MetricKernelRegressor().fit(convert(FRAME), PRICE)
    np.testing.assert_array_equal(model.predict(convert(FRAME)), expected)


def test_landmarks_are_nearly_the_exact_fit():
    X, y = make_friedman1(1200, random_state=0)
    exact = MetricKernelRegressor(max_exact=900).fit(X[:900], y[:900])
    marks = MetricKernelRegressor(max_exact=500, max_full=500, metric_rows=450, n_landmarks=300)
    marks.fit(X[:900], y[:900])
    assert len(marks.support_) == 300
    assert 0 < marks.trace_left_out_ < 0.2
    assert exact.trace_left_out_ == 0
    gap = r2_score(y[900:], exact.predict(X[900:])) - r2_score(y[900:], marks.predict(X[900:]))
    assert gap < 0.01
    again = clone(marks).fit(X[:900], y[:900])
    np.testing.assert_array_equal(again.predict(X), marks.predict(X))


def test_landmarks_are_used_where_memory_does_not_hold_the_kernel():
    X, y = make_friedman1(3000, random_state=0)
    model = MetricKernelRegressor(metric_rows=200, n_steps=0, n_landmarks=50, memory_limit="20MB")
    with pytest.warns(UserWarning, match="the kernel of all 3000 rows needs"):
        model.fit(X, y)
    assert model.solver_ == "nystroem"


def test_few_rows_for_many_columns_are_said():
    X = np.random.default_rng(0).normal(size=(40, 30))
    with pytest.warns(UserWarning, match="40 rows are few for 30 encoded columns"):
        MetricKernelRegressor().fit(X, X[:, 0])
