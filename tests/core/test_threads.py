"""The number of threads never changes a bit of a result."""

import os
import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from kernelweave import _core
from kernelweave._threads import one_thread, run_blocks, run_each, thread_count, threads
from kernelweave.banks import make_bank
from kernelweave.kernels import RBF, Laplacian, Linear, Precomputed
from kernelweave.machines import Hinge
from kernelweave.solvers import closed_form, newton_bundle
from kernelweave.weights import LpBall


@pytest.fixture(autouse=True)
def _restore_threads():
    before = _core.get_threads()
    yield
    _core.set_threads(before)


@pytest.fixture(scope="module")
def table():
    return np.random.default_rng(0).normal(size=(330, 4))


def on_threads(count, work):
    with threads(count):
        return work()


def core_results(X):
    """Every core function that runs in threads."""
    n = len(X)
    D = np.empty((n, n))
    _core.absolute_distances(X, X, D)
    single = D.astype(np.float32)
    rates, weights = np.array([0.1, 0.2, 0.5, 0.9]), np.array([0.1, 0.2, 0.3, 0.4])
    V = np.random.default_rng(1).normal(size=(n, 3))
    index, some = np.arange(n), np.random.default_rng(2).permutation(n)[:100]
    squares, norms = X @ X.T, (X**2).sum(axis=1)
    ones = np.ones(X.shape[1])
    _core.finish_squared_distances(squares, X, X, ones, norms, norms, upper=False)
    rows, upper = np.zeros((100, n)), np.zeros((n, n), dtype=np.float32)
    _core.ladder_combine_rows(D, rates, weights, some, rows)
    _core.ladder_combine_upper(single, rates, weights, upper)
    _core.mirror_upper(upper)
    factors = _core.factor_gaussians(
        [np.ascontiguousarray(X[:, [c]].T) for c in range(4)], rates, 1e-9, np.full(4, 60)
    )
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    gram = np.exp(-0.3 * squares)
    solvers = []
    for C in (0.5, 1.0, 5.0):
        solver = _core.SmoDouble(
            y, np.minimum(0, C * y), np.maximum(0, C * y), 0 * y, np.ones(n), 0.0, True
        )
        solver.lend(index, gram)
        solvers.append(solver)
    _core.run_smo(solvers, 1e-6, 0.0, 10**7)
    return [
        D,
        squares,
        rows,
        upper,
        _core.ladder_forms(D, rates, index, V),
        _core.ladder_forms(single, rates, some, V[:100].copy()),
        _core.ladder_products(D, rates, some, index, V),
        *(part for factor in factors for part in factor[1:]),
        *(solver.beta for solver in solvers),
    ]


def test_core_results_have_the_same_bits(table):
    expected = None
    for count in (1, 2, 3, 0):
        _core.set_threads(count)
        found = core_results(table)
        expected = expected or found
        for a, b in zip(expected, found, strict=True):
            assert np.array_equal(a, b)


def bank_of(X):
    gram = X[:, :2] @ X[:, :2].T
    index = np.column_stack([np.arange(len(X)), X])
    kernels = [RBF(width=w, columns=[1, 2, 3, 4]) for w in (0.5, 1.0, 2.0)]
    kernels += [RBF(width=1.0, columns=[c]) for c in (1, 2)]
    kernels += [Linear(columns=[1, 3]), Laplacian(width=1.0, columns=[1, 2, 3]), Precomputed(gram)]
    return make_bank(kernels, index)


def test_banks_have_the_same_bits(table):
    def work():
        bank = bank_of(table)
        V = np.random.default_rng(3).normal(size=(len(table), 2))
        kernel = bank.combine(np.linspace(0.1, 1.0, bank.n_kernels))
        return [
            bank.scales,
            bank.forms(V),
            bank.products(V, np.arange(bank.n_kernels)),
            bank.residual_forms(V),
            kernel.rows(np.arange(5)),
            kernel.dense(),
            kernel @ V,
        ]

    results = [on_threads(count, work) for count in (1, 2, 3)]
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert np.array_equal(a, b)


def test_solvers_have_the_same_bits(table):
    y = np.where(np.sin(table[:, 0]) + 0.3 * table[:, 1] > 0, 1.0, -1.0)
    Y = np.column_stack([y, -y])

    def work():
        bank = bank_of(table)
        cost = np.ones_like(Y)
        sparse = newton_bundle(bank, Y, cost, Hinge(), tol=1e-4, max_iter=50)
        dense = closed_form(bank, Y, cost, Hinge(), LpBall(2.0), tol=1e-3, max_iter=50)
        return [r for s in (sparse, dense) for r in (s.weights, s.coef, s.intercept, s.objective)]

    results = [on_threads(count, work) for count in (1, 2, 3)]
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert np.array_equal(a, b)


def test_limits_are_restored():
    _core.set_threads(5)
    with threads(2) as count:
        assert count == 2
        assert _core.get_threads() == 2
        with threads(3):
            assert _core.get_threads() == 3
        assert _core.get_threads() == 2
    assert _core.get_threads() == 5
    with pytest.raises(KeyError), threads(2):
        raise KeyError
    assert _core.get_threads() == 5


def test_thread_count(monkeypatch):
    assert thread_count(1) == 1
    assert thread_count(3) == 3
    assert thread_count(-1) >= 1
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert thread_count(None) == 7
    for useless in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", useless)
        assert 1 <= thread_count(None) <= os.cpu_count()


def test_blocks_cover_everything_in_order():
    with threads(3):
        blocks = run_blocks(lambda part: part, 10, 4)
    assert blocks == [slice(0, 4), slice(4, 8), slice(8, 10)]
    assert run_blocks(lambda part: part, 0, 4) == []


def test_work_really_runs_in_threads():
    barrier = threading.Barrier(2, timeout=10)
    with threads(2):
        assert run_each(lambda item: barrier.wait() >= 0 and item, [1, 2]) == [1, 2]


def test_an_error_in_a_thread_arrives():
    def work(item):
        raise KeyError(item)

    with threads(2), pytest.raises(KeyError, match="7"):
        run_each(work, [7, 8])


def test_one_thread_for_every_pool_and_back():
    pools = ThreadpoolController()
    with pools.limit(limits=2):
        before = [pool["num_threads"] for pool in pools.info()]
        with one_thread():
            assert {pool["num_threads"] for pool in pools.info()} == {1}
        assert [pool["num_threads"] for pool in pools.info()] == before
        assert 2 in before
