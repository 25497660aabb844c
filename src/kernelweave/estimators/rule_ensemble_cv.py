"""Rule ensembles with C chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, check_scoring, r2_score
from sklearn.model_selection import check_cv

from kernelweave._dask import fetch
from kernelweave._validation import Interval, fit_context, is_frame, pick_rows
from kernelweave.errors import InputError

from .fit import check_costs
from .rule_base import BaseRuleEnsemble
from .rule_ensemble import RuleEnsembleClassifier, RuleEnsembleRegressor

_SEARCH = ("Cs", "cv", "scoring")


def _constraints(kind: type[BaseRuleEnsemble]) -> dict[str, Any]:
    own = {
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
    }
    taken = {"C", "warm_start"}
    return {k: v for k, v in kind._parameter_constraints.items() if k not in taken} | own


_CHOSEN = {"C_": "positive", "cv_results_": "dict"}  # saved beside what a rule ensemble saves


class _Search(BaseRuleEnsemble):
    """Chooses C on folds, then fits to all rows."""

    Cs: Any
    cv: Any
    scoring: Any
    warm_start = False

    @property
    def C(self) -> float:  # type: ignore[override]
        """The value of C in use."""
        return float(getattr(self, "C_", 1.0))

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
        X, plain = fetch(X), self._plain()
        n_rows = plain._check_rows(X)
        plain._targets(n_rows, y, sample_weight, task)  # what is wrong with it is said first
        values = np.array(sorted(set(check_costs(_spread(self.Cs)))))
        scores, counts = self._try(plain, X, y, sample_weight, task, values)
        means = scores.mean(axis=1)
        best = float(values[int(np.argmax(means))])
        plain.set_params(C=best).fit(X, y, sample_weight, task=task)
        self.__dict__.update(
            {k: v for k, v in vars(plain).items() if k not in plain.get_params(deep=False)}
        )
        self.C_ = best
        self.cv_results_ = {
            "C": values,
            "mean_score": means,
            "std_score": scores.std(axis=1),
            "scores": scores,
            "n_rules": counts.mean(axis=1),
        }
        return self

    def _plain(self) -> Any:
        """Return the estimator for one C."""
        kind = next(k for k in type(self).__mro__ if not issubclass(k, _Search))
        given = self.get_params(deep=False)
        return kind(**{k: v for k, v in given.items() if k not in _SEARCH})

    def _try(
        self, plain: Any, X: Any, y: Any, weight: Any, task: Any, values: Any
    ) -> tuple[Any, Any]:
        """Return the score and the number of rules for every C on every fold."""
        if not is_frame(X):
            X = np.asarray(X)
        if not hasattr(y, "iloc"):
            y = np.asarray(y)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        scores: list[list[float]] = []
        counts = []
        for train, test in splitter.split(X, y):
            some = None if weight is None else np.asarray(weight)[train]
            if some is not None and not some.any():
                raise InputError(
                    f"sample_weight: all rows to learn from in fold {len(scores) + 1} have weight "
                    "zero. Hint: use fewer folds, or leave such rows out."
                )
            own = None if task is None else np.asarray(task)[train]
            models = plain.fit_path(
                pick_rows(X, train), pick_rows(y, train), values, some, task=own
            )
            held = pick_rows(X, test), pick_rows(y, test)
            there = None if task is None else np.asarray(task)[test]
            scores.append([self._score(model, *held, there) for model in models])
            if not np.isfinite(scores[-1]).all():
                raise InputError(
                    f"scoring: gives {scores[-1]} on fold {len(scores)}, which cannot be compared. "
                    "Hint: use fewer folds or another score."
                )
            counts.append([len(model.rules_) for model in models])
        return np.array(scores).T, np.array(counts).T

    def _score(self, model: Any, X: Any, y: Any, task: Any) -> float:
        if task is None:
            return float(check_scoring(model, scoring=self.scoring)(model, X, y))
        if self.scoring is not None:
            raise InputError("scoring: must be None where tasks are given.")
        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(y, model.predict(X, task)))


def _spread(Cs: Any) -> Any:
    return np.logspace(-3, 3, int(Cs)) if isinstance(Cs, Integral) else Cs


class RuleEnsembleClassifierCV(_Search, RuleEnsembleClassifier):
    """`RuleEnsembleClassifier` with C chosen by cross-validation.

    On every fold one path over all values of C is fitted, each beginning with the rules of the
    last, with propositions made from the training part alone.

    Parameters
    ----------
    rho : float, default=1.1
        In (1, 2]. Smaller values give fewer rules.
    Cs : int or sequence of float, default=7
        Values of C to try; a number stands for so many between 1e-3 and 1e3, in equal steps of the
        logarithm.
    cv : int, splitter or iterable, default=3
        How to split; classes are kept in proportion where that makes sense.
    scoring : str, callable or None, default=None
        What to maximise; None is accuracy. Of equal scores the smaller C wins.
    base : float, default=2.0
        A conjunction of k propositions costs ``base ** k``.
    propositions : {"auto", "given"}, default="auto"
        Make propositions from the columns of ``X``, or use its columns as they are.
    n_cuts : int, default=4
        Most cuts for a column of numbers.
    cut_strategy : {"quantile", "uniform"}, default="quantile"
        Where to cut.
    categorical : "auto" or list of names or positions, default="auto"
        Columns of numbers to treat as categories; see `Propositions`.
    max_length : int or None, default=None
        Longest conjunction that may become a rule.
    task_correlation : float, array of shape (n_outputs, n_outputs) or None, default=None
        How several outputs are related; see `RuleEnsembleClassifier`.
    threshold : float, default=1e-3
        Rules whose norm is at most this share of the largest are left out.
    tol : float, default=1e-2
        Relative duality gap to stop at.
    max_iter : int, default=2000
        One-kernel problems solved at most in one fit.
    max_nodes : int, default=20000
        No conjunction is activated beyond this number.
    fit_intercept : bool, default=True
        Whether to add a bias.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.
    n_jobs : int or None, default=None
        Threads; None means one per core. The result does not depend on it.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    C_ : float
        The value of C that was chosen; the model was fitted to all rows with it.
    cv_results_ : dict
        ``C``, ``mean_score``, ``std_score``, ``scores`` (n_values, n_folds) and ``n_rules``, the
        mean number of rules.
    rules_ : list of Rule
        With text, weight, coverage and length; heaviest first.
    norms_ : ndarray of shape (n_rules,)
        What each rule counts in the objective.
    intercept_ : ndarray of shape (n_outputs,)
        Where scores begin.
    propositions_ : tuple of Proposition
        What the rules are made of.
    n_nodes_ : int
        Number of activated conjunctions.
    n_changed_ : int
        Distinct training rows whose prediction `threshold` changed.
    objective_ : float
        Best upper bound.
    duality_gap_ : float
        Its distance from a lower bound that holds for all conjunctions.
    converged_ : bool
        Whether the gap met the tolerance.
    n_iter_ : int
        Number of inner SVM solves.
    history_ : list of Step
        Bounds as they were found.
    classes_ : ndarray
        The classes; for labels in columns their numbers.
    tasks_ : ndarray
        The tasks, where `fit` was given some.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where there were any.

    Examples
    --------
    >>> from kernelweave import RuleEnsembleClassifierCV
    >>> from kernelweave.datasets import make_monks
    >>> monks = make_monks(3)
    >>> model = RuleEnsembleClassifierCV(Cs=[1, 10]).fit(monks.X, monks.y)
    >>> model.C_, round(model.score(monks.X, monks.y), 2)
    (1.0, 0.97)
    """

    _declaration = RuleEnsembleClassifier._declaration.extended(_CHOSEN, method=None)
    _parameter_constraints: ClassVar[dict[str, Any]] = _constraints(RuleEnsembleClassifier)

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
        self.n_jobs = n_jobs
        self.verbose = verbose


class RuleEnsembleRegressorCV(_Search, RuleEnsembleRegressor):
    """`RuleEnsembleRegressor` with C chosen by cross-validation.

    On every fold one path over all values of C is fitted, each beginning with the rules of the
    last, with propositions made from the training part alone.

    Parameters
    ----------
    rho : float, default=1.1
        In (1, 2]. Smaller values give fewer rules.
    Cs : int or sequence of float, default=7
        Values of C to try; a number stands for so many between 1e-3 and 1e3, in equal steps of the
        logarithm.
    cv : int, splitter or iterable, default=3
        How to split; classes are kept in proportion where that makes sense.
    scoring : str, callable or None, default=None
        What to maximise; None is R^2. Of equal scores the smaller C wins.
    loss : {"square", "huber", "epsilon_insensitive"}, default="square"
        The loss; see `RuleEnsembleRegressor`.
    epsilon : float, default=0.1
        Its threshold.
    base : float, default=2.0
        A conjunction of k propositions costs ``base ** k``.
    propositions : {"auto", "given"}, default="auto"
        Make propositions from the columns of ``X``, or use its columns as they are.
    n_cuts : int, default=4
        Most cuts for a column of numbers.
    cut_strategy : {"quantile", "uniform"}, default="quantile"
        Where to cut.
    categorical : "auto" or list of names or positions, default="auto"
        Columns of numbers to treat as categories; see `Propositions`.
    max_length : int or None, default=None
        Longest conjunction that may become a rule.
    task_correlation : float, array of shape (n_outputs, n_outputs) or None, default=None
        How several outputs are related; see `RuleEnsembleClassifier`.
    threshold : float, default=1e-3
        Rules whose norm is at most this share of the largest are left out.
    tol : float, default=1e-2
        Relative duality gap to stop at.
    max_iter : int, default=2000
        One-kernel problems solved at most in one fit.
    max_nodes : int, default=20000
        No conjunction is activated beyond this number.
    fit_intercept : bool, default=True
        Whether to add a bias.
    n_jobs : int or None, default=None
        Threads; None means one per core. The result does not depend on it.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    C_ : float
        The value of C that was chosen; the model was fitted to all rows with it.
    cv_results_ : dict
        ``C``, ``mean_score``, ``std_score``, ``scores`` (n_values, n_folds) and ``n_rules``, the
        mean number of rules.
    rules_ : list of Rule
        With text, weight, coverage and length; heaviest first.
    norms_ : ndarray of shape (n_rules,)
        What each rule counts in the objective.
    intercept_ : ndarray of shape (n_outputs,)
        Where predictions begin.
    propositions_ : tuple of Proposition
        What the rules are made of.
    n_nodes_ : int
        Number of activated conjunctions.
    n_changed_ : int
        Always zero here.
    objective_ : float
        Best upper bound.
    duality_gap_ : float
        Its distance from a lower bound that holds for all conjunctions.
    converged_ : bool
        Whether the gap met the tolerance.
    n_iter_ : int
        One-kernel problems solved.
    history_ : list of Step
        Bounds as they were found.
    tasks_ : ndarray
        The tasks, where `fit` was given some.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where there were any.

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

    _declaration = RuleEnsembleRegressor._declaration.extended(_CHOSEN, method=None)
    _parameter_constraints: ClassVar[dict[str, Any]] = _constraints(RuleEnsembleRegressor)

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
        self.n_jobs = n_jobs
        self.verbose = verbose
