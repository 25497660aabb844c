"""Problems on graphs of kernels, and their optima."""

from functools import cache

import numpy as np

from hkl_oracles import (
    arguments,
    dag_instances,
    solve_dag,
)
from kernelweave import Precomputed
from kernelweave.banks import make_bank
from kernelweave.candidates.dag import ExplicitDag
from kernelweave.losses import EpsilonInsensitive, Hinge, Huber, Square
from kernelweave.solvers.dag_active_set import dag_active_set
from kernelweave.solvers.dag_problem import DagProblem
from kernelweave.solvers.problem import Limits

LOSSES = {
    "hinge": lambda e: Hinge(),
    "square": lambda e: Square(),
    "huber": Huber,
    "epsilon_insensitive": EpsilonInsensitive,
}
INSTANCES = dag_instances()
NAMES = [instance["id"] for instance in INSTANCES]


def graph_of(features, parents, costs):
    kernels = [Precomputed(phi @ phi.T) for phi in features]
    rows = np.arange(len(features[0]))[:, None]
    bank = make_bank(kernels, rows, normalize=None, tol=1e-9)
    return ExplicitDag(bank, range(len(kernels)), dict(enumerate(parents)), costs)


def fit(instance, tol, **options):
    graph = graph_of(instance["features"], instance["parents"], instance["d"])
    B = instance["B"]
    unrelated = np.array_equal(B, np.eye(len(B)))
    problem = DagProblem(
        graph,
        instance["Y"],
        instance["cost"],
        LOSSES[instance["loss"]](instance["epsilon"]),
        instance["rho"],
        None if unrelated else B,
    )
    result = dag_active_set(problem, Limits(tol, 3000), max_nodes=1000, **options)
    return graph, result


@cache
def oracle(number):
    return solve_dag(**arguments(INSTANCES[number]))


def brackets(result, oracle):
    slack = 1e-9 * oracle.upper
    below = result.lower_bound <= oracle.upper + slack
    return below and result.objective >= oracle.lower - slack
