"""Nystroem features of a Dask table stay in its parts."""

import numpy as np
import pytest

from kernelweave import MetricKernelClassifier, MetricKernelRegressor
from kernelweave.ridge import parts
from metric_parts import FRAME, SMALL, Y

dd = pytest.importorskip("dask.dataframe")
LABEL = np.where(Y > np.median(Y), "high", "low")


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
