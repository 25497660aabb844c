"""Targets of one or several related tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import LabelEncoder

from kernelweave._types import Floats, Indices
from kernelweave._validation import is_missing
from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels.base import is_number

_ASYMMETRY = 1e-9  # of a task matrix, relative to its largest entry


@dataclass(frozen=True)
class Targets:
    """What is to be learned.

    Parameters
    ----------
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of an error for C = 1; zero where a row has no part in an output.
    weight : ndarray of shape (n_samples,) or None
        Weights of the rows; None when all are one.
    fixed : dict of int to float
        Outputs with nothing to learn, and their constant score.
    """

    Y: Floats
    cost: Floats
    weight: Floats | None
    fixed: dict[int, float]


def task_matrix(task_correlation: Any, n_outputs: int) -> Floats | None:
    """Return ``B``, or None where the outputs are not related.

    Parameters
    ----------
    task_correlation : float, array of shape (n_outputs, n_outputs) or None
        A number ``mu`` stands for ``I + 11' / mu``.
    n_outputs : int
        Outputs to relate.
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
