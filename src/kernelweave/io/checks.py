"""What every model that is read must pass; ValueError says what is wrong."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelweave.solvers import Step


def check_type(name: str, value: Any, kinds: Any) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, kinds):
        raise ValueError(f"{name} is a {type(value).__name__}")


def check_array(name: str, value: Any, kind: str, shape: tuple[int, ...]) -> None:
    """Refuse what is not an array of these kinds of numpy and this shape."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kind or value.shape != shape:
        found = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value)
        raise ValueError(f"{name} must be an array of shape {shape}, got {found}")
    if kind == "f" and value.dtype != np.float64:
        raise ValueError(f"{name} must hold float64, got {value.dtype}")


def check_names(name: str, value: Any) -> None:
    """Refuse what is not an array of strings."""
    check_type(name, value, np.ndarray)
    check_array(name, value, "O", (value.size,))
    if not value.size or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{name} must hold strings")


def check_record(model: Any) -> None:
    """Refuse what a fit says of itself unless it is numbers."""
    for name in ("objective_", "duality_gap_"):
        check_type(name, getattr(model, name), Real)
    check_type("converged_", model.converged_, bool | np.bool_)
    check_type("n_iter_", model.n_iter_, Integral)
    check_type("history_", model.history_, list)
    for step in model.history_:
        check_type("an item of history_", step, Step)
        for value in vars(step).values():
            check_type("a number in history_", value, Real)


def check_columns(model: Any) -> None:
    """Refuse names of columns unless there is one for each."""
    check_type("n_features_in_", model.n_features_in_, Integral)
    if hasattr(model, "feature_names_in_"):
        check_names("feature_names_in_", model.feature_names_in_)
        if model.feature_names_in_.size != model.n_features_in_:
            raise ValueError("feature_names_in_ does not have n_features_in_ items")
