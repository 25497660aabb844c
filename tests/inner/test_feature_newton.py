"""Machines on features: the same optimum as on the Gram matrix, for every loss."""

import numpy as np
import pytest

from kernelweave.banks.kernel_sum import GramKernel
from kernelweave.banks.rules import PackedRows, RuleBank, RuleFeatures, RuleKernel, unpack
from kernelweave.inner import solve_inner, solve_multitask
from kernelweave.losses import EpsilonInsensitive, Hinge, Huber, Square

LOSSES = [
    Hinge(),
    Hinge(fit_intercept=False),
    Square(),
    Square(fit_intercept=False),
    Huber(0.3),
    Huber(0.3, fit_intercept=False),
    EpsilonInsensitive(0.2),
    EpsilonInsensitive(0.2, fit_intercept=False),
]


def problem(n=400, p=8, seed=0, n_outputs=2):
    rng = np.random.default_rng(seed)
    bank = RuleBank(PackedRows.of(rng.random((n, p)) < 0.4))
    bank.add([(), *[(c,) for c in range(p)], *[(a, b) for a in range(p) for b in range(a + 1, p)]])
    weights = rng.random(bank.n_kernels)
    Phi = unpack(bank.bits, n)
    signal = Phi.T @ rng.normal(size=(bank.n_kernels, n_outputs))
    signal = (signal - signal.mean(axis=0)) / signal.std(axis=0) + rng.normal(size=(n, n_outputs))
    features = RuleKernel(RuleFeatures(bank.bits, np.sqrt(weights), n))
    return features, GramKernel((Phi.T * weights) @ Phi), signal


def targets(loss_function, signal):
    return np.where(signal > 0, 1.0, -1.0) if isinstance(loss_function, Hinge) else signal


@pytest.mark.parametrize("loss_function", LOSSES, ids=str)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_same_optimum_as_on_the_gram_matrix(loss_function, C):
    features, gram, signal = problem()
    Y = targets(loss_function, signal)
    cost = C * np.random.default_rng(1).choice([0.0, 0.5, 1.0], size=Y.shape, p=[0.1, 0.4, 0.5])
    here = solve_inner(loss_function, features, Y, cost, tol=1e-6)
    there = solve_inner(loss_function, gram, Y, cost, tol=1e-6)
    assert here.gap <= 1e-6 * here.primal
    slack = 1e-9 * here.primal
    assert there.dual - slack <= here.primal  # each must lie above the other's lower bound
    assert here.dual - slack <= there.primal
    shape = loss_function.box(Y, cost)
    assert (here.dual_coef >= shape.lower - 1e-12).all()
    assert (here.dual_coef <= shape.upper + 1e-12).all()
    if loss_function.fit_intercept:
        np.testing.assert_allclose(
            here.dual_coef.sum(axis=0), 0, atol=1e-9 * np.abs(here.dual_coef).sum()
        )
    # The bounds are those of the coefficients and of the function that are returned.
    quadratic = np.vdot(here.dual_coef, gram @ here.dual_coef)
    dual = loss_function.linear(here.dual_coef, Y, cost) - 0.5 * (
        quadratic + loss_function.ridge_term(here.dual_coef, Y, cost)
    )
    assert here.dual == pytest.approx(dual, rel=1e-9)


@pytest.mark.parametrize("loss_function", [Hinge(), Huber(0.3)], ids=str)
def test_a_start_saves_steps(loss_function):
    features, _, signal = problem(800)
    Y = targets(loss_function, signal)
    cost = np.ones_like(Y)
    cold = solve_inner(loss_function, features, Y, cost, tol=1e-5)
    moved = features.scaled(1.05)
    again = solve_inner(loss_function, moved, Y, cost, tol=1e-5)
    warm = solve_inner(loss_function, moved, Y, cost, tol=1e-5, start=cold)
    assert warm.gap <= 1e-5 * warm.primal
    assert warm.work < again.work


def test_kernel_of_rules():
    features, gram, signal = problem()
    np.testing.assert_allclose(features @ signal, gram @ signal, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(features.scaled(3.0) @ signal, 3 * (gram @ signal), rtol=1e-10)
    Z = features.features().rows(np.arange(features.n_samples))
    np.testing.assert_allclose(Z @ Z.T, gram.gram, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss_function", LOSSES, ids=str)
def test_related_outputs_are_one_problem_on_the_product_kernel(loss_function):
    features, gram, signal = problem(60, 5, n_outputs=3)
    Y, B = targets(loss_function, signal), np.eye(3) + 1 / 0.4
    cost = np.full_like(Y, 2.0)
    together = solve_multitask(loss_function, gram, Y, cost, B, tol=1e-7)
    quadratic = np.vdot(together.dual_coef, gram @ together.dual_coef @ B)
    loss, _ = loss_function.value(gram @ together.dual_coef @ B, Y, cost)
    assert together.gap <= 1e-7 * together.primal
    assert together.primal == pytest.approx(0.5 * quadratic + loss, rel=1e-9)
    np.testing.assert_allclose(together.fitted, gram @ together.dual_coef @ B, rtol=1e-8, atol=1e-8)
    by_features = solve_multitask(loss_function, features, Y, cost, B, tol=1e-7)
    assert by_features.primal == pytest.approx(together.primal, rel=1e-6)


def test_a_diagonal_relation_is_a_kernel_for_each_output():
    _, gram, signal = problem(60, 5, n_outputs=2)
    Y, cost = targets(Hinge(), signal), np.full((60, 2), 3.0)
    both = solve_multitask(Hinge(), gram, Y, cost, np.diag([0.5, 2.0]), tol=1e-8)
    alone = [
        solve_inner(Hinge(), gram.scaled(b), Y[:, [t]], cost[:, [t]], tol=1e-8).primal
        for t, b in enumerate([0.5, 2.0])
    ]
    assert both.primal == pytest.approx(sum(alone), rel=1e-6)


@pytest.mark.parametrize("loss_function", LOSSES, ids=str)
@pytest.mark.parametrize("kind", ["close", "singular", "own rows"])
def test_outputs_that_are_closely_related(loss_function, kind):
    """One output after the other would take for ever here."""
    features, gram, signal = problem(80, 4, n_outputs=3)
    Y, B = targets(loss_function, signal), np.eye(3) + 1e3
    if kind == "singular":
        B = np.outer([1.0, -2.0, 0.5], [1.0, -2.0, 0.5])
    cost = np.full_like(Y, 0.5)
    if kind == "own rows":
        cost *= np.arange(80)[:, None] % 3 == np.arange(3)
    here = solve_multitask(loss_function, features, Y, cost, B, tol=1e-5)
    there = solve_multitask(loss_function, gram, Y, cost, B, tol=1e-5)
    for one, other in ((here, there), (there, here)):
        assert one.gap <= 1e-5 * one.primal
        assert one.dual <= other.primal * (1 + 1e-9)
        quadratic = np.vdot(one.dual_coef, gram @ one.dual_coef @ B)
        ridge = loss_function.ridge_term(one.dual_coef, Y, cost)
        dual = loss_function.linear(one.dual_coef, Y, cost) - 0.5 * (quadratic + ridge)
        assert one.dual == pytest.approx(dual, rel=1e-8)
        shape = loss_function.box(Y, cost)
        assert (one.dual_coef >= shape.lower - 1e-12).all()
        assert (one.dual_coef <= shape.upper + 1e-12).all()
        if loss_function.fit_intercept:
            np.testing.assert_allclose(
                one.dual_coef.sum(axis=0), 0, atol=1e-8 * np.abs(one.dual_coef).sum()
            )
