"""Active sets of a graph of kernels: the optimum, the certificate, and limits."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import kernelweave as kw
import kernelweave.solvers.dag_active_set as dag_active_set_module
from hkl_oracles import arguments, lattice_instances, solve_dag
from kernelweave.banks.rules import PackedRows
from kernelweave.candidates import Priced
from kernelweave.candidates.lattice import ConjunctionLattice
from kernelweave.losses import EpsilonInsensitive, Hinge, Huber, Square
from kernelweave.solvers.dag_active_set import dag_active_set
from kernelweave.solvers.dag_problem import DagProblem
from kernelweave.solvers.problem import Limits
from quick import every

LOSSES = {
    "hinge": lambda e: Hinge(),
    "square": lambda e: Square(),
    "huber": Huber,
    "epsilon_insensitive": EpsilonInsensitive,
}
INSTANCES = lattice_instances()


def fit(instance, tol=1e-5, max_iter=5000, **options):
    lengths = [len(rule) for rule in instance["rules"]]
    lattice = ConjunctionLattice(
        PackedRows.of(instance["P"]),
        base=instance["base"],
        max_length=max(lengths),
        max_visited=10**6,
    )
    B = instance["B"]
    unrelated = np.array_equal(B, np.eye(len(B)))
    problem = DagProblem(
        lattice,
        instance["Y"],
        instance["cost"],
        LOSSES[instance["loss"]](instance["epsilon"]),
        instance["rho"],
        None if unrelated else B,
    )
    result = dag_active_set(problem, Limits(tol, max_iter), max_nodes=10**6, **options)
    return lattice, result


@pytest.mark.parametrize("instance", every(3, INSTANCES), ids=[i["id"] for i in INSTANCES])
def test_optimum_and_certificate(instance):
    _lattice, result = fit(instance)
    oracle = solve_dag(**arguments(instance))
    assert result.converged
    assert result.objective == pytest.approx(oracle.value, rel=1e-4)
    slack = 1e-9 * oracle.upper
    assert result.lower_bound <= oracle.upper + slack
    assert result.objective >= oracle.lower - slack


def test_searches_that_are_cut_are_not_repeated(monkeypatch):
    """A search that reaches its limit proves nothing, and so would the next one."""
    rng = np.random.default_rng(0)
    lattice = ConjunctionLattice(
        PackedRows.of(rng.random((60, 14)) < 0.7), base=1.2, max_visited=2000
    )
    efforts, search = [], lattice.price

    def count(V, level, limit, effort):
        found = search(V, level, limit, effort)
        efforts.append((effort, found.complete))
        return found

    monkeypatch.setattr(lattice, "price", count)
    Y = np.where(rng.random((60, 1)) < 0.5, -1.0, 1.0)
    problem = DagProblem(lattice, Y, np.full((60, 1), 30.0), Hinge(), 1.5)
    result = dag_active_set(problem, Limits(1e-5, 500), max_nodes=1000)
    assert not result.converged
    assert efforts.count((1.0, False)) == 1
    assert result.history[-1].solves <= 20  # no certificate will come, however exact they are
    assert len(efforts) > 2


def test_no_more_nodes_than_asked_for():
    rng = np.random.default_rng(0)
    lattice = ConjunctionLattice(PackedRows.of(rng.random((60, 14)) < 0.7), base=1.2)
    Y = np.where(rng.random((60, 1)) < 0.5, -1.0, 1.0)
    problem = DagProblem(lattice, Y, np.full((60, 1), 10.0), Hinge(), 1.5)
    dag_active_set(problem, Limits(1e-3, 500), max_nodes=40)
    assert len(lattice.nodes) == 40


@pytest.mark.parametrize(("solver", "most"), [("mirror", 30), ("alternate", 100)])
def test_inner_solves_lost_in_rounding_end_a_fit(solver, most):
    """Kernels of 1e30 beside kernels of 1: no inner solve meets its tolerance."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_cauchy((80, 2)) ** 3, rng.normal(size=80)
    kernels = {"a": kw.RBF(1.0), "b": kw.Polynomial(1, 0.0), "c": kw.Polynomial(3, 5.0)}
    model = kw.HierarchicalMKLRegressor(
        kernels,
        parents={"b": ["a"], "c": ["b"]},
        loss="huber",
        C=10.0,
        solver=solver,
        normalize=None,
    )
    with pytest.warns(ConvergenceWarning, match="as near as rounding error lets it"):
        model.fit(X, y)
    assert model.n_iter_ <= most
    assert not model.converged_


def test_nodes_without_room_are_not_made_up_for_by_tight_solves():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 8)), rng.normal(size=60)
    model = kw.HierarchicalMKLRegressor(C=1000.0, tol=1e-6, max_nodes=30, loss="huber")
    with pytest.warns(ConvergenceWarning, match="30 nodes"):
        model.fit(X, y)
    assert model.n_iter_ <= 30
    larger = kw.HierarchicalMKLRegressor(C=1000.0, tol=1e-3, loss="huber").fit(X, y)
    assert model.objective_ - model.duality_gap_ <= larger.objective_


def test_rounds_that_find_few_nodes_ask_for_more(monkeypatch):
    """Where each round finds one node that the last had just left out, levels come down."""
    rng = np.random.default_rng(0)
    lattice = ConjunctionLattice(PackedRows.of(rng.random((60, 12)) < 0.5), base=1.2, max_length=3)
    levels, search = [], lattice.price

    def price_one(V, level, limit, effort):
        levels.append(level)
        found = search(V, level, limit, effort)
        bound = found.bound * (1e9 if found.ids else 1.0)  # no progress until none is left
        return Priced(found.ids[:1], found.prices[:1], bound, found.complete)

    monkeypatch.setattr(lattice, "price", price_one)
    floors, bound_of = [], dag_active_set_module._certify

    def note(problem, bounds, bound, tol, certificate, full, all_above=False):
        floors.append((bound.dual, all_above))
        return bound_of(problem, bounds, bound, tol, certificate, full, all_above)

    monkeypatch.setattr(dag_active_set_module, "_certify", note)
    Y = np.where(rng.random((60, 1)) < 0.5, -1.0, 1.0)
    problem = DagProblem(lattice, Y, np.ones((60, 1)), Hinge(), 1.5)
    dag_active_set(problem, Limits(1e-2, 2000), max_nodes=10**6)
    asked = [level == dual for level, (dual, lower) in zip(levels, floors, strict=True) if lower]
    assert asked
    assert all(asked)
