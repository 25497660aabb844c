"""One choice of weights with its solved machine, and the bounds that follow for the exact kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.banks import CombinedKernel, KernelBank
from kernelweave.machines import Machine, Solution
from kernelweave.weights import WeightSet
from .result import Account


@dataclass(frozen=True)
class Point:
    """Weights, coefficients, and what the kernels of interest say about them.

    Parameters
    ----------
    weights : ndarray of shape (n_kernels,)
        Weights of all kernels; zero outside `which`.
    kernel : CombinedKernel
        The weighted kernel.
    solution : Solution
        The machine's answer, with values recomputed from `products`.
    which : ndarray of int
        The kernels of interest.
    products : ndarray of shape (len(which), n_samples, n_outputs)
        ``K_j @ coef``.
    forms : ndarray of shape (len(which),)
        ``tr(coef' K_j coef)``.
    linear, ridge, loss : float
        Parts of the dual and the primal value.
    """

    weights: Floats
    kernel: CombinedKernel
    solution: Solution
    which: Indices
    products: Floats
    forms: Floats
    linear: float
    ridge: float
    loss: float

    @property
    def coef(self) -> Floats:
        """Dual coefficients."""
        return self.solution.coef

    @property
    def inner(self) -> Floats:
        """Weights of the kernels of interest."""
        return self.weights[self.which]

    @property
    def cut(self) -> float:
        """``J(x) >= cut - x . forms / 2`` for every x, however roughly the machine was solved."""
        return self.linear - 0.5 * self.ridge


def moved(coef: Floats, fitted: Floats) -> Solution:
    """Return a start for a machine: coefficients with their fitted values, nothing proved."""
    return Solution(coef, np.zeros(coef.shape[1]), fitted, np.inf, -np.inf)


class Learner:
    """Solves machines on a bank and keeps count of it.

    Parameters
    ----------
    bank : KernelBank
        The kernels.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    machine : Machine
        The loss.
    weight_set : WeightSet
        Where weights live.
    account : Account
        Receives bounds and work.
    """

    def __init__(
        self,
        bank: KernelBank,
        Y: Floats,
        cost: Floats,
        machine: Machine,
        weight_set: WeightSet,
        account: Account,
    ) -> None:
        self.bank, self.Y, self.cost = bank, Y, cost
        self.machine, self.weight_set, self.account = machine, weight_set, account
        self.roots = bank.residual_roots(np.arange(bank.n_kernels))  # zero where held exactly

    def at(self, weights: Floats, coef: Floats) -> Point:
        """Look at feasible coefficients without solving."""
        return self.evaluate(self.bank.combine(weights), moved(coef, coef))

    def solve(
        self,
        weights: Floats,
        *,
        tol: float,
        floor: float = 0.0,
        start: Solution | None = None,
        which: Indices | None = None,
        kernel: CombinedKernel | None = None,
    ) -> Point:
        """Solve the machine for these weights and look at the kernels of interest."""
        kernel = self.bank.combine(weights) if kernel is None else kernel
        solution = self.machine.solve(
            kernel, self.Y, self.cost, tol=tol, floor=floor, start=start
        )
        self.account.solves += 1
        self.account.work += solution.work
        return self.evaluate(kernel, solution, which)

    def evaluate(
        self, kernel: CombinedKernel, solution: Solution, which: Indices | None = None
    ) -> Point:
        """Recompute values from the kernels, because running sums drift, and offer the bound."""
        weights = kernel.weights
        which = np.flatnonzero(weights) if which is None else which
        coef = solution.coef
        products = self.bank.products(coef, which)
        self.account.readings += len(which) / self.bank.n_kernels
        forms = np.maximum(np.einsum("kno,no->k", products, coef), 0.0)
        fitted = np.tensordot(weights[which], products, axes=1)
        loss, intercept = self.machine.loss(fitted, self.Y, self.cost)
        linear = self.machine.linear(coef, self.Y)
        ridge = self.machine.ridge_term(coef, self.cost, self.Y)
        quadratic = float(weights[which] @ forms)
        solution = Solution(
            coef=coef,
            intercept=intercept,
            fitted=fitted,
            primal=0.5 * quadratic + loss,
            dual=linear - 0.5 * ridge - 0.5 * quadratic,
            work=solution.work,
        )
        self._offer_upper(weights, solution, which, forms, loss)
        return Point(weights, kernel, solution, which, products, forms, linear, ridge, loss)

    def _offer_upper(
        self, weights: Floats, solution: Solution, which: Indices, forms: Floats, loss: float
    ) -> None:
        """Offer the objective of the predictor that uses the exact kernels at these coefficients."""
        theta, roots = weights[which], self.roots[which]
        if roots.any():
            dropped = self.bank.residual_forms(solution.coef)[which]
            forms = forms + dropped
            move = (theta * np.sqrt(dropped)) @ roots
            loss += self.machine.loss_change(solution.fitted, self.Y, self.cost, move)
        norms = np.zeros(len(weights))
        norms[which] = theta * np.sqrt(forms)
        upper = self.weight_set.penalty(norms) + loss
        self.account.offer_upper(upper, weights, solution.coef, solution.intercept)

    def lower_bound(self, point: Point, forms: Floats) -> float:
        """Return the lower bound that a point proves when no form is larger than these."""
        return self.weight_set.lower_bound(
            point.linear, point.ridge, forms, bounded=self.machine.bounded
        )

    def offer_lower(self, point: Point, forms: Floats) -> None:
        """Offer the lower bound from the forms of all kernels, plus what their forms drop."""
        dropped = self.bank.residual_forms(point.coef) if self.roots.any() else 0.0
        self.account.offer_lower(self.lower_bound(point, forms + dropped))
