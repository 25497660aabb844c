import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1

from kernelweave import MetricKernelClassifier, MetricKernelRegressor
from kernelweave.errors import MemoryBudgetError
from kernelweave.ridge import parts

dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")

VALUES, Y = make_friedman1(900, n_features=6, random_state=0)
FRAME = pd.DataFrame(VALUES, columns=list("abcdef"))
FRAME["town"] = np.where(VALUES[:, 0] > 0.5, "Ulm", "Bonn")
FRAME.loc[::40, "f"] = np.nan
LABEL = np.where(Y > np.median(Y), "high", "low")
SMALL = {"max_exact": 200, "metric_rows": 200, "n_landmarks": 120, "n_steps": 1}


def test_parts_stay_where_they_are_and_give_the_landmark_ridge(monkeypatch):
    lazy = dd.from_pandas(FRAME[:700], npartitions=5)
    taken = []
    take = parts.PartedTable.take
    monkeypatch.setattr(
        parts.PartedTable, "take", lambda self, index: taken.append(len(index)) or take(self, index)
    )
    model = MetricKernelRegressor(**SMALL).fit(lazy, Y[:700])
    assert model.solver_ == "nystroem"
    assert len(model.support_) == 120
    assert max(taken) < 700
    here = MetricKernelRegressor(**SMALL, max_full=0).fit(FRAME[:700], Y[:700])
    scores = [m.score(FRAME[700:], Y[700:]) for m in (model, here)]
    assert abs(scores[0] - scores[1]) < 0.02
    assert abs(model.loo_error_ - here.loo_error_) < 0.02
    predicted = model.predict(lazy)
    assert hasattr(predicted, "compute")
    np.testing.assert_allclose(predicted.compute(), model.predict(FRAME[:700]), atol=1e-12)
    assert abs(model.score(lazy, Y[:700]) - model.score(FRAME[:700], Y[:700])) < 1e-12


def test_the_division_into_parts_does_not_matter():
    first, second = (
        MetricKernelClassifier(**SMALL).fit(dd.from_pandas(FRAME, npartitions=n), LABEL)
        for n in (2, 7)
    )
    np.testing.assert_array_equal(first.support_, second.support_)
    np.testing.assert_allclose(first.predict_proba(FRAME), second.predict_proba(FRAME), atol=1e-9)


def test_weights_of_zero_leave_rows_out():
    weight = np.ones(900)
    weight[600:] = 0.0
    lazy = da.from_array(VALUES, chunks=(250, 6))
    model = MetricKernelRegressor(**SMALL).fit(lazy, Y, sample_weight=weight)
    assert np.isnan(model.loo_values_[600:]).all()
    assert not np.isnan(model.loo_values_[:600]).any()
    assert model.support_.max() < 600
    interval = model.predict_interval(VALUES[600:])
    held = (interval[:, 0] <= Y[600:]) & (Y[600:] <= interval[:, 1])
    assert 0.8 < held.mean() < 0.98


def test_few_rows_are_fetched_and_memory_is_limited():
    few = dd.from_pandas(FRAME[:150], npartitions=3)
    model = MetricKernelRegressor(n_steps=0).fit(few, Y[:150])
    assert model.solver_ == "cholesky"
    expected = MetricKernelRegressor(n_steps=0).fit(FRAME[:150], Y[:150])
    np.testing.assert_array_equal(model.predict(FRAME), expected.predict(FRAME))
    with pytest.raises(MemoryBudgetError, match="memory_limit: 5 matrices of 200 rows need"):
        MetricKernelRegressor(**SMALL, memory_limit="1MB").fit(
            dd.from_pandas(FRAME, npartitions=4), Y
        )
