"""Widths of Gaussian kernels, learned by the radius-margin criterion."""

from __future__ import annotations

import functools
import operator
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from kernelweave._types import Floats
from kernelweave._validation import Interval, StrOptions
from kernelweave.banks import KernelBank, check_memory, make_bank
from kernelweave.kernels import RBF, Kernel
from kernelweave.losses import Hinge
from kernelweave.solvers import Callback, Limits, Result
from kernelweave.solvers.kernel_parameters import (
    ARDFamily,
    Family,
    MixtureFamily,
    WidthFamily,
    learn_family,
)
from kernelweave.solvers.radius.criteria import RadiusMargin

from .classifier import KernelClassifier
from .duplicates import MergedRows
from .out_of_fold import HeldProblem
from .shared_docs import BOUNDS, CALIBRATED, CLASSES, SUPPORT, shared_attributes
from .targets import Targets

_INHERITED = """C tol max_iter fit_intercept class_weight calibration calibration_cv memory_limit
n_jobs verbose""".split()
# n x n matrices in memory at a time: distances, kernels of the points compared, and workspace.
# Kernels of several widths have distances of their own.
_MATRICES = {"width": 6, "ard": 9, "mixture": 7}


@shared_attributes(BOUNDS, SUPPORT, CLASSES, CALIBRATED)
@dataclass(eq=False, repr=False)
class RadiusKernelClassifier(KernelClassifier):
    """Support vector classifier on a Gaussian kernel whose widths are learned.

    Minimises ``1/2 R^2 |w|^2 + sum_i C_i max(0, 1 - y_i f(x_i))`` over functions and the parameters
    of the kernel, R being the radius of the smallest ball around the training points. The problem
    is not convex: several starting points are tried, and the best local minimum is kept.

    Parameters
    ----------
    family : {"width", "ard", "mixture"}
        One Gaussian; a Gaussian with a width for every column; or a weighted sum of Gaussians.
    n_widths : int
        Gaussians of a mixture.
    n_starts : int
        Starting points of the descent, the best of five.
    C : float
        Cost of errors, for a kernel of unit radius.
    tol : float
        Stop when a relative change of a parameter changes the criterion by no more than this times
        the change, relatively.
    max_iter : int
        Maximum number of inner SVM solves, each with an enclosing ball.
    verbose : int
        1 shows a bar.

    Attributes
    ----------
    kernel_ : Kernel
        The learned kernel. The method `kernel` returns it divided by `squared_radius_`.
    squared_radius_ : float
        Of the ball around the training points.
    kernels_ : list of Kernel
        The Gaussians that `kernel_` is the sum of.
    weights_ : ndarray of shape (n_kernels,)
        Their weights, which sum to one.
    contributions_ : ndarray of shape (n_kernels,)
        Share of each Gaussian in the squared norm of the decision function.
    scales_ : ndarray of shape (n_kernels,)
        Ones.
    duality_gap_ : float
        Infinite: no bound is known.
    converged_ : bool
        Whether the end is a stationary point, to `tol`.
    n_iter_ : int
        Number of inner SVM solves, each with an enclosing ball.

    References
    ----------
    Gai, Chen and Zhang (2010), Learning kernels with radiuses of minimum enclosing balls, NIPS 23,
    equations (13), (21) and (22).

    Examples
    --------
    >>> from kernelweave import RadiusKernelClassifier
    >>> from kernelweave.datasets import make_views
    >>> data = make_views(120, random_state=0)
    >>> model = RadiusKernelClassifier(family="width", C=10).fit(data.X, data.y)
    >>> type(model.kernel_).__name__, bool(model.converged_)
    ('RBF', True)
    """

    family: str = "width"
    _: KW_ONLY
    n_widths: int = 3
    n_starts: int = 2
    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = 200
    fit_intercept: bool = True
    class_weight: dict[Any, float] | str | None = None
    calibration: str | None = None
    calibration_cv: Any = None
    memory_limit: float | str | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _declaration = KernelClassifier._declaration.extended(
        {"squared_radius_": "positive", "kernel_": "kernel"},
        learns="widths",
        substitutes={},
        aspects=("kernels", "radius"),
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: KernelClassifier._parameter_constraints[name] for name in _INHERITED},
        "family": [StrOptions({"width", "ard", "mixture"})],
        "n_widths": [Interval(Integral, 1, None, closed="left")],
        "n_starts": [Interval(Integral, 1, 5, closed="both")],
    }
    warm_start = False

    def _takes_gaps(self) -> bool:
        return False

    def _prepare(self, rows: MergedRows, targets: Targets, models: list[Self]) -> _LearnedFamily:
        return _LearnedFamily(self._family(np.ascontiguousarray(RBF().prepare(rows.X))))

    def _learn(
        self, shared: _LearnedFamily, rows: MergedRows, start: None, report: Callback
    ) -> Result:
        result, kernel = learn_family(
            shared.family,
            rows.Y,
            self.C * rows.cost,
            RadiusMargin(self.fit_intercept),
            Limits(self.tol, self.max_iter, report),
            n_starts=self.n_starts,
        )
        result = result.rescaled(np.ones(len(result.weights)), 1.0)
        shared.bank = kernel.bank
        self.squared_radius_ = result.squared_radius
        self.kernel_ = _weighted_sum(list(kernel.bank.kernels), result.weights)
        return replace(result, dual_coef=result.dual_coef * result.squared_radius)

    def _continue(self, result: Result, ratio: float) -> None:
        return None  # every C has the same starting points

    def _make_loss(self) -> Hinge:
        return Hinge(self.fit_intercept)

    def _n_learned(self, shared: _LearnedFamily) -> float:
        counts = {"width": 1, "ard": self.n_features_in_, "mixture": 2 * self.n_widths}
        return float(counts[self.family])

    def _hold(self, shared: _LearnedFamily, result: Result, rows: MergedRows) -> HeldProblem | None:
        # Along a path the family has moved on to other kernels.
        shared.bank = make_bank(self.kernels_, rows.X, normalize=None, tol=self.tol)
        return super()._hold(shared, result, rows)

    def _fold_limit(self, shared: _LearnedFamily, result: Result) -> int:
        return self.max_iter  # there is no start from final widths

    def _family(self, rows: Floats) -> Family:
        n, count = len(rows), _MATRICES[self.family]
        check_memory(
            f"Widths of Gaussians over {n} rows need",
            {f"{count} matrices of distances and kernels": 8.0 * n**2 * count},
            self.memory_limit,
            "use fewer rows",
        )
        if self.family == "width":
            return WidthFamily(rows)
        return ARDFamily(rows) if self.family == "ard" else MixtureFamily(rows, self.n_widths)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


@dataclass
class _LearnedFamily:
    """A family of kernels over the training rows, and the bank of its member learned last."""

    family: Family
    bank: KernelBank | None = None


def _weighted_sum(kernels: list[Kernel], weights: Floats) -> Kernel:
    """Return the weighted sum as one kernel."""
    if len(kernels) == 1:
        return kernels[0]
    terms = (float(w) * k for w, k in zip(weights, kernels, strict=True))
    return functools.reduce(operator.add, terms)
