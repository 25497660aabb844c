"""Ranking of labels that look wrong, for any classifier."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels.base import is_number

from .report import LabelReport, assess_scores

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 8  # lines of a repr


@dataclass(frozen=True, repr=False)
class Suspects:
    """Examples whose label looks wrong, the most suspicious first.

    Attributes
    ----------
    index : ndarray of int
        Their positions in the training data.
    quality : ndarray of float
        Quality of their labels, between 0 and one half.
    given : ndarray
        Their labels.
    suggested : ndarray
        The labels that the model predicts.
    n_samples : int
        Number of labels assessed.
    n_wrong : int
        Number of them that look wrong, regardless of the limit.
    annotator : ndarray, optional
        Who gave each label, where several annotators did; `index` then holds the rows.
    """

    index: Indices
    quality: Floats
    given: NDArray[Any]
    suggested: NDArray[Any]
    n_samples: int
    n_wrong: int
    annotator: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.index)

    def of_answers(self, rows: Indices, annotators: NDArray[Any]) -> Suspects:
        """Return these suspects with the row and the annotator of each answer."""
        return replace(self, index=rows[self.index], annotator=annotators[self.index])

    def to_frame(self) -> pd.DataFrame:
        """Return a table with the columns index, quality, given and suggested.

        Answers of several annotators have a column annotator after the index.

        Returns
        -------
        frame : pandas.DataFrame
            One row per suspect.
        """
        import pandas as pd

        own = () if self.annotator is None else ("annotator",)
        names = ("index", *own, "quality", "given", "suggested")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        noun = "labels" if self.annotator is None else "answers"
        lines = [f"{self.n_wrong} of {self.n_samples} {noun} look wrong"]
        if len(self):
            lines[0] += ", the most suspicious first:"
        for k, row in enumerate(zip(self.index, self.quality, strict=True)):
            if k == _SHOWN:
                break
            by = "" if self.annotator is None else f" by {self.annotator[k]}"
            labels = f"labelled {self.given[k]}{by}, suggested {self.suggested[k]}"
            lines.append("  example {}: quality {:.3f}, {}".format(*row, labels))
        if len(lines) <= self.n_wrong:
            lines.append("  ...")
        return "\n".join(lines)


def rank_suspects(
    quality: Floats, given: NDArray[Any], suggested: NDArray[Any], limit: int | None = None
) -> Suspects:
    """Return the examples whose label is not the suggested one, the most suspicious first."""
    if limit is not None and (not is_number(limit, Integral) or limit < 1):
        raise InputError(f"limit: must be a whole number >= 1 or None, got {limit!r}.")
    wrong = np.flatnonzero(given != suggested)
    index = wrong[np.argsort(quality[wrong], kind="stable")][:limit]
    return Suspects(index, quality[index], given[index], suggested[index], len(quality), len(wrong))


def suspects(
    model: Any, X: Any = None, y: Any = None, *, cv: Any = 5, limit: int | None = None
) -> Suspects:
    """Return the training examples whose label looks wrong, the most suspicious first.

    Parameters
    ----------
    model : classifier
        A fitted model with ``label_quality_`` needs no data; it may be the last step of a pipeline.
        For any other classifier, labels are assessed by its cross-validated decision values or
        probabilities.
    X, y : array or data frame, and labels
        The training data; None for a fitted model with ``label_quality_``.
    cv : int or cross-validation splitter
        Folds; a number means that many stratified folds, drawn the same way in every call.
    limit : int, optional
        Largest number returned.

    Returns
    -------
    suspects : Suspects
        With `index`, `quality`, `given`, `suggested` and `to_frame`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> x = np.linspace(-3, 3, 60)[:, None]
    >>> y = np.where(x[:, 0] > 0, "high", "low")
    >>> y[[7, 50]] = "high", "low"
    >>> suspects(LogisticRegression(), x, y)
    2 of 60 labels look wrong, the most suspicious first:
      example 7: quality 0.019, labelled high, suggested low
      example 50: quality 0.028, labelled low, suggested high
    """
    if X is None and y is None:
        fitted = model.steps[-1][1] if hasattr(model, "steps") else model
        if not hasattr(fitted, "label_quality_"):
            raise InputError(
                f"suspects: this {type(fitted).__name__} has not assessed its training labels; "
                "pass the training data, as in suspects(model, X, y)."
            )
        found: Suspects = fitted.suspects(limit=limit)
        return found
    if X is None or y is None:
        missing = "X" if X is None else "y"
        raise InputError(f"suspects: {missing} is missing; pass both X and y, or neither.")
    report, given, classes = _assess(model, X, y, cv)
    return rank_suspects(report.label_quality, given, classes[report.suggested], limit)


def label_quality(model: Any, X: Any, y: Any, cv: Any = 5) -> Floats:
    """Return the quality of the label of each training example.

    The classifier is cross-validated; the range of its decision values, or else probabilities,
    gives the scale: ``1 / (1 + exp(-4 u))``, where the margin u of the given label is 1 at the
    certain end of the range and -1 at the other.

    Parameters
    ----------
    model : classifier
        Any classifier with ``decision_function`` or ``predict_proba``.
    X : array, sparse matrix or data frame
        Training rows.
    y : array of shape (n_samples,)
        Labels.
    cv : int or cross-validation splitter
        Folds; a number means that many stratified folds, drawn the same way in every call.

    Returns
    -------
    quality : ndarray of shape (n_samples,)
        Between 0 and 1, an estimate of the probability that the label is right; below one half
        the model suggests another label.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> x = np.linspace(-3, 3, 60)[:, None]
    >>> y = (x[:, 0] > 0).astype(int)
    >>> y[7] = 1
    >>> int(label_quality(LogisticRegression(), x, y).argmin())
    7
    """
    return _assess(model, X, y, cv)[0].label_quality


def read_labels(X: Any, y: Any) -> tuple[Indices, NDArray[Any]]:
    """Return labels as codes, and the classes; two or more."""
    y = column_or_1d(y)
    check_consistent_length(X, y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError("y: contains NaN or infinity where class labels are needed.")
    check_classification_targets(y)
    encoder = LabelEncoder()
    codes = encoder.fit_transform(y)
    if len(encoder.classes_) < 2:
        raise InputError(f"y: two classes or more are needed, got {list(encoder.classes_)} only.")
    return codes, encoder.classes_


def _assess(model: Any, X: Any, y: Any, cv: Any) -> tuple[LabelReport, NDArray[Any], NDArray[Any]]:
    """Return the report, the given labels and the classes."""
    codes, classes = read_labels(X, y)
    methods = [m for m in ("decision_function", "predict_proba") if hasattr(model, m)]
    if not methods or not is_classifier(model):
        raise InputTypeError(
            "model: must be a classifier with decision_function or predict_proba, got "
            f"{type(model).__name__}."
        )
    folds = _folds(cv, codes, classes)
    values = np.asarray(
        cross_val_predict(clone(model), X, y, cv=folds, method=methods[0]), dtype=np.float64
    )
    if values.ndim == 2 and len(classes) == 2:
        values = 2.0 * values[:, 1] - 1.0
    scores = values[:, None] if values.ndim == 1 else values
    n_columns = len(classes) if len(classes) > 2 else 1
    if not np.isfinite(scores).all() or scores.shape[1] != n_columns:
        raise InputError(
            f"model: {type(model).__name__} must give one finite value per example and class."
        )
    return assess_scores(scores, scores, codes), classes[codes], classes


def _folds(cv: Any, codes: Indices, classes: NDArray[Any]) -> Any:
    if not is_number(cv, Integral):
        return cv  # a splitter, or whatever scikit-learn makes of it
    counts = np.bincount(codes)
    if not 2 <= cv <= counts.min():
        raise InputError(
            f"cv={cv}: must be at least 2 and at most {counts.min()}, the number of examples of "
            f"the smallest class, {classes[counts.argmin()]!s}."
        )
    return StratifiedKFold(int(cv), shuffle=True, random_state=0)
