"""Kernels computed on demand: exact values, the same for any number of threads, no matrix."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from bank_contract import check_bank
from kernelweave import _core
from kernelweave._threads import threads
from kernelweave.banks import build, make_bank, on_demand
from kernelweave.errors import MemoryBudgetError
from kernelweave.kernels import ARD, RBF, Laplacian, Linear, Overlap, Polynomial

ROWS = np.random.default_rng(1).normal(size=(45, 3))
KERNELS = {
    "tiles": [RBF(width=0.3), RBF(width=0.2), Laplacian(width=0.5)],
    "panels": [Polynomial(degree=4, coef0=0.2), RBF(width=0.2) * Linear(), Overlap()],
    "mixed": [RBF(width=0.3), RBF(width=2.0, columns=[0]), Linear(), ARD(widths=(1.0, 0.5, 0.2))],
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Let few rows count as many."""
    monkeypatch.setattr(build, "_SMALL", 10)
    few = replace(on_demand.OPTIONS, stored_rows=10, sample=30)
    monkeypatch.setattr(on_demand, "OPTIONS", few)
    monkeypatch.setattr(build, "ON_DEMAND", few)


@pytest.mark.parametrize("tol", [1e-3, 1e-6], ids=["float32", "float64"])
@pytest.mark.parametrize("kind", KERNELS)
def test_contract(kind, tol):
    bank = make_bank(KERNELS[kind], ROWS, tol=tol, on_demand=True)
    assert on_demand.FORM in {row["form"] for row in bank.summary()}
    check_bank(bank, ROWS)
    check_bank(bank.subset(np.array([2, 0])), ROWS)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows(kind):
    rows = kind(np.where(ROWS > 0, ROWS, 0.0))
    bank = make_bank([RBF(width=0.3), Linear()], rows, on_demand=True)
    V, some = np.random.default_rng(0).normal(size=(45, 2)), np.array([3, 1, 40])
    total = bank.combine(np.array([0.3, 0.7]))
    assert_allclose(total.product_at(some, V), (total @ V)[some], rtol=1e-6)
    check_bank(bank, rows)


def test_a_small_part_is_stored():
    bank = make_bank(KERNELS["mixed"], ROWS, on_demand=True).take(np.arange(8))
    assert {row["form"] for row in bank.summary()} == {"distances", "dense", "factor"}
    assert bank.combine(np.ones(4)).workspace is None
    check_bank(bank, ROWS[:8])


@pytest.mark.parametrize("weight", [None, np.arange(45.0)])
def test_means_from_a_sample(monkeypatch, weight):
    few = replace(on_demand.OPTIONS, sample=45)
    monkeypatch.setattr(build, "ON_DEMAND", few)
    banks = [
        make_bank(KERNELS["mixed"], ROWS, sample_weight=weight, on_demand=way, tol=1e-6)
        for way in (True, False)
    ]
    assert_allclose(banks[0].scales, banks[1].scales, rtol=1e-9)  # the sample is all rows


def test_means_do_not_lose_digits_to_single_precision(monkeypatch):
    monkeypatch.setattr(on_demand, "OPTIONS", replace(on_demand.OPTIONS, stored_rows=30))
    rows = 1e-4 * np.random.default_rng(1).normal(size=(30, 40))  # a sample of 30 is all rows
    kernel = Polynomial(degree=1, coef0=1.0)  # nearly the constant one
    bank = make_bank([kernel], rows, on_demand=True)
    assert bank.summary()[0]["form"] == on_demand.FORM
    gram = kernel(rows)
    assert_allclose(bank.scales, 30 / (np.trace(gram) - gram.sum() / 30), rtol=1e-6)


def test_single_precision_only_where_it_is_enough():
    offset = ROWS + 1e4 * (np.arange(45) % 2)[:, None]  # two clusters far apart
    close, far = (make_bank([RBF(width=0.3)], X, on_demand=True) for X in (ROWS, offset))
    for bank, X in ((close, ROWS), (far, offset)):
        gram = RBF(width=0.3)(X)
        kernel = bank.combine(np.ones(1) / bank.scales)
        index = np.arange(45)
        tile = np.empty((45, 45), dtype=np.float32)
        kernel.fill_square(index, 0, tile)
        assert_allclose(tile, gram, atol=4e-6)
        V = np.random.default_rng(0).normal(size=(45, 2))
        assert_allclose(kernel @ V, gram @ V, atol=4e-6 * np.abs(V).sum())
        assert_allclose(kernel.exact_product(V), gram @ V, atol=1e-12)
    tables = [bank.parts[0][0].weighted(np.ones(1)).table.dtype for bank in (close, far)]
    assert tables == [np.float32, np.float64]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("squared", [True, False])
def test_threads_do_not_change_a_bit(dtype, squared):
    rng = np.random.default_rng(0)
    table, V = rng.normal(size=(700, 5)).astype(dtype), rng.normal(size=(600, 2))
    rows, points = rng.permutation(700)[:333], rng.permutation(700)[:600]
    rates, weights = np.array([0.1, 0.2, 0.33]), np.array([1.0, 0.5, 2.0])
    found = []
    for n_jobs in (1, 2, 5):
        with threads(n_jobs):
            out = np.ones((333, 600), dtype=dtype)
            _core.tile_sums(table, squared, rates, weights, rows, points, True, out)
            places = rows, points, V
            square = np.ones((610, 610), dtype=dtype)[:600, :600]
            _core.tile_square(table, squared, rates, weights, points, 100, True, square)
            found.append(
                [
                    out,
                    square,
                    _core.tile_products(table, squared, rates, weights, *places),
                    _core.tile_kernel_products(table, squared, rates, *places),
                    _core.tile_forms(table, squared, rates, points, V),
                ]
            )
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert_array_equal(a, b)


@pytest.mark.parametrize("kind", KERNELS)
def test_a_square_grows(kind):
    bank = make_bank(KERNELS[kind], ROWS, on_demand=True)
    kernel = bank.combine(np.linspace(1.0, 2.0, bank.n_kernels))
    index = np.random.default_rng(2).permutation(45)[:40]
    memory = np.full((50, 50), np.nan, dtype=bank.dtype)
    for known, n_rows in ((0, 17), (17, 18), (18, 40)):
        kernel.fill_square(index[:n_rows], known, memory[:n_rows, :n_rows])
    gram = kernel.exact_product(np.eye(45))[np.ix_(index, index)]
    assert_allclose(memory[:40, :40], gram, rtol=0, atol=1e-5 * np.abs(gram).max())
    assert np.isnan(memory[40:]).all()
    assert np.isnan(memory[:, 40:]).all()


@pytest.mark.parametrize("kind", KERNELS)
def test_rough_products(kind):
    bank = make_bank(KERNELS[kind], ROWS, on_demand=True)
    V, rows, which = (
        np.random.default_rng(2).normal(size=(45, 2)),
        np.arange(5, 30),
        np.array([2, 0]),
    )
    exact = bank.products(V, which, rows)
    rough = bank.rough_products(V, which, rows)
    assert_allclose(rough, exact, rtol=0, atol=1e-5 * np.abs(exact).max())
    assert (kind != "panels") == bool((rough != exact).any())  # tiles are in single precision


def test_too_little_memory():
    with pytest.raises(MemoryBudgetError, match="Kernels on demand need"):
        make_bank([RBF(width=0.3)], ROWS, on_demand=True, memory_limit=1000)
    bank = make_bank([RBF(width=0.3)], ROWS, on_demand=True, memory_limit=20_000)
    assert bank.workspace.n_rows == 45


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("whole", [True, False])
def test_products_of_steps(monkeypatch, kind, whole):
    if not whole:
        monkeypatch.setattr(build, "ON_DEMAND", replace(build.ON_DEMAND, whole_bytes=1e12))
    bank = make_bank(KERNELS[kind], ROWS, tol=1e-6, on_demand=True)
    assert bank.workspace.whole == whole
    V, m = np.random.default_rng(0).normal(size=(45, 2)), bank.n_kernels
    weights = [np.arange(1.0, m + 1.0), np.eye(m)[0], np.eye(m)[-1]]
    sums = [bank.combine(w) for w in weights]
    for total in (*sums, *sums):  # in turns, though one of them is kept
        for single in (True, False):
            found = total.rough_product(V, single=single)
            assert_allclose(found, total @ V, rtol=1e-5, atol=1e-5)
