"""RuleFit: rules of boosted trees and linear terms, selected by the lasso."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import sklearn
from scipy.special import expit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV, LogisticRegression, LogisticRegressionCV
from sklearn.svm import l1_min_c
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.fixes import parse_version
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelweave._types import Floats
from kernelweave._validation import Interval, fit_context
from kernelweave.errors import InputError
from kernelweave.estimators.shared_docs import shared_attributes
from kernelweave.rules import Proposition, Rule, cover_rules

from .classifier_base import DecisionClassifier

Conditions = tuple[Proposition, ...]

_LINEAR = 0.4  # standard deviation of a linear term: that of a typical rule (section 5)
_TRIM = 0.025  # share of the values of a column that is winsorised on each side
_RATIO = 1e-3  # smallest penalty, relative to that which leaves no term
# The name of the lasso in scikit-learn changed with 1.8.
_OLD = parse_version(sklearn.__version__) < parse_version("1.8")
_L1: dict[str, Any] = {"penalty": "l1"} if _OLD else {}
_ONE_L1: dict[str, Any] = {} if _OLD else {"l1_ratio": 1.0}
_MANY_L1: dict[str, Any] = {} if _OLD else {"l1_ratios": (1.0,), "use_legacy_attributes": False}


@dataclass(eq=False, repr=False)
class _RuleFit(BaseEstimator):
    """Rules of trees, linear terms and the lasso; subclasses choose the loss.

    Parameters
    ----------
    n_trees : int, default=500
        Maximum number of trees.
    mean_leaves : float, default=4.0
        Mean number of leaves of a tree.
    learning_rate : float, default=0.01
        Share of each tree that the next ones build on.
    max_rules : int, default=2000
        Rules after which no further tree is made.
    linear : bool, default=True
        Whether there are linear terms.
    n_penalties : int, default=20
        Penalties tried.
    cv : int, default=3
        Folds by which the penalty is chosen.
    random_state : int, RandomState or None, default=None
        Seed of tree sizes, rows and folds.

    Attributes
    ----------
    rules_ : list of Rule
        Rules of non-zero weight, those with the largest effect first.
    linear_coef_ : ndarray of shape (n_features,)
        Coefficients of the winsorised columns.
    n_rules_ : int
        Rules and linear terms of non-zero weight.
    mean_length_ : float
        Their mean number of conditions; of a linear term it is one.
    """

    n_trees: int = 500
    _: KW_ONLY
    mean_leaves: float = 4.0
    learning_rate: float = 0.01
    max_rules: int = 2000
    linear: bool = True
    n_penalties: int = 20
    cv: int = 3
    random_state: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "mean_leaves": [Interval(Real, 2, None, closed="left")],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "max_rules": [Interval(Integral, 1, None, closed="left")],
        "linear": ["boolean"],
        "n_penalties": [Interval(Integral, 2, None, closed="left")],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def _start(self, y: Floats) -> float:
        """Return the constant that fits best."""
        raise NotImplementedError

    def _residuals(self, y: Floats, scores: Floats) -> Floats:
        """Return the negative slopes of the loss, which the next tree is fitted to."""
        raise NotImplementedError

    def _lasso(self, terms: Floats, y: Floats, seed: int) -> tuple[Floats, float]:
        """Return coefficients and intercept at the penalty with the best score on folds."""
        raise NotImplementedError

    def _learn(self, X: Floats, y: Floats) -> None:
        random = check_random_state(self.random_state)
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        names = names or [f"column {j}" for j in range(X.shape[1])]
        found = self._grow(X, y, names, random)
        low, high = np.quantile(X, [_TRIM, 1 - _TRIM], axis=0)
        self._low, self._high = low, high
        spread = np.clip(X, low, high).std(axis=0)
        scale = np.divide(_LINEAR, spread, out=np.zeros_like(spread), where=spread > 0)
        scale *= float(self.linear)
        rules = [Rule(conditions, 1.0, 0.0) for conditions in found]
        covered = cover_rules(rules, X)
        terms = np.hstack([covered, np.clip(X, low, high) * scale])
        seed = int(random.randint(np.iinfo(np.int32).max))
        coef, intercept = self._lasso(terms, y, seed)
        weights = coef[: len(rules)]
        order = np.argsort(-np.abs(weights) * covered.std(axis=0), kind="stable")
        self.rules_ = [
            Rule(found[k], float(weights[k]), float(covered[:, k].mean()))
            for k in order
            if weights[k] != 0.0
        ]
        self.linear_coef_: Floats = coef[len(rules) :] * scale
        self.intercept_ = intercept
        lengths = [len(rule.text.split(" and ")) for rule in self.rules_]
        lengths += [1] * int(np.count_nonzero(self.linear_coef_))
        self.n_rules_ = len(lengths)
        self.mean_length_ = float(np.mean(lengths)) if lengths else 0.0

    def _grow(self, X: Floats, y: Floats, names: Sequence[str], random: Any) -> list[Conditions]:
        """Return the rules of boosted trees of random sizes, each rule once."""
        n = len(X)
        n_drawn = max(2, min(n // 2, int(100 + 6 * np.sqrt(n))))  # section 3.3 of the paper
        scores = np.full(n, self._start(y))
        found: dict[Conditions, None] = {}
        for _ in range(self.n_trees):
            # Sizes with an exponential tail: mostly small trees, some of high interactions.
            extra = int(random.exponential(max(self.mean_leaves - 2, 1e-9)))
            rows = random.choice(n, n_drawn, replace=False)
            seed = int(random.randint(np.iinfo(np.int32).max))
            tree = DecisionTreeRegressor(max_leaf_nodes=2 + extra, random_state=seed)
            tree.fit(X[rows], self._residuals(y, scores)[rows])
            scores += self.learning_rate * tree.predict(X)
            found.update(dict.fromkeys(tree_rules(tree.tree_, names)))
            if len(found) >= self.max_rules:
                break
        return list(found)[: self.max_rules]

    def _decide(self, X: Any) -> Floats:
        X = validate_data(self, X, reset=False, dtype=np.float64)
        weights = np.array([rule.weights[0] for rule in self.rules_])
        lines = np.clip(X, self._low, self._high) @ self.linear_coef_
        return np.asarray(cover_rules(self.rules_, X) @ weights + lines + self.intercept_)


def tree_rules(tree: Any, names: Sequence[str]) -> list[Conditions]:
    """Return the conditions of every node of a fitted tree (``tree_``) but its root."""
    found: list[Conditions] = []
    paths: dict[int, Conditions] = {0: ()}
    for node in range(tree.node_count):  # parents come before their children
        if tree.children_left[node] < 0:
            continue
        j, cut = int(tree.feature[node]), float(tree.threshold[node])
        for child, operator in ((tree.children_left[node], "<="), (tree.children_right[node], ">")):
            paths[child] = (*paths[node], Proposition(names[j], j, operator, cut))
            found.append(paths[child])
    return found


@shared_attributes()
class RuleFitClassifier(_RuleFit, DecisionClassifier):
    """RuleFit for two classes: rules of boosted trees and linear terms in a logistic lasso.

    Trees of random size are fitted to the residuals of a slowly boosted model, each on a part of
    the rows. Every node of a tree but its root is a rule. Beside the rules stand linear terms,
    winsorised at the 2.5 % and 97.5 % quantiles and scaled to the size of a typical rule. A lasso
    with logistic loss selects among all of them; its penalty has the best log-loss on folds.

    Attributes
    ----------
    intercept_ : float
        Constant of the decision values.
    classes_ : ndarray of shape (2,)
        Class labels.

    References
    ----------
    Friedman and Popescu (2008), Predictive learning via rule ensembles, Annals of Applied
    Statistics 2.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import RuleFitClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = (X[:, 0] > 0) & (X[:, 1] > 0)
    >>> model = RuleFitClassifier(100, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Learn rules and their weights.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Numbers.
        y : array of shape (n_samples,)
            Labels of two classes.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise InputError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}; use OneVsRestClassifier."
            )
        if len(self.classes_) < 2:
            raise InputError("y: two classes are needed, but the labels have one class only.")
        self._learn(X, codes.astype(np.float64))
        return self

    def _start(self, y: Floats) -> float:
        return float(np.log(y.mean() / (1 - y.mean())))

    def _residuals(self, y: Floats, scores: Floats) -> Floats:
        return np.asarray(y - expit(scores))

    def _lasso(self, terms: Floats, y: Floats, seed: int) -> tuple[Floats, float]:
        fewest = int(min(y.sum(), (1 - y).sum()))
        least = l1_min_c(terms, y, loss="log") if terms.any() else 1.0
        options = {"solver": "liblinear", "random_state": seed, **_L1}
        with warnings.catch_warnings():
            # The smallest penalties are not chosen, and need not be solved to the tolerance.
            warnings.simplefilter("ignore", ConvergenceWarning)
            search = LogisticRegressionCV(
                Cs=np.geomspace(1.01 * least, least / _RATIO, self.n_penalties),
                cv=max(2, min(self.cv, fewest)),
                scoring="neg_log_loss",
                refit=False,
                **options,
                **_MANY_L1,
            ).fit(terms, y.astype(int))
            C = float(np.ravel(search.C_)[0])
            final = LogisticRegression(C=C, tol=1e-7, max_iter=5000, **options, **_ONE_L1)
            final.fit(terms, y)
        return final.coef_[0], float(final.intercept_[0])

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both classes.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        proba : ndarray of shape (n_samples, 2)
            In the order of `classes_`.
        """
        odds = self.decision_function(X)
        return np.column_stack([expit(-odds), expit(odds)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@shared_attributes()
class RuleFitRegressor(RegressorMixin, _RuleFit):
    """RuleFit for regression: rules of boosted trees and linear terms in a lasso.

    The method is that of `RuleFitClassifier` with squared loss.

    Attributes
    ----------
    intercept_ : float
        Constant of the predictions.

    References
    ----------
    Friedman and Popescu (2008), Predictive learning via rule ensembles, Annals of Applied
    Statistics 2.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import RuleFitRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = 2.0 * X[:, 0] + 3.0 * (X[:, 1] > 0)
    >>> model = RuleFitRegressor(100, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Learn rules and their weights.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Numbers.
        y : array of shape (n_samples,)
            Targets.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        self._learn(X, np.asarray(y, dtype=np.float64))
        return self

    def _start(self, y: Floats) -> float:
        return float(y.mean())

    def _residuals(self, y: Floats, scores: Floats) -> Floats:
        return np.asarray(y - scores)

    def _lasso(self, terms: Floats, y: Floats, seed: int) -> tuple[Floats, float]:
        if np.ptp(y) == 0.0:
            return np.zeros(terms.shape[1]), float(y[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            search = LassoCV(
                eps=_RATIO, alphas=self.n_penalties, cv=min(self.cv, len(y)), max_iter=5000
            ).fit(terms, y)
        return search.coef_, float(search.intercept_)

    def predict(self, X: Any) -> Floats:
        """Return the predicted value of every row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions.
        """
        check_is_fitted(self)
        return self._decide(X)
