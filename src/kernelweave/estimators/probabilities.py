"""Class probabilities that a loss gives by itself."""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, log_softmax

from kernelweave._types import Floats

_LEAST = 0.01  # probability that the squared hinge loss may give, before normalisation


class NativeProbabilities:
    """Mixin of classifiers with a parameter ``loss`` some of whose values give probabilities.

    The logistic loss is minus the logarithm of a likelihood. The population minimiser of the
    squared hinge loss is ``2 p - 1``, so that ``p = (1 + f) / 2``, truncated.
    """

    loss: str
    _several: bool

    @property
    def _is_native(self) -> bool:
        return self.loss in ("logistic", "squared_hinge")

    def _native_log_proba(self, decision: Floats) -> Floats:
        """Return log-probabilities from decision values, one column per output."""
        two = decision.shape[1] == 1  # classes, of which the decision is the log-odds
        if self.loss == "squared_hinge":
            ones = np.clip(0.5 * (1.0 + decision), _LEAST, 1.0 - _LEAST)
            if self._several:
                return np.asarray(np.log(ones))
            ones = np.hstack([1.0 - ones, ones]) if two else ones
            return np.asarray(np.log(ones / ones.sum(axis=1, keepdims=True)))
        if self._several:  # of every label
            return np.asarray(log_expit(decision))
        if two:
            return np.asarray(log_expit(decision * np.array([[-1.0, 1.0]])))
        return np.asarray(log_softmax(decision, axis=1))
