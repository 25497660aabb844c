"""Problems of one kernel, and their losses."""

from kernelweave.losses import EpsilonInsensitive, Hinge, Huber, Square
from oracles import random_problem

EPSILON = 0.1


def loss_for(loss, *, fit_intercept=True):
    return {
        "hinge": Hinge(fit_intercept),
        "epsilon_insensitive": EpsilonInsensitive(EPSILON, fit_intercept),
        "huber": Huber(EPSILON, fit_intercept),
        "square": Square(fit_intercept),
    }[loss]


LOSSES = ["hinge", "epsilon_insensitive", "huber", "square"]


def problem_for(loss, seed, **options):
    kind = "binary" if loss == "hinge" else "regression"
    return random_problem(seed, kind=kind, **options)
