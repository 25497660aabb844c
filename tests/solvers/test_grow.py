"""Learning on a growing graph: the optimum, the certificate, and what both must obey."""

import numpy as np
import pytest

from hkl_oracles import arguments, lattice_instances, solve_dag
from kernelweave.candidates.lattice import ConjunctionLattice
from kernelweave.machines import EpsilonInsensitive, Hinge, Huber, Square
from kernelweave.solvers.grow import grow

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
