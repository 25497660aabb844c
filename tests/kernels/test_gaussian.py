"""Gaussian and Laplacian kernels."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import ARD, RBF, Additive, Laplacian, Linear, MKLClassifier, Overlap
from kernelweave.errors import InputError, InputTypeError
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
def test_extreme_widths_by_column(width):
    K = ARD((width,), columns=0)(X)
    np.testing.assert_allclose(K, np.eye(12) if width < 1 else np.ones((12, 12)))


@pytest.mark.parametrize("scale", [1e-150, 1e-10, 1e10, 1e150])
@pytest.mark.parametrize("n_columns", [1, 4])
def test_extreme_scales_with_a_matching_width(scale, n_columns):
    X = np.random.default_rng(4).normal(size=(8, n_columns))
    with np.errstate(all="raise"):
        for make in (RBF, Laplacian):
            np.testing.assert_allclose(make(scale)(X * scale), make(1.0)(X), rtol=1e-10)
            np.testing.assert_allclose(make(scale)(X * scale, X[:2] * scale), make(1.0)(X, X[:2]))


@pytest.mark.parametrize("n_columns", [1, 4])
def test_extreme_widths(n_columns):
    X = np.random.default_rng(4).normal(size=(5, n_columns))
    with np.errstate(all="raise"):
        for make in (RBF, Laplacian):
            np.testing.assert_array_equal(make(1e150)(X), np.ones((5, 5)))
            np.testing.assert_array_equal(make(1e-150)(X), np.eye(5))
            np.testing.assert_array_equal(make(1.0)(X * 1e150), np.eye(5))
            np.testing.assert_array_equal(make(1.0)(X * 1e-150), np.ones((5, 5)))
        np.testing.assert_array_equal(Linear()(X * 1e-170), np.zeros((5, 5)))


def test_sparse_rows_too_large_for_the_width_are_refused():
    with pytest.raises(InputError, match=r"overflow; rescale the columns first"):
        RBF(1e-200)(sp.csr_array(np.array([[1e150, 1e150], [1e150, -1e150]])))
    assert np.array_equal(RBF()(sp.csr_array(np.eye(3) * 1e200)), np.eye(3))


HARD_ROWS = {
    "outlier": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 1, 1e9, X),
    "far clusters": lambda X: X + 1e8 * (np.arange(len(X)) % 2)[:, None],
    "heavy tails": lambda X: np.tan(X) ** 3 * 1e3,
    "offset": lambda X: X + 1e9,
    "offset, small spread": lambda X: 1e-4 * X + 1e6,
    "repeated": lambda X: 1e4 * X[np.arange(len(X)) // 3],
    "huge": lambda X: 1e200 * X,
    "tiny": lambda X: 1e-200 * X,
}


@pytest.mark.parametrize("n_columns", [1, 2, 7, 300])
@pytest.mark.parametrize("case", list(HARD_ROWS))
def test_gaussians_are_right_to_rounding_for_any_rows(case, n_columns):
    """Values in long double, from differences, are what every form of a Gaussian is held to."""
    X = HARD_ROWS[case](np.random.default_rng(6).normal(size=(60, n_columns)))
    spread = float(np.median(np.abs(X[::2] - np.median(X[::2], axis=0)))) or 1.0
    width = spread * np.sqrt(n_columns)
    long = X.astype(np.longdouble)
    with np.errstate(all="ignore"):
        parts = (long[:, None] - long[None]) / np.longdouble(width)
        gaussian = np.exp(-0.5 * (parts**2).sum(axis=2))
        laplacian = np.exp(-np.abs(parts).sum(axis=2))
        additive = np.exp(-0.5 * parts**2).mean(axis=2)
    widths = [width] * n_columns
    some = np.arange(5, 40)
    for kernel, expected in (
        (RBF(width), gaussian),
        (ARD(widths), gaussian),
        (Laplacian(width), laplacian),
        (Additive(widths), additive),
    ):
        K = kernel(X)
        assert np.abs(K - expected).max() < 1e-12
        assert np.abs(kernel(X, X[some]) - expected[:, some]).max() < 1e-12
        assert np.array_equal(K, K.T)
        equal = (X[:, None] == X[None]).all(axis=2)
        assert (K[equal] == 1).all()
    assert np.abs(RBF(width)(sp.csr_array(X)) - gaussian).max() < 1e-12


@pytest.mark.parametrize("make", [RBF, Laplacian])
@pytest.mark.parametrize("width", [-1, 0, np.nan, np.inf, np.float32(-2)])
def test_widths_are_positive(make, width):
    expected = (
        rf"^{make.__name__}\(width={float(width)!r}\): width must be a finite number > 0\. Hint"
    )
    with pytest.raises(InputError, match=expected):
        make(width=width)


@pytest.mark.parametrize("width", ["1", None, [1.0], True])
def test_widths_are_numbers(width):
    with pytest.raises(InputTypeError, match=r"RBF\(width=.*\): width must be a finite number > 0"):
        RBF(width=width)


def test_laplacian_refuses_sparse_rows():
    S = sp.csr_array(np.eye(2))
    with pytest.raises(InputError, match=r"laplacian\(width=1\): sparse X is not supported here"):
        Laplacian()(S)
    with pytest.raises(InputError, match=r"laplacian\(width=1\): sparse X is not supported here"):
        Laplacian().block(Linear().prepare(S), Linear().prepare(S))
    with pytest.raises(InputError, match=r"overlap: sparse X is not supported here"):
        Overlap()(S)
