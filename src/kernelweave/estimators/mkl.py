"""Flat multiple kernel learning: one weight per kernel, norm 1, p, or equal weights."""

from __future__ import annotations

from typing import Any

from kernelweave.losses import Hinge, Loss

from .classifier import KernelClassifier
from .regressor import KernelRegressor
from .shared_docs import BOUNDS, CLASSES, NYSTROEM, SUPPORT, WEIGHTS, shared_attributes


@shared_attributes(WEIGHTS, NYSTROEM, BOUNDS, SUPPORT, CLASSES)
class MKLClassifier(KernelClassifier):
    """Support vector classifier on a learned combination of kernels.

    Minimises ``1/2 sum_j |w_j|^2 / theta_j + sum_i C_i max(0, 1 - y_i f(x_i))`` over the functions
    ``f = sum_j <w_j, phi_j> + b`` and the weights ``theta >= 0`` with ``|theta|_norm <= 1``.
    Several classes are learned one against the rest with one shared set of weights.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list of both, or None
        What to combine. None: `mixed_ladder`, kernels on numbers, categories, dates and gaps
        together, and on each column.
    norm : float >= 1 or "uniform"
        1 keeps few kernels (SimpleMKL's problem), larger values keep all of them with smoother
        weights, "uniform" averages the kernels and learns no weights.
    normalize : {"trace", "diagonal", "cosine", "radius"} or None
        What is made one before weights are learned: the mean centred diagonal (the plain one
        without an intercept), the mean diagonal, every diagonal entry, the radius of the smallest
        ball around the training rows, or nothing.
    C : float
        Cost of errors. With normalised kernels it means what it means in scikit-learn's `SVC`.
    tol : float
        Relative duality gap to stop at, at least 1e-9.
    max_iter : int
        Maximum number of inner SVM solves; may be exceeded by one step.
    fit_intercept : bool
        Whether to add a bias to every output.
    class_weight : dict, "balanced" or None
        Factors of C by class.
    warm_start : bool
        Whether `fit` begins from the last solution when the number of rows is the same.
    memory_limit : number of bytes, str such as "8GB", or None
        None: half of the free memory.
    n_jobs : int or None
        Threads; None: all that the process may use. The result does not depend on it.
    verbose : int
        1 shows a bar with the gap.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Weight of every (normalised) kernel.

    References
    ----------
    Rakotomamonjy, Bach, Canu and Grandvalet (2008), SimpleMKL, JMLR 9.
    Kloft, Brefeld, Sonnenburg and Zien (2011), lp-norm multiple kernel learning, JMLR 12.

    Examples
    --------
    >>> from kernelweave import MKLClassifier, rbf_ladder
    >>> from kernelweave.datasets import make_views
    >>> data = make_views(120, random_state=0)
    >>> model = MKLClassifier([rbf_ladder(per_feature=True)], C=10).fit(data.X, data.y)
    >>> bool(model.converged_), bool(model.score(data.X, data.y) > 0.9)
    (True, True)
    """

    _declaration = KernelClassifier._declaration.extended({}, method="mkl")
    _takes_features = True

    def __init__(
        self,
        kernels: Any = None,
        *,
        norm: float | str = 1.0,
        normalize: str | None = "trace",
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        memory_limit: float | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.norm = norm
        self.normalize = normalize
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _make_loss(self) -> Loss:
        return Hinge(fit_intercept=self.fit_intercept)


@shared_attributes(WEIGHTS, NYSTROEM, BOUNDS, SUPPORT)
class MKLRegressor(KernelRegressor):
    """Regression on a learned combination of kernels.

    Minimises ``1/2 sum_j |w_j|^2 / theta_j + C sum_i loss(y_i, f(x_i))`` over functions and weights
    as `MKLClassifier` does. Several targets share one set of weights.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list of both, or None
        What to combine, as in `MKLClassifier`.
    norm : float >= 1 or "uniform"
        1 keeps few kernels, larger values keep all of them, "uniform" averages them.
    loss : {"epsilon_insensitive", "square", "huber"}
        ``max(0, |y - f| - epsilon)``; ``(y - f)^2 / 2``; or the square up to a residual of
        ``epsilon`` and linear beyond.
    epsilon : float
        Half-width of the insensitive zone, or Huber's threshold, in units of the target.
    target_scale : "spread", float or None
        Unit of the target, in which ``epsilon`` and residuals are measured, so that C means the
        same for dollars and for thousands of them. "spread": its standard deviation, outliers cut
        off; None: one.
    normalize : {"trace", "diagonal", "cosine", "radius"} or None
        What is made one before weights are learned, as in `MKLClassifier`.
    C : float
        Cost of errors.
    tol : float
        Relative duality gap to stop at, at least 1e-9.
    max_iter : int
        Maximum number of inner solves.
    fit_intercept : bool
        Whether to add a bias.
    warm_start : bool
        Whether `fit` begins from the last solution when the number of rows is the same.
    memory_limit : number of bytes, str such as "8GB", or None
        None: half of the free memory.
    n_jobs : int or None
        Threads; None: all that the process may use. The result does not depend on it.
    verbose : int
        1 shows a bar with the gap.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Weight of every (normalised) kernel.
    target_scale_ : float
        Unit of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLRegressor, rbf_ladder
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = MKLRegressor([rbf_ladder([0.5, 1, 2])], C=100, epsilon=0.01).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.99)
    True
    """

    _declaration = KernelRegressor._declaration.extended({}, method="mkl")
    _takes_features = True

    def __init__(
        self,
        kernels: Any = None,
        *,
        norm: float | str = 1.0,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.1,
        target_scale: float | str | None = "spread",
        normalize: str | None = "trace",
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        warm_start: bool = False,
        memory_limit: float | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.norm = norm
        self.loss = loss
        self.epsilon = epsilon
        self.target_scale = target_scale
        self.normalize = normalize
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
