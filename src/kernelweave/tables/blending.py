"""Calibration of decision values and convex combinations, by predictions for left-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import brentq, minimize, nnls
from scipy.special import expit, logsumexp

from kernelweave._types import Floats, Indices
from kernelweave.estimators.combination import to_probabilities

_PENALTY = 0.05  # of the squared slope and intercepts of a calibration, in rows
_LEAST = 0.05  # weight below which a member is dropped
_LEAST_SLOPE = 1e-3  # of members that share one: their order of the rows is kept
_LEAST_SPREAD = 0.5  # of log-odds: a model that knew little in folds may know more of all rows
_ROUNDS = 200  # of expectation maximisation
_SUM = 1e4  # weight of the equation that weights sum to one

Calibration: TypeAlias = tuple[Floats, Floats]
"""Slopes and intercepts from decision values to log-odds."""


def learn_calibration(values: Floats, y: Indices, n_classes: int) -> Calibration:
    """Fit one slope and an intercept for each output to decision values of left-out rows.

    For two classes this is Platt scaling. The log-loss is convex, and the small penalty keeps the
    slope finite where the classes are separated.
    """
    spread = float(values.std()) or 1.0  # the penalty is to mean the same for all units
    scaled, n_outputs = values / spread, values.shape[1]
    hot, penalty = np.eye(n_classes)[y], _PENALTY / len(y)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        slope, shift = parameters[0], parameters[1:]
        odds = slope * scaled + shift
        if n_classes == 2:
            odds = np.column_stack([np.zeros(len(odds)), odds])
        logs = odds - logsumexp(odds, axis=1, keepdims=True)
        residuals = (np.exp(logs) - hot)[:, -n_outputs:] / len(y)
        value = 0.5 * penalty * float(parameters @ parameters) - float((hot * logs).sum()) / len(y)
        slopes = [(residuals * scaled).sum(), *residuals.sum(axis=0)]
        return value, np.asarray(slopes) + penalty * parameters

    found = minimize(loss, np.append(1.0, np.zeros(n_outputs)), jac=True, method="L-BFGS-B").x
    # A negative slope means less than nothing was learned: only the shares of classes are known.
    return np.eye(n_outputs) * max(float(found[0]), 0.0) / spread, np.asarray(found[1:])


def share_calibration(values: Sequence[Floats], y: Indices) -> list[Calibration]:
    """Calibrate log-odds of several models of two classes anew, by one slope.

    It is that of the mean of their standardised values; the mean of the probabilities of all models
    is the share of the class. With few rows of a class, slopes of single
    models are mostly noise: one would outweigh the others, or be negative and count for nothing.
    """
    centres = [float(own.mean()) for own in values]
    spreads = [max(float(own.std()), _LEAST_SPREAD) for own in values]
    parts = zip(values, centres, spreads, strict=True)
    standard = np.array([(own - centre) / spread for own, centre, spread in parts])
    slopes, _ = learn_calibration(standard.mean(axis=0)[:, None], y, 2)
    slope, share = max(float(slopes[0, 0]), _LEAST_SLOPE), float(y.mean())
    end = 10.0 + float(np.abs(slope * standard).max()) - np.log(min(share, 1.0 - share))
    shift = brentq(lambda x: float(expit(slope * standard + x).mean()) - share, -end, end)
    return [
        (np.array([[slope / spread]]), np.array([shift - slope * centre / spread]))
        for centre, spread in zip(centres, spreads, strict=True)
    ]


def halves(values: Sequence[Floats], y: Indices, parts: Indices) -> Floats:
    """Return mean probabilities of two classes, each part by a calibration learned on others."""
    out = np.zeros((len(y), 2))
    for part in np.unique(parts):
        own = parts == part
        found = share_calibration([value[~own] for value in values], y[~own])
        for value, calibration in zip(values, found, strict=True):
            out[own] += to_probabilities(value[own], *calibration) / len(values)
    return out


def calibrate(values: Floats, y: Indices, parts: Indices, n_classes: int) -> Floats:
    """Return probabilities of rows, each part by a calibration that is learned on the others."""
    out = np.empty((len(values), n_classes))
    for part in np.unique(parts):
        own = parts == part
        found = learn_calibration(values[~own], y[~own], n_classes)
        out[own] = to_probabilities(values[own, 0] if n_classes == 2 else values[own], *found)
    return out


def best_scale(y: Floats, predicted: Floats) -> float:
    """Return the factor with the least squared error, for predictions of a median."""
    return float(np.clip((y @ predicted) / max(float(predicted @ predicted), 1e-300), 0.8, 1.25))


@dataclass(frozen=True)
class Blend:
    """A combination: weights by all rows, and predictions with weights from other folds."""

    weights: Floats
    crossed: Floats


def blend(stack: Floats, y: Any, parts: Indices, regression: bool) -> Blend:
    """Combine predictions of shape (n_models, n_rows) or probabilities with one more axis."""
    crossed = np.empty(stack.shape[1:])
    for part in np.unique(parts):
        own = parts == part
        weights = _weights(stack[:, ~own], y[~own], regression)
        crossed[own] = np.tensordot(weights, stack[:, own], 1)
    return Blend(_weights(stack, y, regression), crossed)


def _weights(stack: Floats, y: Any, regression: bool) -> Floats:
    """Return the weights on the simplex with the least squared error or log-loss."""
    weights = _least_squares(stack, y) if regression else _most_likely(stack, y)
    weights = np.where(weights < _LEAST, 0.0, weights)
    return np.asarray(weights / weights.sum())


def _least_squares(stack: Floats, y: Floats) -> Floats:
    scale = float(np.std(y)) or 1.0
    design = np.vstack([stack.T / scale, np.full((1, len(stack)), _SUM)])
    found, _ = nnls(design, np.append(y / scale, _SUM))
    return np.asarray(found / found.sum())


def _most_likely(stack: Floats, y: Indices) -> Floats:
    """Maximise the likelihood of a mixture by expectation maximisation, which is concave here."""
    likelihoods = np.maximum(stack[:, np.arange(len(y)), y], 1e-9)
    weights = np.full(len(stack), 1.0 / len(stack))
    for _ in range(_ROUNDS):
        shares = weights[:, None] * likelihoods
        weights = (shares / shares.sum(axis=0)).mean(axis=1)
    return np.asarray(weights)
