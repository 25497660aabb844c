"""Problems with the CVaR hinge loss."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from kernelweave.losses import CVaRHinge
from noisy_oracles import (
    capped_oracle,
    random_noisy_problem,
)


@dataclass(frozen=True)
class Case:
    """A problem for one kernel; the share is that of the cap in the box."""

    seed: int
    n_classes: int
    share: float
    C: float = 1.0

    def __str__(self):
        return f"{self.n_classes} classes, share {self.share:g}, C={self.C:g}"

    @property
    def problem(self):
        return random_noisy_problem(self.seed, n=30, m=3, n_classes=self.n_classes, spread=0)

    @property
    def machine(self):
        return CVaRHinge((self.share,) * self.problem.Y.shape[1])

    @property
    def cost(self):
        return np.full_like(self.problem.Y, self.C)

    @property
    def lam(self):
        return 1.0 / (len(self.problem.Y) * self.C)

    @property
    def gram(self):
        return self.problem.grams.sum(axis=0)

    @property
    def oracle(self):
        return oracle_of(self)


@cache
def oracle_of(case):
    p = case.problem
    return capped_oracle(case.gram[None], p.Y, case.lam, case.share)


CASES = [
    Case(0, 2, 0.5),
    Case(1, 2, 0.35, 0.03),
    Case(2, 2, 0.2, 30.0),
    Case(3, 2, 1.0),
    Case(4, 2, 0.95, 30.0),
    Case(5, 3, 0.4),
    Case(6, 3, 0.75, 0.1),
]


def feasible(machine, dual_coef, Y, cost):
    """Tell by how much coefficients break their boxes and caps."""
    alpha = Y * dual_coef
    totals = [known.total for known in machine.sets(cost)]
    return max(
        -alpha.min(),
        (alpha - cost).max(),
        (alpha.sum(axis=0) - totals).max(),
    )
