"""Learners from pairs as JSON, and back."""

from __future__ import annotations

import dataclasses
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelweave.estimators import PairwiseKernelLearner
from kernelweave.kernels import Kernel
from kernelweave.pairs import Rates, Statistic
from kernelweave.pairs.shapes import SHAPES, ShapedKernel
from kernelweave.pairs.shrink import Assessment, Setting

from .archive import Writer
from .checks import check_array, check_columns, check_type
from .codec import Decoder, DependsOnDataError, encode

_FITTED = """weights_ intercept_ scale_ threshold_ objective_ n_iter_ converged_ diagnostics_
n_features_in_ _factors""".split()
_OPTIONAL = ["feature_names_in_"]
_NUMBERS = ["intercept_", "scale_", "threshold_", "objective_"]


def encode_pairs(model: PairwiseKernelLearner, writer: Writer) -> dict[str, Any]:
    """Return a fitted learner as JSON; training rows are kept only where its kernel needs them."""
    names = [*_FITTED, *(name for name in _OPTIONAL if hasattr(model, name))]
    kernels = encode(model.kernels_, writer)
    judged = [(dataclasses.astuple(one.setting), one.scores) for one in model.selection_]
    return {
        "estimator": type(model).__name__,
        "parameters": _parameters(model, kernels, writer),
        "kernels": kernels,
        "fitted": {name: encode(getattr(model, name), writer) for name in names},
        "rates": encode(_fields(model.rates_), writer),
        "statistic": encode(_fields(model.statistic_), writer),
        "setting": encode(_fields(model.setting_), writer),
        "selection": encode(judged, writer),
        "shape": encode(_shape(model._kernel), writer),
    }


def _parameters(model: PairwiseKernelLearner, kernels: Any, writer: Writer) -> dict[str, Any]:
    given = model.get_params(deep=False)
    try:
        first = encode(given.pop("kernels"), writer)
    except DependsOnDataError:
        first = kernels
    return {"kernels": first} | {name: encode(value, writer) for name, value in given.items()}


def _fields(value: Any) -> Any:
    return None if value is None else tuple(vars(value).values())


def _shape(kernel: ShapedKernel | None) -> Any:
    if kernel is None:
        return None
    needed = kernel.shape != "diag"
    return kernel.shape, kernel.X if needed else None, kernel.smoother, kernel.steps


def decode_pairs(node: dict[str, Any], decode: Decoder) -> PairwiseKernelLearner:
    """Return what `encode_pairs` was given; ValueError and TypeError say what is wrong."""
    options = {name: decode(value) for name, value in node["parameters"].items()}
    model = PairwiseKernelLearner(**options)
    model._validate_params()
    fitted = {name: decode(value) for name, value in node["fitted"].items()}
    if not set(_FITTED) <= set(fitted) <= {*_FITTED, *_OPTIONAL}:
        raise ValueError(f"the fitted attributes are {sorted(fitted)}")
    for name, value in fitted.items():
        setattr(model, name, value)
    model.kernels_ = decode(node["kernels"])
    _check_fitted(model)
    rates, statistic = decode(node["rates"]), decode(node["statistic"])
    model.rates_ = None if rates is None else _rates(*rates)
    model.statistic_ = None if statistic is None else Statistic(*statistic)
    for value in () if statistic is None else statistic:
        check_array("statistic_", value, "f", model.weights_.shape)
    setting = decode(node["setting"])
    model.setting_ = None if setting is None else _setting(*setting)
    model.selection_ = [
        Assessment(_setting(*one), tuple(float(score) for score in scores))
        for one, scores in decode(node["selection"])
    ]
    model._kernel = _kernel(model, decode(node["shape"]))
    return model


def _check_fitted(model: Any) -> None:
    check_type("weights_", model.weights_, np.ndarray)
    check_array("weights_", model.weights_, "f", (model.weights_.size,))
    if not (model.weights_ >= 0).all() or not np.isfinite(model.weights_).all():
        raise ValueError("weights_ must be finite and not negative")
    for name in _NUMBERS:
        check_type(name, getattr(model, name), Real)
    check_type("converged_", model.converged_, bool | np.bool_)
    check_type("n_iter_", model.n_iter_, Integral)
    check_columns(model)
    check_type("diagnostics_", model.diagnostics_, dict)
    for name, value in model.diagnostics_.items():
        check_type("a name in diagnostics_", name, str)
        check_type(name, value, Real)
    check_type("kernels_", model.kernels_, list | None)
    for kernel in model.kernels_ or ():
        check_type("an item of kernels_", kernel, Kernel)
    count = model.n_features_in_ if model.kernels_ is None else len(model.kernels_)
    if model.weights_.size != count:
        raise ValueError(f"there are {model.weights_.size} weights for {count} kernels")
    if model._factors is not None:
        check_array("the factors of the columns", model._factors, "f", (count,))


def _rates(reliability: Any, prior: Any) -> Rates:
    up, down = reliability
    for value in (up, down, prior):
        check_type("a rate", value, Real)
    return Rates((up, down), prior)


def _setting(shape: Any, gamma: Any, alpha: Any, rho: Any, steps: Any) -> Setting:
    for value in (gamma, alpha, rho):
        check_type("an option", value, Real)
    check_type("steps", steps, Integral)
    if shape not in SHAPES or steps < 0:
        raise ValueError(f"there is no shape {shape!r} with {steps} steps")
    return Setting(shape, gamma, alpha, rho, steps)


def _kernel(model: Any, parts: Any) -> ShapedKernel | None:
    if len({item is None for item in (parts, model.setting_, model._factors)}) > 1:
        raise ValueError("the setting does not belong to the kernel")
    if parts is None:
        return None
    shape, rows, smoother, steps = parts
    if (shape, steps) != (model.setting_.shape, model.setting_.steps):
        raise ValueError("the setting does not belong to the kernel")
    if shape != "diag":
        check_type("the smoother", smoother, csr_array)
        n = smoother.shape[0]
        if smoother.shape != (n, n) or smoother.dtype != np.float64:
            raise ValueError(f"the smoother has shape {smoother.shape}")
        expected = (n, model.weights_.size)
        if isinstance(rows, csr_array):
            if rows.shape != expected or rows.dtype != np.float64:
                raise ValueError(f"the training rows have shape {rows.shape}")
        else:
            check_array("the training rows", rows, "f", expected)
    return ShapedKernel(shape, rows, model.weights_, smoother, steps)
