"""GDM (MMC): a metric with small distances of same pairs and large ones of different pairs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval
from kernelweave.errors import InputError
from kernelweave.estimators.shared_docs import shared_attributes
from kernelweave.kernels.base import is_sparse

from .distance_sums import minimize_diagonal, minimize_full
from .pair_base import PairMetric, dense, differences, leading_directions, square


@shared_attributes()
@dataclass(eq=False, repr=False)
class GlobalDistanceMetric(PairMetric):
    """GDM, also called MMC: small distances of same pairs, large distances of different pairs.

    Solves ::

        min over A >= 0 of sum_same |x - x'|_A^2 - ln sum_different |x - x'|_A,

    to a bound of the distance from the optimum. With ``diagonal=True`` there is a weight for every
    column, found by a projected Newton method on sparse squared differences; otherwise ``A`` is
    any metric of the leading directions of the rows.

    Parameters
    ----------
    diagonal : bool, default=True
        Whether the metric is diagonal.
    n_components : int or None, default=100
        Directions kept before a full metric is learned; None: all columns.
    ridge : float, default=0.01
        Added to the squared differences of same pairs in every column, in units of their mean over
        columns. Without it the weight of a column in which same pairs never differ is unbounded.
    tol : float, default=1e-6
        Distance of the objective from its optimum to stop at.
    max_iter : int, default=1000
        Maximum number of steps.

    Attributes
    ----------
    components_ : ndarray of shape (n_features,) or (n_features, n_components)
        Factors of the columns in `transform`, or the matrix that multiplies rows.
    objective_ : float
        Value reached, ridge included.
    gap_ : float
        Upper bound of its distance from the optimum.

    References
    ----------
    Xing, Ng, Jordan and Russell (2002), Distance metric learning, with application to clustering
    with side-information, NIPS 15.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import GlobalDistanceMetric
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) + 3 * y[:, None] * [1, 0, 0]
    >>> model = GlobalDistanceMetric(random_state=0).fit(X, y)
    >>> int(model.components_.argmax())
    0
    """

    _: KW_ONLY
    diagonal: bool = True
    n_components: int | None = 100
    ridge: float = 0.01
    tol: float = 1e-6
    max_iter: int = 1000

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairMetric._parameter_constraints,
        "diagonal": ["boolean"],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "ridge": [Interval(Real, 0, None, closed="neither")],
    }

    def _learn(self, X: Any, pairs: Indices, labels: Floats) -> None:
        directions = None if self.diagonal else leading_directions(X, self.n_components)
        if directions is not None:
            X = np.asarray(X @ directions)
        V = differences(X, pairs)
        same, other = V[labels > 0], V[labels < 0]
        if not abs(other).sum() > 0:
            raise InputError(
                "pairs: the rows of all different pairs are equal, so no metric keeps them apart."
            )
        if self.diagonal:
            self._fit_diagonal(square(same), square(other))
        else:
            self._fit_full(dense(same), dense(other), directions)
        self._report(self.n_iter_, self.gap_, self.tol, "gap")

    def _fit_diagonal(self, same: Any, other: Any) -> None:
        sigma = np.asarray(same.sum(axis=0)).ravel()
        sums = np.asarray(other.sum(axis=0)).ravel()
        sigma = sigma + self.ridge * (sigma.mean() or sums.mean())
        used = np.flatnonzero(sums > 0)  # weights of the other columns are zero
        G = other[:, used]
        G = G[np.asarray(G.sum(axis=1)).ravel() > 0]
        G = G.multiply(1.0 / sigma[used]).tocsr() if is_sparse(G) else G / sigma[used]
        found = minimize_diagonal(G, self.tol, self.max_iter)
        self.components_ = np.zeros(len(sigma))
        self.components_[used] = np.sqrt(found.point / sigma[used])
        self.objective_, self.gap_, self.n_iter_ = found.objective, found.gap, found.n_iter

    def _fit_full(self, same: Floats, other: Floats, directions: Floats | None) -> None:
        S = same.T @ same
        unit = float(np.trace(S)) or float(np.sum(other**2))
        S += np.eye(len(S)) * self.ridge * unit / len(S)
        values, vectors = np.linalg.eigh(S)
        whiten = vectors / np.sqrt(values)  # the squares of same pairs then sum to the trace
        Z = other[np.abs(other).sum(axis=1) > 0] @ whiten
        found = minimize_full(Z, self.tol, self.max_iter)
        components = whiten @ found.point
        self.components_ = components if directions is None else directions @ components
        self.objective_, self.gap_, self.n_iter_ = found.objective, found.gap, found.n_iter
