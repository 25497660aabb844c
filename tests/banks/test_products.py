"""Products of kernels whose factors are evaluated once, and multiples of combined kernels."""

import numpy as np
import pytest

from kernelweave import RBF, Linear
from kernelweave.banks import Views, make_bank
from kernelweave.banks.products import ProductBank, ProductSum
from kernelweave.kernels import Constant, Product

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(12, 3)), RNG.normal(size=(5, 3))
FACTORS = [RBF(1.0, columns=[0]), Linear(columns=[1]), RBF(2.0, columns=[2])]


def test_products_over_training_rows():
    bank = ProductBank(make_bank(FACTORS, X, normalize=None, tol=1e-9))
    products = [(), (0,), (1,), (0, 2), (0, 1, 2)]
    bank.add(products[:2])
    bank.add(products[2:])
    grams = [kernel(X) for kernel in FACTORS]
    expected = [np.prod([np.ones((12, 12)), *(grams[j] for j in p)], axis=0) for p in products]
    for V in (RNG.normal(size=(12, 2)), np.eye(12)[:, :3]):
        assert bank.quadratic_forms(V) == pytest.approx(
            [np.vdot(V, K @ V) for K in expected], abs=1e-12
        )
    weights = np.array([0.5, 0.0, 2.0, 1.0, 3.0])
    K = bank.combine(weights)
    assert K.dense() == pytest.approx(np.tensordot(weights, expected, axes=1))
    assert (K.dense() == K.dense().T).all()


@pytest.mark.parametrize(
    "kernels",
    [
        FACTORS,
        [*FACTORS, Product(tuple(FACTORS)), FACTORS[0] * FACTORS[2], Constant()],
        [FACTORS[0], FACTORS[0], FACTORS[1] * FACTORS[1]],
        [2.0 * FACTORS[0] + FACTORS[1], (FACTORS[0] * FACTORS[1]).renamed("both")],
    ],
)
def test_sums_of_products_on_new_rows(kernels):
    products = ProductSum.of(kernels)
    assert len(set(products.factors)) == len(products.factors)
    weights = RNG.random(len(kernels))
    block = products.block(weights, Views.of(products.factors, Z), Views.of(products.factors, X))
    assert block == pytest.approx(sum(w * k(Z, X) for w, k in zip(weights, kernels, strict=True)))


def test_a_multiple_of_a_combined_kernel(monkeypatch):
    monkeypatch.setattr("kernelweave.banks.build._SMALL", 10)  # float32 from there on
    for tol, precision in ((1e-9, 1e-12), (1e-3, 1e-5)):
        bank = make_bank([RBF(0.2), Linear()], X, normalize=None, tol=tol)
        K = bank.combine(np.array([0.7, 0.2]))
        assert K.scaled(1.0) is K
        three = K.scaled(3.0)
        assert three.dense() == pytest.approx(3.0 * K.dense(), rel=precision, abs=precision)
        assert three @ X == pytest.approx(3.0 * (K @ X), rel=precision, abs=precision)
