"""The kernels of a model and the rows that prediction compares with, in model files."""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.banks import Views
from kernelweave.banks.nystroem.landmarks import LandmarkFunction
from kernelweave.estimators.base import in_use
from kernelweave.kernels import Kernel, Precomputed
from kernelweave.kernels.base import Rows
from kernelweave.kernels.discrete import N_WORDS
from kernelweave.kernels.table import Table

from .checks import check_array, check_rows_and_columns, check_type

KEYS = ("support_rows", "landmarks")


def parts(model: Any) -> dict[str, Any]:
    """Return the support rows, or the landmarks and coefficients of a Nystroem fit."""
    function = model._function
    if function is None:
        return {"support_rows": list(model._support_views.rows.values())}
    return {"landmarks": [function.which, list(function.rows), list(function.coefs)]}


def restore(model: Any, found: dict[str, Any]) -> None:
    """Check the model as a whole, and give it what `parts` returned."""
    _check(model)
    if "landmarks" in found:
        model._function = _landmarks(model, found["landmarks"])
    else:
        model._support_views = _views(model, found["support_rows"])


def _check(model: Any) -> None:
    """Refuse attributes that do not belong together."""
    declaration = model._declaration
    if declaration.learns == "paths":
        _check_structure(model)
    elif not model.weights_.any() and not getattr(model, "bias_weight_", 0.0):
        raise ValueError("weights_ must not be all zero")
    n_outputs = model.intercept_.size / getattr(model, "_n_functions", 1)
    if hasattr(model, "tasks_"):
        fits = n_outputs == model.tasks_.size
    elif "classes_" in declaration.saved:
        # Several labels at once have an output each, also where there are two.
        one = model.classes_.size == 2 and not getattr(model, "_several", False)
        fits = n_outputs == (1 if one else model.classes_.size)
    else:
        fits = n_outputs == 1 if model._one_output else n_outputs >= 1
    if not fits:
        raise ValueError(f"the number of outputs cannot be {n_outputs:g}")
    if (last := getattr(model, "_last", None)) is not None:
        weights, coef, C = last
        check_array("the weights to start from", weights, "f", (len(model.kernels_),))
        check_rows_and_columns("the coefficients to start from", coef, "f", model.intercept_.size)
        check_type("the C to start from", C, Real)


def _check_structure(model: Any) -> None:
    network = model.network_
    names = [network.names[i] for i in network.products]
    if list(model.node_weights_) != names:
        raise ValueError("node_weights_ does not belong to the structure")
    for name, value in model.node_weights_.items():
        check_type(f"the weight of {name}", value, Real)
        if not 0 <= value < np.inf:
            raise ValueError(f"the weight of {name} must not be negative")
    if len(network.leaves) != len(model.kernels_):
        raise ValueError("the structure does not have the kernels of the model")
    check_array("weights_", model.weights_, "f", (len(model.paths_),))


def _landmarks(model: Any, found: Any) -> LandmarkFunction:
    """Return the prediction function of a Nystroem fit."""
    if not model._takes_features or not isinstance(found, list) or len(found) != 3:
        raise ValueError("this model has no landmarks")
    which, rows, coefs = found
    check_type("the kernels in use", which, np.ndarray)
    check_array("the kernels in use", which, "i", (which.size,))
    if not which.size or not 0 <= which.min() <= which.max() < len(model.kernels_):
        raise ValueError("landmarks belong to kernels that are not there")
    if not (isinstance(rows, list) and isinstance(coefs, list)):
        raise ValueError("the landmarks are not lists")
    if not len(rows) == len(coefs) == which.size:
        raise ValueError("the landmarks do not belong to the kernels in use")
    if not np.isnan(model.duality_gap_):  # a fit in closed form has no gap
        check_type("landmark_gap_", getattr(model, "landmark_gap_", None), Real)
    table = _empty_table(model)
    for j, own, coef in zip(which, rows, coefs, strict=True):
        n_outputs = model.intercept_.size
        check_rows_and_columns("the coefficients of landmarks", coef, "f", n_outputs)
        _check_rows(model.kernels_[j], own, table, len(coef))
    return LandmarkFunction(which, tuple(rows), tuple(coefs))


def _empty_table(model: Any) -> Table:
    names = getattr(model, "feature_names_in_", None)
    body = np.empty((0, int(model.n_features_in_)))
    return Table(None, body, None if names is None else list(names))


def _views(model: Any, rows: Any) -> Views:
    """Return the support rows by the columns that the kernels in use see."""
    learns = model._declaration.learns
    used = range(len(model.kernels_)) if learns == "paths" else in_use(model.weights_)
    kernels = [model.kernels_[j] for j in used]
    if learns == "nodes":
        kernels = list(model._products().factors)
    keys: list[Hashable] = [kernel.view for kernel in kernels]
    distinct = dict.fromkeys(keys)
    if not isinstance(rows, list) or len(rows) != len(distinct):
        raise ValueError("the support rows do not belong to the kernels in use")
    by_key = dict(zip(distinct, rows, strict=True))
    table = _empty_table(model)
    for kernel, key in zip(kernels, keys, strict=True):
        _check_rows(kernel, by_key[key], table, len(model.support_))
    return Views(keys, by_key)


def _check_rows(kernel: Kernel, rows: Rows, table: Table, n: int) -> None:
    """Refuse rows that this kernel cannot have prepared."""
    kernel = kernel.unwrapped
    parts = kernel.row_parts
    if parts:
        if not isinstance(rows, tuple) or len(rows) != len(parts):
            raise ValueError(f"{kernel}: its support rows have other parts")
        for part, own in zip(parts, rows, strict=True):
            _check_rows(part, own, table, n)
        return
    n_columns = kernel.n_prepared(table)
    name = f"{kernel}: support rows"
    kind = kernel.row_format
    if isinstance(kernel, Precomputed):
        check_array(name, rows, "i", (n,))
        if n_columns != 1 or (n and not -1 <= rows.min() <= rows.max() < len(kernel.gram)):
            raise ValueError(f"{kernel}: its support rows are not in the matrix")
    elif kind == "words" or (kind == "numbers" and isinstance(rows, sp.csr_array)):
        check_type(name, rows, sp.csr_array)
        if rows.shape != (n, N_WORDS if kind == "words" else n_columns) or rows.dtype != np.float64:
            raise ValueError(f"{kernel}: its support rows have shape {rows.shape}")
    elif kind in ("numbers", "values"):
        numbers = kind == "numbers" or (isinstance(rows, np.ndarray) and rows.dtype.kind == "f")
        check_array(name, rows, "f" if numbers else "biufUO", (n, n_columns))
