"""SKL: weights of the eigenvectors of a kernel, learned from pairs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import lsq_linear, nnls
from scipy.sparse.linalg import LinearOperator

from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval
from kernelweave.errors import warn
from kernelweave.estimators.shared_docs import shared_attributes
from kernelweave.pairs.cluster import leading_vectors

from .pair_base import PairEmbedding

_NULL = 1e-10  # eigenvalues below this share of the largest are rounding


@shared_attributes()
@dataclass(eq=False, repr=False)
class SpectralKernelLearner(PairEmbedding):
    """SKL: the eigenvectors of a kernel with eigenvalues learned from pairs.

    The kernel ``X X'``, divided by the roots of its row sums where none is negative, has the
    eigenvectors ``v_1, v_2, ...``, largest eigenvalue first. ``K = sum_i mu_i v_i v_i'`` is the
    kernel of largest alignment with the labels ``s`` at the pairs, ::

        max (sum s K_ab) / |K_ab|   subject to  mu_i >= delta mu_(i+1) >= 0,

    which is non-negative least squares: with ``mu = U nu``, ``nu >= 0`` and ``U`` of powers of
    ``delta``, the solution has the direction of ``argmin |D U nu - s|^2``, where ``D`` holds the
    products of the entries of every eigenvector at the pairs.

    Cluster the rows by k-means on all columns of ``embedding_``: weights decrease, so that its
    leading columns alone are those of the initial kernel.

    Parameters
    ----------
    n_components : int, default=100
        Maximum number of eigenvectors.
    delta : float, default=1.01
        Smallest ratio of consecutive weights, 1 or more.
    tol : float, default=1e-8
        Largest violation of the conditions of optimality, relative to the gradient at zero.
    max_iter : int, default=10000
        Maximum number of steps of non-negative least squares.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        ``mu``; the unit is that of least squares to the labels.
    embedding_ : ndarray of shape (n_samples, n_components)
        Eigenvectors times the roots of their weights.
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the initial kernel.
    objective_ : float
        Cosine of the angle between the learned kernel at the pairs and the labels.
    n_iter_ : int
        Weights that differ from ``delta`` times the next, each of which took a step or more.

    References
    ----------
    Hoi, Lyu and Chang (2006), Learning the unified kernel machines for classification, KDD 12.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import SpectralKernelLearner
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(40) % 2
    >>> X = np.column_stack([y == 0, y == 1, rng.random((40, 6)) < 0.5]).astype(float)
    >>> model = SpectralKernelLearner(random_state=0).fit(X, y)
    >>> model.embedding_.shape, bool((np.diff(model.weights_) <= 0).all())
    ((40, 8), True)
    """

    n_components: int = 100
    _: KW_ONLY
    delta: float = 1.01
    tol: float = 1e-8
    max_iter: int = 10_000

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairEmbedding._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "delta": [Interval(Real, 1, None, closed="left")],
    }

    def _learn(self, X: Any, pairs: Indices, labels: Floats) -> None:
        n = X.shape[0]

        def times(v: Any) -> Floats:
            return np.asarray(X @ (X.T @ np.asarray(v).ravel()))

        kernel = LinearOperator((n, n), matvec=times, dtype=np.float64)
        values, vectors, _ = leading_vectors(kernel, min(self.n_components, n))
        kept = values > _NULL * max(values[0], 0.0)
        values, vectors = values[kept], vectors[:, kept]
        D = vectors[pairs[:, 0]] * vectors[pairs[:, 1]]
        # Powers relative to the first weight, so that a large delta does not overflow.
        decay = float(self.delta) ** -np.arange(len(values))
        nu, residual = _fit_labels(np.cumsum(D * decay, axis=1), labels, self.max_iter)
        self.weights_: Floats = np.cumsum(nu[::-1])[::-1] * decay
        self.embedding_ = vectors * np.sqrt(self.weights_)
        self.eigenvalues_: Floats = values
        fitted = D @ self.weights_
        size = float(np.linalg.norm(fitted)) * np.sqrt(len(labels))
        self.objective_ = float(fitted @ labels) / size if size > 0 else 0.0
        self._report(int(np.count_nonzero(nu)), residual, self.tol, "relative violation")
        if not nu.any():
            warn(
                f"{type(self).__name__}: all weights are zero, since no leading eigenvectors are "
                "more similar in same pairs than in different ones."
            )


def _fit_labels(A: Floats, labels: Floats, max_iter: int) -> tuple[Floats, float]:
    """Minimise ``|A nu - labels|^2`` over ``nu >= 0``; return ``nu`` and its KKT violation."""
    if not A.shape[1]:
        return np.zeros(0), 0.0
    sizes = np.linalg.norm(A, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    Q, R = np.linalg.qr(A / sizes)
    b = Q.T @ labels
    try:
        nu = nnls(R, b, maxiter=max_iter)[0]
    except RuntimeError:  # the iterate is lost where max_iter is reached
        nu = lsq_linear(R, b, bounds=(0.0, np.inf), max_iter=max_iter).x
        nu[nu < 1e-12 * nu.max(initial=0.0)] = 0.0
    slope = R.T @ (R @ nu - b)
    violation = np.where(nu > 0, np.abs(slope), np.maximum(-slope, 0.0))
    scale = float(np.abs(R.T @ b).max())
    return nu / sizes, float(violation.max()) / (scale or 1.0)
