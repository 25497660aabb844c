"""Kernels are the sums of their monomials, and parts of columns multiply or add up to the whole."""

import numpy as np
import pytest
import scipy.sparse as sp

from kernelweave import ARD, RBF, Additive, Laplacian, Linear, Overlap, Polynomial
from kernelweave.kernels.monomials import (
    MOST_MONOMIALS,
    Monomial,
    decay_part,
    dense_columns,
    differences,
    multiply,
)

RANDOM = np.random.default_rng(0)
A, B = RANDOM.normal(size=(5, 3)), RANDOM.normal(size=(4, 3))
KERNELS = [
    RBF(1.3),
    Laplacian(0.7),
    Linear(),
    Polynomial(3, 1.0),
    Additive((1.0, 2.0, 0.5)),
    ARD((1.0, 2.0, 0.5)),
    Overlap(),
    RBF(1.0, columns=[0, 2]) * Linear(columns=[1]),
    RBF(1.0, columns=[0]) * (Linear() + Laplacian(1.0)),
]


def value_of(atom, left, right):
    """Return an atom from its parts of single columns."""
    left, right = atom.rows_of(left), atom.rows_of(right)
    if atom.part is None:
        return atom.whole(left, right)
    parts = [atom.part(left, right, np.array([j])) for j in range(left.shape[1])]
    if atom.kind == "product":
        return np.prod(parts, axis=0)
    return (atom.constant + np.sum(parts, axis=0)) ** atom.power


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_monomials_add_up_to_the_kernel(kernel):
    left, right = kernel.prepare(A), kernel.prepare(B)
    total = np.zeros((5, 4))
    for monomial in kernel.monomials():
        total += monomial.scale * np.prod(
            [np.ones((5, 4)), *(value_of(atom, left, right) for atom in monomial.atoms)], axis=0
        )
    np.testing.assert_allclose(total, kernel.block(left, right), rtol=1e-10, atol=1e-12)


def test_products_of_sums_are_multiplied_out():
    left = (Monomial(2.0, error=0.1), Monomial(3.0))
    found = multiply([left, (Monomial(5.0, vanishes=True), Monomial(-1.0, error=0.2))])
    assert [item.scale for item in found] == [10.0, -2.0, 15.0, -3.0]
    assert [item.vanishes for item in found] == [True, False, True, False]
    np.testing.assert_allclose([item.error for item in found], [0.5, 0.5, 0.0, 0.6])
    assert [item.scale for item in multiply([])] == [1.0]


def test_too_many_summands():
    many = (Monomial(1.0),) * 101
    assert len(multiply([many, (Monomial(1.0),) * 99])) <= MOST_MONOMIALS
    assert multiply([many, many]) is None


def test_rows_inside_tuples():
    (monomial,) = RBF(1.0).monomials()
    atom = monomial.moved(1).moved(0).atoms[0]
    assert atom.path == (0, 1)
    assert atom.rows_of((("no", "yes"), "no")) == "yes"


@pytest.mark.parametrize("squared", [True, False])
def test_decay(squared):
    columns, scales = np.array([0, 2]), np.array([0.5, 2.0])
    gaps = np.abs((A[:, None, columns] - B[:, columns]) * scales)
    expected = np.exp(-(gaps**2 if squared else gaps).sum(axis=2))
    found = decay_part(A, B, columns, scales, squared=squared)
    np.testing.assert_allclose(found, expected)
    sparse = decay_part(sp.csr_array(A), sp.csr_array(B), columns, scales, squared=squared)
    np.testing.assert_array_equal(sparse, found)


def test_columns_of_scale_zero_are_left_out():
    assert len(differences(A, B, np.arange(3), np.array([1.0, 0.0, 2.0]))) == 2
    np.testing.assert_array_equal(dense_columns(sp.csr_array(A), np.array([2])), A[:, [2]])
