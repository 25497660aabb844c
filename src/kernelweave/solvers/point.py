"""One choice of weights with its solved machine, and the bounds it proves."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    kernel : CombinedKernel
        The weighted kernel.
    solution : Solution
        The machine's answer.
    which : ndarray of int
        The kernels of interest, in increasing order; all with a weight are among them.
    forms : ndarray of shape (len(which),)
        ``tr(coef' K_j coef)``.
    linear, ridge, loss : float
        Parts of the dual and the primal value.
    """

    kernel: CombinedKernel
    solution: Solution
    which: Indices
    forms: Floats
    linear: float
    ridge: float
    loss: float
    _products: dict[int, Floats] = field(default_factory=dict)

    @property
    def weights(self) -> Floats:
        """Weights of all kernels."""
        return self.kernel.weights

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

    def products(self, ids: Indices) -> Floats:
        """Return ``K_j @ coef`` for some kernels; computed once."""
        fresh = np.array([j for j in ids if int(j) not in self._products], dtype=np.intp)
        if len(fresh):
            values = self.kernel.bank.products(self.coef, fresh)
            self._products.update(zip(fresh.tolist(), values, strict=True))
        return np.array([self._products[int(j)] for j in ids])

    def fitted_at(self, kernel: CombinedKernel) -> Floats:
        """Return ``kernel @ coef`` for other weights of the same kernels."""
        if kernel.forms_for(self.coef) or kernel.sums_rows:
            return kernel @ self.coef
        change = kernel.weights - self.weights  # mostly zero
        ids = np.flatnonzero(change)
        if not len(ids):
            return self.solution.fitted
        return self.solution.fitted + np.tensordot(change[ids], self.products(ids), axes=1)


def moved(coef: Floats, fitted: Floats) -> Solution:
    """Return a start for a machine: coefficients with their fitted values, nothing proved."""
    return Solution(coef, np.zeros(coef.shape[1]), fitted, np.inf, -np.inf)


class Learner:
    """Solves machines on a bank, keeps count of it and offers the bounds.

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
        with np.errstate(over="ignore"):
            scale = machine.zero_loss(Y, cost)
        # Residuals are resolved to 1e-14 or so, and the smooth losses square them.
        account.floor = 1e-28 * scale if np.isfinite(scale) else 0.0
        self.roots = bank.residual_roots(np.arange(bank.n_kernels))  # zero where held exactly
        # Steps use the running sums of a machine, which drift by rounding, and factored kernels.
        # What is returned is recomputed from the exact kernels by `verify`; if the gap then no
        # longer holds, so is everything after it. None: never.
        self.exact: bool | None = False
        self._best: CombinedKernel  # of the best upper bound

    def at(self, weights: Floats, coef: Floats, which: Indices | None = None) -> Point:
        """Look at feasible coefficients without solving."""
        kernel = self.bank.combine(weights)
        return self.evaluate(kernel, moved(coef, kernel @ coef), which)

    def solve(
        self,
        kernel: CombinedKernel,
        *,
        tol: float = 0.0,
        floor: float = 0.0,
        start: Solution | None = None,
        enough: float = np.inf,
    ) -> Solution:
        """Solve the machine for a kernel."""
        solution = self.machine.solve(
            kernel, self.Y, self.cost, tol=tol, floor=floor, start=start, enough=enough
        )
        self.account.solves += 1
        self.account.work += solution.work
        return solution

    def evaluate(
        self,
        kernel: CombinedKernel,
        solution: Solution,
        which: Indices | None = None,
        forms: Floats | None = None,
    ) -> Point:
        """Read the forms of the kernels of interest, unless known, and offer the upper bound."""
        which = np.flatnonzero(kernel.weights) if which is None else which
        if forms is None:
            forms = self.bank.forms(solution.coef, which)
            self.account.readings += len(which) / self.bank.n_kernels
        fitted = kernel.exact_product(solution.coef) if self.exact else solution.fitted
        return self._look(kernel, solution.coef, fitted, which, forms, solution.work)

    def _look(
        self,
        kernel: CombinedKernel,
        coef: Floats,
        fitted: Floats,
        which: Indices,
        forms: Floats,
        work: int = 0,
    ) -> Point:
        weights = kernel.weights
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
            work=work,
        )
        dropped = self.bank.residual_forms(coef)[which] if self.roots.any() else 0.0
        norms = np.zeros(len(weights))
        norms[which] = weights[which] * np.sqrt(forms + dropped)
        upper = self.weight_set.penalty(norms) + loss
        known = np.zeros(len(weights))
        known[which] = forms
        constant = self.machine.constant(fitted, self.Y, self.cost)
        if self.account.offer_upper(upper, weights, coef, intercept, known, constant):
            self._best = kernel
        return Point(kernel, solution, which, forms, linear, ridge, loss)

    def lower_bound(self, point: Point, forms: Floats) -> float:
        """Return the lower bound that a point proves when no form is larger than these."""
        return self.weight_set.lower_bound(
            point.linear, point.ridge, forms, bounded=self.machine.bounded
        )

    def offer_lower(self, point: Point, forms: Floats) -> None:
        """Offer the lower bound from the forms of all kernels, plus what their forms drop."""
        dropped = self.bank.residual_forms(point.coef) if self.roots.any() else 0.0
        self.account.offer_lower(self.lower_bound(point, forms + dropped))

    def verify(self) -> bool:
        """Tell whether the gap meets the tolerance for the exact kernels too."""
        if self.account.converged:
            self.settle()
        return self.account.converged

    def settle(self) -> None:
        """Recompute the best upper bound from the exact kernels, once."""
        account = self.account
        if self.exact is False and np.isfinite(account.upper):
            self.exact = True
            account.upper = np.inf
            kernel, coef = self._best, account.coef
            which = np.flatnonzero(kernel.weights)
            fitted = kernel.exact_product(coef)
            self._look(kernel, coef, fitted, which, account.forms[which])
            account.note()
