"""Fitted scalers, imputers and encoders of scikit-learn as JSON, and back.

`STEPS` lists the classes, and what a file holds of each: plain values and vectors, no function. A
step with anything else is refused when it is saved.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelweave.errors import ModelFileError

from .archive import KINDS, Writer
from .checks import check_names, check_type
from .codec import Decoder, NotStorableError, encode

INSTEAD = "save the last step alone with save(pipeline[-1], path)"
# Attributes of every step, which `encode_step` writes itself.
COMMON = {"n_features_in_", "feature_names_in_", "_sklearn_output_config"}
_PLAIN = bool | int | float | str | np.generic | datetime.date | None


@dataclass(frozen=True)
class Step:
    """What a file holds of a class of scikit-learn."""

    module: str
    # Fitted attributes and their kinds, the keys of `_READERS`.
    fitted: Mapping[str, str] = field(default_factory=dict)
    # The only value that a parameter may have in a file.
    only: Mapping[str, Any] = field(default_factory=dict)
    # Fitted attributes that follow from the others.
    derived: Callable[[Any], dict[str, Any]] = lambda step: {}
    # The number of columns that come out.
    width: Callable[[Any], int] = lambda step: int(step.n_features_in_)


def _derive_one_hot(step: Any) -> dict[str, Any]:
    drops = [None] * step.n_features_in_ if step.drop_idx_ is None else step.drop_idx_
    pairs = zip(step.categories_, drops, strict=True)
    return {
        "_infrequent_enabled": False,
        "_drop_idx_after_grouping": step.drop_idx_,
        "_n_features_outs": [len(levels) - (drop is not None) for levels, drop in pairs],
    }


def _derive_ordinal(step: Any) -> dict[str, Any]:
    last = enumerate(levels[-1] for levels in step.categories_)
    missing = {j: len(step.categories_[j]) - 1 for j, value in last if value != value}  # NaN
    return {"_infrequent_enabled": False, "_missing_indices": missing}


def _count_filled(step: Any) -> int:
    return sum(bool(step.keep_empty_features or value == value) for value in step.statistics_)


_HOME = "sklearn.preprocessing"
_NO_GROUPS = {"min_frequency": None, "max_categories": None}
STEPS: dict[str, Step] = {
    "StandardScaler": Step(
        _HOME, {"mean_": "vector", "var_": "vector", "scale_": "vector", "n_samples_seen_": "count"}
    ),
    "RobustScaler": Step(_HOME, {"center_": "vector", "scale_": "vector"}),
    "MinMaxScaler": Step(
        _HOME,
        dict.fromkeys(("min_", "scale_", "data_min_", "data_max_", "data_range_"), "vector")
        | {"n_samples_seen_": "count"},
    ),
    "MaxAbsScaler": Step(
        _HOME, {"max_abs_": "vector", "scale_": "vector", "n_samples_seen_": "count"}
    ),
    "SimpleImputer": Step(
        "sklearn.impute",
        {"statistics_": "vector", "_fit_dtype": "dtype"},
        {"add_indicator": False},
        lambda step: {"indicator_": None, "_fill_dtype": step._fit_dtype},
        _count_filled,
    ),
    "OneHotEncoder": Step(
        _HOME,
        {"categories_": "levels", "drop_idx_": "drops"},
        _NO_GROUPS,
        _derive_one_hot,
        lambda step: sum(step._n_features_outs),
    ),
    "OrdinalEncoder": Step(_HOME, {"categories_": "levels"}, _NO_GROUPS, _derive_ordinal),
    # Without a function it passes columns on; ColumnTransformer makes one of "passthrough".
    "FunctionTransformer": Step(
        _HOME, only=dict.fromkeys(("func", "inverse_func", "kw_args", "inv_kw_args"))
    ),
}


def encode_step(step: Any, writer: Writer) -> dict[str, Any]:
    """Return a fitted step as JSON; ModelFileError if a file cannot hold it."""
    name = type(step).__name__
    rule = STEPS[name]
    node = encode_common(step, rule.only, writer)
    known = {*step.get_params(deep=False), *rule.fitted, *rule.derived(step), *COMMON}
    check_attributes(step, known)
    fitted = {key: _encode_fitted(getattr(step, key), writer) for key in rule.fitted}
    return node | {"fitted": fitted}


def check_attributes(step: Any, known: set[str]) -> None:
    """Refuse a step with attributes that files do not hold."""
    if more := sorted(set(vars(step)) - known):
        name = type(step).__name__
        raise ModelFileError(f"A {name} with {', '.join(more)} cannot be saved; {INSTEAD}.")


def encode_common(step: Any, only: Mapping[str, Any], writer: Writer) -> dict[str, Any]:
    """Return the class, the parameters and the columns of a step."""
    names = getattr(step, "feature_names_in_", None)
    return {
        "step": type(step).__name__,
        "parameters": encode_parameters(step, only, writer),
        "columns": int(step.n_features_in_) if names is None else encode(plain(names), writer),
        "output": getattr(step, "_sklearn_output_config", {}).get("transform"),
    }


def encode_parameters(step: Any, only: Mapping[str, Any], writer: Writer) -> dict[str, Any]:
    """Return the parameters of a step, without the steps in it: those fitted take their place."""
    coded = {}
    for key, value in step.get_params(deep=False).items():
        if key in ("steps", "transformers", "remainder") or str(value) == "deprecated":
            continue
        try:
            if key in only and value is not only[key]:
                raise NotStorableError
            coded[key] = encode(np.dtype(value).str if key == "dtype" else plain(value), writer)
        except NotStorableError:
            name = type(step).__name__
            raise ModelFileError(
                f"A {name} with {key}={value!r} cannot be saved; {INSTEAD}."
            ) from None
    return coded


def plain(value: Any) -> Any:
    """Return arrays as lists, in which a file may hold NaN."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [plain(item) for item in value] if type(value) is list else value


def _encode_fitted(value: Any, writer: Writer) -> Any:
    if isinstance(value, list):
        return [_encode_fitted(item, writer) for item in value]
    if isinstance(value, np.dtype):
        return value.str
    if not isinstance(value, np.ndarray):
        return encode(value, writer)
    if value.dtype.kind not in KINDS + "O":
        raise ModelFileError(f"A step with values of type {value.dtype} cannot be saved.")
    kind = "U" if value.dtype.kind == "U" else value.dtype.str  # text is as wide as its values
    return {"tuple": [kind, encode(value.tolist(), writer)]}


def decode_step(node: dict[str, Any], decode: Decoder) -> Any:
    """Return the step of a document; ValueError and TypeError describe damaged ones."""
    rule = STEPS[node["step"]]
    step = made(rule, node, decode)
    restore_common(step, node, decode)
    for key, kind in rule.fitted.items():
        setattr(step, key, _READERS[kind](key, decode(node["fitted"][key]), step))
    for key, value in rule.derived(step).items():
        setattr(step, key, value)
    return step


def made(rule: Step, node: dict[str, Any], decode: Decoder, **parts: Any) -> Any:
    """Return a step with the parameters of a document, not yet fitted."""
    parameters = {key: decode(value) for key, value in node["parameters"].items()}
    for key, value in parameters.items():
        _check_plain(key, value)
        if key in rule.only and value is not rule.only[key]:
            raise ValueError(f"{key} is {value!r}")
    if "dtype" in parameters:
        parameters["dtype"] = _read_dtype("dtype", parameters["dtype"]).type
    step = getattr(import_module(rule.module), node["step"])(**parameters, **parts)
    step._validate_params()
    return step


def restore_common(step: Any, node: dict[str, Any], decode: Decoder) -> None:
    """Give a step its number of columns, their names and its kind of output."""
    columns = decode(node["columns"])
    if isinstance(columns, list):
        step.feature_names_in_ = np.array(columns, dtype=object)
        check_names("the names of columns", step.feature_names_in_)
        columns = len(columns)
    check_type("the number of columns", columns, int)
    if columns < 1:
        raise ValueError("a step has no columns")
    step.n_features_in_ = columns
    if node["output"] is not None:
        check_output(node["output"])
        step.set_output(transform=node["output"])


def check_output(kind: Any) -> None:
    """Refuse anything but a container of scikit-learn."""
    if kind not in ("default", "pandas", "polars"):
        raise ValueError(f"there is no output {kind!r}")


def _check_plain(name: str, value: Any) -> None:
    """Refuse kernels, which are functions, and other objects."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        for item in value:
            _check_plain(name, item)
    else:
        check_type(name, value, _PLAIN)


def _read_dtype(name: str, value: Any, step: Any = None) -> np.dtype[Any]:
    check_type(name, value, str)
    found: np.dtype[Any] = np.dtype(value)
    if found.kind not in KINDS + "O" or (step is None and found.kind not in "fiu"):
        raise ValueError(f"{name} is {value!r}")
    return found


def _read_vector(name: str, value: Any, step: Any) -> NDArray[Any] | None:
    if value is None:
        return None
    array = _read_values(name, value)
    if array.size != step.n_features_in_:
        raise ValueError(f"{name} has {array.size} values for {step.n_features_in_} columns")
    return array


def _read_values(name: str, value: Any) -> NDArray[Any]:
    check_type(name, value, tuple)
    kind, values = value
    check_type(name, values, list)
    _check_plain(name, values)
    if kind != "U" and (_read_dtype(name, kind, step=name).kind == "U"):
        raise ValueError(f"{name} is {kind!r}")
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array if np.dtype(kind) == object else array.astype(kind)


def _read_levels(name: str, value: Any, step: Any) -> list[NDArray[Any]]:
    check_type(name, value, list)
    if len(value) != step.n_features_in_:
        raise ValueError(f"{name} has {len(value)} items for {step.n_features_in_} columns")
    levels = [_read_values(name, item) for item in value]
    if not all(item.size for item in levels):
        raise ValueError(f"{name} holds a column without levels")
    return levels


def _read_drops(name: str, value: Any, step: Any) -> NDArray[Any] | None:
    drops = _read_vector(name, value, step)
    if drops is not None:
        for drop, levels in zip(drops, step.categories_, strict=True):
            check_type(name, drop, Integral | None)
            if drop is not None and not 0 <= drop < len(levels):
                raise ValueError(f"{name} holds {drop}")
    return drops


def _read_count(name: str, value: Any, step: Any) -> Any:
    if isinstance(value, tuple):
        return _read_vector(name, value, step)
    check_type(name, value, Real)  # a sum of weights
    return value


_READERS: dict[str, Callable[[str, Any, Any], Any]] = {
    "vector": _read_vector,  # one value per column, or None
    "levels": _read_levels,  # a vector of any length per column
    "drops": _read_drops,  # the level of each column that is left out
    "count": _read_count,  # of rows, one or one per column
    "dtype": _read_dtype,
}
