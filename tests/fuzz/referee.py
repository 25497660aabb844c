"""Fit a model and check it: exceptions, warnings, inputs, repeats, and what it claims."""

import re
import warnings
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import InvalidParameterError

from kernelweave.errors import KernelweaveError

from .claims import CHECKS, AskingError, values_at
from .instances import Instance
from .sureness import check_sure
from .uses import check_uses

# Sentences of scikit-learn that a user may see in place of the library's own.
SKLEARN = (
    r"Found array with \d+ (sample|feature)",
    r"Input (X|y) contains (NaN|infinity)",
    r"Found input variables with inconsistent numbers of samples",
    r"Unknown label type",
    r"The number of classes has to be greater than one",
    r"n_splits=\d+ cannot be greater than",
    r"Cannot have number of splits",
)
# Every kernel that is drawn is positive semi-definite, so that these refusals are wrong.
WRONG_REFUSALS = ("not positive semi-definite", "not a valid kernel", "not symmetric")
# What may be other than finite: see the documentation of these attributes.
NOT_FINITE = {
    "cv_error_": "nan",
    "coverage_guarantee_": "nan",
    "landmark_gap_": "nan",
    "duality_gap_": "inf nan",
    "lower_bound_": "-inf",
    "label_quality_": "nan",
    "loo_values_": "nan",  # of rows of weight zero
}


@dataclass
class Outcome:
    """What became of one fit."""

    estimator: str = ""
    status: str = "fitted"  # "refused", "foreign", "slow" or "stuck"
    converged: bool = True
    conic: bool = False  # whether a conic solver found an upper bound
    findings: list[tuple[str, str]] = field(default_factory=list)

    def report(self, kind, text):
        self.findings.append((kind, text))


def check_fit(instance: Instance, stage=lambda name: None) -> Outcome:
    """Fit, and check everything that can be checked; ``stage`` hears what is being done."""
    outcome = Outcome(instance.name)
    before = {name: _bits(value) for name, value in instance.fit.items()}
    stage("fit")
    model, caught = _fit(instance, outcome)
    stage("referee")
    for name, value in instance.fit.items():
        if _bits(value) != before[name]:
            outcome.report("changed input", f"{name} is not what it was before the fit")
    if model is None:
        return outcome
    outcome.converged = bool(getattr(model, "converged_", True))
    warned = any(issubclass(item.category, ConvergenceWarning) for item in caught)
    if not outcome.converged and not warned:
        outcome.report("silent", "converged_ is False, and no ConvergenceWarning said so")
    if instance.repeat:
        stage("fit")
        again, _ = _fit(instance, Outcome())
        stage("referee")
        _check_same(model, again, outcome)
    try:
        with np.errstate(all="ignore"):
            for check in (check_finite, check_sure, check_uses, *CHECKS[instance.name]):
                check(instance, model, outcome)
    except AskingError as error:
        # A row of weight zero, or a new one, may have a gap where no other row of `fit` has one:
        # `predict` refuses it. So it does where squares of new rows overflow.
        gaps = {"gap", "gaps"} & set(instance.traits)
        huge = "overflow" in str(error) and squares_overflow(instance.new)
        if not ((gaps or huge) and isinstance(error.__cause__, KernelweaveError)):
            outcome.report("foreign exception", str(error))
    return outcome


def squares_overflow(rows):
    """Return whether sums of squares of the numbers in a row are infinite."""
    if sparse.issparse(rows):
        rows = rows.toarray()
    numbers = pd.DataFrame(rows).select_dtypes("number").to_numpy(dtype=float)
    with np.errstate(over="ignore"):
        return bool(np.isinf((numbers**2).sum(axis=1)).any())


def _fit(instance, outcome):
    model = clone(instance.model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(**instance.fit)
        except (KernelweaveError, InvalidParameterError) as error:
            outcome.status = "refused"
            if any(words in str(error) for words in WRONG_REFUSALS):
                outcome.report("wrong refusal", str(error))
            return None, caught
        except Exception as error:
            known = isinstance(error, ValueError)
            if known and any(re.search(words, str(error)) for words in SKLEARN):
                outcome.status = "refused"
            else:
                outcome.status = "foreign"
                outcome.report("foreign exception", f"{type(error).__name__}: {error}")
            return None, caught
    for item in caught:
        if issubclass(item.category, RuntimeWarning):
            where = f"{item.filename.rsplit('/', 2)[-1]}:{item.lineno}"
            outcome.report("foreign warning", f"{item.message} ({where})")
            break
    return model, caught


def _bits(value):
    """Return everything there is of an argument, for comparison."""
    if sparse.issparse(value):
        return [part.tobytes() for part in (value.data, value.indices, value.indptr)]
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.shape, value.strides, value.tobytes()
    if isinstance(value, pd.DataFrame):
        return [_bits(value[name].to_numpy()) for name in value]
    if hasattr(value, "to_dict"):
        return value.to_dict(as_series=False).__repr__()
    return repr(value)


def _public(model):
    learned = {k: v for k, v in vars(model).items() if k.endswith("_") and k[0] != "_"}
    arrays = {k: np.asarray(v) for k, v in learned.items() if isinstance(v, np.ndarray | float)}
    return {k: v for k, v in arrays.items() if v.dtype.kind in "fiub"}


def check_finite(instance, model, outcome):
    for name, value in _public(model).items():
        wrong = value[~np.isfinite(value)].astype(float)
        allowed = [float(item) for item in NOT_FINITE.get(name, "").split()]
        if getattr(model, "method", "") == "shrink" and name == "objective_":
            allowed.append(np.nan)  # an average of several models has no objective
        if hasattr(model, "members_") and name == "objective_":
            allowed.append(np.nan)
        wrong = [w for w in wrong if not any(w == a or (w != w and a != a) for a in allowed)]
        if wrong:
            outcome.report("not finite", f"{name} has {len(wrong)} values such as {wrong[0]}")
    if not np.isfinite(values_at(model, instance.fit["X"])).all():
        outcome.report("not finite", "the values at the training rows")
    gap = getattr(model, "duality_gap_", 0.0)
    if gap < 0:
        outcome.report("false certificate", f"the duality gap is {gap:.3g}")


def _check_same(model, again, outcome):
    if again is None:
        outcome.report("not reproducible", "the same fit was refused")
        return
    first, second = _public(model), _public(again)
    for name, value in first.items():
        if name not in second or value.tobytes() != second[name].tobytes():
            outcome.report("not reproducible", f"{name} differs")
            return
