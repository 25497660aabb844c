"""Problems on sum-product structures, and their optima."""

from functools import cache

import numpy as np

from kernelweave.banks.paths import FactoredBank, PathBank
from kernelweave.banks.triangles import Triangles
from kernelweave.kernels import Precomputed
from kernelweave.kernels.network import Network
from kernelweave.losses import Hinge
from kernelweave.solvers.problem import Limits
from kernelweave.solvers.structure import StructureProblem, alternate_structure
from kernelweave.weights.sum_product import SumProduct
from spn_oracles import (
    as_dict,
    joint_oracle,
    spn_instances,
)

INSTANCES = spn_instances()


class Problem:
    """An instance of the oracles as the solver takes it."""

    def __init__(self, instance, factored=False):
        self.instance = instance
        kernels = [Precomputed(K, name=f"k{k}") for k, K in enumerate(instance.grams)]
        network = Network.of(as_dict(instance.structure, kernels))
        n = len(instance.Y)
        rows, columns = np.triu_indices(n)
        grams = [network.nodes[i].kernel.gram for i in network.leaves]
        leaves = np.array([K[rows, columns] for K in grams])
        if factored:
            self.system = FactoredBank(Triangles(leaves, n), network)
        else:
            self.system = PathBank(Triangles(leaves, n), network, network.paths(1000))
        p = []
        for i in network.products:
            own, name = network.nodes[i].p, network.names[i]
            given = instance.p[name] if isinstance(instance.p, dict) else instance.p
            p.append(given if own is None else own)
        self.weights = SumProduct(self.system.path_counts, np.array(p, float), instance.lam)
        self.network = network

    def run(self, tol=1e-3, max_iter=600, callback=None, **options):
        i = self.instance
        cost = np.full_like(i.Y, i.C)
        problem = StructureProblem(self.system, i.Y, cost, Hinge(i.intercept), self.weights)
        return alternate_structure(problem, Limits(tol, max_iter, callback), **options)

    def objective(self, weights, dual_coef, intercept):
        """Return problem (2) by its definition."""
        i = self.instance
        K = self.system.gram(np.log(weights))
        f = K @ dual_coef + intercept
        hinge = i.C * np.maximum(0.0, 1 - i.Y * f).sum()
        penalty = i.lam * np.sum(self.system.path_counts * weights**self.weights.p)
        return 0.5 * np.sum(dual_coef * (K @ dual_coef)) + hinge + penalty


@cache
def problem(name):
    return Problem(INSTANCES[name])


@cache
def run(name, mix):
    return problem(name).run(mix=mix)


@cache
def optimum(name):
    return joint_oracle(*INSTANCES[name].arguments)
