"""The contract of kernels catches what is broken, and says what it is."""

import numpy as np
import pytest

from kernelweave.kernels import (
    RBF,
    FromCallable,
    Laplacian,
    Linear,
    Overlap,
    Polynomial,
    Precomputed,
)
from kernelweave.kernels.vector import VectorKernel
from kernelweave.testing import check_kernel

X = np.random.default_rng(0).normal(size=(12, 3))


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        RBF(width=1.0),
        Laplacian(width=2.0),
        Polynomial(degree=3, coef0=1.0),
        Overlap(),
        FromCallable(lambda A, B: A @ B.T),
        RBF(width=1.0, columns=[0]) * Linear() + 2.0 * Polynomial(degree=2),
    ],
    ids=str,
)
def test_good_kernels(kernel):
    check_kernel(kernel, X)


def test_good_precomputed():
    check_kernel(Precomputed(X @ X.T), np.arange(12)[:, None])


class Crooked(VectorKernel):
    """A kernel that does one thing wrong."""

    def _block(self, A, B):
        return A @ B.T

    def _diagonal(self, A):
        return (A**2).sum(axis=1)


class Asymmetric(Crooked):
    def _block(self, A, B):
        K = A @ B.T
        K[0, -1] += 1e-3
        return K


class WrongDiagonal(Crooked):
    def _diagonal(self, A):
        return 2 * (A**2).sum(axis=1)


class Indefinite(Crooked):
    def _block(self, A, B):
        return 2.0 - np.abs(A[:, :1] - B[:, 0]) ** 4

    def _diagonal(self, A):
        return np.full(len(A), 2.0)


class Forgetful(Crooked):
    """Centres on the rows it is given, so that blocks do not fit together."""

    def _block(self, A, B):
        return (A - A.mean(axis=0)) @ (B - A.mean(axis=0)).T

    def _diagonal(self, A):
        return ((A - A.mean(axis=0)) ** 2).sum(axis=1)


class Rounded(Crooked):
    def block(self, A, B):
        return super().block(A, B).astype(np.float32)


class Misshapen(Crooked):
    def block(self, A, B):
        return super().block(A, B)[:, :1]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Asymmetric(), "symmetric"),
        (WrongDiagonal(), "diag"),
        (Indefinite(), "positive semi-definite"),
        (Forgetful(), "some rows"),
        (Rounded(), "float32"),
        (Misshapen(), "shape"),
    ],
)
def test_broken_kernels(kernel, message):
    with pytest.raises(AssertionError, match=message):
        check_kernel(kernel, X)
