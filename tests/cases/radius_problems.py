"""Random problems of the radius criterion, and their optima."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from kernelweave import (
    Precomputed,
    RadiusMKLClassifier,
)
from radius_oracles import (
    ball_oracle,
    random_radius_problem,
    solve_radius,
)

TIGHT = 1e-7


def assert_same_kernel(one, two, X, rtol=1e-3):
    first, second = one.kernel(X), two.kernel(X)
    # The origin means nothing where there is a bias.
    first, second = (
        K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean() for K in (first, second)
    )
    np.testing.assert_allclose(second, first, atol=rtol * np.abs(first).max())


@dataclass(frozen=True)
class Case:
    """A random problem, the same for the library and the reference."""

    seed: int
    C: float

    @property
    def n_classes(self):
        return 2 + self.seed % 2

    @property
    def weights(self):
        return ["", "by row", "by class"][self.seed % 3]

    def __str__(self):
        return f"{self.n_classes} classes, C={self.C:.2g}" + f", {self.weights}" * bool(
            self.weights
        )

    @property
    def problem(self):
        return problem_of(self)

    @property
    def sample_weight(self):
        rng = np.random.default_rng([self.seed, 1])
        n = len(self.problem.y)
        return rng.choice([0.5, 1.0, 3.0], n) if self.weights == "by row" else None

    @property
    def class_weight(self):
        return {0: 0.5, 1: 3.0} if self.weights == "by class" else None

    @property
    def cost(self):
        problem, factor = self.problem, np.ones(len(self.problem.y))
        if self.weights == "by row":
            factor = self.sample_weight
        if self.weights == "by class":
            factor = np.array([0.5, 3.0, 1.0])[problem.y]
        return self.C * np.repeat(factor[:, None], problem.Y.shape[1], axis=1)

    @property
    def rows(self):
        return np.arange(len(self.problem.y))[:, None]

    def fit(self, grams=None, *, learner=RadiusMKLClassifier, **options):
        grams = self.problem.grams if grams is None else grams
        options = {"C": self.C, "tol": TIGHT, "class_weight": self.class_weight} | options
        model = learner([Precomputed(gram) for gram in grams], **options)
        return model.fit(self.rows, self.problem.y, sample_weight=self.sample_weight)


@cache
def problem_of(case):
    n, m = 12 + case.seed % 4, 2 + case.seed % 3
    return random_radius_problem(case.seed, n=n, m=m, n_classes=case.n_classes, C=case.C)


CASES = [Case(seed, 10.0**power) for seed, power in enumerate(np.linspace(-2, 3, 22))]


@cache
def optimum(case):
    return solve_radius(case.problem.grams, case.problem.Y, case.cost)


@cache
def radii_of(case):
    return np.array([ball_oracle(gram)[0] for gram in case.problem.grams])
