"""SimpleNPKL: a nonparametric kernel matrix of bounded norm, by eigendecompositions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval, StrOptions
from kernelweave.errors import warn
from kernelweave.estimators.shared_docs import shared_attributes
from kernelweave.pairs.cluster import leading

from .pair_base import PairEmbedding, minimize_to_gap, neighbour_laplacian


@shared_attributes()
@dataclass(eq=False, repr=False)
class SimpleNPKL(PairEmbedding):
    """SimpleNPKL: a nonparametric kernel matrix of bounded norm that fits the pairs.

    Solves ::

        min over K >= 0, tr(K^2) <= b of tr(L K) + C sum loss(s_ab K_ab),

    where ``L`` is the normalised Laplacian of a neighbourhood graph plus ``ridge`` times the
    identity. For the linear loss ``-u`` the solution is ``sqrt(b) A+ / |A+|`` with ``A+`` the
    positive part of ``A = C T - L``, where ``T`` holds half the label of a pair at both entries.
    For the hinge loss ``max(0, 1 - u)`` the dual problem ::

        max over 0 <= alpha <= C of sum alpha - sqrt(b) |A(alpha)+|

    is solved by L-BFGS-B with the gradient ``1 - s_ab K_ab``, one decomposition a step.

    Parameters
    ----------
    n_neighbors : int, default=50
        Nearest neighbours of a row in the graph.
    loss : {"linear", "hinge"}, default="linear"
        Loss of a pair.
    C : float, default=1.0
        Cost of the loss of a pair.
    ridge : float, default=0.01
        Added to the Laplacian.
    b : float or None, default=None
        Bound of the sum of squared entries; None: the number of rows. With the linear loss it only
        sets the scale. With the hinge loss it must be active: where it is too large, the dual is
        nondifferentiable at its optimum and the solver stops early with a warning; where it is so
        small that no pair is fitted, both losses agree.
    n_components : int, default=200
        Largest rank of the kernel.
    tol : float, default=1e-3
        Relative duality gap to stop at, for the hinge loss.
    max_iter : int, default=100
        Maximum number of steps, for the hinge loss.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the kernel, largest first.
    gap_ : float
        Duality gap among kernels of this rank, relative to the loss of the zero kernel; zero for
        the linear loss.
    n_iter_ : int
        Steps; one for the linear loss.

    References
    ----------
    Zhuang, Tsang and Hoi (2011), A family of simple non-parametric kernel learning algorithms,
    JMLR 12.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import SimpleNPKL
    >>> y = np.arange(20) % 2
    >>> X = np.random.default_rng(0).normal(size=(20, 2)) + 4 * y[:, None]
    >>> model = SimpleNPKL(4).fit(X, y)
    >>> K = model.embedding_ @ model.embedding_.T
    >>> bool(K[4, 6] > 0 > K[4, 5])
    True
    """

    n_neighbors: int = 50
    _: KW_ONLY
    loss: str = "linear"
    C: float = 1.0
    ridge: float = 0.01
    b: float | None = None
    n_components: int = 200
    tol: float = 1e-3
    max_iter: int = 100

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairEmbedding._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "loss": [StrOptions({"linear", "hinge"})],
        "C": [Interval(Real, 0, None, closed="neither")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "b": [Interval(Real, 0, None, closed="neither"), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
    }

    def _learn(self, X: Any, pairs: Indices, labels: Floats) -> None:
        n = X.shape[0]
        size = float(np.sqrt(n if self.b is None else self.b))
        dual = _Dual(
            neighbour_laplacian(X, self.n_neighbors, self.ridge),
            pairs,
            labels,
            size,
            min(self.n_components, n),
        )
        C, steps = float(self.C), 1
        value = dual.evaluate(np.full(len(labels), C))
        if self.loss == "linear":
            self.objective_, self.gap_ = value - C * len(labels), 0.0
        else:
            steps = self._maximize(dual, C)
            self.objective_, self.gap_ = dual.gap(C)
        self.eigenvalues_: Floats = dual.values
        self.embedding_ = dual.vectors * np.sqrt(dual.values)
        self._report(steps, self.gap_, self.tol, "relative duality gap")
        if not len(dual.values):
            warn(
                f"{type(self).__name__}: the kernel is zero, since pairs do not outweigh the "
                "Laplacian. Hint: raise C."
            )

    def _maximize(self, dual: _Dual, C: float) -> int:
        """Maximise the dual of the hinge loss; return the number of steps."""

        def negative(alpha: Floats) -> tuple[float, Floats]:
            return -dual.evaluate(alpha), dual.margins - 1.0

        def gap(alpha: Floats) -> float:
            dual.evaluate(alpha)
            return dual.gap(C)[1]

        bounds = [(0.0, C)] * len(dual.alpha)
        options = {"maxiter": self.max_iter, "maxcor": 20}
        alpha, steps = minimize_to_gap(
            negative, dual.alpha, gap, self.tol, bounds=bounds, **options
        )
        dual.evaluate(alpha)
        return steps


class _Dual:
    """Multipliers of the pairs, and the kernel that maximises the Lagrangian for them."""

    def __init__(
        self, L: csr_array[Any], pairs: Indices, labels: Floats, size: float, rank: int
    ) -> None:
        self.L, self.pairs, self.labels, self.size, self.rank = L, pairs, labels, size, rank
        self.alpha = np.full(len(labels), np.nan)
        self.value = 0.0

    def evaluate(self, alpha: Floats) -> float:
        """Decompose ``A(alpha)``, and return the dual value ``sum alpha - sqrt(b) |A+|``."""
        if np.array_equal(alpha, self.alpha):
            return self.value
        self.alpha = np.array(alpha)
        n = self.L.shape[0]
        left, right = self.pairs.T
        half = csr_array((0.5 * alpha * self.labels, (left, right)), shape=(n, n))
        A = csr_array(half + half.T - self.L)
        values, vectors = leading(lambda v: A @ v, n, self.rank)
        kept = values > 0.0
        length = float(np.linalg.norm(values[kept]))
        self.values = values[kept] * (self.size / length if length > 0 else 0.0)
        self.vectors = vectors[:, kept]
        at = np.einsum("ij,j,ij->i", self.vectors[left], self.values, self.vectors[right])
        self.margins = self.labels * at
        self.value = float(alpha.sum()) - self.size * length
        return self.value

    def gap(self, C: float) -> tuple[float, float]:
        """Return the value of the kernel under the hinge loss, and its relative gap."""
        smooth = float(self.values @ np.sum(self.vectors * (self.L @ self.vectors), axis=0))
        primal = smooth + C * float(np.maximum(0.0, 1.0 - self.margins).sum())
        return primal, (primal - self.value) / (C * len(self.margins))
