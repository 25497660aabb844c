"""Checks of values read from a model file; they raise ValueError."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelweave.kernels import Kernel

_TYPES: dict[str, Any] = {
    "real": Real,
    "positive": Real,
    "integer": Integral,
    "flag": bool | np.bool_,
    "dict": dict,
    "kernel": Kernel,
    "history": list,
    "names": np.ndarray,
    "any": object,
}
# Numpy's letters for the types of arrays.
_ARRAYS = {
    "bool": "b",
    "float": "f",
    "weights": "f",
    "quality": "f",
    "partial": "f",
    "int": "i",
    "codes": "i",
    "order": "i",
    "labels": "biufUO",
}


def check_type(name: str, value: Any, kinds: Any) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, kinds):
        raise ValueError(f"{name} is a {type(value).__name__}")


def check_array(name: str, value: Any, kind: str, shape: tuple[int, ...]) -> None:
    """Refuse anything but an array of these kinds of numpy and this shape."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kind or value.shape != shape:
        found = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value)
        raise ValueError(f"{name} must be an array of shape {shape}, got {found}")
    if kind == "f" and value.dtype != np.float64:
        raise ValueError(f"{name} must hold float64, got {value.dtype}")


def check_rows_and_columns(name: str, value: Any, kind: str, n_columns: int) -> None:
    """Refuse anything but a matrix with this many columns."""
    check_type(name, value, np.ndarray)
    check_array(name, value, kind, (len(value), n_columns))


def check_names(name: str, value: Any) -> None:
    """Refuse anything but an array of strings."""
    check_type(name, value, np.ndarray)
    check_array(name, value, "O", (value.size,))
    if not value.size or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{name} must hold strings")


def check_fitted(
    fitted: Mapping[str, Any], kinds: Mapping[str, str], sizes: dict[str, int]
) -> None:
    """Refuse fitted attributes that do not have their declared kinds, see `Declaration`.

    ``sizes`` holds the dimensions that are known and is filled with those that are found.
    """
    parsed = {name: _parse(kinds[name]) for name in fitted}

    def late(name: str) -> tuple[bool, int]:
        dims = parsed[name][1]
        return any(d.endswith("?") for d in dims), len(dims)

    # Vectors fix the sizes that matrices must have; optional dimensions need the outputs.
    for name in sorted(parsed, key=late):
        kind, dims = parsed[name]
        dims = [d.rstrip("?") for d in dims if not (d.endswith("?") and sizes["outputs"] == 1)]
        if kind == "list":
            _check_list(name, fitted[name], dims[0], sizes)
        elif kind in _ARRAYS and (dims or kind != "float"):
            value = fitted[name]
            check_type(name, value, np.ndarray)
            found = value.shape if value.ndim == len(dims) else (0,) * len(dims)
            shape = tuple(sizes.setdefault(d, n) for d, n in zip(dims, found, strict=True))
            check_array(name, value, _ARRAYS[kind], shape)
        else:
            check_type(name, fitted[name], _TYPES["real" if kind == "float" else kind])
        _check_values(name, kind, fitted)


def _parse(kind: str) -> tuple[str, list[str]]:
    """Return ``("float", ["rows", "outputs?"])`` for ``"float[rows, outputs?]"``."""
    name, _, dims = kind.rstrip("]").partition("[")
    return name, dims.split(", ") if dims else []


def _check_list(name: str, value: Any, dim: str, sizes: dict[str, int]) -> None:
    check_type(name, value, list)
    if len(value) != sizes.setdefault(dim, len(value)):
        raise ValueError(f"{name} does not have the {dim} of the model")


def _check_values(name: str, kind: str, fitted: Mapping[str, Any]) -> None:
    """Refuse values outside the range of their kind."""
    value = fitted[name]
    if kind == "positive" and not 0 < value < np.inf:
        raise ValueError(f"{name} must be positive")
    if kind == "weights" and not (value >= 0).all():
        raise ValueError(f"{name} must not be negative")
    if kind == "codes" and value.size:
        if not 0 <= value.min() <= value.max() < fitted["classes_"].size:
            raise ValueError(f"{name} must hold positions in classes_")
    if kind == "order" and sorted(value.tolist()) != list(range(value.size)):
        raise ValueError(f"{name} must hold each position once")
    if kind == "names":
        check_names(name, value)
        if value.size != fitted["n_features_in_"]:
            raise ValueError(f"{name} does not have n_features_in_ items")
    if kind == "history" and len(value):
        from kernelweave.solvers import Step  # takes long to import

        for step in value:
            check_type("an item of history_", step, Step)
            for number in vars(step).values():
                check_type("a number in history_", number, Real)
