"""The default kernels of a mixed table."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLClassifier, MKLRegressor
from kernelweave.kernels import (
    RBF,
    Constant,
    Laplacian,
    Linear,
    encodes_gaps,
    mixed_ladder,
    rbf_ladder,
    views,
)
from kernelweave.kernels.mixed import _mean_absolute_distance

RANDOM = np.random.default_rng(5)
N = 120
NUMBERS = RANDOM.normal(size=(N, 3))
TOWN = RANDOM.choice(["Ulm", "Bonn", "Kiel"], N)
# The effect of a column depends on the town: sums of kernels on columns cannot express it.
TARGET = np.where(TOWN == "Ulm", NUMBERS[:, 0], -NUMBERS[:, 0]) + 0.1 * RANDOM.normal(size=N)
FRAME = pd.DataFrame(NUMBERS, columns=["age", "height", "weight"]).assign(town=TOWN)


def grams(kernels, X):
    return np.stack([kernel(X) for kernel in kernels])


def test_kernels_on_all_columns_then_on_each():
    kernels = mixed_ladder().expand(FRAME)
    joint, single = kernels[:8], kernels[8:]
    assert [type(kernel) for kernel in joint] == [Laplacian] * 4 + [RBF] * 3 + [Linear]
    assert all(kernel.columns.keys == tuple(FRAME.columns) for kernel in joint)
    assert [kernel.columns.keys for kernel in single] == [(name,) for name in FRAME.columns]
    assert str(single[0]) == "rbf(width=1) on age"
    assert mixed_ladder(per_feature=False).expand(FRAME) == joint
    assert len(mixed_ladder(columns=["age"]).expand(FRAME)) == 8  # one column is all columns
    wide = np.random.default_rng(0).normal(size=(10, 61))
    assert len(mixed_ladder().expand(wide)) == 8 + 3


def test_numbers_alone_also_keep_their_spread():
    X = NUMBERS * [1.0, 10.0, 0.1]
    own = mixed_ladder(per_feature=False).expand(X)[8:]
    assert all(str(kernel).endswith("in own units") for kernel in own)
    # Encoded values follow normal scores; between rows near the middle, differences are plain.
    near = np.abs(NUMBERS).max(axis=1) < 0.7
    total = np.sqrt(2 * (X.std(axis=0) ** 2).sum())
    for kernel, step in zip(own, (0.5, 1.0, 2.0), strict=True):
        plain = RBF(step * total)(X[near])
        assert np.abs(kernel(X[near]) - plain).max() < 0.1
        assert np.corrcoef(kernel(X).ravel(), RBF(step * total)(X).ravel())[0, 1] > 0.97
    alike = mixed_ladder(per_feature=False).expand(NUMBERS / NUMBERS.std(axis=0))
    assert len(alike) == 8
    holes = X.copy()
    holes[0, 0] = np.nan
    assert len(mixed_ladder(per_feature=False).expand(holes)) == 8


def test_units_do_not_matter():
    other = FRAME.assign(age=1000 * FRAME["age"] + 7, town=FRAME["town"].str.upper())
    expected = grams(mixed_ladder().expand(FRAME), FRAME)
    np.testing.assert_allclose(grams(mixed_ladder().expand(other), other), expected, atol=1e-12)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_gaps_are_encoded(make):
    values = FRAME.to_dict("list")
    values["age"] = [None if i % 5 == 0 else x for i, x in enumerate(values["age"])]
    values["town"] = [None if i % 7 == 0 else x for i, x in enumerate(values["town"])]
    X = make(values)
    kernels = mixed_ladder().expand(X)
    for kernel in kernels:
        K = kernel(X)
        assert np.isfinite(K).all()
        assert np.linalg.eigvalsh(K).min() > -1e-9 * np.trace(K)
    model = MKLClassifier().fit(X, TARGET > 0)
    assert model.converged_
    assert model.score(X, TARGET > 0) > 0.9


def test_arrays_with_gaps():
    X = NUMBERS.copy()
    X[::6, 1] = np.nan
    assert MKLClassifier().fit(X, NUMBERS[:, 0] > 0).predict(X[:5]).shape == (5,)
    with pytest.raises(ValueError, match="NaN or infinity, first in row 0, column 1"):
        MKLClassifier([rbf_ladder()]).fit(X, NUMBERS[:, 0] > 0)
    # Beside kernels that encode gaps, the others still refuse them in their own columns.
    both = MKLClassifier([mixed_ladder(), Linear(columns=[0])]).fit(X, NUMBERS[:, 0] > 0)
    assert both.converged_
    with pytest.raises(ValueError, match="linear on column 1: column 1 has a missing or infinite"):
        MKLClassifier([mixed_ladder(), Linear(columns=[1])]).fit(X, NUMBERS[:, 0] > 0)


def test_which_kernels_encode_gaps():
    assert encodes_gaps(None)
    assert encodes_gaps([Linear(), mixed_ladder()])
    assert encodes_gaps(mixed_ladder().expand(FRAME))
    assert encodes_gaps(views({"left": ["age"]}))
    assert not encodes_gaps([Linear(), rbf_ladder()])
    assert not encodes_gaps(views({"left": ["age"]}, [Linear()]))


def test_joint_kernels_see_interactions_of_numbers_and_categories():
    train, test = np.arange(N) < 80, np.arange(N) >= 80
    model = MKLRegressor(C=30).fit(FRAME[train], TARGET[train])
    apart = [
        rbf_ladder(columns=FRAME.columns[:3].tolist()),
        *mixed_ladder(columns="town").expand(FRAME),
    ]
    sums = MKLRegressor(apart, C=30).fit(FRAME[train], TARGET[train])
    assert model.score(FRAME[test], TARGET[test]) > 0.6
    assert sums.score(FRAME[test], TARGET[test]) < 0.1


def test_mean_distance_counts_pairs_of_rows():
    rows = np.random.default_rng(1).normal(size=(9, 4))
    # The mean over all ordered pairs, a row with itself included.
    expected = 2 * pdist(rows, "cityblock").sum() / 81
    assert _mean_absolute_distance(rows, None) == pytest.approx(expected, rel=1e-13)
    weight = np.array([2.0, *np.ones(8)])
    twice = np.vstack([rows[:1], rows])
    assert _mean_absolute_distance(rows, weight) == pytest.approx(
        _mean_absolute_distance(twice, None), rel=1e-13
    )
    assert _mean_absolute_distance(np.ones((3, 2)), None) == 1.0


def test_sparse_tables_are_taken_as_they_are():
    X = sp.random_array((40, 8), density=0.3, rng=0, format="csr")
    kernels = mixed_ladder().expand(X)
    assert [type(kernel) for kernel in kernels] == [RBF] * 5 + [Linear]
    assert all(kernel.columns is None for kernel in kernels)
    labels = np.arange(40) % 2
    assert MKLClassifier().fit(X, labels).predict(X).shape == (40,)


def test_nothing_varies():
    with pytest.warns(UserWarning, match="no column to learn from.* same for all rows"):
        kernels = mixed_ladder().expand(np.ones((5, 2)))
    assert [type(kernel) for kernel in kernels] == [Constant]


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_targets_in_any_unit(unit):
    model = MKLRegressor().fit(FRAME, unit * TARGET + 3 * unit)
    plain = MKLRegressor().fit(FRAME, TARGET)
    np.testing.assert_allclose(
        model.predict(FRAME) / unit, plain.predict(FRAME) + 3, rtol=0, atol=2e-3
    )
    assert model.target_scale_ == pytest.approx(unit * plain.target_scale_)
    assert model.objective_ == pytest.approx(unit**2 * plain.objective_, rel=2e-3)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "huber", "square"])
def test_a_given_unit(loss):
    scaled = MKLRegressor(loss=loss, target_scale=4.0, tol=1e-6).fit(FRAME, TARGET)
    plain = MKLRegressor(loss=loss, target_scale=None, tol=1e-6).fit(FRAME, TARGET / 4)
    np.testing.assert_allclose(scaled.predict(FRAME), 4 * plain.predict(FRAME), atol=1e-3)
    assert scaled.objective_ == pytest.approx(16 * plain.objective_, rel=1e-5)


def test_constant_targets_and_outliers():
    assert MKLRegressor().fit(FRAME, np.full(N, 3.0)).target_scale_ == 1.0
    y = TARGET.copy()
    y[0] = 1e9
    assert MKLRegressor().fit(FRAME, y).target_scale_ < 10 * TARGET.std()


def test_default_is_no_worse_than_a_linear_model_on_linear_data():
    X = np.random.default_rng(2).normal(size=(300, 6)) * 10.0 ** np.arange(6)
    signal = StandardScaler().fit_transform(X) @ [1, -1, 1, 0, 0, 0.5]
    y = signal + 0.5 * np.random.default_rng(3).normal(size=300) > 0
    linear = LogisticRegression().fit(StandardScaler().fit_transform(X[:200]), y[:200])
    known = linear.score(StandardScaler().fit(X[:200]).transform(X[200:]), y[200:])
    assert MKLClassifier().fit(X[:200], y[:200]).score(X[200:], y[200:]) > known - 0.03
