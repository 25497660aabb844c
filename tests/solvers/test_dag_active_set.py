"""Learning on a growing graph: the optimum, the certificate, and what both must obey."""

import numpy as np
import pytest

from hkl_oracles import arguments, lattice_instances, solve_dag
from kernelweave.candidates.lattice import ConjunctionLattice
from kernelweave.losses import EpsilonInsensitive, Hinge, Huber, Square
from kernelweave.solvers.dag_active_set import grow

MACHINES = {
    "hinge": lambda e: Hinge(),
    "square": lambda e: Square(),
    "huber": Huber,
    "epsilon_insensitive": EpsilonInsensitive,
}
INSTANCES = lattice_instances()


def fit(instance, tol=1e-5, max_iter=5000, **options):
    lengths = [len(rule) for rule in instance["rules"]]
    lattice = ConjunctionLattice(
        instance["P"], base=instance["base"], max_length=max(lengths), max_visited=10**6
    )
    B = instance["B"]
    unrelated = np.array_equal(B, np.eye(len(B)))
    result = grow(
        lattice,
        instance["Y"],
        instance["cost"],
        MACHINES[instance["loss"]](instance["epsilon"]),
        rho=instance["rho"],
        relation=None if unrelated else B,
        tol=tol,
        max_iter=max_iter,
        max_nodes=10**6,
        **options,
    )
    return lattice, result


@pytest.mark.parametrize("instance", INSTANCES, ids=[i["id"] for i in INSTANCES])
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
    lattice = ConjunctionLattice(rng.random((60, 14)) < 0.7, base=1.2, max_visited=3000)
    efforts, search = [], lattice.search

    def count(V, level, most, effort):
        found = search(V, level, most, effort)
        efforts.append((effort, found.complete))
        return found

    monkeypatch.setattr(lattice, "search", count)
    Y = np.where(rng.random((60, 1)) < 0.5, -1.0, 1.0)
    options = {"rho": 1.5, "tol": 1e-5, "max_iter": 500, "max_nodes": 300}
    result = grow(lattice, Y, np.full((60, 1), 10.0), Hinge(), **options)
    assert not result.converged
    assert efforts.count((1.0, False)) == 1
    assert result.history[-1].solves <= 20  # no certificate will come, however exact they are
    assert len(efforts) > 2


def test_no_more_nodes_than_asked_for():
    rng = np.random.default_rng(0)
    lattice = ConjunctionLattice(rng.random((60, 14)) < 0.7, base=1.2)
    Y = np.where(rng.random((60, 1)) < 0.5, -1.0, 1.0)
    options = {"rho": 1.5, "tol": 1e-3, "max_iter": 500, "max_nodes": 40}
    grow(lattice, Y, np.full((60, 1), 10.0), Hinge(), **options)
    assert len(lattice.nodes) == 40
