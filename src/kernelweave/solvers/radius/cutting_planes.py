"""Cutting planes for the radius-margin criterion: the best joint lower bound of all points.

For weights scaled to unit radius the criterion is the optimal value J of the SVM. Every evaluated
point bounds both J and the radius from below by functions that are linear in the weights,

    J(w) >= linear - w . quadratic_forms / 2,    R^2(w) >= w . spreads,

the first by its coefficients and the second by its centre. Where several centres are equally good
the radius is not differentiable, and none of them proves much alone; their mixture does.

References
----------
J. E. Kelley, "The cutting-plane method for solving convex programs", J. SIAM 8, 1960.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy

from kernelweave._types import Floats
from kernelweave.banks import KernelBank

from .criteria import Assessment

_LP_TOL = 1e-10  # the smallest feasibility tolerance that HiGHS takes


@dataclass(frozen=True)
class Lowest:
    """Where the cuts are lowest, and the mixture of points that proves it."""

    weights: Floats
    dual_coef: Floats  # mixed coefficients, for a kernel of unit radius
    centre: Floats  # mixed centre


@dataclass
class Cuts:
    """Cuts of the criterion over the weights of a bank.

    Dual coefficients for a kernel of unit radius with their cuts of J, and centres with their cuts
    of the squared radius.
    """

    coefs: list[Floats] = field(default_factory=list)
    linears: list[float] = field(default_factory=list)
    quadratic_forms: list[Floats] = field(default_factory=list)
    centres: list[Floats] = field(default_factory=list)
    spreads: list[Floats] = field(default_factory=list)

    @classmethod
    def begin(cls, bank: KernelBank) -> Cuts:
        """Return no cut but that of the mean of all points, which bounds the weights."""
        n = bank.n_samples
        return cls(centres=[np.full(n, 1.0 / n)], spreads=[bank.traces(centred=True) / n])

    def add(self, point: Assessment, linear: float) -> None:
        """Add the two cuts of a point; ``linear`` is the linear part of its dual value."""
        size = point.ball.squared_radius
        self.coefs.append(size * point.solution.dual_coef)
        self.linears.append(size * linear)
        self.quadratic_forms.append(size**2 * point.quadratic_forms)
        self.centres.append(point.ball.centre)
        self.spreads.append(point.spreads)

    def minimise(self, size: float) -> Lowest | None:
        """Minimise the largest cut of J over weights whose radius may be one by the other cuts.

        ``size`` is a typical value of the criterion. None if the program was not solved.
        """
        quadratic_forms, spreads = np.array(self.quadratic_forms), np.array(self.spreads)
        k, m = quadratic_forms.shape
        # Unknown: the weights, then the height above all cuts, in units of the size.
        above = np.column_stack([-0.5 / size * quadratic_forms, -np.ones(k)])
        inside = np.column_stack([spreads, np.zeros(len(spreads))])
        program = scipy.optimize.linprog(
            np.append(np.zeros(m), 1.0),
            A_ub=np.vstack([above, inside]),
            b_ub=np.append(-np.array(self.linears) / size, np.ones(len(spreads))),
            bounds=[(0.0, None)] * m + [(None, None)],
            options={
                "primal_feasibility_tolerance": _LP_TOL,
                "dual_feasibility_tolerance": _LP_TOL,
            },
        )
        if program.x is None or program.status != 0:
            return None
        # Dual variables of the program are the shares of the points in the mixture.
        shares = np.maximum(-program.ineqlin.marginals, 0.0)
        of_coefs, of_centres = shares[:k], shares[k:]
        if not (of_coefs.any() and of_centres.any()):
            return None
        return Lowest(
            weights=program.x[:m],
            dual_coef=np.tensordot(of_coefs / of_coefs.sum(), np.array(self.coefs), axes=1),
            centre=of_centres @ np.array(self.centres) / of_centres.sum(),
        )
