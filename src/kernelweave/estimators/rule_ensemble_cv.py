"""Rule ensembles with C chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from kernelweave._dask import fetch
from kernelweave._validation import fit_context

from .path_cv import SAVED, PathCV, search_constraints
from .rule_ensemble import RuleEnsembleClassifier
from .rule_regressor import RuleEnsembleRegressor
from .shared_docs import BOUNDS, CALIBRATED, CHOSEN, COVERED, RULES, shared_attributes


class _RulePathCV(PathCV):
    _size_name = "n_rules"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, task: Any = None) -> Self:
        """Choose C on folds, and learn rules from all rows with it.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Numbers, truth values, text and categories; values may be missing.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels, or targets.
        sample_weight : array of shape (n_samples,), optional
            Factors of C by row; scores on folds are not weighted.
        task : array of shape (n_samples,), optional
            The task of every row.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._choose(fetch(X), y, sample_weight, task=task)

    def _check_data(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any, task: Any = None
    ) -> None:
        estimator._targets(estimator._check_rows(X), y, sample_weight, task)

    def _size(self, model: Any) -> int:
        return len(model.rules_)


# Entries of the other parameters are those of `RuleEnsembleClassifier`.
@shared_attributes(CHOSEN, RULES, BOUNDS, CALIBRATED)
class RuleEnsembleClassifierCV(_RulePathCV, RuleEnsembleClassifier):
    """`RuleEnsembleClassifier` with C chosen by cross-validation.

    On every fold one path over all values of C is fitted, each starting from the rules of the
    last, with propositions made from the training part alone.

    Parameters
    ----------
    Cs : int or sequence of float, default=7
        Values of C to try; a number means so many between 1e-3 and 1e3, on a logarithmic scale.
    cv : int, splitter or iterable, default=3
        How to split; an integer gives stratified folds for classes.
    scoring : str, callable or None, default=None
        What to maximise; None is accuracy. Of equal scores the smaller C wins.

    Attributes
    ----------
    C_ : float
        The chosen value of C; the model was fitted to all rows with it.
    classes_ : ndarray
        The classes; for labels in columns their numbers.

    Examples
    --------
    >>> from kernelweave import RuleEnsembleClassifierCV
    >>> from kernelweave.datasets import make_monks
    >>> monks = make_monks(3)
    >>> model = RuleEnsembleClassifierCV(Cs=[1, 10]).fit(monks.X, monks.y)
    >>> model.C_, round(model.score(monks.X, monks.y), 2)
    (1.0, 0.97)
    """

    _declaration = RuleEnsembleClassifier._declaration.extended(SAVED, method=None)
    _parameter_constraints: ClassVar[dict[str, Any]] = search_constraints(RuleEnsembleClassifier)

    def __init__(
        self,
        rho: float = 1.1,
        *,
        Cs: int | Sequence[float] = 7,
        cv: Any = 3,
        scoring: Any = None,
        base: float = 2.0,
        propositions: str = "auto",
        n_cuts: int = 4,
        cut_strategy: str = "quantile",
        categorical: Any = "auto",
        max_length: int | None = None,
        task_correlation: Any = None,
        threshold: float = 1e-3,
        tol: float = 1e-2,
        max_iter: int = 2000,
        max_nodes: int = 20_000,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        calibration: str | None = None,
        calibration_cv: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rho = rho
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.base = base
        self.propositions = propositions
        self.n_cuts = n_cuts
        self.cut_strategy = cut_strategy
        self.categorical = categorical
        self.max_length = max_length
        self.task_correlation = task_correlation
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.max_nodes = max_nodes
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.calibration = calibration
        self.calibration_cv = calibration_cv
        self.n_jobs = n_jobs
        self.verbose = verbose


# Entries of the other parameters are those of `RuleEnsembleRegressor`.
@shared_attributes(CHOSEN, RULES, BOUNDS, COVERED)
class RuleEnsembleRegressorCV(_RulePathCV, RuleEnsembleRegressor):
    """`RuleEnsembleRegressor` with C chosen by cross-validation.

    On every fold one path over all values of C is fitted, each starting from the rules of the
    last, with propositions made from the training part alone.

    Parameters
    ----------
    Cs : int or sequence of float, default=7
        Values of C to try; a number means so many between 1e-3 and 1e3, on a logarithmic scale.
    cv : int, splitter or iterable, default=3
        How to split; an integer gives stratified folds for classes.
    scoring : str, callable or None, default=None
        What to maximise; None is R^2. Of equal scores the smaller C wins.

    Attributes
    ----------
    C_ : float
        The chosen value of C; the model was fitted to all rows with it.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import RuleEnsembleRegressorCV
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = 2.0 * ((X[:, 0] > 0) & (X[:, 1] > 0))
    >>> model = RuleEnsembleRegressorCV(Cs=[0.01, 1], n_cuts=9).fit(X, y)
    >>> model.C_
    1.0
    """

    _declaration = RuleEnsembleRegressor._declaration.extended(SAVED, method=None)
    _parameter_constraints: ClassVar[dict[str, Any]] = search_constraints(RuleEnsembleRegressor)

    def __init__(
        self,
        rho: float = 1.1,
        *,
        Cs: int | Sequence[float] = 7,
        cv: Any = 3,
        scoring: Any = None,
        loss: str = "square",
        epsilon: float = 0.1,
        base: float = 2.0,
        propositions: str = "auto",
        n_cuts: int = 4,
        cut_strategy: str = "quantile",
        categorical: Any = "auto",
        max_length: int | None = None,
        task_correlation: Any = None,
        threshold: float = 1e-3,
        tol: float = 1e-2,
        max_iter: int = 2000,
        max_nodes: int = 20_000,
        fit_intercept: bool = True,
        intervals: str | None = None,
        calibration_cv: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rho = rho
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.epsilon = epsilon
        self.base = base
        self.propositions = propositions
        self.n_cuts = n_cuts
        self.cut_strategy = cut_strategy
        self.categorical = categorical
        self.max_length = max_length
        self.task_correlation = task_correlation
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.max_nodes = max_nodes
        self.fit_intercept = fit_intercept
        self.intervals = intervals
        self.calibration_cv = calibration_cv
        self.n_jobs = n_jobs
        self.verbose = verbose
