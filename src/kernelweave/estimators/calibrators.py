"""Maps from decision values to probabilities, fitted to decisions of rows that were held out.

Two classes: a sigmoid. Several classes: softmax with a slope and a bias for each class (vector
scaling). Targets are smoothed, without which separable decisions have no finite slope: by Platt's
counts for a sigmoid, by k pseudo-rows in all for k classes.

References
----------
J. Platt (2000), Probabilistic outputs for support vector machines, in Advances in Large Margin
Classifiers: the smoothed targets. C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017), On calibration
of modern neural networks, ICML: temperature and vector scaling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy.special import expit, log_expit, log_softmax

from kernelweave._types import Floats, Indices
from kernelweave.errors import warn
from kernelweave.rules import Link

METHODS = ("auto", "sigmoid", "vector", "temperature", "isotonic")

_NEWTON_STEPS = 100
_FEW_ISOTONIC = 50  # rows below which a step function is mostly noise


@dataclass(frozen=True)
class Calibrator:
    """Probabilities of classes from decision values."""

    # {"sigmoid", "vector", "temperature", "isotonic"}: one sigmoid for each output, normalised over
    # classes; softmax of ``slope * f + bias``, with a slope and a bias for each class, or one slope
    # for all; or a step function for each output.
    method: str
    # slopes, biases (n_outputs,): of the decision values; ones and zeros where there are steps
    slopes: Floats
    biases: Floats
    # Whether the outputs are labels or tasks of their own, so that probabilities are not normalised
    # over them.
    labels: bool = False
    # (2, n_steps): decision values and probabilities of the step function of each output.
    steps: tuple[Floats, ...] = ()

    def log_proba(self, decision: Floats) -> Floats:
        """Return logarithms of probabilities, one column per class; of labels, of their ones.

        Parameters
        ----------
        decision : ndarray of shape (n_rows, n_outputs)
            Decision values.
        """
        if self.steps:
            return self._log_steps(decision)
        values = self.slopes * decision + self.biases
        if self.labels:
            return np.asarray(log_expit(values))
        if values.shape[1] == 1:
            return np.asarray(np.column_stack([log_expit(-values), log_expit(values)]))
        if self.method == "sigmoid":
            values = log_expit(values)
            return np.asarray(values - np.logaddexp.reduce(values, axis=1, keepdims=True))
        return np.asarray(log_softmax(values, axis=1))

    def link(self) -> Link:
        """Return the map in the form that exported rules use."""
        several = len(self.slopes) > 1 and not self.labels
        softmax = several and self.method in ("vector", "temperature")
        steps = tuple((tuple(x.tolist()), tuple(y.tolist())) for x, y in self.steps)
        return Link(
            tuple(self.slopes.tolist()),
            tuple(self.biases.tolist()),
            softmax=softmax,
            shares=several and not softmax,
            steps=steps,
        )

    def _log_steps(self, decision: Floats) -> Floats:
        ones = np.column_stack(
            [np.interp(f, *steps) for f, steps in zip(decision.T, self.steps, strict=True)]
        )
        if self.labels:
            return np.asarray(np.log(ones))
        if ones.shape[1] == 1:
            return np.column_stack([np.log1p(-ones), np.log(ones)])
        return np.asarray(np.log(ones / ones.sum(axis=1, keepdims=True)))


def fit_calibrator(
    method: str, decision: Floats, codes: Floats, weight: Floats, *, labels: bool
) -> Calibrator:
    """Fit the map to decisions of rows that were held out.

    The method "auto" is a sigmoid for two classes and for labels, and vector scaling for several
    classes. ``codes``, of shape (n_rows, 1), are class numbers; of labels, of shape (n_rows,
    n_outputs), zeros and ones, and -1 where a row has no part in an output. ``weight`` is how often
    each row counts.
    """
    n_outputs = decision.shape[1]
    joint = n_outputs > 1 and not labels  # classes that share the probability of one
    if method in ("auto", "vector"):
        method = "vector" if joint else "sigmoid"
    if method == "isotonic" and len(decision) < _FEW_ISOTONIC:
        warn(
            f"calibration='isotonic': {len(decision)} rows are too few for a step function; use "
            "'sigmoid', or 1000 rows or more."
        )
    if joint and method in ("vector", "temperature"):
        return _fit_softmax(method, decision, codes[:, 0].astype(np.intp), weight)
    first = 1 if n_outputs == 1 else 0
    ones = codes if labels else (codes == np.arange(first, first + n_outputs)).astype(np.float64)
    slopes, biases, steps = np.ones(n_outputs), np.zeros(n_outputs), []
    for o in range(n_outputs):
        there = ones[:, o] >= 0
        data = decision[there, o], ones[there, o], weight[there]
        if method == "isotonic":
            steps.append(_fit_steps(*data))
        else:
            slopes[o], biases[o] = fit_sigmoid(*data, bias=method == "sigmoid")
    if method != "isotonic" and not slopes.all():
        warn(
            "calibration: decisions of held-out rows are no better than chance, so probabilities "
            "are the shares of the classes. Hint: use other kernels or another C."
        )
    return Calibrator(method, slopes, biases, labels, tuple(steps))


def fit_sigmoid(
    decision: Floats, ones: Floats, weight: Floats, *, bias: bool = True
) -> tuple[float, float]:
    """Return slope and bias of ``P(one) = sigmoid(slope * f + bias)`` by Newton's method.

    A negative slope would turn the predictions around: the slope is then zero, and the bias gives
    the shares of both classes.
    """
    positive, total = float(weight @ ones), float(weight.sum())
    negative = total - positive
    # Platt's targets: one pseudo-row in each class.
    target = np.where(ones > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))
    prior = float(np.log((positive + 1) / (negative + 1)))
    # Standardised, so that scale and offset of the decisions do not matter to Newton's method.
    centre = float(weight @ decision / total) if bias else 0.0
    spread = float(np.sqrt(weight @ (decision - centre) ** 2 / total))
    if not spread > 1e-14 * float(np.abs(decision).max(initial=0.0)):
        return 0.0, prior if bias else 0.0
    x = (decision - centre) / spread
    design = np.column_stack([x, np.ones_like(x)]) if bias else x[:, None]

    def value(point: Floats) -> float:
        z = design @ point
        return float(weight @ (np.logaddexp(0.0, z) - target * z))

    point = np.array([0.0, prior] if bias else [0.0])
    best = value(point)
    for _ in range(_NEWTON_STEPS):
        p = expit(design @ point)
        slope = design.T @ (weight * (p - target))
        curvature = (design * (weight * p * (1 - p))[:, None]).T @ design
        step = np.linalg.solve(curvature + 1e-14 * np.trace(curvature) * np.eye(len(point)), slope)
        if float(slope @ step) <= 1e-14 * abs(best):  # values cannot tell such a step any more
            point = point - step  # its error is its square
            break
        share = 1.0
        while (new := value(point - share * step)) > best and share > 1e-10:
            share *= 0.5
        if new > best:
            break
        point, best = point - share * step, new
    if point[0] <= 0:
        return 0.0, prior if bias else 0.0
    slope_of_f = float(point[0] / spread)
    return slope_of_f, float(point[1] - slope_of_f * centre) if bias else 0.0


def _fit_softmax(method: str, decision: Floats, codes: Indices, weight: Floats) -> Calibrator:
    """Fit ``softmax(a_k f_k + b_k)`` with ``a >= 0``, or ``softmax(a f)``."""
    n, k = decision.shape
    total = float(weight.sum())
    counts = np.bincount(codes, weight, k)
    # k pseudo-rows in all, with the smoothed shares of the classes.
    share = k / (total + k)
    target = np.tile(share * (counts + 1) / (total + k), (n, 1))
    target[np.arange(n), codes] += 1 - share
    prior = np.log((counts + 1) / (total + k))
    vector = method == "vector"
    centre = weight @ decision / total if vector else np.zeros(k)
    spread = np.sqrt(weight @ (decision - centre) ** 2 / total)
    least = 1e-14 * np.abs(decision).max(initial=0.0)
    spread = np.where(spread > least, spread, np.inf)  # identical decisions say nothing
    if not vector:
        spread = np.full(k, spread.min())
    x = (decision - centre) / spread

    # From slopes of zero, where no probability is so near to one that the curvature is rounding.
    start = np.concatenate([np.zeros(k), prior]) if vector else np.zeros(1)
    found = _minimise_softmax(x, target, weight, start)
    if not vector:
        return Calibrator(method, np.full(k, found[0] / spread[0]), np.zeros(k))
    slopes = found[:k] / spread
    biases = found[k:] - slopes * centre
    return Calibrator(method, slopes, biases - biases.mean())


def _minimise_softmax(x: Floats, target: Floats, weight: Floats, point: Floats) -> Floats:
    """Return slopes ``a >= 0`` and biases of ``softmax(a x + b)``, or one slope, by Newton's method.

    Slopes that would become negative are zero, and the step of the others is that without them.
    """
    k = x.shape[1]
    every = np.eye(2 * k) if len(point) > 1 else np.repeat([[1.0], [0.0]], k, axis=0)
    least = np.where(every[:k].any(axis=0), 0.0, -np.inf)
    own, counted = np.arange(k), weight[:, None] * target

    def value(point: Floats) -> tuple[float, Floats]:
        both = every @ point
        log_p = log_softmax(both[:k] * x + both[k:], axis=1)
        return -float(np.vdot(counted, log_p)), np.exp(log_p)

    best, p = value(point)
    for _ in range(_NEWTON_STEPS):
        weighted = weight[:, None] * p
        sides = np.hstack([x * weighted, weighted])
        hessian = -sides.T @ np.hstack([x * p, p])
        hessian[own, own] += (weighted * x**2).sum(axis=0)
        hessian[own, own + k] += sides[:, :k].sum(axis=0)
        hessian[own + k, own] += sides[:, :k].sum(axis=0)
        hessian[own + k, own + k] += weighted.sum(axis=0)
        hessian[k:, k:] += weight.sum() / k  # along the sum of all biases, which changes nothing
        error = weighted - counted
        slope = every.T @ np.concatenate([(error * x).sum(axis=0), error.sum(axis=0)])
        curvature = every.T @ hessian @ every
        curvature[np.diag_indices_from(curvature)] += 1e-14 * (np.trace(curvature) + weight.sum())
        free = (point > least) | (slope < 0)
        while True:
            step = np.where(free, 0.0, point)  # the others become or stay zero
            step[free] = np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
            crossing = free & (point - step < least) & (slope > 0)
            if not crossing.any():
                break
            free &= ~crossing
        if abs(float(slope @ step)) <= 1e-14 * abs(best):
            return np.maximum(point - step, least)
        share = 1.0
        while share > 1e-10:
            there = np.maximum(point - share * step, least)
            new, p = value(there)
            if new <= best:
                break
            share *= 0.5
        else:
            break
        point, best = there, new
    return point


def _fit_steps(decision: Floats, ones: Floats, weight: Floats) -> Floats:
    """Return the isotonic regression, kept off zero and one: no row is that certain."""
    from sklearn.isotonic import IsotonicRegression  # takes long to import

    least = 1.0 / (float(weight.sum()) + 2.0)
    fitted = IsotonicRegression(y_min=least, y_max=1.0 - least, out_of_bounds="clip").fit(
        decision, ones, sample_weight=weight
    )
    return np.array([fitted.X_thresholds_, fitted.y_thresholds_])
