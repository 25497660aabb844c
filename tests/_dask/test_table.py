"""Tables held by Dask in parts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from kernelweave import (
    Linear,
    MKLClassifier,
    NoiseTolerantKernelClassifier,
    PairwiseKernelLearner,
    RadiusMKLClassifier,
    RuleEnsembleClassifier,
    _dask,
)
from kernelweave._dask import PartedTable
from kernelweave.errors import InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))


def test_parts_of_equal_lengths():
    da = pytest.importorskip("dask.array")
    table = PartedTable.of(da.from_array(X, chunks=((1, 60, 0, 20, 69), (3,))))
    even = table.aligned(32)
    assert np.diff(even.starts).tolist() == [32, 32, 32, 32, 22]
    np.testing.assert_array_equal(np.concatenate(_dask.run(even.parts)), X)
    np.testing.assert_array_equal(even.take(np.array([149, 0, 40])), X[[149, 0, 40]])


da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


def table(n=120):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 > 0.8, "up", "down")


def parts(X, size=50):
    return da.from_array(X, chunks=(size, *X.shape[1:]))


def unknown_lengths(X):
    return dd.from_pandas(X, npartitions=3)


def test_parts_may_be_sparse():
    X, y = table()
    X = np.maximum(X, 0.0)
    lazy = parts(X).map_blocks(sp.csr_array, dtype=float)
    model = MKLClassifier([Linear()]).fit(lazy, y)
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.predict(sp.csr_array(X)))
    assert model.score(lazy, y) == model.score(sp.csr_array(X), y)
    pairs = PairwiseKernelLearner(random_state=0).fit(X, y)
    np.testing.assert_allclose(pairs.transform(lazy).compute(), pairs.transform(X))


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(),
        RadiusMKLClassifier(),
        NoiseTolerantKernelClassifier(),
        RuleEnsembleClassifier(),
        PairwiseKernelLearner(),
        PairwiseKernelLearner(method="shrink"),
    ],
)
def test_tables_without_rows_are_refused(model):
    X, y = table()
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    for empty in (parts(X)[:0], frame[frame[0] > 1e9]):
        with pytest.raises(ValueError, match=r"0 row|0 sample"):
            clone(model).fit(empty, y[:0])


@pytest.mark.parametrize("model", [MKLClassifier(), RuleEnsembleClassifier()])
def test_tables_of_no_or_unknown_columns_are_refused(model):
    X, y = table()
    series = dd.from_pandas(pd.Series(X[:, 0]), npartitions=2)
    with pytest.raises(InputError, match="two dimensions"):
        clone(model).fit(series, y)
    with pytest.raises(InputError, match="does not know how many columns"):
        clone(model).fit(parts(X)[:, parts(X)[0] > -9], y)
    with pytest.raises(InputError, match="two dimensions"):
        clone(model).fit(X, y).predict(series)


@pytest.mark.parametrize("model", [MKLClassifier([Linear()]), RuleEnsembleClassifier()])
def test_a_column_may_have_any_name(model):
    X, y = table()
    X = pd.DataFrame(X, columns=["a", "chunks", "c"])
    lazy = unknown_lengths(X)
    model = clone(model).fit(lazy, y)
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.predict(X))
