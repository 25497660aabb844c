"""Support vector problems by parts of the rows, beside the solver that holds the whole matrix."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import SVC

from kernelweave import _core
from kernelweave.banks import Workspace, build, make_bank
from kernelweave.inner import parts, solve_inner, unsolved, weight_curvature
from kernelweave.kernels import RBF, Laplacian
from kernelweave.losses import EpsilonInsensitive, Hinge, Huber, Quantile, Smoothed, SquaredHinge

RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 4))
SIGNAL = np.sin(2 * X[:, :1]) + X[:, 1:2] * X[:, 2:3] + 0.4 * RNG.normal(size=(N, 1))
LOSSES = [
    Hinge(),
    Hinge(fit_intercept=False),
    SquaredHinge(),
    EpsilonInsensitive(0.1),
    Huber(0.3),
    Quantile(0.3),
    Smoothed(Hinge(), 0.1),
]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Parts of a few rows, so that there are many."""
    monkeypatch.setattr(parts, "_OPTIONS", replace(parts._OPTIONS, least=30, most=60))


def kernels(tol=1e-3, rows=X):
    monkey = pytest.MonkeyPatch()
    monkey.setattr(build, "_SMALL", 10)
    with monkey.context():
        banks = [
            make_bank([RBF(width=1.5), Laplacian(width=4.0)], rows, tol=tol, on_demand=way)
            for way in (True, False)
        ]
    monkey.undo()
    scales = banks[1].scales
    return [replace(bank, scales=scales).combine(np.array([0.6, 0.4])) for bank in banks]


def targets(loss):
    classes = isinstance(loss, Hinge | SquaredHinge | Smoothed)
    return np.where(SIGNAL > 0, 1.0, -1.0) if classes else SIGNAL


@pytest.mark.parametrize("C", [0.3, 20.0])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_same_optimum_as_the_whole_matrix(loss, C):
    computed, stored = kernels(tol=1e-6)
    assert computed.workspace is not None
    assert stored.workspace is None
    Y = targets(loss)
    cost = C * RNG.choice([0.0, 1.0, 2.0], size=Y.shape)  # some rows are absent
    found, known = (solve_inner(loss, K, Y, cost, tol=1e-6) for K in (computed, stored))
    assert found.gap <= 1e-6 * found.primal
    assert_allclose(found.primal, known.primal, rtol=3e-6)
    # Both bounds hold for these coefficients, and fitted values belong to them.
    fitted = stored @ found.dual_coef
    assert_allclose(found.fitted, fitted, atol=1e-9 * C * N)
    quadratic = float(np.vdot(found.dual_coef, fitted))
    assert_allclose(0.5 * quadratic + loss.value(fitted, Y, cost)[0], found.primal, rtol=1e-9)
    feasible = loss.repair(found.dual_coef, Y, cost)
    assert_allclose(found.dual_coef, feasible, atol=1e-12 * C * N)


def test_single_precision_and_scikit_learn():
    computed, _ = kernels()
    assert computed.dtype == np.float32
    Y = targets(Hinge())
    found = solve_inner(Hinge(), computed, Y, np.ones_like(Y), tol=1e-5)
    gram = computed.exact_product(np.eye(N))
    svc = SVC(kernel="precomputed", tol=1e-6).fit(gram, Y[:, 0])
    decision = gram @ found.dual_coef[:, 0] + found.intercept[0]
    assert_allclose(decision, svc.decision_function(gram), atol=0.02)


def test_several_outputs_share_parts():
    computed, stored = kernels(tol=1e-6)
    Y = np.where(np.hstack([SIGNAL > 0, SIGNAL > 1.0, X[:, :1] > 0.5]), 1.0, -1.0)
    cost = np.full_like(Y, 2.0)
    found, known = (solve_inner(Hinge(), K, Y, cost, tol=1e-6) for K in (computed, stored))
    assert_allclose(found.primal, known.primal, rtol=3e-6)


def test_warm_start_changes_nothing_at_the_optimum():
    computed, _ = kernels(tol=1e-6)
    Y = targets(Hinge())
    cost = np.ones_like(Y)
    first = solve_inner(Hinge(), computed, Y, cost, tol=1e-5)
    again = solve_inner(
        Hinge(), computed, Y, cost, tol=1e-4, start=unsolved(first.dual_coef, first.fitted)
    )
    assert again.work == 0
    start = unsolved(np.zeros_like(Y), np.zeros_like(Y))
    other = solve_inner(Hinge(), computed, Y, cost, tol=1e-5, start=start)
    assert_allclose(other.primal, first.primal, rtol=2e-5)


def test_enough_ends_early():
    computed, _ = kernels()
    Y = targets(Hinge())
    cost = np.ones_like(Y)
    whole = solve_inner(Hinge(), computed, Y, cost, tol=1e-4)
    some = solve_inner(Hinge(), computed, Y, cost, tol=1e-4, enough=0.5 * whole.dual)
    assert whole.dual > some.dual >= 0.5 * whole.dual


def test_gap_of_a_part_is_its_share_of_the_whole():
    computed, stored = kernels(tol=1e-6)
    Y, loss = targets(EpsilonInsensitive(0.1)), EpsilonInsensitive(0.1)
    cost = np.ones_like(Y)
    beta = loss.repair(RNG.normal(size=Y.shape), Y, cost)
    fitted = stored @ beta
    with computed.workspace.borrow() as memory:
        point = parts._Whole(loss, computed, Y, cost, memory).evaluate(beta, fitted)
    assert_allclose(point.shares.sum(), point.gap, rtol=1e-9)
    box, rows = loss.box(Y, cost), np.arange(0, N, 3)
    gram = np.ascontiguousarray(stored.dense()[np.ix_(rows, rows)])
    solver = _core.SmoDouble(
        *(np.ascontiguousarray(part[rows]) for part in box.columns(Y, 0)),
        np.ascontiguousarray(gram.diagonal()),
        box.dead_zone,
        True,
    )
    solver.start(np.ascontiguousarray(beta[rows, 0]), np.ascontiguousarray(fitted[rows, 0]))
    solver.hold(float(np.delete(beta, rows).sum()))
    solver.lend(np.arange(len(rows)), gram)
    assert list(_core.run_smo([solver], 0.0, 0.0, 0)) == [_core.Status.paused]
    # At the best bias of the part, which makes the sum as small as it gets.
    r = Y[rows, 0] - fitted[rows, 0] - solver.bias
    shares = box.losses(np.where(np.arange(N)[:, None] == rows, r, 0.0).sum(axis=1)[:, None])
    own = shares[rows, 0] - beta[rows, 0] * r + 0.1 * np.abs(beta[rows, 0])
    assert_allclose(solver.primal - solver.dual, own.sum(), rtol=1e-9)
    assert own.sum() <= point.shares[rows].sum() + 1e-9


@pytest.mark.parametrize("share", [1.0, 0.8])
@pytest.mark.parametrize(
    "loss", [Hinge(), EpsilonInsensitive(0.1), SquaredHinge(), Huber(0.3)], ids=str
)
def test_rough_curvature(loss, share):
    computed, stored = kernels(tol=1e-6)
    Y = targets(loss)
    cost = np.full_like(Y, 5.0)
    beta = solve_inner(loss, stored, Y, cost, tol=1e-6).dual_coef
    n_curved = len(loss.inverse_curvature(beta, Y, cost)[0][0])
    workspace = Workspace(int(share * n_curved), computed.dtype)  # room for a part of them
    computed = replace(computed.bank, workspace=workspace).combine(computed.weights)
    rough, exact = (
        weight_curvature(
            loss, K, lambda rows, K=K: K.bank.products(beta, np.arange(2), rows), beta, Y, cost
        )
        for K in (computed, stored)
    )
    assert len(rough.free[0]) == workspace.n_rows
    largest = np.abs(exact.hessian).max()
    assert_allclose(rough.hessian, exact.hessian, atol=(0.05 if share == 1.0 else 0.35) * largest)
    assert np.trace(rough.hessian) <= 1.01 * np.trace(exact.hessian)


def test_blocks_grow_while_most_rows_are_needed():
    computed, _ = kernels()
    filled = []
    fill = computed.fill_square
    computed.fill_square = lambda index, known, out: (
        filled.append((known, len(index))) or fill(index, known, out)
    )
    gram = computed.exact_product(np.eye(N))
    with computed.workspace.borrow() as memory:
        block = parts._Block(computed, memory)
        room = int(parts._OPTIONS.growth * 100)
        wanted = [np.arange(100), np.arange(20, 105), np.arange(10, 90), np.arange(50, 250)]
        for rows in wanted:
            held = block.hold(rows)
            assert np.isin(rows, held).all()
            assert_allclose(block.dense(), gram[np.ix_(held, held)], atol=1e-5)
    assert room >= 105
    # The third lot is there already; the last one has no room beside the others.
    assert filled == [(0, 100), (100, 105), (0, 200)]
