"""The solver that `learn_weights` chooses."""

import numpy as np
import pytest

from kernelweave.banks import make_bank
from kernelweave.banks.nystroem import build
from kernelweave.banks.nystroem.build import make_feature_bank
from kernelweave.kernels import RBF
from kernelweave.losses import CVaRHinge, Hinge, Square
from kernelweave.solvers import Limits, Problem, learn, learn_weights
from kernelweave.weights import LpBall, Simplex, Uniform

KERNELS = [RBF(width=w, columns=[c]) for c in range(2) for w in (0.7, 2.0)]
X = np.random.default_rng(0).normal(size=(200, 2))
Y = np.where(np.sin(2 * X[:, :1]) + X[:, 1:] > 0, 1.0, -1.0)
CAP = CVaRHinge((0.8,))


@pytest.fixture
def chosen(monkeypatch):
    """Record the solvers that are called."""
    names = []
    for name in (
        "cvar_by_rescaling",
        "cvar_by_root_search",
        "solve_fixed_weights",
        "lp_alternation",
        "newton_bundle",
        "solve_by_smoothing",
    ):
        plain = getattr(learn, name)

        def recorded(*args, name=name, plain=plain, **options):
            names.append(name)
            return plain(*args, **options)

        monkeypatch.setattr(learn, name, recorded)
    monkeypatch.setattr(build, "MANY_ROWS", 10)
    monkeypatch.setattr(build, "_MOST_FEATURES", 1.0)
    return names


@pytest.mark.parametrize(
    ("make", "loss", "weight_set", "expected"),
    [
        (make_bank, Hinge(), Uniform(), "solve_fixed_weights"),
        (make_bank, Hinge(), LpBall(2.0), "lp_alternation"),
        (make_bank, Hinge(), Simplex(), "newton_bundle"),
        (make_bank, Square(), Simplex(), "newton_bundle"),
        (make_bank, CAP, Simplex(), "cvar_by_rescaling"),
        (make_feature_bank, Hinge(), Uniform(), "solve_fixed_weights"),
        (make_feature_bank, Hinge(), LpBall(2.0), "lp_alternation"),
        (make_feature_bank, Hinge(), Simplex(), "solve_by_smoothing"),
        (make_feature_bank, Square(), Simplex(), "newton_bundle"),
        (make_feature_bank, CAP, Simplex(), "cvar_by_root_search"),
    ],
)
def test_the_solver_fits_the_problem(chosen, make, loss, weight_set, expected):
    bank = make(KERNELS, X, centred=loss.fit_intercept, tol=1e-4)
    problem = Problem(bank, Y, np.full_like(Y, 1.0), loss, weight_set)
    result = learn_weights(problem, Limits(1e-3, 300))
    assert result.converged
    assert chosen == [expected]


def test_one_kernel_has_no_weights_to_learn(chosen):
    problem = Problem(make_bank(KERNELS[:1], X), Y, np.ones_like(Y), Hinge(), Simplex())
    assert learn_weights(problem, Limits(1e-3)).weights.tolist() == [1.0]
    assert chosen == ["solve_fixed_weights"]
