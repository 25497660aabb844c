"""HKL-l1-MKL: hierarchical kernel learning, then flat l1-MKL on the rules it found."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, check_cv
from sklearn.utils import column_or_1d

from kernelweave._types import Floats
from kernelweave._validation import Interval, fit_context
from kernelweave.estimators import MKLClassifier, RuleEnsembleClassifierCV
from kernelweave.estimators.path_cv import read_costs
from kernelweave.estimators.shared_docs import shared_attributes
from kernelweave.kernels import Linear
from kernelweave.losses import Hinge
from kernelweave.rules import Rule, cover_rules, score_rules
from kernelweave.rules.table import check_table

from .classifier_base import DecisionClassifier

_SHARED = (
    "rho Cs cv scoring propositions n_cuts cut_strategy categorical max_length threshold n_jobs"
).split()


@shared_attributes()
@dataclass(eq=False, repr=False)
class HKLTwoStageClassifier(DecisionClassifier):
    """HKL-l1-MKL: rules of hierarchical kernel learning, then fewer of them by flat l1 weights.

    The first stage is `RuleEnsembleClassifierCV` with ``rho=2``. The second takes its rules as they
    are and minimises ``1/2 (sum_w |f_w|)^2 + C hinge`` over their weights, with its own C. With
    the kernel ``phi_w phi_w'`` for a rule this is `MKLClassifier` with norm 1, because the square
    is the smallest ``sum_w f_w^2 / theta_w`` over weights theta that sum to one. Folds of the
    second stage share the rules, which all training rows have chosen.

    Parameters
    ----------
    rho : float
        Exponent of the first stage, in (1, 2].
    Cs : int or sequence of float
        Values of C to try in both stages; an integer means this number from 1e-3 to 1e3.
    cv : int or splitter
        Cross-validation of both stages.
    scoring : str, callable or None
        Criterion; None is accuracy. Of equal scores the smaller C is chosen.
    propositions : {"auto", "given"}
        Make propositions from the columns of ``X``, or use its columns as they are.
    n_cuts : int
        Most cuts for a column of numbers.
    cut_strategy : {"quantile", "uniform"}
        Positions of the cuts.
    categorical : "auto" or list of names or positions
        Columns of numbers to treat as categories; see `Propositions`.
    max_length : int or None
        Longest conjunction that may become a rule.
    threshold : float
        Rules whose norm is at most this share of the largest are left out, in both stages.
    tol : float
        Relative duality gap to stop at, in both stages.

    Attributes
    ----------
    rules_ : list of Rule
        With text, weight, coverage and length; heaviest first.
    intercept_ : ndarray of shape (n_outputs,)
        Intercept of each output.
    first_ : RuleEnsembleClassifierCV
        The first stage.
    second_ : MKLClassifier or None
        The second stage on the rules of the first; None where there were none.
    C_ : float
        C of the second stage; that of the first is ``first_.C_``.
    converged_ : bool
        Whether both stages met the tolerance.
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    References
    ----------
    Jawanpuria, Nath and Ramakrishnan (2015), Generalized hierarchical kernel learning, JMLR 16,
    section 6.

    Examples
    --------
    >>> from kernelweave.baselines import HKLTwoStageClassifier
    >>> from kernelweave.datasets import make_monks
    >>> monks = make_monks(3)
    >>> model = HKLTwoStageClassifier(Cs=[1, 10]).fit(monks.X, monks.y)
    >>> len(model.rules_) < len(model.first_.rules_), round(model.score(monks.X, monks.y), 2)
    (True, 0.97)
    """

    rho: float = 2.0
    _: KW_ONLY
    Cs: int | Sequence[float] = 7
    cv: Any = 3
    scoring: Any = None
    propositions: str = "auto"
    n_cuts: int = 4
    cut_strategy: str = "quantile"
    categorical: Any = "auto"
    max_length: int | None = None
    threshold: float = 1e-3
    tol: float = 1e-2
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        name: RuleEnsembleClassifierCV._parameter_constraints[name] for name in _SHARED
    } | {"tol": [Interval(Real, 1e-7, 1, closed="left")]}

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Find rules, then learn new weights for them.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Numbers, truth values, text and categories; values may be missing.
        y : array of shape (n_samples,)
            Class labels, two classes or more.

        Returns
        -------
        self : HKLTwoStageClassifier
            The fitted estimator.
        """
        check_table(self, X, reset=True)
        if y is not None:  # the first stage refuses it with a message
            y = column_or_1d(y, warn=True)
        given = self.get_params(deep=False)
        first = RuleEnsembleClassifierCV(
            **{**given, "scoring": self.scoring or "accuracy"},
            loss="hinge",
            refit=False,
            max_rules=None,
            selection="best",
        ).fit(X, y)
        self.first_, self.second_ = first, None
        self.classes_, self.C_ = first.classes_, first.C_
        self.rules_, self.intercept_ = list(first.rules_), first.intercept_
        self.converged_ = bool(first.converged_)
        if self.rules_:
            self._weigh(cover_rules(self.rules_, X).astype(float), np.asarray(y))
        return self

    def _weigh(self, Z: Floats, y: NDArray[Any]) -> None:
        """Learn weights of the rules by their columns ``Z``, and keep rules above the threshold."""
        svm = MKLClassifier(
            [Linear(columns=j) for j in range(Z.shape[1])],
            normalize=None,
            tol=self.tol,
            n_jobs=self.n_jobs,
        )
        values = read_costs(self.Cs)
        # No warm starts: from the few kernels of a small C a fit can stall.
        folds = check_cv(self.cv, y, classifier=True)
        search = GridSearchCV(
            svm, {"C": values}, scoring=self.scoring, cv=folds, error_score="raise"
        )
        with warnings.catch_warnings():
            # A small C may leave the intercept alone, which is a valid candidate here.
            warnings.filterwarnings("ignore", ".*the best weights are zero", UserWarning)
            search.fit(Z, y)
        self.C_ = float(search.best_params_["C"])
        second = self.second_ = search.best_estimator_
        self.converged_ = self.converged_ and bool(second.converged_)
        coef = second.weights_[:, None] * (Z[second.support_].T @ second.dual_coef_.T)
        norms = np.linalg.norm(coef, axis=1)
        kept = np.flatnonzero(norms > max(self.threshold, 1e-12) * norms.max())
        kept = kept[np.argsort(-norms[kept], kind="stable")]
        Y = _signs(y, self.classes_)
        self.intercept_ = Hinge().value(Z[:, kept] @ coef[kept], Y, np.full(Y.shape, self.C_))[1]
        self.rules_ = [_reweighed(self.first_.rules_[k], coef[k]) for k in kept]

    def _decide(self, X: Any) -> Floats:
        check_table(self, X, reset=False)
        scores = score_rules(self.rules_, self.intercept_, X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.propositions == "auto"
        tags.input_tags.string = tags.input_tags.categorical = self.propositions == "auto"
        return tags


def _signs(y: NDArray[Any], classes: NDArray[Any]) -> Floats:
    """Return one column of signs for two classes, one per class for more."""
    return np.where(y[:, None] == (classes[1:] if len(classes) == 2 else classes), 1.0, -1.0)


def _reweighed(rule: Rule, weights: Floats) -> Rule:
    return replace(rule, weight=float(weights[0]) if len(weights) == 1 else tuple(weights.tolist()))
