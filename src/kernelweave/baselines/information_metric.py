"""ITML: the metric nearest to the Euclidean one that meets bounds of distances."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval, StrOptions
from kernelweave.errors import InputError
from kernelweave.estimators.shared_docs import shared_attributes

from .logdet import Descent, Projections
from .pair_base import PairMetric, dense, differences, leading_directions

_ROWS = 1000  # rows whose distances set the bounds where none are given; chosen by hand
_PERCENTILES = (5, 95)  # of squared distances, as published


@shared_attributes()
@dataclass(eq=False, repr=False)
class InformationTheoreticMetric(PairMetric):
    """ITML: the metric nearest to the Euclidean one whose distances meet bounds, with slack.

    Solves

        min over A, xi of D(A, I) + gamma sum_i D(xi_i, xi0_i)
        subject to  v_i' A v_i <= xi_i for same pairs and >= xi_i for others,

    where ``v_i`` is the difference of a pair, ``D`` the LogDet divergence (for numbers
    ``x/y - ln(x/y) - 1``) and ``xi0`` a bound for each kind of pair.

    The published solver, cyclic projections onto the constraints, may need thousands of sweeps. Its
    step is ``gamma / (gamma + 1) (1/p - 1/xi)`` here; the ``1/2 (1/p - gamma/xi)`` in print is
    right at ``gamma = 1`` only. The optimal slack of a metric has a closed form, so that L-BFGS
    over factors of the metric alone reaches the same optimum sooner.

    Parameters
    ----------
    n_components : int or None, default=100
        Leading directions of the rows that carry the metric; None: all columns.
    gamma : float, default=1.0
        Cost of slack.
    bounds : tuple of two floats or None, default=None
        Largest squared distance of same pairs, and smallest one of others. None: percentiles 5 and
        95 of the squared distances between rows, of 1000 drawn ones where there are more.
    solver : {"descent", "projections"}, default="descent"
        L-BFGS over factors of the metric, or cyclic projections as published.
    tol : float, default=1e-3
        Relative duality gap to stop at.
    max_iter : int, default=1000
        Maximum number of steps, or of sweeps over all pairs.
    random_state : int, RandomState or None, default=None
        For drawing pairs and rows.

    Attributes
    ----------
    metric_ : ndarray of shape (n_directions, n_directions)
        ``A``, for the directions kept.
    components_ : ndarray of shape (n_features, n_directions)
        Matrix that multiplies rows in `transform`.
    bounds_ : tuple of two floats
        The bounds used.
    multipliers_ : ndarray of shape (n_pairs,)
        Of the constraints; zero where one is inactive, or where both rows are equal.
    gap_ : float
        Duality gap, relative to the objective.
    n_iter_ : int
        Steps or sweeps.

    References
    ----------
    Davis, Kulis, Jain, Sra and Dhillon (2007), Information-theoretic metric learning, ICML 24,
    Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import InformationTheoreticMetric
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) + 3 * y[:, None] * [1, 0, 0]
    >>> model = InformationTheoreticMetric(random_state=0).fit(X, y)
    >>> int(np.diag(model.metric_).argmax())
    0
    """

    n_components: int | None = 100
    _: KW_ONLY
    gamma: float = 1.0
    bounds: tuple[float, float] | None = None
    solver: str = "descent"
    tol: float = 1e-3
    max_iter: int = 1000

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairMetric._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "bounds": "no_validation",  # checked in `_check_bounds`
        "solver": [StrOptions({"descent", "projections"})],
    }

    def _learn(self, X: Any, pairs: Indices, labels: Floats) -> None:
        directions = leading_directions(X, self.n_components)
        if directions is not None:
            X = np.asarray(X @ directions)
        X = dense(X)
        self.bounds_ = self._check_bounds(X)
        V = differences(X, pairs)
        apart = np.flatnonzero(np.sum(V**2, axis=1) > 1e-12 * self.bounds_[0])
        start = np.where(labels[apart] > 0, *self.bounds_)
        solver = Projections if self.solver == "projections" else Descent
        found = solver(V[apart], labels[apart], start, float(self.gamma))
        steps = found.run(self.tol, self.max_iter)
        self.metric_: Floats = found.metric
        self.multipliers_: Floats = np.zeros(len(labels))
        self.multipliers_[apart] = found.multipliers
        factor = np.asarray(np.linalg.cholesky(found.metric), dtype=np.float64)
        self.components_ = factor if directions is None else directions @ factor
        self.objective_, self.gap_ = found.objective, found.gap
        self._report(steps, self.gap_, self.tol, "relative duality gap")

    def _check_bounds(self, X: Floats) -> tuple[float, float]:
        if self.bounds is None:
            rows = np.arange(len(X))
            if len(X) > _ROWS:
                rows = check_random_state(self.random_state).permutation(len(X))[:_ROWS]
            near, far = np.percentile(pdist(X[rows], "sqeuclidean"), _PERCENTILES)
            if far <= 0:
                raise InputError(
                    "X: nearly all rows are equal, so their distances set no bounds. Hint: give "
                    "bounds."
                )
            return float(max(near, 1e-6 * far)), float(far)
        try:
            near, far = (float(bound) for bound in self.bounds)
        except (TypeError, ValueError):
            near = far = 0.0
        if not (0 < near < np.inf and 0 < far < np.inf):
            raise InputError(
                "bounds: must be two finite numbers > 0, squared distances for same and for "
                f"different pairs, got {self.bounds!r}."
            )
        return near, far
