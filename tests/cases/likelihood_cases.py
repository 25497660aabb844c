"""Problems of likelihoods."""

import numpy as np

from kernelweave.losses import Logistic, Softmax
from oracles import random_problem

LOSSES = [Logistic, Softmax]


def problem_for(kind, seed, weighted=False, **options):
    """Return a problem; costs of a row are equal for all outputs, as classes have them."""
    name = "binary" if kind is Logistic else "multiclass"
    problem = random_problem(seed, kind=name, **options)
    if weighted:
        rng = np.random.default_rng(seed)
        problem.cost[:] *= rng.choice([0.0, 0.5, 1.0, 2.0], size=len(problem.Y))[:, None]
    return problem
