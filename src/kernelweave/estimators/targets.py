"""Targets of classifiers and regressors, of one or several related tasks; classes of decisions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils import check_array, compute_class_weight
from sklearn.utils.validation import check_consistent_length

from kernelweave._dask import by_parts
from kernelweave._types import Floats, Indices
from kernelweave._validation import check_labels, check_weights, is_missing
from kernelweave.errors import InputError, InputTypeError, warn
from kernelweave.kernels.base import is_number

_ASYMMETRY = 1e-9  # of a task matrix, relative to its largest entry
_LARGEST = 1e100  # target, so that products of squares are numbers


@dataclass(frozen=True)
class Targets:
    """Targets of all training rows, one column per output."""

    Y: Floats
    cost: Floats  # of an error for C = 1; zero where a row has no part in an output
    weight: Floats | None  # of the rows; None when all are one
    fixed: dict[int, float] = field(default_factory=dict)  # outputs of one class: their score


def require_target(estimator: Any, y: Any) -> None:
    """Refuse a missing ``y``."""
    if y is None:
        raise InputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )


def encode_labels(estimator: Any, X: Any, y: Any) -> tuple[np.ndarray[Any, Any], Indices]:
    """Return the labels of the rows and their class numbers; set ``classes_``."""
    require_target(estimator, y)
    y = check_labels(y)
    check_consistent_length(X, y)
    from sklearn.preprocessing import LabelEncoder  # takes long to import

    encoder = LabelEncoder()
    codes = encoder.fit_transform(y)
    estimator.classes_ = encoder.classes_
    return y, codes


def refuse_one_class(estimator: Any, codes: Indices, weight: Floats | None = None) -> None:
    """Refuse labels of a single class among the rows of positive weight."""
    present = np.unique(codes if weight is None else codes[weight > 0])
    if len(present) < 2:
        label = estimator.classes_[present[0]]
        label = label.item() if isinstance(label, np.generic) else label
        where = "" if weight is None else " among the rows of positive weight"
        raise InputError(
            f"{type(estimator).__name__} needs two classes or more in y, but got one class only: "
            f"{label!r}{where}."
        )


def class_targets(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Targets:
    """Return signed targets, one class against the rest; set ``classes_``.

    Costs are the factors of ``estimator.class_weight``.
    """
    y, codes = encode_labels(estimator, X, y)
    weight = check_weights(sample_weight, len(codes))
    refuse_one_class(estimator, codes, weight)
    factors = _class_factors(estimator.class_weight, estimator.classes_, y, weight)
    n_classes = len(estimator.classes_)
    columns = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    cost = np.repeat(factors[codes][:, None], len(columns), axis=1)
    Y = np.where(codes[:, None] == columns, 1.0, -1.0)
    return Targets(Y, weighted(cost, weight), weight)


def _class_factors(given: Any, classes: Any, y: Any, weight: Floats | None) -> Floats:
    """Return the cost of a row of each class; "auto" is up to the estimator."""
    given = None if isinstance(given, str) and given == "auto" else given
    factors = compute_class_weight(given, classes=classes, y=y, sample_weight=weight)
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise InputError(f"class_weight: weights must be finite numbers > 0, got {given!r}.")
    return np.asarray(factors)


def refuse_absent_class(estimator: Any, targets: Targets) -> None:
    """Refuse a class without cost, whose probability would be zero."""
    absent = np.flatnonzero(((targets.Y > 0) * targets.cost).sum(axis=0) == 0.0)
    if len(absent):
        label = estimator.classes_.tolist()[absent[0]]
        raise InputError(
            f"sample_weight: all rows of class {label!r} have weight zero, so that it has no "
            "probability. Hint: leave these rows out."
        )


def label_table(y: Any) -> np.ndarray[Any, Any] | None:
    """Return several labels of every row as a table of zeros and ones; None for one label."""
    table = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    if table.ndim != 2 or table.shape[1] < 2:
        return None
    if table.dtype == object:
        table = np.asarray(table.tolist())
    if table.dtype.kind not in "biuf" or not np.isin(table, (0, 1)).all():
        raise InputError(
            "y: several columns must be labels, each a zero or one for every row; learn classes of "
            "several columns one column at a time."
        )
    return np.asarray(table.astype(int))


def label_targets(
    estimator: Any, X: Any, labels: np.ndarray[Any, Any], sample_weight: Any
) -> Targets:
    """Return signed targets, one output for each of several labels; set ``classes_``.

    The classes of ``estimator.class_weight`` are then 0 and 1, without and with a label.
    """
    check_consistent_length(X, labels)
    weight = check_weights(sample_weight, len(labels))
    estimator.classes_ = np.arange(labels.shape[1])
    cost = weighted(np.ones(labels.shape), weight)
    counted = slice(None) if weight is None else weight > 0
    for label, (column, factors) in enumerate(zip(labels.T, cost.T, strict=True)):
        if len(np.unique(column[counted])) < 2:
            warn(f"y: label {label} is the same in all rows, so nothing is learned about it.")
            continue
        factors *= _class_factors(estimator.class_weight, np.arange(2), column, weight)[column]
    return Targets(np.where(labels > 0, 1.0, -1.0), cost, weight)


def real_targets(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Targets:
    """Return the targets of a regression; set ``_one_output``."""
    require_target(estimator, y)
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    check_consistent_length(X, y)
    if (largest := float(np.abs(y).max())) > _LARGEST:
        raise InputError(
            f"y: values up to {_LARGEST:g} are possible, got {largest:g}. Hint: divide them by "
            "their standard deviation."
        )
    estimator._one_output = y.ndim == 1
    Y = y.reshape(len(y), -1)
    weight = check_weights(sample_weight, len(Y))
    return Targets(Y, weighted(np.ones_like(Y), weight), weight)


def weighted(cost: Floats, weight: Floats | None) -> Floats:
    """Return costs times the weights of their rows."""
    return cost if weight is None else cost * weight[:, None]


def task_matrix(task_correlation: Any, n_outputs: int) -> Floats | None:
    """Return the matrix ``B`` that relates the outputs, or None where they are not related.

    A number ``mu`` stands for ``I + 11' / mu``.
    """
    if task_correlation is None:
        return None
    if is_number(task_correlation):
        if not 0 < float(task_correlation) < np.inf:
            raise InputError(
                f"task_correlation: a number must be finite and > 0, got {task_correlation!r}."
            )
        if n_outputs == 1:  # nothing to be related to
            return None
        B = np.eye(n_outputs) + 1.0 / float(task_correlation)
    else:
        B = _read_matrix(task_correlation, n_outputs)
    unrelated = n_outputs == 1 or np.count_nonzero(B - np.diag(np.diagonal(B))) == 0
    return None if unrelated and (np.diagonal(B) == 1.0).all() else B


def _read_matrix(given: Any, n_outputs: int) -> Floats:
    try:
        B = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        B = np.empty(0)
    if B.shape != (n_outputs, n_outputs) or not np.isfinite(B).all():
        got = f"shape {B.shape}" if isinstance(given, np.ndarray) else repr(given)
        raise InputError(
            f"task_correlation: must be a number > 0 or a matrix of shape ({n_outputs}, "
            f"{n_outputs}) of finite numbers, one row for each output, got {got}."
        )
    size = np.abs(B).max()
    if np.abs(B - B.T).max() > _ASYMMETRY * size:
        raise InputError("task_correlation: the matrix must be symmetric.")
    B = 0.5 * (B + B.T)
    if not (np.diagonal(B) > 0).all():
        raise InputError("task_correlation: the diagonal of the matrix must be positive.")
    least = float(np.linalg.eigvalsh(B)[0])
    if least < -_ASYMMETRY * size:
        raise InputError(
            f"task_correlation: the matrix must be positive semi-definite, but has the eigenvalue "
            f"{least:.3g}."
        )
    return B


def read_tasks(task: Any, n_samples: int) -> tuple[np.ndarray[Any, Any], Indices]:
    """Return the names of the tasks and the task of every row."""
    given = _read_names(task, n_samples)
    missing = [name for name in given.tolist() if is_missing(name)]
    if missing:
        raise InputError(f"task: every row needs one, but {len(missing)} have {missing[0]!r}.")
    from sklearn.preprocessing import LabelEncoder  # takes long to import

    encoder = LabelEncoder()
    try:
        codes = encoder.fit_transform(given)
    except TypeError:
        raise InputTypeError(
            "task: all entries must be text, or all must be numbers, but both are there. Hint: "
            "turn the numbers into text."
        ) from None
    return encoder.classes_, codes


def _read_names(task: Any, n_samples: int) -> np.ndarray[Any, Any]:
    given = np.asarray(task)
    if given.dtype.kind in "US" and not isinstance(task, np.ndarray):
        given = np.asarray(task, dtype=object)  # a list may mix text and numbers
    if given.ndim != 1 or len(given) != n_samples:
        found = f"{len(given)}" if given.ndim == 1 else f"an array of shape {given.shape}"
        raise InputError(f"task: needs one entry for each of the {n_samples} rows, got {found}.")
    return given


def find_tasks(task: Any, names: np.ndarray[Any, Any], n_samples: int) -> Indices:
    """Return the task of every row to predict; one name may stand for all rows."""
    if task is None:
        raise InputError(
            "task: the model was fitted with tasks, so predict needs the task of the rows; pass "
            f"one of {names.tolist()[:5]}, or one for each row."
        )
    given = np.full(n_samples, task) if np.ndim(task) == 0 else _read_names(task, n_samples)
    place = {name: t for t, name in enumerate(names.tolist())}
    unknown = [name for name in given.tolist() if name not in place]
    if unknown:
        raise InputError(
            f"task: {unknown[0]!r} was not among the tasks in fit, {names.tolist()[:5]}."
        )
    return np.array([place[name] for name in given.tolist()], dtype=np.intp)


def split_tasks(Y: Floats, cost: Floats, codes: Indices, n_tasks: int) -> tuple[Floats, Floats]:
    """Give every task an output of its own, in which only its rows have a part."""
    own = codes[:, None] == np.arange(n_tasks)
    return np.where(own, Y, 1.0), np.where(own, cost, 0.0)


class TaskOutputs:
    """Mixin for estimators whose `fit` takes tasks: each becomes an output with its own rows."""

    tasks_: np.ndarray[Any, Any]

    def _split_tasks(self, targets: Targets, task: Any) -> Targets:
        """Return targets with one output per task; set ``tasks_``."""
        self.__dict__.pop("tasks_", None)
        if task is None:
            return targets
        self._refuse_outputs(targets.Y.shape[1])
        self.tasks_, codes = read_tasks(task, len(targets.Y))
        Y, cost = split_tasks(targets.Y, targets.cost, codes, len(self.tasks_))
        return replace(targets, Y=Y, cost=cost)

    def _refuse_outputs(self, n_outputs: int) -> None:
        """Refuse tasks where there are several outputs already."""
        raise NotImplementedError

    def _by_task(self, scores: Floats, task: Any) -> Floats | None:
        """Return the scores of the task of every row, None for a model without tasks."""
        if hasattr(self, "tasks_"):
            return scores[np.arange(len(scores)), find_tasks(task, self.tasks_, len(scores))]
        if task is not None:
            raise InputError("task: the model was fitted without tasks, so it must be None.")
        return None


def finite_floats(values: Any) -> Floats:
    """Return an array of finite numbers, or an empty one."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)
    return array if np.isfinite(array).all() else np.empty(0)


def read_rates(given: Any, n_classes: int) -> Floats:
    """Return known rates of wrong labels as a matrix; a pair is that of two classes."""
    rates = finite_floats(given)
    if rates.shape == (2,) and n_classes == 2:
        rates = np.array([[1.0 - rates[0], rates[0]], [rates[1], 1.0 - rates[1]]])
    square = rates.shape == (n_classes, n_classes)
    if not square or (rates < 0).any() or np.abs(rates.sum(axis=1) - 1.0).max() > 1e-8:
        pair = "two numbers between 0 and 1, or " if n_classes == 2 else ""
        raise InputError(
            f"rates: must be {pair}a matrix of shape ({n_classes}, {n_classes}) whose rows are "
            f"probabilities, got {given!r}."
        )
    if n_classes == 2 and not rates[0, 1] + rates[1, 0] < 1:
        raise InputError(
            f"rates: together they must be below 1, got {rates[0, 1]:g} and {rates[1, 0]:g}; "
            "otherwise labels support the other class."
        )
    return rates


def class_codes(decision: Floats) -> Indices:
    """Return the number of the class with the largest decision value for every row."""
    return (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)


class DecidedClasses:
    """Mixin of classifiers that predict the class with the largest decision value."""

    classes_: np.ndarray[Any, Any]

    def decision_function(self, X: Any) -> Floats:
        """Return ``f(x)`` for every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict, in a form that `fit` takes.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Two classes: positive values support ``classes_[1]``. Otherwise one column per class or
            label.
        """
        raise NotImplementedError

    @by_parts
    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the predicted class of every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict, in a form that `fit` takes.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Class labels, or zeros and ones where `fit` was given several labels.
        """
        codes = class_codes(self.decision_function(X))
        return np.asarray(self.classes_[codes])
