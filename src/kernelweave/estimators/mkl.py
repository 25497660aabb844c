"""Flat multiple kernel learning: one weight per kernel, norm 1, p, or equal weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np

from kernelweave._validation import Interval, StrOptions
from kernelweave.losses import Hinge, Logistic, Loss, Softmax, SquaredHinge

from .classifier import LabelClassifier
from .probabilities import NativeProbabilities
from .quantiles import QuantileRegressor
from .shared_docs import (
    BOUNDS,
    CALIBRATED,
    CLASSES,
    COVERED,
    NYSTROEM,
    SUPPORT,
    WEIGHTS,
    shared_attributes,
)
from .targets import Targets, refuse_absent_class


@shared_attributes(WEIGHTS, NYSTROEM, BOUNDS, SUPPORT, CLASSES, CALIBRATED)
@dataclass(eq=False, repr=False)
class MKLClassifier(NativeProbabilities, LabelClassifier):
    """Support vector or logistic classifier on a learned combination of kernels.

    Minimises ``1/2 sum_j |w_j|^2 / theta_j + sum_i C_i loss(y_i, f(x_i))`` over the functions
    ``f = sum_j <w_j, phi_j> + b`` and the weights ``theta >= 0`` with ``|theta|_norm <= 1``.
    Several classes share one set of weights. They are learned one against the rest, or all
    together where the loss is logistic. Several labels of every row (``y`` of zeros and ones with
    one column per label) are learned one by one, with one set of weights.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list of both, or None
        What to combine. None: `mixed_ladder`, kernels on numbers, categories, dates and gaps
        together, and on each column.
    norm : float >= 1 or "uniform"
        1 keeps few kernels (SimpleMKL's problem), larger values keep all of them with smoother
        weights, "uniform" averages the kernels and learns no weights.
    loss : {"hinge", "squared_hinge", "logistic"}
        ``max(0, 1 - y f)``, half its square, or ``log(1 + exp(-y f))``; of several classes the
        multinomial ``log(sum_k exp f_k) - f_y``. The logistic loss gives `predict_proba`. All rows
        then have a coefficient, so that prediction takes longer than with few support vectors. Its
        certificate is one of the objective: `tol` is not a number of digits of a probability.
    normalize : {"trace", "diagonal", "cosine", "radius"} or None
        What is made one before weights are learned: the mean centred diagonal (the plain one
        without an intercept), the mean diagonal, every diagonal entry, the radius of the smallest
        ball around the training rows, or nothing.
    C : float
        Cost of errors. With normalised kernels it means what it means in scikit-learn's `SVC`.
    max_iter : int
        Maximum number of inner SVM solves; may be exceeded by one step.
    calibration : {"auto", "sigmoid", "matrix", "vector", "temperature", "isotonic"} or None
        How decisions become probabilities, from decisions of rows that were held out; None: not at
        all. "auto": a sigmoid for two classes; for more, softmax of a matrix times the decisions,
        by a penalty near a multiple of the unit matrix ("matrix"), or with a slope and a bias for
        each class ("vector"), from eleven classes on. "temperature" has one slope and no bias;
        "isotonic" is a step function, for 1000 rows or more. Kernel weights are held where there
        are at most half as many kernels as rows, which costs about a seventh of the fit; otherwise
        they are learned again in three folds by at most four inner solves each, which costs about
        half of it.
    calibration_cv : int, splitter, array of shape (n_samples,) or None
        Folds for it: their number, a splitter, or the fold of every row (groups, blocks of time);
        rows that are equal share the fold of the first. None: five stratified folds, or three.
    warm_start : bool
        Whether `fit` begins from the last solution when the number of rows is the same.

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

    kernels: Any = None
    _: KW_ONLY
    missing: str | None = None
    norm: float | str = 1.0
    loss: str = "hinge"
    normalize: str | None = "trace"
    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = 200
    fit_intercept: bool = True
    class_weight: dict[Any, float] | str | None = None
    calibration: str | None = None
    calibration_cv: Any = None
    warm_start: bool = False
    memory_limit: float | str | None = None
    n_landmarks: int | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _declaration = LabelClassifier._declaration.extended(
        {}, optional={**LabelClassifier._declaration.optional, "_several": "flag"}, method="mkl"
    )
    _takes_features = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LabelClassifier._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge", "logistic"})],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
    }

    def _on_demand(self) -> Literal["parts", "whole"]:
        return "whole" if self.loss == "logistic" else "parts"

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets]:
        X, targets = super()._targets(X, y, sample_weight)
        if self.loss == "logistic" and not self._several:
            refuse_absent_class(self, targets)
        return X, targets

    def _n_solved(self, n: int) -> int:
        n_solved = super()._n_solved(n)
        if not self._is_softmax or n_solved < n:
            return n_solved
        # One system for each class, one for all of them, and one in the making.
        return int(np.ceil(n * np.sqrt(len(self.classes_) + 2.0)))

    @property
    def _is_softmax(self) -> bool:
        """Whether the classes are learned together."""
        return self.loss == "logistic" and len(self.classes_) > 2 and not self._several

    def _make_loss(self) -> Loss:
        kind: Any = {"hinge": Hinge, "squared_hinge": SquaredHinge, "logistic": Logistic}[self.loss]
        if self._is_softmax:
            kind = Softmax
        return kind(fit_intercept=self.fit_intercept)  # type: ignore[no-any-return]


@shared_attributes(WEIGHTS, NYSTROEM, BOUNDS, SUPPORT, COVERED)
@dataclass(eq=False, repr=False)
class MKLRegressor(QuantileRegressor):
    """Regression on a learned combination of kernels.

    Minimises ``1/2 sum_j |w_j|^2 / theta_j + C sum_i loss(y_i, f(x_i))`` over functions and weights
    as `MKLClassifier` does. Several targets share one set of weights.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list of both, or None
        What to combine, as in `MKLClassifier`.
    norm : float >= 1 or "uniform"
        1 keeps few kernels, larger values keep all of them, "uniform" averages them.
    loss : {"epsilon_insensitive", "square", "huber", "quantile"}
        ``max(0, |y - f| - epsilon)``; ``(y - f)^2 / 2``; the square up to a residual of
        ``epsilon`` and linear beyond; or ``max(t (y - f), (t - 1) (y - f))`` with the quantile t.
    quantile : float or increasing sequence of float
        Level or levels of the quantiles, each between 0 and 1; other losses ignore it. Several
        levels share one set of weights, and `predict` returns one column for each; they never
        cross. A pair of quantiles covers fewer new rows than its levels promise.
    normalize : {"trace", "diagonal", "cosine", "radius"} or None
        What is made one before weights are learned, as in `MKLClassifier`.
    C : float
        Cost of errors.
    max_iter : int
        Maximum number of inner solves.
    fit_intercept : bool
        Whether to add a bias.
    intervals : {"auto", "guaranteed", "jackknife+"} or None
        How `predict_interval` gets models that did not see a row; None: not at all. "auto": CV+
        with five folds, with the kernel weights held where there are at most half as many kernels
        as rows, and learned again for each fold otherwise. "guaranteed": all is fitted again for
        each fold, scales and default kernels too, at the cost of the folds. "jackknife+": each row
        is left out in closed form, weights held; for the square loss and 2000 rows at most.
    calibration_cv : int, splitter, array of shape (n_samples,) or None
        Folds for it: their number, a splitter, or the fold of every row (groups, blocks of time);
        rows that are equal share the fold of the first. None: five.
    warm_start : bool
        Whether `fit` begins from the last solution when the number of rows is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLRegressor, rbf_ladder
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = MKLRegressor([rbf_ladder([0.5, 1, 2])], C=100, epsilon=0.01).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.99)
    True
    """

    kernels: Any = None
    _: KW_ONLY
    missing: str | None = None
    norm: float | str = 1.0
    loss: str = "epsilon_insensitive"
    epsilon: float = 0.1
    quantile: float | Sequence[float] = 0.5
    target_scale: float | str | None = "spread"
    normalize: str | None = "trace"
    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = 200
    fit_intercept: bool = True
    intervals: str | None = None
    calibration_cv: Any = None
    warm_start: bool = False
    memory_limit: float | str | None = None
    n_landmarks: int | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _declaration = QuantileRegressor._declaration.extended({}, method="mkl")
    _takes_features = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **QuantileRegressor._parameter_constraints,
        "loss": [StrOptions({"epsilon_insensitive", "square", "huber", "quantile"})],
        "quantile": [Real, "array-like"],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
    }

    def _on_demand(self) -> Literal["parts", "whole"]:
        return "whole" if self.loss == "square" else "parts"
