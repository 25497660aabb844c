"""The solution of the problem for one fixed kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats


@dataclass(frozen=True)
class Solution:
    """Dual coefficients for one kernel, with the bounds they prove.

    Parameters
    ----------
    dual_coef : ndarray of shape (n_samples, n_outputs)
        Signed dual coefficients.
    intercept : ndarray of shape (n_outputs,)
        Best bias for these coefficients.
    fitted : ndarray of shape (n_samples, n_outputs)
        ``K @ dual_coef``, without the bias.
    primal, dual : float
        Upper and lower bound of the one-kernel problem.
    work : int
        Coefficient updates spent.
    function : ndarray of shape (n_columns, n_outputs), optional
        Of Nystroem features: weights of all columns of the bank that give the function of the
        upper bound, which then is `fitted` in place of ``K @ dual_coef``.
    sharpness : float
        One over the smoothing at which a solve on features ended; the next one starts near it.
    scores : ndarray of shape (n_columns at hand, n_outputs), optional
        Of Nystroem features: these transposed times `dual_coef`.
    """

    dual_coef: Floats
    intercept: Floats
    fitted: Floats
    primal: float
    dual: float
    work: int = 0
    function: Floats | None = None
    sharpness: float = 0.0
    scores: Floats | None = None

    @property
    def gap(self) -> float:
        """Distance between the bounds."""
        return self.primal - self.dual


def unsolved(dual_coef: Floats, fitted: Floats) -> Solution:
    """Return a start of an inner solve: nothing is proved.

    Parameters
    ----------
    dual_coef, fitted : ndarray of shape (n_samples, n_outputs)
        Dual coefficients, and the function that they give.
    """
    return Solution(dual_coef, np.zeros(dual_coef.shape[1]), fitted, np.inf, -np.inf)
