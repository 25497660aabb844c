"""Odd Dask tables: what can be used is, what cannot is refused in a sentence that names the row."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from kernelweave import (
    RBF,
    Linear,
    MKLClassifier,
    NoiseTolerantKernelClassifier,
    PairwiseKernelLearner,
    RuleEnsembleClassifier,
    RuleEnsembleRegressor,
    rbf_ladder,
)
from kernelweave.banks.nystroem import build as large
from kernelweave.errors import InputError, RowError, numbering
from many_rows import count_as_many

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

KERNELS = [RBF(width=1.0, columns=[0]), RBF(width=1.0, columns=[1]), Linear()]


def table(n=120):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 > 0.8, "up", "down")


def parts(X, size=50):
    return da.from_array(X, chunks=(size, *X.shape[1:]))


def unknown_lengths(X):
    return dd.from_pandas(X, npartitions=3)


@pytest.fixture
def many(monkeypatch):
    count_as_many(monkeypatch, 12_000)


@pytest.mark.parametrize("kernels", [[RBF(columns=["a"]), RBF(columns=["b"])], [rbf_ladder()]])
def test_a_value_missing_from_a_sample_is_named_by_its_row(many, monkeypatch, kernels):
    monkeypatch.setattr(large, "_SAMPLE", 40)
    monkeypatch.setattr("kernelweave.estimators.duplicates._WIDTH_ROWS", 40)
    X, y = table()
    X = pd.DataFrame(X, columns=list("abc"))
    bad = int(large.even_rows(len(X), 40)[30])  # one of those that are looked at
    assert bad > 40
    X.loc[bad, "a"] = np.nan
    for rows in (X, unknown_lengths(X)):
        with pytest.raises(RowError, match=f"'a' has a missing or infinite value in row {bad};"):
            MKLClassifier(kernels).fit(rows, y)


def test_a_value_missing_from_rows_to_predict_is_named_by_row_or_part():
    X, y = table()
    model = MKLClassifier(KERNELS).fit(X, y)
    X[70, 1] = np.inf
    with pytest.raises(RowError, match="row 70, column 1"):
        model.predict(parts(X)).compute()
    named = MKLClassifier([Linear()]).fit(pd.DataFrame(table()[0], columns=list("abc")), y)
    with pytest.raises(InputError, match=r"In part 1 of X: .*'b' has a missing .* in row 30;"):
        named.predict(unknown_lengths(pd.DataFrame(X, columns=list("abc")))).compute()


def test_errors_of_rows_survive_the_way_between_processes():
    error = RowError("'{a}' is missing in row {row}", 3)
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == "'{a}' is missing in row 3"
    with pytest.raises(RowError, match="in row 30"), numbering(np.arange(0, 100, 10)):
        raise error
    with pytest.raises(RowError, match=r"in row 3$"), numbering(None):
        raise error


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(),
        NoiseTolerantKernelClassifier(),
        RuleEnsembleClassifier(),
        PairwiseKernelLearner(),
    ],
)
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_label_is_named_by_its_row(model, missing):
    X, y = table()
    y = y.astype(object)
    y[5] = missing
    for labels in (y, pd.Series(y), pd.Series(y, dtype="string")):
        with pytest.raises(InputError, match=r"y: the label of row 5 is missing\."):
            clone(model).fit(X, labels)
    with pytest.raises(InputError, match=r"y: the label of row 5 is missing\."):
        clone(model).fit(parts(X), dd.from_pandas(pd.Series(y), npartitions=2))


def test_a_container_holds_numbers():
    X, y = table()
    model = PairwiseKernelLearner(random_state=0).fit(np.abs(X), y)
    plain = model.transform(np.abs(X))
    framed = model.set_output(transform="pandas").transform(parts(np.abs(X)))
    assert isinstance(framed, pd.DataFrame)
    assert set(framed.dtypes) == {np.dtype(float)}
    np.testing.assert_allclose(framed.to_numpy(), plain)


def test_tasks_go_with_their_rows():
    X, y = table()
    task = np.arange(len(X)) % 2
    lazy, names = parts(X), unknown_lengths(pd.DataFrame(X, columns=list("abc")))
    model = RuleEnsembleClassifier().fit(X, y, task=task)
    expected = model.predict(X, task)
    np.testing.assert_array_equal(model.predict(lazy, task=task).compute(), expected)
    np.testing.assert_array_equal(model.predict(lazy, parts(task, 30)).compute(), expected)
    np.testing.assert_array_equal(model.predict(lazy, task=1).compute(), model.predict(X, 1))
    with pytest.raises(InputError, match="X has 120 rows, but an argument beside it has 9 entries"):
        model.predict(lazy, task[:9])
    numbers = RuleEnsembleRegressor().fit(names.compute(), X[:, 0], task=task)
    np.testing.assert_array_equal(
        numbers.predict(names, task=task).compute(), numbers.predict(names.compute(), task)
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_few_repeats_and_weights_do_not_make_another_model(many, weighted):
    X, y = table(1200)
    X[600:640] = X[:40]
    y[600:640] = y[:40]
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    model = MKLClassifier(KERNELS)
    here = clone(model).fit(X, y, sample_weight=weight)
    there = clone(model).fit(parts(X, 500), y, sample_weight=weight)
    assert there.objective_ == here.objective_
    np.testing.assert_array_equal(there.decision_function(X), here.decision_function(X))


def test_few_rows_are_joined_wherever_they_are():
    X, y = table()
    twice, both = np.vstack([X, X]), np.append(y, y)
    once = MKLClassifier(KERNELS).fit(X, y, sample_weight=np.full(len(y), 2.0))
    there = MKLClassifier(KERNELS).fit(parts(twice), both)
    assert there.objective_ == once.objective_
    np.testing.assert_array_equal(there.decision_function(X), once.decision_function(X))
