"""Expected kernels against finite sums over the training distribution."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gap_cases import WIDTHS, holed
from kernelweave.errors import InputError
from kernelweave.kernels import ARD, RBF, Additive, Expected, Laplacian, Linear, Polynomial
from quick import examples

NAN = float("nan")


def finite_sum(kernel, X, x, z):
    """Return the mean of ``k`` over all draws of the missing coordinates of both rows."""
    draws = [X[~np.isnan(X[:, j]), j] for j in range(X.shape[1])]
    both = np.array([x, z])
    holes = np.argwhere(np.isnan(both))
    total, count = 0.0, 0
    for values in product(*(draws[j] for _, j in holes)):
        both[tuple(holes.T)] = values
        total += kernel(both)[0, 1]
        count += 1
    return total / count


@pytest.mark.parametrize(
    "kernel", [RBF(1.3), ARD(WIDTHS), Additive(WIDTHS), Laplacian(2.0), Linear()]
)
@examples(8)
@given(seed=st.integers(0, 2**31))
def test_values_are_means_over_independent_draws(kernel, seed):
    X = holed(5, 3, 0.4, seed)
    X[0] = np.where(np.isnan(X[0]), 0.3, X[0])
    K = kernel.with_missing("expected")(X)
    expected = [[finite_sum(kernel, X, x, z) for z in X] for x in X]
    # A row and itself are two rows with independent draws.
    np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-12)


def test_distributions_of_many_values_are_quantiles():
    X = np.random.default_rng(0).normal(size=(2000, 1))
    X[0] = NAN
    bound = RBF(1.0, missing="expected").bound(X)
    values, shares = bound.distributions[0]
    assert len(values) == 256
    assert sum(shares) == pytest.approx(1.0)
    exact = RBF(1.0)(X[1:], [[0.5]]).mean()
    assert bound(X[:1], [[0.5]])[0, 0] == pytest.approx(exact, abs=2e-3)


def test_weights_count_like_repeated_rows():
    X = np.array([[0.0], [1.0], [NAN], [4.0]])
    weight = np.array([1.0, 2.0, 1.0, 3.0])
    weighted = RBF(1.0, missing="expected").bound(X, weight)
    repeated = RBF(1.0, missing="expected").bound(np.repeat(X, weight.astype(int), axis=0))
    np.testing.assert_allclose(weighted(X), repeated(X), rtol=1e-14)


def test_equal_kernels_are_equal_and_others_are_refused():
    X = holed()
    one, two = (RBF(1.0, missing="expected").bound(X) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert one.view == two.view != RBF(2.0, missing="expected").bound(X).view
    with pytest.raises(InputError, match="a product or a sum over columns"):
        Expected(Polynomial())
    with pytest.raises(InputError, match="distributions of 3 columns for 2 columns"):
        Expected(RBF(), one.distributions)(X[:, :2])
