"""Radius-margin kernel learning (RKL), and the criteria that it was compared with."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave._validation import Options, StrOptions
from kernelweave.banks import KernelBank, exact_bank
from kernelweave.banks.protocol import Bank
from kernelweave.errors import InputError, warn
from kernelweave.losses import Hinge
from kernelweave.solvers import Callback, Limits, Result, WarmStart
from kernelweave.solvers.radius.learn import RadiusMethod

from .classifier import KernelClassifier
from .duplicates import MergedRows
from .out_of_fold import HeldProblem
from .shared_docs import BOUNDS, CALIBRATED, CLASSES, SUPPORT, WEIGHTS, shared_attributes


@shared_attributes(WEIGHTS, BOUNDS, SUPPORT, CLASSES, CALIBRATED)
@dataclass(eq=False, repr=False)
class RadiusMKLClassifier(KernelClassifier):
    """Support vector classifier on the kernel whose margin is largest relative to its radius.

    Minimises ``1/2 R^2 |w|^2 + sum_i C_i max(0, 1 - y_i f(x_i))`` over functions f and weights of
    kernels, R being the radius of the smallest ball around the training points in the feature space
    of the weighted kernel. The value does not change when a kernel is multiplied by a number, so
    that the scales of the given kernels do not matter and C means the same for all of them.
    Several classes are learned one against the rest, with one ball and one set of weights.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list of both, or None
        What to combine, as in `MKLClassifier`. Kernels that are constant on the training rows have
        no radius: they take no part, and a warning names them.
    norm : None, 1, 2 or "uniform"
        How `weights_` are scaled: to a learned kernel of unit radius, by their sum, or by their
        Euclidean norm. With ``criterion="radius"`` the learned kernel is the same for all.
        "uniform" learns no weights and divides the average kernel by its squared radius.
    criterion : {"radius", "chapelle", "chapelle_literal", "do"}
        What is minimised: the above; ``R^2 |w|^2`` of ``K + I/C`` as Chapelle et al. practised it;
        the same with ``R`` of ``K`` alone, as equation (10) of the reference prints it; or the
        convex criterion of Do et al., equation (11).
    solver : {"lbfgs", "projection"}
        L-BFGS, or gradient projection with Armijo's rule as in the reference, for
        ``radius="exact"``. The problems with a bound are solved as in `MKLClassifier`.
    radius : {"exact", "upper", "trace"}
        What R^2 is: itself; its upper bound ``sum_j theta_j R_j^2``; or its lower bound by the
        centred traces. The bounds make the problem that of `MKLClassifier` with norm 1.
    normalize : {"radius", "trace", "diagonal", "cosine"} or None
        What is made one for every kernel. The weights refer to it, and the criteria other than
        "radius" depend on it.
    C : float
        Cost of errors, for a kernel of unit radius.
    tol : float
        Relative gap to stop at, at least 1e-9. Radii of single kernels, which are part of the
        problems "do" and "upper", are computed to a hundredth of it.
    max_iter : int
        Maximum number of inner SVM solves, each with an enclosing ball.
    warm_start : bool
        Whether `fit` begins from the last weights when the number of rows is the same.

    Attributes
    ----------
    squared_radius_ : float
        Of the ball around the training points in the weighted kernel, with ``I/C`` added for
        "chapelle"; the bound of it for ``radius="upper"`` and ``"trace"``. `kernel` and the
        decision function use the weighted kernel divided by it.
    lower_bound_ : float
        No weights have a smaller value of the criterion; minus infinity if no bound is known.
    duality_gap_ : float
        ``objective_ - lower_bound_``.
    converged_ : bool
        Whether the gap met `tol`; without a bound, whether the gradient promises no more than that.
    n_iter_ : int
        Number of inner SVM solves, each with an enclosing ball.

    References
    ----------
    Gai, Chen and Zhang (2010), Learning kernels with radiuses of minimum enclosing balls, NIPS 23,
    equations (10), (11), (13) and (21).

    Examples
    --------
    >>> from kernelweave import RBF, Linear, RadiusMKLClassifier
    >>> from kernelweave.datasets import make_views
    >>> data = make_views(120, random_state=0)
    >>> model = RadiusMKLClassifier([1e6 * Linear(), RBF(1.0), RBF(3.0)]).fit(data.X, data.y)
    >>> bool(model.lower_bound_ <= model.objective_), bool(model.converged_)
    (True, True)
    """

    kernels: Any = None
    _: KW_ONLY
    missing: str | None = None
    norm: float | str | None = None
    criterion: str = "radius"
    solver: str = "lbfgs"
    radius: str = "exact"
    normalize: str | None = "radius"
    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = 200
    fit_intercept: bool = True
    class_weight: dict[Any, float] | str | None = None
    calibration: str | None = None
    calibration_cv: Any = None
    warm_start: bool = False
    memory_limit: float | str | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _declaration = KernelClassifier._declaration.extended(
        {"squared_radius_": "positive", "lower_bound_": "real"},
        aspects=("kernels", "radius"),
        method="radius",
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelClassifier._parameter_constraints,
        "norm": [None, Options(Real, {1, 2}), StrOptions({"uniform"})],
        "criterion": [StrOptions({"radius", "chapelle", "chapelle_literal", "do"})],
        "solver": [StrOptions({"lbfgs", "projection"})],
        "radius": [StrOptions({"exact", "upper", "trace"})],
    }

    def _on_demand(self) -> Literal["whole"]:
        return "whole"  # the ball

    def _solve(
        self, bank: Bank, Y: Floats, cost: Floats, start: WarmStart | None, report: Callback | None
    ) -> Result:
        exact = exact_bank(bank)  # radii need exact kernels
        self._refuse()
        varying = _varying(exact)
        traces = bank.traces(centred=True)[varying] / bank.n_samples
        if not ((traces > 1e-100) & (traces < 1e100)).all():
            raise InputError(
                "kernels: values are too small or too large to compare with the radius; rescale "
                "the columns, for example with scikit-learn's StandardScaler, or use "
                "normalize='radius'."
            )
        begin = None if start is None else WarmStart(start.weights[varying], start.dual_coef)
        method = RadiusMethod(
            self.criterion,
            self.norm,
            self.solver,
            self.radius,
            self.fit_intercept,
            unit_radii=self.normalize == "radius",
        )
        limits = Limits(self.tol, self.max_iter, report)
        result = method.learn(exact.subset(varying), Y, cost, limits, begin)
        self.squared_radius_ = result.squared_radius
        self.lower_bound_ = result.lower_bound
        return replace(
            result,
            weights=_spread(result.weights, varying, exact),
            quadratic_forms=_spread(result.quadratic_forms, varying, exact),
            dual_coef=result.dual_coef * result.squared_radius,  # for the kernel divided by it
        )

    def _make_loss(self) -> Hinge:
        return Hinge(self.fit_intercept)

    def _hold(self, shared: Any, result: Result, rows: MergedRows) -> HeldProblem | None:
        # The other criteria have other losses and costs.
        return super()._hold(shared, result, rows) if self.criterion == "radius" else None

    def _refuse(self) -> None:
        if self.criterion in ("chapelle_literal", "do") and self.norm is None:
            raise InputError(
                f"norm=None: criterion={self.criterion!r} has no minimum without a norm on the "
                "weights; use norm=1 or norm=2."
            )
        if self.criterion != "radius" and self.norm == "uniform":
            raise InputError("norm='uniform': only criterion='radius' takes it.")
        if self.radius != "exact" and (self.criterion != "radius" or self.norm == "uniform"):
            raise InputError(
                f"radius={self.radius!r}: the bounds of the radius serve criterion='radius' with "
                "learned weights only; use radius='exact'."
            )


def _varying(bank: KernelBank) -> Indices:
    """Return the kernels that are not constant; name the others in a warning."""
    same = bank.centred_traces <= 0
    if same.all():
        raise InputError("kernels: every kernel is constant on the training rows.")
    if same.any():
        names = ", ".join(f"kernels[{j}] = {bank.kernels[j]}" for j in np.flatnonzero(same))
        warn(f"Constant on the training rows, and so without weight: {names}.")
    return np.flatnonzero(~same)


def _spread(values: Floats, which: Indices, bank: KernelBank) -> Floats:
    out = np.zeros(bank.n_kernels)
    out[which] = values
    return out
