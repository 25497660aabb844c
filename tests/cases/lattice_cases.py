"""A small lattice of conjunctions."""

import numpy as np


def problem(n=30, p=6, n_outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, p)) < 0.6, rng.normal(size=(n, n_outputs))
