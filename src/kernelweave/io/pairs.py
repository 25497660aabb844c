"""Kernels learned from pairs, in model files: rates, statistic, chosen options and shape."""

from __future__ import annotations

import dataclasses
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelweave.pairs import Rates, Statistic
from kernelweave.pairs.shapes import SHAPES, ShapedKernel
from kernelweave.pairs.shrink import Assessment, Setting

from .checks import check_array, check_type

KEYS = ("rates", "statistic", "setting", "selection", "shape")


def parts(model: Any) -> dict[str, Any]:
    """Return the nested parts; training rows are kept only where the shape needs them."""
    kernel = model._kernel
    shape = None
    if kernel is not None:
        rows = kernel.X if kernel.shape != "diag" else None
        shape = (kernel.shape, rows, kernel.smoother, kernel.steps)
    return {
        "rates": _fields(model.rates_),
        "statistic": _fields(model.statistic_),
        "setting": _fields(model.setting_),
        "selection": [(dataclasses.astuple(one.setting), one.scores) for one in model.selection_],
        "shape": shape,
    }


def _fields(value: Any) -> Any:
    return None if value is None else tuple(vars(value).values())


def restore(model: Any, found: dict[str, Any]) -> None:
    """Check the model as a whole, and give it what `parts` returned."""
    for name, value in model.diagnostics_.items():
        check_type("a name in diagnostics_", name, str)
        check_type(name, value, Real)
    if model._factors is not None:
        check_array("the factors of the columns", model._factors, "f", model.weights_.shape)
    rates, statistic, setting = (found[key] for key in ("rates", "statistic", "setting"))
    model.rates_ = None if rates is None else _rates(*rates)
    model.statistic_ = None if statistic is None else Statistic(*statistic)
    for value in statistic or ():
        check_array("statistic_", value, "f", model.weights_.shape)
    model.setting_ = None if setting is None else _setting(*setting)
    model.selection_ = [
        Assessment(_setting(*one), tuple(float(score) for score in scores))
        for one, scores in found["selection"]
    ]
    model._kernel = _kernel(model, found["shape"])


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


def _kernel(model: Any, found: Any) -> ShapedKernel | None:
    if len({item is None for item in (found, model.setting_, model._factors)}) > 1:
        raise ValueError("the setting does not belong to the kernel")
    if found is None:
        return None
    shape, rows, smoother, steps = found
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
