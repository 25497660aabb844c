"""A class-balanced SVM on the mean kernel, for labels wrong more often in one class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

from kernelweave._types import Floats
from kernelweave._validation import N_JOBS, Interval, check_table, fit_context, pick_rows
from kernelweave.errors import InputError
from kernelweave.estimators import MKLClassifier
from kernelweave.estimators.fit import check_costs
from kernelweave.estimators.shared_docs import shared_attributes
from kernelweave.kernels import complete_ladder
from kernelweave.noise.ranking import read_labels

from .classifier_base import DecisionClassifier


@shared_attributes()
@dataclass(eq=False, repr=False)
class BalancedKernelSVM(DecisionClassifier):
    """Support vector machine on the mean of several kernels, with balanced class weights.

    Costs are inverse to the observed counts of the classes, and C is chosen by cross-validated
    balanced accuracy on the given labels. Under class-conditional noise balanced accuracy ranks
    classifiers as it does for the true labels, and balanced costs correct the threshold. A method
    for wrong labels must be better than this baseline.

    Columns are taken as they are: put scikit-learn's `StandardScaler` in front.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list of both, or None
        Averaged with equal weights, each of unit mean diagonal after centring. None:
        `complete_ladder`.
    Cs : iterable of float
        Candidate costs of errors.
    cv : int
        Stratified folds; fewer where the smallest class has fewer examples.
    tol : float
        Relative duality gap to stop at.
    random_state : int, RandomState or None
        Seed of the folds.

    Attributes
    ----------
    C_ : float
        The chosen cost; the smallest of equally good ones.
    cv_scores_ : ndarray of shape (n_Cs,)
        Mean balanced accuracy over folds of every cost.
    model_ : MKLClassifier
        Fitted to all rows.
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    References
    ----------
    Menon, van Rooyen, Ong and Williamson (2015), Learning from corrupted binary labels via
    class-probability estimation, ICML 32.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import BalancedKernelSVM
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 3 * y[:, None]
    >>> noisy = np.where(rng.random(200) < 0.3 * y, 0, y)  # 30 % of the ones say zero
    >>> bool(BalancedKernelSVM().fit(X, noisy).score(X, y) > 0.95)
    True
    """

    kernels: Any = None
    _: KW_ONLY
    Cs: Iterable[float] = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    cv: int = 5
    tol: float = 1e-3
    memory_limit: float | str | None = None
    random_state: Any = 0
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernels": "no_validation",
        "Cs": "no_validation",  # checked with a sentence
        "cv": [Interval(Integral, 2, None, closed="left")],
        "tol": [Interval(Real, 1e-9, 1, closed="left")],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), str, None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Choose C and fit.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Class labels, two classes or more.

        Returns
        -------
        self : BalancedKernelSVM
            The fitted estimator.
        """
        Cs = sorted(set(check_costs(self.Cs)))
        X = check_table(self, X, reset=True)
        models = self._svm().fit_path(X, y, Cs)  # this checks y
        codes, _ = read_labels(X, y)
        scores = np.array(
            [self._scores(X, codes, Cs, train, test) for train, test in self._folds(codes)]
        )
        self.cv_scores_: Floats = scores.mean(axis=0)
        best = int(self.cv_scores_.argmax())
        self.C_ = Cs[best]
        self.model_: MKLClassifier = models[best]
        self.classes_ = self.model_.classes_
        return self

    def _svm(self) -> MKLClassifier:
        return MKLClassifier(
            complete_ladder() if self.kernels is None else self.kernels,
            norm="uniform",
            class_weight="balanced",
            tol=self.tol,
            memory_limit=self.memory_limit,
            n_jobs=self.n_jobs,
        )

    def _folds(self, codes: Any) -> list[tuple[Any, Any]]:
        fewest = int(np.bincount(codes).min())
        if fewest < 2:
            raise InputError(
                "BalancedKernelSVM: every class needs two examples or more to choose C, "
                f"the smallest has {fewest}."
            )
        folds = StratifiedKFold(min(self.cv, fewest), shuffle=True, random_state=self.random_state)
        return list(folds.split(codes[:, None], codes))

    def _scores(self, X: Any, codes: Any, Cs: list[float], train: Any, test: Any) -> list[float]:
        """Return the balanced accuracy of every C on one fold; one bank serves them all."""
        models = self._svm().fit_path(pick_rows(X, train), codes[train], Cs)
        held_out = pick_rows(X, test)
        return [balanced_accuracy_score(codes[test], m.predict(held_out)) for m in models]

    def _decide(self, X: Any) -> Floats:
        return self.model_.decision_function(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
