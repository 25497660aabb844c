"""Rademacher complexities of sums of functions of several kernels, from the traces of the kernels.

All rest on one number, the expected largest norm ``E max_m |sum_i sigma_i phi_m(x_i)|`` for random
signs sigma. Each norm has a mean of at most ``sqrt(tr K_m)`` and, since a sign changes it by
``2 sqrt(K_m(x_i, x_i))`` at most, is sub-Gaussian around it with variance ``tr K_m`` (McDiarmid).
The largest of M such numbers exceeds the largest mean by ``sqrt(2 ln M)`` standard deviations at
most; the root of the sum of all traces is another bound.

References
----------
C. Cortes, M. Mohri, A. Rostamizadeh, "Generalization bounds for learning kernels", ICML 2010.
Regularization for multiple kernel learning via sum-product networks (2014), arXiv:1402.3032,
Theorem 2, here for a class that is defined.
"""

from __future__ import annotations

import numpy as np

from kernelweave._types import Floats
from kernelweave.errors import InputError


def largest_norm(traces: Floats) -> float:
    """Bound the expected largest norm of a signed sum of the rows, over the kernels.

    Parameters
    ----------
    traces : ndarray of shape (n_kernels,)
        Traces of the Gram matrices of the rows.
    """
    traces = np.atleast_1d(np.asarray(traces, dtype=np.float64))
    if not len(traces) or not np.isfinite(traces).all() or (traces < 0).any():
        raise InputError("traces: must be finite and not negative, one for each kernel.")
    largest = np.sqrt(traces.max()) * (1.0 + np.sqrt(2.0 * np.log(len(traces))))
    return float(min(np.sqrt(traces.sum()), largest))


def group_complexity(traces: Floats, radius: float, n_samples: int) -> float:
    """Bound the Rademacher complexity of ``{sum_j f_j : sum_j |f_j| <= radius}``.

    This is ``1/n E sup_f sum_i sigma_i f(x_i)``, the class of multiple kernel learning with weights
    that sum to one.
    """
    return radius * largest_norm(traces) / n_samples


def structure_complexity(traces: Floats, level: float, n_samples: int) -> float:
    """Bound the Rademacher complexity of functions on a sum-product network.

    The class holds all ``f = sum_m w_m``, one function for each path, for which some weights beta
    have ``sum_m |w_m|^2 / (2 g_m(beta)) + sum_v c_v beta_v <= level``: the penalty of
    `SumProductMKLClassifier` with ``p = 1`` and ``lam = 1``. The complexity is that of the draft,
    ``2/n E sup_f |sum_i sigma_i f(x_i)|``.

    By Cauchy and Schwarz ``|sum_m <w_m, s_m>|`` is at most the root of ``sum_m |w_m|^2 / g_m``
    times that of ``sum_m g_m |s_m|^2``; ``sum_m g_m`` is at most ``sum_v c_v beta_v``, and the
    product of both terms of the penalty at most a quarter of ``level^2``.
    """
    return float(np.sqrt(2.0) * level * largest_norm(traces) / n_samples)
