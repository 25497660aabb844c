"""What probabilities, sets and intervals promise, and that they leave the model as it is."""

import warnings
from itertools import pairwise

import numpy as np
from sklearn.base import clone

from kernelweave.errors import KernelweaveError

from .claims import ask

SHARE = 0.25  # of the instances whose fit is repeated with calibration or intervals
MOST_ROWS = 300
CALIBRATIONS = ("auto", "sigmoid", "matrix", "vector", "temperature", "isotonic")


def check_sure(instance, model, outcome):
    """Fit again with probabilities or intervals, and check them at rows that are new."""
    rng = np.random.default_rng([instance.seed, 21])  # the draws of other checks stay as they are
    if rng.random() > SHARE or instance.n_rows > MOST_ROWS:
        return
    options = _options(rng, instance)
    if not options:
        return
    sure = clone(instance.model).set_params(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            sure.fit(**instance.fit)
        except KernelweaveError:  # such as a class of one row
            return
        except Exception as error:
            outcome.report("foreign exception", f"{options}: {type(error).__name__}: {error}")
            return
        _check_unchanged(model, sure, options, outcome)
        if hasattr(sure, "predict_proba"):
            _check_probabilities(sure, instance.new, outcome)
        if hasattr(sure, "predict_set") and not sure._has_labels:
            _check_sets(sure, instance.new, outcome)
        if hasattr(sure, "predict_interval"):
            _check_intervals(sure, instance.new, outcome)


def _options(rng, instance):
    known = instance.model.get_params(deep=False)
    if "calibration" in known:
        method = str(rng.choice(CALIBRATIONS))
        several = len(np.unique(np.asarray(instance.fit["y"], dtype=str))) > 2
        return {"calibration": "vector" if several and method == "sigmoid" else method}
    return {"intervals": "auto"} if "intervals" in known else {}


def _check_unchanged(model, sure, options, outcome):
    for name in ("weights_", "dual_coef_", "intercept_", "objective_", "duality_gap_"):
        plain = np.asarray(getattr(model, name, 0.0))
        if plain.tobytes() != np.asarray(getattr(sure, name, 0.0)).tobytes():
            outcome.report("changed model", f"{options} changes {name}")
            return


def _check_probabilities(sure, new, outcome):
    p = np.asarray(ask(sure.predict_proba, new))
    logs = np.asarray(ask(sure.predict_log_proba, new))
    if not (np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()):
        outcome.report("wrong probability", f"values such as {p.min():g} and {p.max():g}")
    elif not sure._has_labels and np.abs(p.sum(axis=1) - 1).max() > 1e-12:
        outcome.report("wrong probability", f"rows sum to {p.sum(axis=1).max():.17g}")
    if np.isnan(logs).any() or not np.allclose(np.exp(logs), p, rtol=1e-12, atol=0):
        outcome.report("wrong probability", "predict_log_proba is not its logarithm")


def _check_sets(sure, new, outcome):
    sets = [np.asarray(ask(sure.predict_set, new, c)) for c in (0.5, 0.8, 0.95)]
    if any((small & ~large).any() for small, large in pairwise(sets)):
        outcome.report("wrong set", "a larger coverage has a smaller set")


def _check_intervals(sure, new, outcome):
    ends = [np.asarray(ask(sure.predict_interval, new, c)) for c in (0.5, 0.8, 0.95)]
    if any(np.isnan(pair).any() for pair in ends):
        outcome.report("wrong interval", "an end is NaN")
    for small, large in pairwise(ends):
        if (large[..., 0] > small[..., 0]).any() or (large[..., 1] < small[..., 1]).any():
            outcome.report("wrong interval", "a larger coverage has a narrower interval")
