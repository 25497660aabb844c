"""Spectra of centred kernels, and kernels that are copies."""

import numpy as np
import pytest

import kernelweave.ridge.spectrum as spectrum_module
from kernelweave.banks import make_bank
from kernelweave.kernels import RBF, Additive, Linear, Polynomial, Precomputed, complete_ladder
from kernelweave.ridge import average_ridges
from kernelweave.ridge.leave_one_out import loo_values
from kernelweave.ridge.spectrum import distinct_kernels, kernel_spectrum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.column_stack([np.sign(X[:, 0] + 0.5 * RNG.normal(size=40)), X[:, 1] ** 2])
RIDGES = np.array([1e-3, 0.1, 1.0, 50.0])
KERNELS = [RBF(1.0), RBF(3.0), Linear(), Polynomial(2), Additive((1.0, 0.5, 2.0))]


def centred(K):
    J = np.eye(len(K)) - 1.0 / len(K)
    return J @ K @ J


def unit(K):
    return K * len(K) / np.trace(centred(K))


def of(kernel, table=X):
    bank = make_bank([kernel], table)
    return kernel_spectrum(bank.combine(np.ones(1))), bank


def test_the_spectrum_is_that_of_the_centred_kernel():
    for kernel in KERNELS:
        spectrum, _ = of(kernel)
        U, d = spectrum.vectors, spectrum.values
        np.testing.assert_allclose(U * d @ U.T, centred(unit(kernel(X))), atol=1e-9)
        assert d.sum() == pytest.approx(len(X))
        np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-12)


def test_a_factor_and_a_gram_matrix_give_the_same():
    factored, bank = of(Linear())
    assert bank.summary()[0]["form"] == "factor"
    dense, other = of(Precomputed(Linear()(X)), np.arange(40)[:, None])
    assert other.summary()[0]["form"] == "dense"
    np.testing.assert_allclose(
        loo_values(factored, Y, RIDGES), loo_values(dense, Y, RIDGES), atol=1e-8
    )


def test_beyond_some_rows_pivots_stand_for_the_kernel(monkeypatch):
    expected, bank = of(RBF(1.0))
    assert bank.summary()[0]["form"] == "distances"
    monkeypatch.setattr(spectrum_module, "DENSE_ROWS", 10)
    exact, _ = of(RBF(1.0))
    np.testing.assert_allclose(
        loo_values(exact, Y, RIDGES), loo_values(expected, Y, RIDGES), rtol=1e-5, atol=1e-6
    )
    monkeypatch.setattr(spectrum_module, "MAX_RANK", 12)
    few, _ = of(RBF(1.0))
    assert few.basis.shape == (12, 12)
    # what the coefficients predict on the pivots' kernel is what the factor fits
    g = RNG.normal(size=12)
    K = unit(RBF(1.0)(X))
    P = few.rows
    nystrom = K[:, P] @ np.linalg.solve(K[np.ix_(P, P)], K[P])
    np.testing.assert_allclose(
        centred(nystrom), few.vectors * few.values @ few.vectors.T, atol=1e-8
    )
    fitted = K[:, P] @ few.basis @ g - few.offsets @ g
    np.testing.assert_allclose(fitted, few.vectors @ (few.values * g), atol=1e-8)


def test_constant_kernels_and_copies_are_left_out():
    rows = np.arange(40)[:, None]
    K = RBF(1.0)(X)
    kernels = [
        Precomputed(K),
        Precomputed(np.ones((40, 40))),
        Precomputed(5 * K + 2),
        Precomputed(RBF(1.001)(X)),
        Precomputed(K),
    ]
    bank = make_bank(kernels, rows)
    assert distinct_kernels(bank).tolist() == [0, 3]
    average = average_ridges(bank, Y)
    assert (average.kernel_weights > 0).tolist() == [True, False, False, True, False]
    joint = average_ridges(bank, Y, joint=True)
    np.testing.assert_allclose(joint.kernel_weights, [0.5, 0, 0, 0.5, 0])


def test_one_column_has_copies_in_the_default_ladder():
    table = RNG.normal(size=(60, 1))
    kernels = complete_ladder().expand(table)
    # one standard deviation is 1/sqrt(2) of the typical distance
    assert len(distinct_kernels(make_bank(kernels, table))) == len(kernels) - 3
