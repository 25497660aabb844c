"""Checks of models with out-of-fold values: calibrator, folds, and the models without each fold."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave.estimators.calibrators import METHODS, Calibrator

from .checks import check_array, check_type


def check(model: Any) -> None:
    """Refuse a model whose folds and calibrator do not belong to it."""
    if not hasattr(model, "_needs_folds"):
        return
    if getattr(model, "_n_functions", 1) < 1:
        raise ValueError("a model must hold one function or more")
    wanted = model._needs_folds
    if wanted != hasattr(model, "out_of_fold_"):
        raise ValueError("calibration or intervals, and out-of-fold values, do not belong together")
    if not wanted:
        return
    mark = "_codes" if hasattr(model, "classes_") else "_residuals"
    for name in ("coverage_guarantee_", "_fold", "_row_weight", "_n_folds", "_folds", mark):
        if not hasattr(model, name):
            raise ValueError(f"{name} is missing")
    n_outputs = model.intercept_.size
    if not (np.isfinite(model._row_weight).all() and (model._row_weight >= 0).all()):
        raise ValueError("weights of rows must be finite and not negative")
    used = model._row_weight > 0
    if not used.any() or not np.isfinite(model.out_of_fold_[used]).all():
        raise ValueError("out_of_fold_ must be finite for rows with a weight")
    if not 0 <= model._fold[used].min() <= model._fold[used].max() < model._n_folds:
        raise ValueError(f"there are no more than {model._n_folds} folds")
    for fold in model._folds:
        # Estimators that choose their C keep models of the one with a given C.
        if not issubclass(type(model), type(fold)) or fold._needs_folds:
            raise ValueError("a model without a fold must be of the same kind, without folds")
        if fold.n_features_in_ != model.n_features_in_:
            raise ValueError("a model without a fold has other columns")
    if sum(fold.intercept_.size for fold in model._folds) != model._n_folds * n_outputs:
        raise ValueError(f"the models without a fold do not have {n_outputs} outputs each")
    if hasattr(model, "classes_"):
        _check_calibrator(model, n_outputs)
        _check_codes(model, used)


def _check_calibrator(model: Any, n_outputs: int) -> None:
    found: Any = getattr(model, "calibrator_", None)
    check_type("calibrator_", found, Calibrator)
    check_type("labels of calibrator_", found.labels, bool | np.bool_)
    if found.method not in METHODS or found.labels != model._has_labels:
        raise ValueError("calibrator_ does not belong to the model")
    shapes: dict[str, tuple[int, ...]] = {"slopes": (n_outputs,), "biases": (n_outputs,)}
    if (found.method == "matrix") != (found.mixing is not None):
        raise ValueError("calibrator_ does not belong to the model")
    if found.mixing is not None:
        shapes["mixing"] = (n_outputs, n_outputs)
    for name, shape in shapes.items():
        check_array(f"{name} of calibrator_", getattr(found, name), "f", shape)
        if not np.isfinite(getattr(found, name)).all():
            raise ValueError(f"{name} of calibrator_ must be finite")
    check_type("steps of calibrator_", found.steps, tuple)
    if len(found.steps) not in (0, n_outputs):
        raise ValueError("calibrator_ must have a step function for each output")
    for steps in found.steps:
        check_type("steps of calibrator_", steps, np.ndarray)
        check_array("steps of calibrator_", steps, "f", (2, steps.size // 2))
        values, p = steps
        if not len(p) or not (np.diff(values) >= 0).all() or not ((p > 0) & (p < 1)).all():
            raise ValueError("steps of calibrator_ must be probabilities of increasing values")


def _check_codes(model: Any, used: Any) -> None:
    n_marks = model.intercept_.size if model._has_labels else 1
    check_array("_codes", model._codes, "f", (len(used), n_marks))
    if not model._has_labels:
        codes = model._codes[used]
        if not np.isin(codes, np.arange(model.classes_.size)).all():
            raise ValueError("_codes must hold positions in classes_")
