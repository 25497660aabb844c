"""What else a fitted model is asked for: explanations, a model file, rows of all kinds."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from kernelweave import io
from kernelweave.errors import KernelweaveError
from kernelweave.inspection import effects, explain

from .claims import KERNEL, values_at

SHARE = 0.2  # of the fits whose model is used further
MOST_ROWS = 120
DOUBLE = 1e-9  # relative accuracy of values of one row alone, and
SINGLE = 1e-6  # accuracy of functions of Nystroem features, whose coefficients are float32


def check_uses(instance, model, outcome):
    """Save, explain and predict unusual rows."""
    rng = np.random.default_rng([instance.seed, 18])  # the draws of other checks stay as they are
    if rng.random() > SHARE or not hasattr(model, "predict"):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _check_file(instance, model, outcome)
        _check_rows(instance, model, outcome)
        if instance.n_rows <= MOST_ROWS:
            _check_explanation(rng, instance, model, outcome)


def _check_file(instance, model, outcome):
    """A model that was saved and loaded gives the same values, bit by bit."""
    if type(model).__module__.startswith("tests") or "fuzz" in type(model).__module__:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.kw"
        try:
            io.save(model, path)
        except KernelweaveError:  # such as a kernel from a function
            return
        except Exception as error:
            outcome.report("foreign exception", f"save: {type(error).__name__}: {error}")
            return
        try:
            again = io.load(path)
        except Exception as error:
            outcome.report("wrong refusal", f"load: {type(error).__name__}: {error}")
            return
    before, after = (values_at(item, instance.new) for item in (model, again))
    if before.tobytes() != after.tobytes():
        outcome.report("wrong values", "a loaded model differs from the saved one")


def _check_rows(instance, model, outcome):
    """One row alone has the values it has among others; no row and infinite rows are refused."""
    new = instance.new
    whole = values_at(model, new)
    one = values_at(model, _pick(new, slice(1, 2)))
    near = SINGLE if getattr(model, "_function", None) is not None else DOUBLE
    limit = near * np.abs(whole).max(initial=0.0) + _rounding(instance, model) + 1e-300
    if not (np.abs(one - whole[1:2]) <= limit).all():
        outcome.report("wrong values", f"one row alone is off by {np.abs(one - whole[1:2]).max()}")
    for what, rows in (("no rows", _pick(new, slice(0, 0))), ("infinity", _with_infinity(new))):
        if rows is None:
            continue
        try:
            values = np.asarray(model.predict(rows))
        except (KernelweaveError, ValueError):
            continue
        except Exception as error:
            outcome.report("foreign exception", f"{what}: {type(error).__name__}: {error}")
            continue
        if len(values) != rows.shape[0]:
            outcome.report("wrong values", f"{what}: {len(values)} predictions")
        elif values.dtype.kind == "f" and not np.isfinite(values).all():
            outcome.report("not finite", f"predictions of {what}")


def _rounding(instance, model):
    """Return how far values may be off by the order of a sum over support rows that cancel."""
    if hasattr(model, "members_"):  # whose log-probabilities change by no more than the values
        return sum(_rounding(instance, member) for member in model.members_)
    if not (hasattr(model, "dual_coef_") and hasattr(model, "kernel")):
        return 0.0
    support = _pick(instance.fit["X"], model.support_)
    if not len(model.support_):
        return 0.0
    roots = [np.sqrt(np.maximum(np.diagonal(model.kernel(X)), 0)) for X in (instance.new, support)]
    return KERNEL * roots[0].max() * float((np.abs(model.dual_coef_) @ roots[1]).max())


def _pick(X, rows):
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def _with_infinity(X):
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        X = X.copy()
        X[0, 0] = np.inf
        return X
    if isinstance(X, pd.DataFrame):
        X = X.copy()
        X.iloc[0, 0] = -np.inf
        return X
    if sparse.issparse(X) and X.nnz:
        X = X.copy()
        X.data[0] = np.inf
        return X
    return None


def _check_explanation(rng, instance, model, outcome):
    """Shares add up to the decision value; both ways of filling columns are finite."""
    value = "joint" if rng.random() < 0.5 else "independent"
    try:
        found = explain(model, instance.new, instance.fit["X"], value=value, n_jobs=1)
    except KernelweaveError:  # such as kernels on the same columns that do not add up
        return
    except Exception as error:
        outcome.report("foreign exception", f"explain: {type(error).__name__}: {error}")
        return
    shares, base = np.asarray(found.values), np.asarray(found.base_values)
    total, claimed = base + shares.sum(axis=1), np.asarray(found.predictions)
    size = np.abs(base).max() + np.abs(shares).sum(axis=1).max()
    if not (np.isfinite(shares).all() and np.isfinite(base).all()):
        outcome.report("not finite", f"explain: values by {value}")
    elif not np.allclose(total, claimed, rtol=0, atol=1e-9 * size + 1e-300):
        outcome.report("wrong values", f"explain: shares miss {np.abs(total - claimed).max():.3g}")
    if rng.random() < 0.3:
        try:
            effects(model, instance.fit["X"], n_jobs=1)
        except KernelweaveError:
            pass
        except Exception as error:
            outcome.report("foreign exception", f"effects: {type(error).__name__}: {error}")
