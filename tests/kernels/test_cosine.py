import pickle

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import RBF, Cosine, Linear, Polynomial
from kernelweave.testing import check_kernel

X = np.random.default_rng(0).normal(size=(30, 4))


@pytest.mark.parametrize("inner", [Linear(), Polynomial(3), RBF(2.0), Linear() + RBF(columns=[0])])
def test_cosine_is_a_kernel_with_unit_diagonal(inner):
    check_kernel(Cosine(inner), X)
    np.testing.assert_array_equal(Cosine(inner).diag(X), 1.0)
    np.testing.assert_array_equal(Cosine(inner)(X).diagonal(), 1.0)


def test_cosine_of_linear_is_cosine_similarity():
    np.testing.assert_allclose(Cosine(Linear())(X), cosine_similarity(X), atol=1e-14)
    np.testing.assert_allclose(Cosine(Linear())(X, X[:5]), cosine_similarity(X, X[:5]), atol=1e-14)


def test_rows_without_length_are_similar_to_nothing():
    rows = X.copy()
    rows[3] = 0.0
    K = Cosine(Linear())(rows)
    assert not K[3].any()
    assert np.isfinite(K).all()


def test_rows_whose_lengths_underflow_are_refused():
    # x^6 has lost its digits here, so cosines between these rows would be wrong.
    with pytest.raises(InputError, match="underflow"):
        Cosine(Polynomial(3, coef0=0.0, columns=[0]))(1e-52 * X)


def test_columns_bind_the_inner_kernel():
    assert Cosine(Linear(), columns=[1]) == Cosine(Linear(columns=[1]))
    assert Cosine(Linear()).on("a").kernel == Linear(columns="a")
    assert str(Cosine(Linear(columns="a"))) == "cosine of linear on a"
    assert pickle.loads(pickle.dumps(Cosine(RBF(2.0)))) == Cosine(RBF(2.0))


def test_only_kernels_have_a_cosine():
    with pytest.raises(InputTypeError, match="Cosine: kernel must be a kernel, got int"):
        Cosine(3)
