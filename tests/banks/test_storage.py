"""Storage forms: stored matrices, factors and shared distances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave.banks import build, make_bank
from kernelweave.banks.storage import precision
from kernelweave.kernels import (
    RBF,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)

N = 70


def table(n=N, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_products_of_stored_grams_with_few_coefficients():
    """They sum up rows of the combined kernel, which are then there for others."""
    A = table()
    kernels = [Precomputed(A[:, :c] @ A[:, :c].T) for c in (1, 2, 3)]
    bank = make_bank(kernels, np.arange(N)[:, None], normalize=None)
    weights = np.array([0.2, 0.0, 0.5])
    gram = sum(w * kernel.gram for w, kernel in zip(weights, kernels, strict=True))
    kernel = bank.combine(weights)
    rng = np.random.default_rng(0)
    for rows in ([4, 9, 30], [4, 50, 51], []):
        V = np.zeros((N, 2))
        V[rows] = rng.normal(size=(len(rows), 2))
        assert_allclose(kernel @ V, gram @ V, atol=1e-12)
    assert sorted(i for index, _ in kernel.blocks for i in index) == [4, 9, 30, 50, 51]
    some = np.array([50, 9, 4])
    assert_allclose(kernel.block(some, some), gram[np.ix_(some, some)], atol=1e-12)
    most = rng.normal(size=(N, 1))
    assert_allclose(kernel @ most, gram @ most, atol=1e-12)


def test_bounds_of_traces_read_no_stored_gram():
    A = table()
    kernels = [Precomputed(A @ A.T + 3.0), Precomputed(A[:, :1] @ A[:, :1].T)]
    index = np.arange(N)[:, None]
    plain, normalised = (make_bank(kernels, index, normalize=how) for how in (None, "trace"))
    assert_allclose(plain.trace_bounds(centred=True), plain.traces())
    assert_allclose(normalised.trace_bounds(centred=True), normalised.traces(centred=True))
    factored = make_bank([Linear(), Linear(columns=[0])], A, normalize=None)
    assert_allclose(factored.trace_bounds(centred=True), factored.traces(centred=True))


def test_a_ready_gram_is_not_copied():
    gram = table() @ table().T
    gram = gram + gram.T
    bank = make_bank([Precomputed(gram, check=False)], np.arange(N)[:, None])
    part, _ = bank.parts[0]
    assert np.shares_memory(part.grams[0], gram)


@pytest.fixture(scope="module")
def many_rows():
    return table(3001, 3)


@pytest.fixture(scope="module")
def single(many_rows):
    kernels = [RBF(width=0.2), RBF(width=1.0, columns=[0]), Laplacian(width=0.5)]
    return make_bank(kernels, many_rows, memory_limit="2GB")


class TestSinglePrecision:
    """Above 3000 rows and at ordinary tolerances, Gram matrices are held in single precision."""

    def test_storage(self, single):
        assert single.dtype == np.float32
        assert [row["form"] for row in single.summary()] == ["distances", "factor", "distances"]
        assert single.nbytes < 2.2 * 4 * 3001**2

    def test_sums_are_taken_in_double_precision(self, single):
        V = np.random.default_rng(0).normal(size=(3001, 1))
        V[::2] = 0
        everything = np.arange(3)
        exact = single.exact_products(V, everything)
        quadratic_forms = np.einsum("jno,no->j", exact, V)
        # Distances are rounded to single precision, which errs at random; sums are exact.
        assert_allclose(single.quadratic_forms(V), quadratic_forms, rtol=1e-6)
        assert np.abs(single.products(V, everything) - exact).max() < 1e-4

    def test_rows_and_blocks(self, single, many_rows):
        weights = np.array([0.5, 1.0, 2.0])
        kernel = single.combine(weights)
        index = np.array([0, 17, 2999])
        exact = sum(
            w * s * k(many_rows[index], many_rows)
            for w, s, k in zip(weights, single.scales, single.kernels, strict=True)
        )
        rows = kernel.rows(index)
        assert rows.dtype == np.float32
        assert_allclose(rows, exact, atol=1e-5)
        block = kernel.block(index, index)
        assert block.dtype == np.float64
        assert_allclose(block, exact[:, index], atol=1e-5)
        assert_allclose(kernel.diag()[index], exact[range(3), index], rtol=1e-6)

    def test_a_tight_tolerance_keeps_double_precision(self, many_rows):
        kernels = [RBF(width=1.0, columns=[0])]
        assert make_bank(kernels, many_rows, tol=1e-6).dtype == np.float64


@pytest.mark.parametrize(
    ("sizes", "tol", "dtype"),
    [
        ([1.0, 1e12, 0.0], 1e-3, np.float32),
        ([1.0], 1e-6, np.float64),
        ([1.0, 1e31], 1e-3, np.float64),
        ([1.0, 1e-31], 1e-3, np.float64),
        ([np.inf], 1e-3, np.float64),
        ([], 1e-3, np.float32),
    ],
)
def test_single_precision_within_its_range(sizes, tol, dtype):
    assert precision(np.array(sizes), tol) is dtype


@pytest.mark.parametrize("scale", [1e-150, 1e-25, 1e25, 1e60])
@pytest.mark.parametrize(
    "kernel", [RBF(1.0), Laplacian(2.0), Linear(), Polynomial(2, 0.0)], ids=lambda k: str(k)
)
def test_kernels_of_any_scale_outside_the_range_of_single_precision(monkeypatch, scale, kernel):
    monkeypatch.setattr(build, "_SMALL", 10)
    monkeypatch.setattr(build, "_try_factors", lambda *arguments: {})
    wide = kernel if kernel.decay is None else type(kernel)(kernel.width * scale)
    X = table()
    if isinstance(kernel, Polynomial) and scale < 1e-100:
        scale = 1e-70
    ours, plain = (make_bank([k], Z, tol=1e-3) for k, Z in ((wide, X * scale), (kernel, X)))
    V = np.random.default_rng(1).normal(size=(N, 2))
    assert_allclose(ours.combine(np.ones(1)) @ V, plain.combine(np.ones(1)) @ V, atol=1e-4)
    assert_allclose(ours.quadratic_forms(V), plain.quadratic_forms(V), rtol=1e-5)
