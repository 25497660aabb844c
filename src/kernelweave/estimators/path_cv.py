"""Choice of C by cross-validation along the path of every fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, check_scoring, r2_score
from sklearn.model_selection import check_cv

from kernelweave._dask import fetch
from kernelweave._types import Floats
from kernelweave._validation import Interval, fit_context, is_frame, pick_rows
from kernelweave.errors import InputError

from .fit import FitMixin, check_costs

SEARCH_CONSTRAINTS = {
    "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
    "cv": ["cv_object"],
    "scoring": [str, callable, None],
}
SAVED = {"C_": "positive", "cv_results_": "dict"}  # in model files, beside the attributes of a fit


def search_constraints(kind: Any) -> dict[str, Any]:
    """Return the parameter constraints of an estimator that chooses its C."""
    given = kind._parameter_constraints
    return {k: v for k, v in given.items() if k not in ("C", "warm_start")} | SEARCH_CONSTRAINTS


@dataclass(eq=False, repr=False)
class PathCV(FitMixin):
    """Mixin, in front of an estimator with `fit_path`, that chooses C on folds.

    Every fold fits one path over all values of C; the model is then fitted to all rows.
    """

    _: KW_ONLY
    Cs: int | Sequence[float] = 7
    cv: Any = 3
    scoring: Any = None
    warm_start: bool = field(default=False, init=False)

    @property
    def C(self) -> float:  # type: ignore[override]
        """The value of C in use."""
        return float(getattr(self, "C_", 1.0))

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose C on folds, and fit to all rows with it.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training rows; a Dask table is fetched.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels or targets.
        sample_weight : array of shape (n_samples,), optional
            Factors of C by row; scores on folds are not weighted.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._choose(fetch(X), y, sample_weight)

    def _choose(self, X: Any, y: Any, sample_weight: Any, **by_row: Any) -> Self:
        """Choose C and fit; ``by_row`` are further arguments with one entry per row, or None."""
        estimator = self._estimator()
        self._check_data(estimator, X, y, sample_weight, **by_row)
        candidates = self._candidates()
        search = estimator
        if self.scoring is None:  # neither accuracy nor R2 needs probabilities or intervals
            unused = {"calibration", "intervals"} & set(estimator.get_params(deep=False))
            search = clone(estimator).set_params(**dict.fromkeys(unused))
        scores, sizes, kept = self._cross_validate(search, X, y, sample_weight, by_row, candidates)
        candidates = candidates[: len(scores)]
        means = scores.mean(axis=1)
        best = self._best(scores, sizes)
        estimator.set_params(**candidates[best]).fit(X, y, sample_weight, **by_row)
        parameters = estimator.get_params(deep=False)
        vars(self).update({k: v for k, v in vars(estimator).items() if k not in parameters})
        if hasattr(self, "coverage_guarantee_"):
            self.coverage_guarantee_ = np.nan  # C has seen all rows
        self.C_ = float(candidates[best]["C"])
        self.cv_results_ = {
            **{name: np.array([float(c[name]) for c in candidates]) for name in candidates[0]},
            "mean_score": means,
            "std_score": scores.std(axis=1),
            "scores": scores,
            self._size_name: sizes.mean(axis=1),
        }
        self._compare_folds([fold[best] for fold in kept], X)
        return self

    def _keep(self, model: Any) -> Any:
        """Return what is kept of a model of a fold for `_compare_folds`."""
        return None

    def _compare_folds(self, kept: list[Any], X: Any) -> None:
        """Store how much the chosen models of the folds agree."""

    def _candidates(self) -> list[dict[str, Any]]:
        """Return the parameters to try, from small to large models."""
        return [{"C": C} for C in read_costs(self.Cs)]

    def _fit_candidates(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        candidates: list[dict[str, Any]],
        *given: Any,
        **own: Any,
    ) -> list[Any]:
        """Return a fitted model for each candidate, or for the first ones if more are useless."""
        Cs = [candidate["C"] for candidate in candidates]
        models: list[Any] = estimator.fit_path(X, y, Cs, *given, **own)
        return models

    def _best(self, scores: Floats, sizes: Floats) -> int:
        """Return the chosen candidate: the first, with the smallest C, of equally good ones."""
        return int(np.argmax(scores.mean(axis=1)))

    def _estimator(self) -> Any:
        """Return the unfitted estimator for one C: the class that this mixin stands in front of."""
        kind = next(k for k in type(self).__mro__ if not issubclass(k, PathCV))
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        return kind(**{k: v for k, v in given.items() if k not in self._search_only})

    _search_only = frozenset(SEARCH_CONSTRAINTS)  # parameters that one fit does not have

    def _check_data(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        """Refuse data before the first fold, which would report other row numbers."""
        estimator._targets(X, y, sample_weight)

    _size_name = "n_kernels"  # of the mean model size in `cv_results_`

    def _size(self, model: Any) -> int:
        return int(np.count_nonzero(model.weights_))

    def _cross_validate(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        weight: Any,
        by_row: dict[str, Any],
        candidates: list[dict[str, Any]],
    ) -> tuple[Floats, Floats, list[list[Any]]]:
        """Return score, model size and what is kept of every candidate on every fold."""
        if hasattr(X, "tocsr"):
            X = X.tocsr()
        elif not is_frame(X):
            X = np.asarray(X)
        if not hasattr(y, "iloc"):
            y = np.asarray(y)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        scores: list[list[float]] = []
        sizes: list[list[int]] = []
        kept: list[list[Any]] = []
        for train, test in splitter.split(X, y):
            some = None if weight is None else np.asarray(weight)[train]
            if some is not None and not some.any():
                raise InputError(
                    f"sample_weight: all rows to learn from in fold {len(scores) + 1} have weight "
                    "zero. Hint: use fewer folds, or leave such rows out."
                )
            own = {name: _pick(value, train) for name, value in by_row.items()}
            models = self._fit_candidates(
                estimator, pick_rows(X, train), pick_rows(y, train), candidates, some, **own
            )
            candidates = candidates[: len(models)]
            held_out = pick_rows(X, test), pick_rows(y, test)
            own = {name: _pick(value, test) for name, value in by_row.items()}
            scores.append([self._score(model, *held_out, **own) for model in models])
            if not np.isfinite(scores[-1]).all():
                raise InputError(
                    f"scoring: gives {scores[-1]} on fold {len(scores)}, which cannot be compared. "
                    "Hint: use fewer folds or another score."
                )
            sizes.append([self._size(model) for model in models])
            kept.append([self._keep(model) for model in models])
        fewest = min(map(len, scores))  # a fold may end its path earlier than those before it
        return (
            np.array([row[:fewest] for row in scores]).T,
            np.array([row[:fewest] for row in sizes]).T,
            kept,
        )

    def _score(self, model: Any, X: Any, y: Any, task: Any = None) -> float:
        if task is None:
            return float(check_scoring(model, scoring=self.scoring)(model, X, y))
        if self.scoring is not None:
            raise InputError("scoring: must be None where tasks are given.")
        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(y, model.predict(X, task)))


def read_costs(Cs: Any) -> list[float]:
    """Return distinct values of C in increasing order; a number spreads as many evenly."""
    return sorted(set(check_costs(np.logspace(-3, 3, int(Cs)) if isinstance(Cs, Integral) else Cs)))


def _pick(values: Any, rows: Any) -> Any:
    return None if values is None else np.asarray(values)[rows]
