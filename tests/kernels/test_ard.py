"""Gaussians with a width for every column."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import ARD, RBF, MKLClassifier
from kernelweave.io import load, save

X = np.random.default_rng(0).normal(size=(12, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1e4]
Z = np.random.default_rng(1).normal(size=(5, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1e4]
WIDTHS = (0.7, 20.0, 0.3)


def plain(A, B, widths=WIDTHS):
    squares = np.square((A[:, None] - B) / np.array(widths)).sum(axis=2)
    return np.exp(-0.5 * squares)


def test_values():
    kernel = ARD(WIDTHS)
    np.testing.assert_allclose(kernel(X, Z), plain(X, Z), rtol=1e-9)
    np.testing.assert_allclose(kernel(X), plain(X, X), rtol=1e-9)
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(K.diagonal(), 1.0)
    np.testing.assert_array_equal(kernel.diag(X), 1.0)
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    # scikit-learn has no widths by column, but columns can be divided by them.
    np.testing.assert_allclose(
        kernel(X, Z), rbf_kernel(X / WIDTHS, Z / WIDTHS, gamma=0.5), rtol=1e-6
    )


def test_equal_widths_are_one_width():
    np.testing.assert_allclose(ARD((2.0, 2.0, 2.0))(X, Z), RBF(2.0)(X, Z), rtol=1e-9)
    product = RBF(0.7, columns=0) * RBF(20.0, columns=1) * RBF(0.3, columns=2)
    np.testing.assert_allclose(ARD(WIDTHS)(X, Z), product(X, Z), rtol=1e-9)


def test_an_infinite_width_leaves_its_column_out():
    kernel = ARD((0.7, np.inf, 0.3))
    np.testing.assert_allclose(kernel(X), ARD((0.7, 0.3), columns=[0, 2])(X), rtol=1e-9)
    other = X.copy()
    other[:, 1] = 1e9
    np.testing.assert_allclose(kernel(other), kernel(X), rtol=1e-9)
    np.testing.assert_array_equal(ARD((np.inf,) * 3)(X, Z), 1.0)


def test_columns_by_name():
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(town="Ulm")
    kernel = ARD((0.3, 0.7), columns=["c", "a"])
    np.testing.assert_allclose(kernel(frame), plain(X[:, [2, 0]], X[:, [2, 0]], (0.3, 0.7)), 1e-9)


def test_a_value_like_any_other():
    kernel = ARD([1, np.float32(2), 3.0])
    assert kernel == ARD((1.0, 2.0, 3.0)) == ARD(np.array([1.0, 2.0, 3.0]))
    assert hash(kernel) == hash(ARD((1.0, 2.0, 3.0)))
    assert kernel != ARD((1.0, 2.0, 4.0))
    assert all(type(width) is float for width in kernel.widths)
    assert clone(kernel) is kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert eval(repr(kernel), {"ARD": ARD}) == kernel
    assert str(kernel) == "ard(3 widths from 1 to 3)"
    assert str(ARD((1.0,), name="near")) == "near"
    given = [1.0, 2.0, 3.0]
    kept = ARD(given)
    given[0] = 9.0
    assert kept.widths == (1.0, 2.0, 3.0)


def test_in_a_model_and_its_file(tmp_path):
    y = np.arange(12) % 2
    kernels = [ARD(WIDTHS), ARD((np.inf, 3.0, 1.0)), 2 * ARD((1.0,), columns=0)]
    model = MKLClassifier(kernels, norm=2.0).fit(X, y)
    again = load(save(model, tmp_path / "model.kw"))
    assert again.kernels_ == model.kernels_
    np.testing.assert_array_equal(again.decision_function(Z), model.decision_function(Z))
    expected = np.tensordot(model.weights_ * model.scales_, [k(Z, X) for k in kernels], axes=1)
    np.testing.assert_allclose(model.kernel(Z, X), expected, rtol=1e-9)


@pytest.mark.parametrize("width", [1e-160, 1e160])
def test_extreme_widths(width):
    K = ARD((width,), columns=0)(X)
    np.testing.assert_allclose(K, np.eye(12) if width < 1 else np.ones((12, 12)))
