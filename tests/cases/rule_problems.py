"""Problems of rule ensembles, and their optima."""

import numpy as np

from hkl_oracles import (
    closure,
    conjunctions,
    solve_dag,
)
from kernelweave import RuleEnsembleRegressor

TOL = 1e-5


def regressor(rho=1.1, **options):
    options = {"C": 10.0, "propositions": "given", "tol": TOL, "threshold": 0.0} | options
    return RuleEnsembleRegressor(rho, **options)


def problem(n=40, p=5, seed=0):
    """Return propositions and labels that conjunctions of two explain, with noise."""
    rng = np.random.default_rng(seed)
    P = rng.random((n, p)) < 0.6
    score = (P[:, 0] & P[:, 1]) * 2.0 - (P[:, 2] & ~P[:, 3]) * 1.0 - 0.5
    return P, score + 0.5 * rng.normal(size=n)


def oracle_for(P, Y, C, rho, *, loss="hinge", B=None, epsilon=0.1, base=2.0):
    lattice = conjunctions(P)
    return solve_dag(
        [column[:, None].astype(float) for column in lattice.support.T],
        Y,
        np.full(np.shape(Y), float(C)),
        closure(lattice.parents),
        base**lattice.lengths,
        rho,
        B,
        loss,
        epsilon,
    )
