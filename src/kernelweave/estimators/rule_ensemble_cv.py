"""Rule ensembles with C chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone, is_classifier

from kernelweave._dask import fetch
from kernelweave._types import Floats
from kernelweave._validation import Interval, StrOptions, fit_context, is_frame, pick_rows
from kernelweave.banks.nystroem.build import even_rows
from kernelweave.rules.linear import Term
from kernelweave.rules.scores import read_terms
from kernelweave.rules.table import read_table

from .path_cv import SAVED, PathCV, read_costs, search_constraints
from .rule_ensemble import RuleEnsembleClassifier
from .rule_regressor import RuleEnsembleRegressor
from .rule_selection import default_score, dice_index
from .shared_docs import CHOSEN, FOLDS, shared_attributes

_SELECTION = {
    "selection": [
        StrOptions({"one_standard_error", "best"}),
        Interval(Real, 0, None, closed="left"),
    ]
}
_COMPARED_ROWS = 2000  # on which rules of different folds are compared
_TOO_MANY = 2  # times `max_rules`: a path ends where a fold has more rules


@dataclass(eq=False, repr=False)
class _RulePathCV(PathCV):
    """Base of the rule ensembles that choose C and the number of rules.

    Parameters
    ----------
    rho : float, default=1.0
        In [1, 2]; see `RuleEnsembleClassifier`.
    Cs : int or sequence of float, default=9
        Values of C to try; an integer means this number on a logarithmic scale, between 0.01 and
        100 for ``rho=1`` and between 1e-3 and 1e3 otherwise. The path ends where a fold has more
        than two times `max_rules` rules.
    cv : int, splitter or iterable, default=5
        How to split; an integer gives stratified folds for classes.
    selection : {"best", "one_standard_error"} or float, default="best"
        Take the best score, or the fewest rules whose score is not worse by more than the standard
        error of the difference over the folds. A number is that of standard errors: 0.25 takes
        about one rule less in six, "one_standard_error" one in three, which costs some AUC.
    n_cuts : int, default=8
        Most cuts for a column of numbers.
    max_length : int or None, default=3
        Longest conjunction that may become a rule.
    linear_terms : bool or "auto", default="auto"
        As in `RuleEnsembleClassifier`; by default for ``rho=1``.
    max_rules : int or None, default=30
        Most rules, linear terms among them; the number in use is chosen. None: as many as C gives.
    refit : bool, default=True
        As in `RuleEnsembleClassifier`.
    tol : float, default=1e-3
        Relative duality gap to stop at.
    """

    # Values of the parameters that model files of earlier versions do not name.
    _absent_parameters: ClassVar[dict[str, Any]] = {
        "selection": "best",
        "max_rules": None,
        "refit": False,
        "linear_terms": False,
    }
    rho: float = 1.0
    _: KW_ONLY
    Cs: int | Sequence[float] = 9
    cv: Any = 5
    selection: str | float = "best"
    n_cuts: int = 8
    max_length: int | None = 3
    linear_terms: bool | str = "auto"
    max_rules: int | None = 30
    refit: bool = True
    tol: float = 1e-3

    _size_name = "n_rules"
    _search_only = PathCV._search_only | set(_SELECTION)

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
        return len(model._added)

    def _candidates(self) -> list[dict[str, Any]]:
        """Return pairs of C and number of rules; for each C the numbers stand together."""
        Cs: Any = self.Cs
        if isinstance(Cs, Integral) and self.rho == 1.0:
            Cs = np.logspace(-2, 2, int(Cs))
        sizes: list[int | None] = [self.max_rules]
        if self.refit and self.max_rules is not None:
            sizes = list(_sizes(self.max_rules))
        return [
            {"C": C} if size is None else {"C": C, "max_rules": size}
            for C in read_costs(Cs)
            for size in sizes
        ]

    def _fit_candidates(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        candidates: list[dict[str, Any]],
        *given: Any,
        **own: Any,
    ) -> list[Any]:
        if getattr(estimator, "calibration", None) is not None:
            # Scores need calibrated probabilities, so each candidate is a fit of its own.
            models = [clone(estimator).set_params(**candidate) for candidate in candidates]
            return [model.fit(X, y, *given, **own) for model in models]
        return list(estimator._fit_grid(X, y, candidates, self._limit, *given, **own))

    @property
    def _limit(self) -> float:
        """Number of rules, before selection, at which a path ends."""
        return np.inf if self.max_rules is None else _TOO_MANY * self.max_rules

    def _keep(self, model: Any) -> list[Term]:
        return list(model._added)

    def _compare_folds(self, kept: list[Any], X: Any) -> None:
        some = even_rows(read_table(X).n_rows, _COMPARED_ROWS)
        rows = pick_rows(X if is_frame(X) else np.asarray(X), some)
        columns = [read_terms(terms, rows) for terms in kept]
        pairs = [dice_index(*pair) for pair in combinations(columns, 2)]
        self.fold_similarity_ = float(np.mean(pairs)) if pairs else np.nan

    def _best(self, scores: Floats, sizes: Floats) -> int:
        """Return the best candidate, or the fewest rules within some standard errors of it.

        The standard error is that of the difference over the folds, since folds differ more from
        each other than candidates on one fold.
        """
        means = scores.mean(axis=1)
        best = int(np.argmax(means))
        if self.selection == "best" or scores.shape[1] < 2:
            return best
        lost = scores[best] - scores
        error = lost.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
        n_errors = 1.0 if self.selection == "one_standard_error" else float(self.selection)
        good = np.flatnonzero(lost.mean(axis=1) <= n_errors * error)
        rules = sizes.mean(axis=1)
        return int(min(good, key=lambda k: (rules[k], -means[k])))

    def _score(self, model: Any, X: Any, y: Any, task: Any = None) -> float:
        if self.scoring is not None or task is not None or not is_classifier(self):
            return super()._score(model, X, y, task)
        return default_score(model, X, y)


def _sizes(most: int) -> list[int]:
    """Return numbers of rules to try: steps of about a half, up to the largest."""
    sizes = [1]
    while sizes[-1] < most:
        sizes.append(min(most, max(sizes[-1] + 1, round(1.5 * sizes[-1]))))
    return sizes


# Entries of the other parameters and attributes are those of `RuleEnsembleClassifier`.
@shared_attributes(CHOSEN, FOLDS)
@dataclass(eq=False, repr=False)
class RuleEnsembleClassifierCV(_RulePathCV, RuleEnsembleClassifier):
    """`RuleEnsembleClassifier` with C and the number of rules chosen by cross-validation.

    On every fold one path over all values of C is fitted, each starting from the rules of the
    last, with propositions made from the training part alone. For every C the strongest rules are
    kept, in several numbers up to `max_rules`, and refitted. Chosen is the pair of C and number
    with the best mean score, or fewer rules that are hardly worse (`selection`). The defaults are
    those of short rule sets: ``rho=1``, with cuts at up to eight places of a column, and the
    logistic loss. Those of the paper are ``rho=1.1, loss="hinge", n_cuts=4, max_length=None,
    refit=False, max_rules=None``.

    Parameters
    ----------
    scoring : str, callable or None, default=None
        What to maximise; None is minus the log-loss, of models without
        probabilities the area under the ROC curve, or balanced accuracy for several classes. Of
        equal scores the smaller C wins.
    loss : {"hinge", "logistic"}, default="logistic"
        As in `RuleEnsembleClassifier`.

    Attributes
    ----------
    classes_ : ndarray
        The classes; for labels in columns their numbers.

    Examples
    --------
    >>> from kernelweave import RuleEnsembleClassifierCV
    >>> from kernelweave.datasets import make_monks
    >>> monks = make_monks(3)
    >>> model = RuleEnsembleClassifierCV(Cs=[1, 10]).fit(monks.X, monks.y)
    >>> model.C_, round(model.score(monks.X, monks.y), 2)
    (10.0, 0.97)
    """

    _: KW_ONLY
    loss: str = "logistic"
    C: float = field(init=False)

    _absent_parameters: ClassVar[dict[str, Any]] = {
        **_RulePathCV._absent_parameters,
        "loss": "hinge",
    }
    _declaration = RuleEnsembleClassifier._declaration.extended(
        SAVED,
        optional={**RuleEnsembleClassifier._declaration.optional, "fold_similarity_": "real"},
        method="rules",
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **search_constraints(RuleEnsembleClassifier),
        **_SELECTION,
    }


# Entries of the other parameters and attributes are those of `RuleEnsembleRegressor`.
@shared_attributes(CHOSEN, FOLDS)
@dataclass(eq=False, repr=False)
class RuleEnsembleRegressorCV(_RulePathCV, RuleEnsembleRegressor):
    """`RuleEnsembleRegressor` with C and the number of rules chosen by cross-validation.

    On every fold one path over all values of C is fitted, each starting from the rules of the
    last, with propositions made from the training part alone. For every C the strongest rules are
    kept, in several numbers up to `max_rules`, and refitted. Chosen is the pair of C and number
    with the best mean score, or fewer rules that are hardly worse (`selection`). The defaults are
    those of short rule sets: ``rho=1``, with cuts at up to eight places of a column. Those of the
    paper are ``rho=1.1, n_cuts=4, max_length=None, refit=False, max_rules=None``.

    Parameters
    ----------
    scoring : str, callable or None, default=None
        What to maximise; None is R^2. Of
        equal scores the smaller C wins.

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

    C: float = field(init=False)

    _declaration = RuleEnsembleRegressor._declaration.extended(
        SAVED,
        optional={**RuleEnsembleRegressor._declaration.optional, "fold_similarity_": "real"},
        method="rules",
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **search_constraints(RuleEnsembleRegressor),
        **_SELECTION,
    }
