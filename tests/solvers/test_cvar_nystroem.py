"""Conditional value at risk on Nystroem features: the root search against exact kernels."""

from dataclasses import replace

import numpy as np
import pytest

from kernelweave._threads import threads
from kernelweave.banks import make_bank
from kernelweave.banks.nystroem import build as large
from kernelweave.banks.nystroem.build import make_feature_bank
from kernelweave.kernels import RBF, Constant
from kernelweave.losses import CVaRHinge
from kernelweave.solvers import (
    Limits,
    Problem,
    WarmStart,
    cvar_by_rescaling,
    cvar_by_root_search,
)
from kernelweave.weights import Simplex

KERNELS = [*(RBF(width=w, columns=[c]) for c in range(3) for w in (0.7, 2.0)), Constant()]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
WRONG = RNG.random(200) < 0.2
Y = np.where((np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 1) ^ WRONG, 1.0, -1.0)[:, None]
BOX = RNG.uniform(0.5, 1.5, (200, 1)) / 200


@pytest.fixture(autouse=True)
def few_rows_as_many(monkeypatch):
    monkeypatch.setattr(large, "MANY_ROWS", 10)
    monkeypatch.setattr(large, "_MOST_FEATURES", 1.0)
    with threads(1):
        yield


def pair(lam, cap, tol=1e-4, max_iter=1000):
    held = {"centred": False, "tol": 1e-6}
    exact = Problem(make_bank(KERNELS, X, **held), Y, BOX / lam, CVaRHinge((cap,)), Simplex())
    bank = make_feature_bank(KERNELS, X, **held)
    found = cvar_by_root_search(replace(exact, bank=bank), Limits(tol, max_iter))
    return cvar_by_rescaling(exact, Limits(tol, 1000)), found, bank


# In the last one next to nothing of the objective depends on the classifier.
@pytest.mark.parametrize(
    ("lam", "cap"), [(0.3, 1.0), (0.3, 0.8), (0.03, 0.8), (0.003, 0.7), (0.03, 0.6)]
)
def test_value_and_certificate_are_those_of_gram_matrices(lam, cap):
    exact, found, bank = pair(lam, cap)
    assert found.converged
    assert found.gap <= 1e-4 * found.size
    assert found.lower_bound <= exact.objective * (1 + 1e-12)
    assert found.objective >= exact.lower_bound * (1 - 1e-12)
    assert found.size == pytest.approx(max(exact.size, 1e-4 * exact.objective), rel=2e-2)
    # The objective is that of the function returned.
    norm = bank.norms(found.function).sum()
    fitted = bank.blocks.times(found.function)
    loss, _ = CVaRHinge((cap,)).value(fitted, Y, BOX / lam)
    assert 0.5 * norm**2 + loss == pytest.approx(found.objective, rel=1e-9)


def test_where_zero_is_the_best_function_it_is_returned():
    signs = np.where(np.arange(200) % 2, 1.0, -1.0)[:, None]  # which follow no column
    loss, kernels = CVaRHinge((0.5,)), [RBF(width=3.0, columns=[0]), Constant()]
    bank = make_feature_bank(kernels, X, centred=False, tol=1e-6)
    task = Problem(bank, signs, np.full((200, 1), 1 / 20), loss, Simplex())
    found = cvar_by_root_search(task, Limits(1e-3, 300))
    assert found.converged
    assert not found.function.any()
    assert found.objective == pytest.approx(0.5 / 0.1, rel=1e-12)


def test_a_start_at_the_solution_is_soon_done():
    _, found, bank = pair(0.3, 0.8)
    task = Problem(bank, Y, BOX / 0.3, CVaRHinge((0.8,)), Simplex())
    again = cvar_by_root_search(task, Limits(1e-4, 1000), WarmStart.at(found))
    assert again.converged
    assert again.objective == pytest.approx(found.objective, rel=1e-5)


def test_too_few_solves_are_admitted():
    _, found, _ = pair(0.3, 0.8, max_iter=3)
    assert not found.converged
    assert found.lower_bound <= found.objective


def test_a_small_lam_is_not_worse_than_zero():
    """The search ends where costs become too large, perhaps before the root."""
    rng = np.random.default_rng(0)
    rows, signs = rng.normal(size=(400, 3)), np.where(rng.random((400, 1)) < 0.5, 1.0, -1.0)
    bank = make_feature_bank(KERNELS[:3], rows, centred=False, tol=1e-6)
    box, lam = np.full((400, 1), 1 / 400), 1e-6
    task = Problem(bank, signs, box / lam, CVaRHinge((0.6,)), Simplex())
    found = cvar_by_root_search(task, Limits(1e-3, 300))
    assert found.objective <= 0.6 / lam * (1 + 1e-9)
