"""Active sets of a graph of kernels: the optimum, the certificate, and limits."""

import numpy as np
import pytest

from hkl_oracles import arguments, lattice_instances, solve_dag
from kernelweave.banks.rules import PackedRows
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
        PackedRows.of(rng.random((60, 14)) < 0.7), base=1.2, max_visited=3000
    )
    efforts, search = [], lattice.price

    def count(V, level, limit, effort):
        found = search(V, level, limit, effort)
        efforts.append((effort, found.complete))
        return found

    monkeypatch.setattr(lattice, "price", count)
    Y = np.where(rng.random((60, 1)) < 0.5, -1.0, 1.0)
    problem = DagProblem(lattice, Y, np.full((60, 1), 10.0), Hinge(), 1.5)
    result = dag_active_set(problem, Limits(1e-5, 500), max_nodes=300)
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
