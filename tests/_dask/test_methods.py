"""Methods on Dask tables are lazy and see one part at a time."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dask_cases import CHUNKS, KERNELS, parted, rule_frame, table
from kernelweave import (
    MKLClassifier,
    MKLRegressor,
    RuleEnsembleClassifier,
)
from many_rows import count_as_many

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture
def many(monkeypatch):
    count_as_many(monkeypatch, 12_000)


def test_predictions_are_lazy_arrays_of_the_right_kind(many):
    X, f = table()
    model = MKLClassifier(KERNELS).fit(X, np.where(f > 0.5, "high", np.where(f > 0, "mid", "low")))
    lazy = model.predict(parted(X))
    assert isinstance(lazy, da.Array)
    assert lazy.dtype == model.predict(X).dtype
    assert lazy.chunks == (tuple(c for c in CHUNKS if c),)
    np.testing.assert_array_equal(lazy.compute(), model.predict(X))
    decision = model.decision_function(parted(X))
    assert decision.shape == (300, 3)
    np.testing.assert_allclose(decision.compute(), model.decision_function(X), atol=1e-12)


def test_scores_of_arrays_and_frames(many):
    X, y = rule_frame(150)
    parts, weight = dd.from_pandas(X, npartitions=3), np.arange(150.0)
    rules = RuleEnsembleClassifier().fit(X, y)
    assert rules.score(parts, dd.from_pandas(y, npartitions=2)) == rules.score(X, y)
    assert rules.score(parts, y, da.from_array(weight, chunks=40)) == rules.score(X, y, weight)
    X, f = table()
    model = MKLRegressor(KERNELS).fit(X, f)
    assert model.score(parted(X), parted(f)) == pytest.approx(model.score(X, f), abs=1e-12)


def test_unfitted_and_wrong_columns_are_refused_at_once(many):
    X, f = table()
    with pytest.raises(NotFittedError):
        MKLClassifier().predict(parted(X))
    model = MKLClassifier(KERNELS).fit(X, f > 0)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(da.from_array(X[:, :2], chunks=100))
