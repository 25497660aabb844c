"""Base class of the combinations of several fitted models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kernelweave._declaration import CERTIFICATE, Declaration
from kernelweave._summary import NotebookSummary
from kernelweave._types import Floats
from kernelweave.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


class BaseCombination(NotebookSummary, BaseEstimator):
    """Base of the combinations: members, their weights and their fits.

    Parameters
    ----------
    estimators : list of (str, estimator), or None
        Names and models, estimators of kernelweave or pipelines. None: default kernels and a linear
        model.
    weights : sequence of float, or None
        Weight of each member, divided by their sum; None: equal.
    """

    estimators: Sequence[tuple[str, Any]] | None
    weights: Sequence[float] | None

    _declaration: ClassVar[Declaration] = Declaration(
        learns="members",
        saved={
            **CERTIFICATE,
            "n_features_in_": "integer",
            "names_": "list[members]",
            "weights_": "weights[members]",
            "intercept_": "float[outputs]",
        },
        optional={"feature_names_in_": "names"},
        aspects=("kernels",),
    )
    kernels_ = None  # weights are those of members

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimators": [list, tuple, None],
        "weights": ["array-like", None],
    }

    def _usual_members(self) -> list[tuple[str, Any]]:
        raise NotImplementedError

    def _named(self) -> list[tuple[str, Any]]:
        """Return names and models, checked."""
        given = self._usual_members() if self.estimators is None else list(self.estimators)
        for item in given:
            pair = isinstance(item, tuple | list) and len(item) == 2
            if not pair or not isinstance(item[0], str) or not hasattr(item[1], "fit"):
                raise InputError(
                    f"estimators: must be pairs of a name and an estimator, got {item!r}."
                )
        if not given:
            raise InputError("estimators: must have one item or more, got none.")
        return given

    def _per_member(self, name: str, n_members: int) -> list[Any]:
        given = getattr(self, name)
        values = [None] * n_members if given is None else list(given)
        if len(values) != n_members:
            raise InputError(
                f"{name}: must have an item for each of the {n_members} members, got {len(values)}."
            )
        return values

    def _fit_members(self, X: Any, targets: list[Any], sample_weight: Any) -> None:
        """Fit a copy of every member to its target."""
        named = self._named()
        weights = [1.0 if w is None else float(w) for w in self._per_member("weights", len(named))]
        if not (np.isfinite(weights).all() and min(weights) >= 0 and sum(weights) > 0):
            raise InputError(f"weights: must be finite, not negative, not all 0, got {weights}.")
        members = []
        for (_, estimator), y in zip(named, targets, strict=True):
            options = {}
            if sample_weight is not None:
                last = isinstance(estimator, Pipeline) and estimator.steps[-1][0]
                options[f"{last}__sample_weight" if last else "sample_weight"] = sample_weight
            members.append(clone(estimator).fit(X, y, **options))
        self.names_ = [name for name, _ in named]
        self.weights_ = np.array(weights) / sum(weights)
        self._keep(members)

    def _keep(self, members: list[Any]) -> None:
        """Record fitted members, and how their fits ended."""
        self.members_ = members
        last = [m[-1] if isinstance(m, Pipeline) else m for m in members]
        self.converged_ = all(bool(getattr(m, "converged_", True)) for m in last)
        self.n_iter_ = sum(int(np.sum(getattr(m, "n_iter_", None) or 0)) for m in last)
        self.objective_ = self.duality_gap_ = float("nan")
        self.history_: list[Any] = []

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the members and their weights, the heaviest first.

        Returns
        -------
        frame : pandas.DataFrame
            ``member`` and ``weight``.
        """
        check_is_fitted(self)
        import pandas as pd

        frame = pd.DataFrame({"member": self.names_, "weight": self.weights_})
        return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")


def undo_logarithm(values: Floats, offset: float, scale: float) -> Floats:
    """Return predictions of ``y`` from predictions of ``log(y + offset)``."""
    return np.asarray(scale * np.exp(np.minimum(values, 700.0)) - offset)


def to_probabilities(decision: Any, slopes: Any, intercepts: Any) -> Floats:
    """Return the probabilities of calibrated decision values, one column per class."""
    values = np.asarray(decision, dtype=np.float64)
    if values.ndim == 1:
        odds = values * float(np.ravel(slopes)[0]) + float(np.ravel(intercepts)[0])
        return np.column_stack([expit(-odds), expit(odds)])
    matrix = np.asarray(slopes, dtype=np.float64)
    matrix = matrix if matrix.ndim == 2 else matrix * np.eye(values.shape[1])
    return np.asarray(softmax(values @ matrix.T + intercepts, axis=1))
