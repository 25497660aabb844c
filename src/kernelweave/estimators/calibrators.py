"""Maps from decision values to probabilities, fitted to decisions of rows that were held out.

Two classes: a sigmoid. Several classes: softmax of a matrix times the decisions, which a penalty
keeps near a multiple of the unit matrix, or with a slope and a bias for each class (vector
scaling). Targets are smoothed, without which separable decisions have no finite slope: by Platt's
counts for a sigmoid, by k pseudo-rows in all for k classes.

References
----------
J. Platt (2000), Probabilistic outputs for support vector machines, in Advances in Large Margin
Classifiers: the smoothed targets. C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017), On calibration
of modern neural networks, ICML: temperature, vector and matrix scaling. M. Kull and others (2019),
Beyond temperature scaling, NeurIPS: a penalty on the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from kernelweave._types import Floats, Indices
from kernelweave.errors import warn
from kernelweave.rules import Link

METHODS = ("auto", "sigmoid", "matrix", "vector", "temperature", "isotonic")

_SOFTMAX = ("matrix", "vector", "temperature")  # of several classes
_QUADRATIC = 1e-7  # gain of a step, relative to the loss, after which the next would be rounding
_NEWTON_STEPS = 100
_RIDGE = 10.0  # of the matrix, in rows; of 3, 10, 20, 40, 80, by the log-loss of fourteen tables
_MOST_MIXED = 10  # classes up to which "auto" is a matrix, whose Hessian has k^4 entries
_FEW_ISOTONIC = 50  # rows below which a step function is mostly noise


@dataclass(frozen=True)
class Calibrator:
    """Probabilities of classes from decision values."""

    # {"sigmoid", "matrix", "vector", "temperature", "isotonic"}: one sigmoid for each output,
    # normalised over classes; softmax of ``f @ mixing + bias``, or of ``slope * f + bias``, with a
    # slope and a bias for each class, or one slope for all; or a step function for each output.
    method: str
    # slopes, biases (n_outputs,): of the decision values; ones and zeros where there are steps
    slopes: Floats
    biases: Floats
    # Whether the outputs are labels or tasks of their own, so that probabilities are not normalised
    # over them.
    labels: bool = False
    # (2, n_steps): decision values and probabilities of the step function of each output.
    steps: tuple[Floats, ...] = ()
    # (n_outputs, n_outputs): what each decision (row) adds to each class, for the method "matrix",
    # where slopes are zero.
    mixing: Floats | None = None

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
        if self.mixing is not None:
            values = decision @ self.mixing + self.biases
        if self.labels:
            return np.asarray(log_expit(values))
        if values.shape[1] == 1:
            return np.asarray(np.column_stack([log_expit(-values), log_expit(values)]))
        if self.method == "sigmoid":
            values = log_expit(values)
            return np.asarray(values - np.logaddexp.reduce(values, axis=1, keepdims=True))
        return _log_softmax(values)

    def link(self) -> Link:
        """Return the map in the form that exported rules use."""
        several = len(self.slopes) > 1 and not self.labels
        softmax = several and self.method in _SOFTMAX
        steps = tuple((tuple(x.tolist()), tuple(y.tolist())) for x, y in self.steps)
        return Link(
            tuple(self.slopes.tolist()),
            tuple(self.biases.tolist()),
            softmax=softmax,
            shares=several and not softmax,
            steps=steps,
            mixing=() if self.mixing is None else tuple(map(tuple, self.mixing.tolist())),
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

    The method "auto" is a sigmoid for two classes and for labels, and a matrix for several classes,
    or vector scaling where they are many. ``codes``, of shape (n_rows, 1), are class numbers; of
    labels, of shape (n_rows, n_outputs), zeros and ones, and -1 where a row has no part in an
    output. ``weight`` is how often each row counts.
    """
    n_outputs = decision.shape[1]
    joint = n_outputs > 1 and not labels  # classes that share the probability of one
    if method == "auto":
        method = "matrix" if n_outputs <= _MOST_MIXED else "vector"
    if method in ("matrix", "vector") and not joint:
        method = "sigmoid"
    if method == "isotonic" and len(decision) < _FEW_ISOTONIC:
        warn(
            f"calibration='isotonic': {len(decision)} rows are too few for a step function; use "
            "'sigmoid', or 1000 rows or more."
        )
    if joint and method in _SOFTMAX:
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
    unit = float(np.abs(decision).max(initial=0.0))  # in which no square overflows
    decision = decision / (unit or 1.0)
    centre = float(weight @ decision / total) if bias else 0.0
    spread = float(np.sqrt(weight @ (decision - centre) ** 2 / total))
    if not spread > 1e-14:
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
    return slope_of_f / unit, float(point[1] - slope_of_f * centre) if bias else 0.0


def _fit_softmax(method: str, decision: Floats, codes: Indices, weight: Floats) -> Calibrator:
    """Fit ``softmax(a_k f_k + b_k)`` with ``a >= 0``, ``softmax(a f)`` or ``softmax(A f + b)``."""
    n, k = decision.shape
    total = float(weight.sum())
    counts = np.bincount(codes, weight, k)
    # k pseudo-rows in all, with the smoothed shares of the classes.
    share = k / (total + k)
    target = np.tile(share * (counts + 1) / (total + k), (n, 1))
    target[np.arange(n), codes] += 1 - share
    prior = np.log((counts + 1) / (total + k))
    alone = method == "temperature"
    centre = np.zeros(k) if alone else weight @ decision / total
    spread = np.sqrt(weight @ (decision - centre) ** 2 / total)
    least = 1e-14 * np.abs(decision).max(initial=0.0)
    if method == "matrix":
        spread = np.full(k, np.sqrt(np.mean(spread**2)))
    spread = np.where(spread > least, spread, np.inf)  # identical decisions say nothing
    if alone:
        spread = np.full(k, spread.min())
    x = (decision - centre) / spread
    # From slopes of zero, where no probability is so near to one that the curvature is rounding.
    if alone:
        found = _minimise(_OneSlope(x, target, weight), np.zeros(1))
        return Calibrator(method, np.full(k, found[0] / spread[0]), np.zeros(k))
    if method == "vector":
        found = _minimise(_Slopes(x, target, weight), np.concatenate([np.zeros(k), prior]))
        slopes, mixing = found[:k] / spread, None
        biases = found[k:] - slopes * centre
    else:
        found = _minimise(_Matrix(x, target, weight), np.concatenate([np.zeros(k * k), prior]))
        matrix = found[: k * k].reshape(k, k)
        if np.trace(matrix) <= 0.0:  # decisions of held-out rows are no better than chance
            matrix, found = np.zeros((k, k)), np.concatenate([np.zeros(k * k), prior])
        slopes, mixing = np.zeros(k), matrix / spread[0]
        biases = found[k * k :] - centre @ mixing
    return Calibrator(method, slopes, biases - biases.mean(), mixing=mixing)


@dataclass(frozen=True)
class _Slopes:
    """The loss of ``softmax(a_k x_k + b_k)``; the point is ``(a, b)``."""

    x: Floats  # (n_rows, n_classes): standardised decisions
    target: Floats  # (n_rows, n_classes): probabilities that are aimed at
    weight: Floats  # (n_rows,)

    @property
    def n_slopes(self) -> int:
        """How many of the first parameters must not be negative."""
        return int(self.x.shape[1])

    def values(self, point: Floats) -> Floats:
        """Return what softmax is taken of."""
        k = self.x.shape[1]
        return np.asarray(point[:k] * self.x + point[k:])

    def value(self, point: Floats) -> float:
        """Return the loss."""
        log_p = _log_softmax(self.values(point))
        return -float(np.vdot(self.weight[:, None] * self.target, log_p))

    def _error(self, point: Floats) -> tuple[Floats, Floats]:
        """Return the probabilities, and the derivatives of the loss in the values."""
        p = np.exp(_log_softmax(self.values(point)))
        return p, self.weight[:, None] * (p - self.target)

    def derivatives(self, point: Floats) -> tuple[Floats, Floats]:
        """Return slope and Hessian of the loss."""
        x, k = self.x, self.x.shape[1]
        p, error = self._error(point)
        weighted = self.weight[:, None] * p
        sides = np.hstack([x * weighted, weighted])
        hessian = -sides.T @ np.hstack([x * p, p])
        own, cross = np.arange(k), sides[:, :k].sum(axis=0)
        hessian[own, own] += (weighted * x**2).sum(axis=0)
        hessian[own, own + k] += cross
        hessian[own + k, own] += cross
        hessian[own + k, own + k] += weighted.sum(axis=0)
        hessian[k:, k:] += self.weight.sum() / k  # along the sum of all biases: changes nothing
        return np.concatenate([(error * x).sum(axis=0), error.sum(axis=0)]), hessian


class _OneSlope(_Slopes):
    """The loss of ``softmax(a x)``; the point is ``(a,)``."""

    n_slopes = 1

    def values(self, point: Floats) -> Floats:
        return np.asarray(point[0] * self.x)

    def derivatives(self, point: Floats) -> tuple[Floats, Floats]:
        k = self.x.shape[1]
        slope, hessian = super().derivatives(point)
        return slope[:k].sum(keepdims=True), hessian[:k, :k].sum(keepdims=True)


class _Matrix(_Slopes):
    """The penalised loss of ``softmax(x A + b)``; the point is ``(A, b)``.

    The penalty is on how far A is from a multiple of the unit matrix.
    """

    n_slopes = 0

    def values(self, point: Floats) -> Floats:
        k = self.x.shape[1]
        return np.asarray(self.x @ point[: k * k].reshape(k, k) + point[k * k :])

    def _distance(self, point: Floats) -> Floats:
        k = self.x.shape[1]
        matrix = point[: k * k].reshape(k, k)
        return np.asarray(matrix - np.trace(matrix) / k * np.eye(k))

    def value(self, point: Floats) -> float:
        return super().value(point) + 0.5 * _RIDGE * float((self._distance(point) ** 2).sum())

    def derivatives(self, point: Floats) -> tuple[Floats, Floats]:
        k = self.x.shape[1]
        p, error = self._error(point)
        design = np.column_stack([self.x, np.ones(len(p))])
        sides = (design[:, :, None] * p[:, None, :]).reshape(len(p), -1)
        sides *= np.sqrt(self.weight)[:, None]
        hessian = -(sides.T @ sides)  # of a matrix and itself: half the work
        blocks = hessian.reshape(k + 1, k, k + 1, k)
        for t in range(k):
            blocks[:, t, :, t] += (design * (self.weight * p[:, t])[:, None]).T @ design
        unit = np.eye(k).ravel()
        hessian[: k * k, : k * k] += _RIDGE * (np.eye(k * k) - np.outer(unit, unit) / k)
        hessian[k * k :, k * k :] += self.weight.sum() / k  # along the sum of all biases
        slope = design.T @ error
        slope[:k] += _RIDGE * self._distance(point)
        return slope.ravel(), hessian


def _minimise(loss: _Slopes, point: Floats) -> Floats:
    """Return the minimiser, by Newton's method.

    Slopes that would become negative are zero, and the step of the others is that without them.
    """
    least = np.where(np.arange(len(point)) < loss.n_slopes, 0.0, -np.inf)
    best = loss.value(point)
    for _ in range(_NEWTON_STEPS):
        slope, curvature = loss.derivatives(point)
        raised = 1e-14 * (np.trace(curvature) + loss.weight.sum())
        curvature[np.diag_indices_from(curvature)] += raised
        free = (point > least) | (slope < 0)
        while True:
            step = np.where(free, 0.0, point)  # the others become or stay zero
            step[free] = np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
            crossing = free & (point - step < least) & (slope > 0)
            if not crossing.any():
                break
            free &= ~crossing
        if abs(float(slope @ step)) <= _QUADRATIC * abs(best):
            return np.maximum(point - step, least)  # its error is its square
        share = 1.0
        while share > 1e-10:
            there = np.maximum(point - share * step, least)
            if (new := loss.value(there)) <= best:
                break
            share *= 0.5
        else:
            break
        point, best = there, new
    return point


def _log_softmax(values: Floats) -> Floats:
    values = np.asfortranarray(values)  # reductions over a short last axis are slow otherwise
    values = values - values.max(axis=1, keepdims=True)
    return np.asarray(values - np.log(np.exp(values).sum(axis=1, keepdims=True)))


def _fit_steps(decision: Floats, ones: Floats, weight: Floats) -> Floats:
    """Return the isotonic regression, kept off zero and one: no row is that certain."""
    from sklearn.isotonic import IsotonicRegression  # takes long to import

    least = 1.0 / (float(weight.sum()) + 2.0)
    fitted = IsotonicRegression(y_min=least, y_max=1.0 - least, out_of_bounds="clip").fit(
        decision, ones, sample_weight=weight
    )
    return np.array([fitted.X_thresholds_, fitted.y_thresholds_])
