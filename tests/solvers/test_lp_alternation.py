"""Alternation for lp norms against conic programming."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import kernelweave as kw
from kernelweave.inner import newton
from kernelweave.losses import Hinge, softmax
from oracles import random_problem
from solver_cases import CASES, bank_of, compare, solve


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("case", CASES[::4], ids=str)
def test_norms(case, p):
    result, expected = compare(case, p)
    assert np.sum(result.weights**p) == pytest.approx(1)
    assert_allclose(result.weights, expected.weights, atol=2e-2)


@pytest.mark.parametrize("case", CASES[1::4], ids=str)
def test_norm_two(case):
    compare(case, 2.0)


def test_the_objective_falls_as_the_exponent_grows():
    problem = random_problem(25, m=5)
    bank = bank_of(problem.grams)
    values = [
        solve(bank, problem.Y, problem.cost, Hinge(), p).objective for p in (1, 1.2, 2.0, 4.0, 50.0)
    ]
    assert (np.diff(values) < 0).all()


def counted(monkeypatch, owner, name):
    """Count the calls of a function."""
    calls, function = [], getattr(owner, name)

    def count(*args, **options):
        calls.append(1)
        return function(*args, **options)

    monkeypatch.setattr(owner, name, count)
    return calls


def test_inner_solves_lost_in_rounding_end_a_fit(monkeypatch):
    """A linear kernel of 1e197 beside one of 1: no inner solve meets its tolerance."""
    runs = counted(monkeypatch, newton._Newton, "run")
    values = counted(monkeypatch, softmax, "_value_and_shares")
    rng = np.random.default_rng(0)
    X, y = 4e98 * rng.normal(size=(36, 3)), rng.integers(5, size=36)
    kernels = [kw.Laplacian(8e98), kw.Linear()]
    model = kw.MKLClassifier(kernels, loss="logistic", norm=1.1, C=166.0, normalize=None)
    with pytest.warns(ConvergenceWarning, match="as near as rounding error lets it"):
        model.fit(X, y)
    assert model.n_iter_ <= 15
    # A useless start is left for a cold one, whose stages of smaller costs end when one is lost.
    assert len(runs) <= 5 * model.n_iter_
    assert len(values) <= 20_000  # and so do searches of a bias
