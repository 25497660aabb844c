"""Likelihoods on few features reach the optimum that they have on the Gram matrix."""

import numpy as np
import pytest

from gram_banks import kernel_of
from kernelweave.banks.rules import RuleFeatures, RuleKernel
from kernelweave.inner import solve_inner
from kernelweave.inner.smooth_features import solve_smooth_on_features
from kernelweave.losses import Logistic, Softmax

N, N_FEATURES = 300, 12


def problem(seed=0):
    """Return features as the library packs them, their matrix, and labels of three classes."""
    from kernelweave import _core

    rng = np.random.default_rng(seed)
    P = rng.random((N, N_FEATURES)) < 0.4
    scales = rng.uniform(0.5, 2.0, N_FEATURES)
    Z = P * scales
    codes = (Z @ rng.normal(size=(N_FEATURES, 3)) + rng.normal(size=(N, 3))).argmax(axis=1)
    features = RuleKernel(RuleFeatures(_core.pack_bits(P), scales, N)).features()
    return features, Z, np.where(codes[:, None] == np.arange(3), 1.0, -1.0)


@pytest.mark.parametrize("loss", [Logistic(), Logistic(False), Softmax(), Softmax(False)], ids=str)
@pytest.mark.parametrize("C", [0.01, 10.0])
def test_same_optimum_as_on_the_gram_matrix(loss, C):
    features, Z, Y = problem()
    cost = np.full_like(Y, C)
    here = solve_smooth_on_features(loss, features, Y, cost, tol=1e-8)
    there = solve_inner(loss, kernel_of(Z @ Z.T), Y, cost, tol=1e-8)
    assert 0 <= here.gap + 1e-12 * here.primal <= 1.1e-8 * here.primal
    slack = 1e-9 * here.primal
    assert there.dual - slack <= here.primal
    assert here.dual - slack <= there.primal


def test_a_start_saves_work_and_ends_at_the_same_value():
    features, _, Y = problem()
    cost = np.ones_like(Y)
    cold = solve_smooth_on_features(Logistic(), features, Y, cost, tol=1e-8)
    warm = solve_smooth_on_features(Logistic(), features, Y, 1.01 * cost, tol=1e-8, start=cold)
    again = solve_smooth_on_features(Logistic(), features, Y, 1.01 * cost, tol=1e-8)
    assert warm.work < again.work
    assert warm.primal == pytest.approx(again.primal, rel=1e-7)
