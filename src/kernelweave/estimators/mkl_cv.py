"""Flat multiple kernel learning with C chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .mkl import MKLClassifier, MKLRegressor
from .path_cv import SAVED, PathCV, search_constraints
from .shared_docs import CHOSEN, shared_attributes


# Entries of the other parameters and attributes are those of `MKLClassifier`.
@shared_attributes(CHOSEN)
@dataclass(eq=False, repr=False)
class MKLClassifierCV(PathCV, MKLClassifier):
    """`MKLClassifier` with C chosen by cross-validation.

    Every fold makes its kernels once and fits one path over all values of C, each fit starting from
    the last.

    Parameters
    ----------
    Cs : int or sequence of float, default=7
        Values of C to try; an integer means this number from 1e-3 to 1e3, on a logarithmic scale.
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

    C: float = field(init=False)

    _declaration = MKLClassifier._declaration.extended(SAVED, method=None)
    _parameter_constraints: ClassVar[dict[str, Any]] = search_constraints(MKLClassifier)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.scoring is None  # a score may need classes
        return tags


# Entries of the other parameters and attributes are those of `MKLRegressor`.
@shared_attributes(CHOSEN)
@dataclass(eq=False, repr=False)
class MKLRegressorCV(PathCV, MKLRegressor):
    """`MKLRegressor` with C chosen by cross-validation.

    Every fold makes its kernels once and fits one path over all values of C, each fit starting from
    the last.

    Parameters
    ----------
    Cs : int or sequence of float, default=7
        Values of C to try; an integer means this number from 1e-3 to 1e3, on a logarithmic scale.
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

    C: float = field(init=False)

    _declaration = MKLRegressor._declaration.extended(SAVED, method=None)
    _parameter_constraints: ClassVar[dict[str, Any]] = search_constraints(MKLRegressor)
