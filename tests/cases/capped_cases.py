"""Problems with capped losses."""

from functools import cache

import numpy as np

from kernelweave.banks import make_bank
from kernelweave.kernels import Precomputed
from kernelweave.losses import CVaRHinge
from kernelweave.solvers import Limits, Problem, mirror_prox
from kernelweave.solvers.mirror_prox import Game, GameOptions
from kernelweave.weights import Simplex
from noisy_oracles import capped_oracle, random_noisy_problem

KINDS = [(0.0, False), (0.3, False), (0.3, True)]


class Setting:
    """One problem with everything that a solver takes."""

    def __init__(self, seed, slack=0.0, exact=False, **changes):
        p = self.problem = random_noisy_problem(seed, n=24, m=4, spread=0, **changes)
        self.slack, self.exact = slack, exact
        self.n, n_outputs = p.Y.shape
        self.bank = make_bank(
            [Precomputed(gram) for gram in p.grams], np.arange(self.n)[:, None], normalize=None
        )
        box = 1 + slack
        if exact:
            self.loss_function = CVaRHinge((p.cap,) * n_outputs, free=slack / box)
        else:
            self.loss_function = CVaRHinge((min(1.0, (p.cap + slack) / box),) * n_outputs)
        self.cost = np.full_like(p.Y, box / (self.n * p.lam))

    @property
    def task(self):
        return Problem(self.bank, self.problem.Y, self.cost, self.loss_function, Simplex())

    def options(self, **changes):
        return GameOptions(self.problem.lam, self.n, **changes)

    def run(self, solver=mirror_prox, *, tol=1e-12, max_iter=200, callback=None, **options):
        return solver(self.task, Limits(tol, max_iter, callback), self.options(**options))

    @property
    def oracle(self):
        p = self.problem
        return capped_oracle(p.grams, p.Y, p.lam, p.cap, self.slack, self.exact)

    def game(self):
        return Game(self.task, Limits(1e-6), self.options())


@cache
def setting(seed, slack=0.0, exact=False, **changes):
    return Setting(seed, slack, exact, **changes)
