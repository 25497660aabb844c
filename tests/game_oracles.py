"""Shapley values by brute force over all coalitions, through the predictions of a model alone."""

from itertools import product
from math import factorial

import numpy as np


def outputs(model):
    """Return the function that is explained, with an axis of outputs."""
    decide = getattr(model, "decision_function", None) or model.predict
    return lambda X: np.asarray(decide(X)).reshape(len(X), -1)


def coalition_values(function, x, Z, groups, weights=None, independent=False):
    """Return v(S) of all coalitions, for players that are groups of columns."""
    weights = np.full(len(Z), 1 / len(Z)) if weights is None else weights
    values = []
    for present in product([False, True], repeat=len(groups)):
        absent = [columns for there, columns in zip(present, groups, strict=True) if not there]
        if independent:  # every absent player is drawn on its own: the whole grid of rows
            rows, probabilities = [], []
            for drawn in product(range(len(Z)), repeat=len(absent)):
                row = x.copy()
                for t, columns in zip(drawn, absent, strict=True):
                    row[list(columns)] = Z[t, list(columns)]
                rows.append(row)
                probabilities.append(np.prod(weights[list(drawn)]))
            values.append(np.array(probabilities) @ function(np.array(rows)))
            continue
        rows = np.repeat(x[None], len(Z), axis=0)
        for columns in absent:
            rows[:, list(columns)] = Z[:, list(columns)]
        values.append(weights @ function(rows))
    return np.array(values)


def shapley(values, n):
    """Return the Shapley values of a game given by the values of coalitions, last player first."""
    out = np.zeros((n, *values.shape[1:]))
    for player in range(n):
        bit = 1 << (n - 1 - player)
        for k in range(2**n):
            if k & bit:
                continue
            s = bin(k).count("1")
            weight = factorial(s) * factorial(n - s - 1) / factorial(n)
            out[player] += weight * (values[k | bit] - values[k])
    return out


def interactions(values, n):
    """Return the Shapley interaction indices of pairs, zero on the diagonal."""
    out = np.zeros((n, n, *values.shape[1:]))
    for left in range(n):
        for right in range(left + 1, n):
            a, b = 1 << (n - 1 - left), 1 << (n - 1 - right)
            for k in range(2**n):
                if k & (a | b):
                    continue
                s = bin(k).count("1")
                weight = factorial(s) * factorial(n - s - 2) / factorial(n - 1)
                gain = values[k | a | b] - values[k | a] - values[k | b] + values[k]
                out[left, right] += weight * gain
            out[right, left] = out[left, right]
    return out


def brute_force(function, X, Z, groups=None, **options):
    """Return the Shapley values of rows, of shape (n_rows, n_players, n_outputs)."""
    groups = [(j,) for j in range(X.shape[1])] if groups is None else groups
    return np.array(
        [shapley(coalition_values(function, x, Z, groups, **options), len(groups)) for x in X]
    )
