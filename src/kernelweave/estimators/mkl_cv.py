"""Flat multiple kernel learning with C chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .mkl import MKLClassifier, MKLRegressor
from .path_cv import SAVED, PathCV, search_constraints
from .shared_docs import CHOSEN, shared_attributes


# Entries of the other parameters and attributes are those of `MKLClassifier`.
@shared_attributes(CHOSEN)
class MKLClassifierCV(PathCV, MKLClassifier):
    """`MKLClassifier` with C chosen by cross-validation.

    Every fold makes its kernels once and fits one path over all values of C, each fit starting from
    the last.

    Parameters
    ----------
    Cs : int or sequence of float, default=7
        Values of C to try; a number means so many between 1e-3 and 1e3, on a logarithmic scale.
    cv : int, splitter or iterable, default=3
        How to split; an integer gives stratified folds.
    scoring : str, callable or None, default=None
        What to maximise; None is accuracy. Of equal scores the smaller C wins.

    See Also
    --------
    MKLClassifier : The same for one given C.

    Examples
    --------
    >>> from kernelweave import MKLClassifierCV, rbf_ladder
    >>> from kernelweave.datasets import make_views
    >>> data = make_views(120, random_state=0)
    >>> model = MKLClassifierCV([rbf_ladder()], Cs=[0.1, 1, 10]).fit(data.X, data.y)
    >>> model.C_ in (0.1, 1, 10), bool(model.score(data.X, data.y) > 0.8)
    (True, True)
    """

    _declaration = MKLClassifier._declaration.extended(SAVED, method=None)
    _parameter_constraints: ClassVar[dict[str, Any]] = search_constraints(MKLClassifier)

    def __init__(
        self,
        kernels: Any = None,
        *,
        Cs: int | Sequence[float] = 7,
        cv: Any = 3,
        scoring: Any = None,
        norm: float | str = 1.0,
        loss: str = "hinge",
        normalize: str | None = "trace",
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        calibration: str | None = None,
        calibration_cv: Any = None,
        memory_limit: float | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.norm = norm
        self.loss = loss
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.calibration = calibration
        self.calibration_cv = calibration_cv
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.scoring is None  # a score may need classes
        return tags


# Entries of the other parameters and attributes are those of `MKLRegressor`.
@shared_attributes(CHOSEN)
class MKLRegressorCV(PathCV, MKLRegressor):
    """`MKLRegressor` with C chosen by cross-validation.

    Every fold makes its kernels once and fits one path over all values of C, each fit starting from
    the last.

    Parameters
    ----------
    Cs : int or sequence of float, default=7
        Values of C to try; a number means so many between 1e-3 and 1e3, on a logarithmic scale.
    cv : int, splitter or iterable, default=3
        How to split.
    scoring : str, callable or None, default=None
        What to maximise; None is R^2, or the explained share of the loss of quantiles. Of equal
        scores the smaller C wins.

    Attributes
    ----------
    target_scale_ : float
        Unit of the target.

    See Also
    --------
    MKLRegressor : The same for one given C.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLRegressorCV, rbf_ladder
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(60, 1))
    >>> model = MKLRegressorCV([rbf_ladder([0.5, 1, 2])], Cs=[0.001, 1]).fit(X, np.sin(X[:, 0]))
    >>> model.C_
    1.0
    """

    _declaration = MKLRegressor._declaration.extended(SAVED, method=None)
    _parameter_constraints: ClassVar[dict[str, Any]] = search_constraints(MKLRegressor)

    def __init__(
        self,
        kernels: Any = None,
        *,
        Cs: int | Sequence[float] = 7,
        cv: Any = 3,
        scoring: Any = None,
        norm: float | str = 1.0,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.1,
        quantile: float | Sequence[float] = 0.5,
        target_scale: float | str | None = "spread",
        normalize: str | None = "trace",
        tol: float = 1e-3,
        max_iter: int = 200,
        fit_intercept: bool = True,
        intervals: str | None = None,
        calibration_cv: Any = None,
        memory_limit: float | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.norm = norm
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.target_scale = target_scale
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intervals = intervals
        self.calibration_cv = calibration_cv
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
