"""Which solver fits a problem with a radius criterion."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import KernelBank, squared_radii
from kernelweave.losses import Hinge
from kernelweave.solvers.newton_bundle import newton_bundle
from kernelweave.solvers.problem import Limits, Problem, WarmStart
from kernelweave.weights import LpBall, Simplex

from .criteria import Chapelle, Criterion, Do, RadiusMargin
from .descent import gradient_projection, lbfgs
from .search import RadiusProblem, RadiusResult, evaluate_fixed

_RADIUS_TOL = 1e-5  # of the radii of single kernels, as those that banks normalise by


@dataclass(frozen=True)
class RadiusMethod:
    """What is minimised and how; the parameters of `RadiusMKLClassifier` with the same names."""

    criterion: str  # "radius", "chapelle", "chapelle_literal" or "do"
    norm: float | str | None  # 1, 2, or None; "uniform" does not learn weights
    solver: str  # "lbfgs" or "projection"
    radius: str  # "exact", or "upper" and "trace": bounds that are linear in the weights
    fit_intercept: bool
    unit_radii: bool  # whether the bank is normalised to kernels of unit radius

    def learn(
        self, bank: KernelBank, Y: Floats, cost: Floats, limits: Limits, start: WarmStart | None
    ) -> RadiusResult:
        """Learn the weights of kernels, none of which is constant."""
        learn = self._radius_margin if self.criterion == "radius" else self._other
        return learn(bank, Y, cost, limits, start)

    def _radius_margin(
        self, bank: KernelBank, Y: Floats, cost: Floats, limits: Limits, start: WarmStart | None
    ) -> RadiusResult:
        """Learn on kernels of unit size, whatever size they came with."""
        even = np.full(bank.n_kernels, 1.0 / bank.n_kernels)
        if isinstance(self.norm, str):
            criterion = RadiusMargin(self.fit_intercept, fixed=True)
            return evaluate_fixed(RadiusProblem(bank, Y, cost, criterion), limits, even)
        if self.radius == "trace":
            sizes = bank.traces(centred=True) / bank.n_samples
        else:
            sizes = self._radii(bank, limits.tol)
        unit = replace(bank, scales=bank.scales / sizes)
        begin = even if start is None else start.weights * sizes / (start.weights @ sizes)
        if self.radius == "exact":
            problem = RadiusProblem(unit, Y, cost, RadiusMargin(self.fit_intercept))
            solve = lbfgs if self.solver == "lbfgs" else gradient_projection
            result = solve(problem, limits, begin)
        else:
            # A linear bound of the radius, held at one by the simplex: an l1 problem.
            last = None if start is None else WarmStart(begin, start.dual_coef)
            flat = Problem(unit, Y, cost, Hinge(self.fit_intercept), Simplex())
            result = RadiusResult(**vars(newton_bundle(flat, limits, last)), squared_radius=1.0)
        return result.rescaled(1.0 / sizes, self.norm)

    def _other(
        self, bank: KernelBank, Y: Floats, cost: Floats, limits: Limits, start: WarmStart | None
    ) -> RadiusResult:
        assert not isinstance(self.norm, str)
        radii = self._radii(bank, limits.tol)
        criterion: Criterion
        if self.criterion == "do":
            weight_set = Simplex() if self.norm == 1 else LpBall(2.0)

            def bound(linear: float, quadratic_forms: Floats) -> float:
                return weight_set.lower_bound(linear, 0.0, quadratic_forms, bounded=False)

            criterion = Do(radii, bound, self.fit_intercept)
        else:
            criterion = Chapelle(self.fit_intercept, literal=self.criterion == "chapelle_literal")
        problem = RadiusProblem(bank, Y, cost, criterion, self.norm)
        even = np.full(bank.n_kernels, 1.0 / bank.n_kernels)
        begin = even if start is None else start.weights / start.weights.sum()
        if self.solver == "lbfgs":
            result = lbfgs(problem, limits, begin, sizes=radii)
        else:
            result = gradient_projection(problem, limits, begin)
        return result.rescaled(np.ones(bank.n_kernels), self.norm)

    def _radii(self, bank: KernelBank, tol: float) -> Floats:
        """Return squared radii of the single kernels.

        Where they only scale the search, and are not part of the problem, 1e-5 is enough.
        """
        exact = self.criterion == "radius" and self.radius == "exact"
        only_scales = exact or self.criterion.startswith("chapelle")
        if self.unit_radii and (tol >= 1e-3 or only_scales):
            return np.ones(bank.n_kernels)
        return squared_radii(bank, tol=_RADIUS_TOL if only_scales else min(_RADIUS_TOL, 0.01 * tol))
