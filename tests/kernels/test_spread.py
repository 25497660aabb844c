"""Default widths: outliers do not count, ordinary columns are left alone."""

import numpy as np
import pytest

from kernelweave import MKLClassifier, rbf_ladder
from kernelweave.candidates.product import ProductLattice
from kernelweave.kernels import expand_kernels
from kernelweave.kernels.complete import complete_ladder
from kernelweave.kernels.spread import clip_outliers, column_deviations, typical_distance


def normal(n=200, d=3):
    return np.random.default_rng(0).normal(size=(n, d))


@pytest.mark.parametrize(
    "column",
    [
        normal()[:, 0],
        np.random.default_rng(1).exponential(size=200),
        (np.arange(200) < 5).astype(float),  # its quartiles are equal
        np.full(200, 7.0),
        np.arange(200.0),
    ],
)
def test_ordinary_columns_are_left_alone(column):
    rows = column[:, None]
    clipped, absurd = clip_outliers(rows)
    assert clipped is rows
    assert not absurd.any()


@pytest.mark.parametrize("column", [normal()[:, 0], (np.arange(200) < 60).astype(float)])
@pytest.mark.parametrize("outlier", [1e3, -1e9, 1e300])
def test_outliers_hardly_count(column, outlier):
    rows, spoilt = column[:, None], column[:, None].copy()
    spoilt[-1] = outlier
    clipped, absurd = clip_outliers(spoilt)
    assert np.array_equal(clipped[:-1], spoilt[:-1])
    assert abs(clipped[-1, 0]) < 30
    assert absurd[0] == (abs(outlier) > 1e6)
    assert typical_distance(spoilt, None) < 5 * typical_distance(rows, None)
    assert column_deviations(spoilt, None)[0] < 5 * column_deviations(rows, None)[0]


def test_a_weight_of_two_is_a_row_given_twice():
    rows = np.random.default_rng(2).standard_cauchy((60, 3))
    weight = np.random.default_rng(3).integers(0, 4, size=60).astype(float)
    repeated = np.repeat(rows, weight.astype(int), axis=0)
    assert typical_distance(rows, weight) == pytest.approx(typical_distance(repeated, None), 1e-12)
    np.testing.assert_allclose(
        column_deviations(rows, weight), column_deviations(repeated, None), rtol=1e-12
    )


def test_values_of_weight_zero_are_no_spread():
    rows = np.array([[1.0], [1.0], [1.0], [5.0]])
    clipped, absurd = clip_outliers(rows, np.array([1.0, 2.0, 1.0, 0.0]))
    assert (clipped == 1.0).all()
    assert not absurd.any()


@pytest.mark.parametrize(
    "expand",
    [
        lambda X: expand_kernels(None, X),
        lambda X: rbf_ladder(per_feature=True).expand(X),
        lambda X: complete_ladder().expand(X),
        lambda X: ProductLattice().expand(X),
    ],
    ids=["default", "per feature", "complete", "lattice"],
)
def test_absurd_values_are_reported_by_column(expand):
    X = normal()
    expand(X)
    X[3, 1] = 1e9
    with pytest.warns(UserWarning, match=r"^X: column 1: .*default widths do not count them"):
        expand(X)


@pytest.mark.parametrize("outlier", [1e4, 1e9, 1e12])
@pytest.mark.filterwarnings("ignore:X. column")
def test_one_outlier_does_not_spoil_the_default(outlier):
    X = normal()
    y = (np.sin(2 * X[:, 0]) > 0).astype(int)
    X[0, 1] = outlier
    assert MKLClassifier().fit(X, y).score(X, y) > 0.9
