"""The number of threads never changes a bit of a result."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import ThreadpoolController

from kernelweave import (
    HierarchicalMKLRegressor,
    MKLClassifier,
    MKLRegressor,
    NoiseTolerantKernelClassifier,
    NoisyLabelMKLClassifier,
    PairwiseKernelLearner,
    RadiusMKLClassifier,
    RuleEnsembleClassifier,
    SumProductMKLClassifier,
    _core,
)
from kernelweave._threads import (
    one_thread,
    run_blocks,
    run_each,
    stop_if_interrupted,
    thread_count,
    threads,
)
from kernelweave.banks import make_bank
from kernelweave.kernels import RBF, FromCallable, Laplacian, Linear, Precomputed
from kernelweave.losses import Hinge
from kernelweave.solvers import Limits, Problem, lp_alternation, newton_bundle
from kernelweave.weights import LpBall, Simplex


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
            bank.quadratic_forms(V),
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
        sparse = newton_bundle(Problem(bank, Y, cost, Hinge(), Simplex()), Limits(1e-4, 50))
        dense = lp_alternation(Problem(bank, Y, cost, Hinge(), LpBall(2.0)), Limits(1e-3, 50))
        return [
            r for s in (sparse, dense) for r in (s.weights, s.dual_coef, s.intercept, s.objective)
        ]

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


def test_work_is_done_by_the_threads_that_can_be_had(monkeypatch):
    start, allowed = threading.Thread.start, []

    def scarce(self):
        if not allowed:
            raise RuntimeError("can't start new thread")
        allowed.pop()
        start(self)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    for n_threads in (0, 1, 2):
        allowed[:] = [True] * n_threads
        with threads(4):
            assert run_each(lambda item: 2 * item, range(50)) == [2 * i for i in range(50)]
            assert _core.get_threads() == 4


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_that_gets_no_more_threads_goes_on():
    code = """
import re, resource
import numpy as np
from kernelweave import _core
from kernelweave._threads import run_each, threads
X = np.random.default_rng(0).normal(size=(500, 3))
expected, found = np.empty((500, 500)), np.empty((500, 500))
_core.absolute_distances(X, X, expected)
size = 1024 * int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1])
resource.setrlimit(resource.RLIMIT_AS, (size + 30_000_000, resource.RLIM_INFINITY))
with threads(30):
    _core.absolute_distances(X, X, found)
    assert run_each(lambda i: i, range(100)) == list(range(100))
assert np.array_equal(expected, found)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_first_error_in_the_order_of_items_arrives():
    begun = threading.Event()

    def work(item):
        if item == 0:
            assert begun.wait(10)
        begun.set()
        raise KeyError(item)

    with threads(2), pytest.raises(KeyError, match="0"):
        run_each(work, range(20))


def test_threads_at_work_have_one_level():
    with threads(3):
        found = run_each(lambda _: (_core.get_threads(), run_each(str, "ab")), range(6))
        assert found == [(1, ["a", "b"])] * 6
        assert _core.get_threads() == 3


def blas_limits():
    return [pool["num_threads"] for pool in ThreadpoolController().select(user_api="blas").info()]


def test_blocks_in_two_threads_overlap():
    """Whichever ends first, BLAS keeps one thread until the last has ended."""
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = blas_limits()
        assert 2 in before
        inside, leave = threading.Event(), threading.Event()
        seen = []

        def first():
            with threads(2):
                inside.set()
                assert leave.wait(10)
                seen.append(_core.get_threads())

        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(first)
            assert inside.wait(10)
            with threads(3):
                leave.set()
                job.result()
                assert set(blas_limits()) == {1}
                assert _core.get_threads() == 3
            assert seen == [2]
            assert blas_limits() == before
            inside.clear()
            leave.clear()
            job = pool.submit(first)
            assert inside.wait(10)
            with pytest.raises(KeyError), one_thread():
                raise KeyError
            assert set(blas_limits()) == {1}
            leave.set()
            job.result()
            assert blas_limits() == before


def concurrent_fits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 5))
    target = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=240)
    y = (target > 0).astype(int)
    bits = (X > 0).astype(float)
    kernels = [RBF(width=w) for w in (0.5, 1.0, 2.0)] + [Linear(), Laplacian(width=2.0)]
    structure = (RBF(0.5) + RBF(2.0)) * (Linear() + RBF(1.0))
    return [
        (MKLClassifier(kernels, n_jobs=3), X, y),
        (MKLRegressor(kernels, loss="square", norm=2, n_jobs=1), X, target),
        (RadiusMKLClassifier(kernels, n_jobs=2), X[:120], y[:120]),
        (NoisyLabelMKLClassifier(kernels, n_jobs=4), X[:120], y[:120]),
        (NoiseTolerantKernelClassifier(n_jobs=2), X, y),
        (HierarchicalMKLRegressor(n_jobs=3), X[:60, :3], target[:60]),
        (RuleEnsembleClassifier(n_jobs=2), bits, y),
        (SumProductMKLClassifier(structure, n_jobs=1), X[:100], y[:100]),
        (PairwiseKernelLearner(random_state=0), bits, y),
    ]


def fitted_numbers(fit):
    model, X, y = fit
    model = clone(model).fit(X, y)
    found = {}
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray | float) and name.endswith("_"):
            found[name] = np.array(value)
    return found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_at_the_same_time_have_the_bits_of_fits_one_by_one():
    fits = concurrent_fits()
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = blas_limits()
        alone = [fitted_numbers(fit) for fit in fits]
        start = threading.Barrier(len(fits), timeout=60)

        def work(fit):
            start.wait()
            return fitted_numbers(fit)

        with ThreadPoolExecutor(len(fits)) as pool:
            together = list(pool.map(work, fits))
        assert blas_limits() == before
    for one, other in zip(alone, together, strict=True):
        assert one.keys() == other.keys()
        assert len(one) > 1
        for name, value in one.items():
            assert np.array_equal(value, other[name], equal_nan=value.dtype.kind == "f"), name


def test_limits_that_each_thread_has_are_set_in_each(monkeypatch):
    """BLAS over OpenMP has a limit of its own in every thread."""
    local = threading.local()

    class Library:
        def get_num_threads(self):
            return getattr(local, "count", 8)

        def set_num_threads(self, count):
            local.count = count

    library = Library()
    monkeypatch.setattr("kernelweave._threads._blas_libraries", lambda: ([], [library]))
    barrier = threading.Barrier(2, timeout=10)

    def work(_):
        barrier.wait()
        return library.get_num_threads()

    with threads(2):
        assert run_each(work, range(4)) == [1] * 4
    assert library.get_num_threads() == 8


def test_refused_fits_at_the_same_time_leave_the_limits_alone():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    refused = FromCallable(lambda A, B: 1 / 0, name="fails")
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = blas_limits()

        def work(i):
            with pytest.raises(Exception, match=r"fails|division"):
                MKLClassifier([RBF(1.0), refused], n_jobs=1 + i % 3).fit(X, y)
            return _core.get_threads()

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(16))) == [1] * 16
        assert blas_limits() == before


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="has no timers")
@pytest.mark.parametrize("count", [1, 2])
def test_a_long_loop_of_the_core_can_be_interrupted(count):
    """In a thread of its own a signal would go unnoticed: the main one has to ask for signals."""

    def interrupt(*_):
        raise KeyboardInterrupt

    A = np.ones((2000, 4000))
    out = np.full((2000, 2000), -1.0)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with threads(count), pytest.raises(KeyboardInterrupt):
            _core.absolute_distances(A, A, out)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert (out == -1.0).any()  # it ended early


def test_an_interrupt_reaches_the_other_threads():
    """The interrupted thread waits for the others, so that these have to stop as well."""
    begun, pieces = threading.Event(), []

    def work(i):
        if threading.current_thread() is threading.main_thread():
            assert begun.wait(10)
            raise KeyboardInterrupt
        for _ in range(10_000):  # long work, in pieces of a millisecond
            begun.set()
            stop_if_interrupted()
            pieces.append(i)
            threading.Event().wait(1e-3)

    with threads(2), pytest.raises(KeyboardInterrupt):
        run_each(work, range(2))
    assert len(pieces) < 5000
    stop_if_interrupted()  # no trace of it is left
