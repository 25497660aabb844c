"""Gauss nodes of product games, and how many of them are enough."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from kernelweave._types import Floats

N_BINS = 1024  # of the spreads of factors; the core bins them alike
EXACT = 16  # players up to which all nodes are used without asking
_MOST = 48  # nodes beyond which all are used
_ROUNDING = 2e-16  # of a sum of weighted powers


@lru_cache(maxsize=64)
def quadrature(n_nodes: int) -> Floats:
    """Return nodes and weights on [0, 1], exact for polynomials of degree ``2 n_nodes - 1``."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return np.ascontiguousarray([(nodes + 1.0) / 2.0, weights / 2.0])


@lru_cache(maxsize=16)
def node_bounds(n_players: int) -> Floats:
    """Return ``T_Q(R)`` for 1, 2, ... nodes and the upper ends R of the bins.

    With ``r_q = (u_q - w_q) / (u_q + w_q)`` and ``R = sum |r_q|``, the product of the factors of
    D = d - 1 players is a polynomial in s = 2 tau - 1 with coefficients of size
    ``c binom(D, k) (R / D)^k`` at most (Maclaurin). Q nodes integrate odd powers and those below 2Q
    exactly; an even power k >= 2Q is off by ``g_k = 1/(k + 1) - mean of s^k over the nodes``, which
    lies in [0, 1/(k + 1)]. Hence ``T_Q(R) = sum over even k >= 2Q of binom(D, k) (R/D)^k g_k``.

    Returns
    -------
    bounds : ndarray of shape (n_node_counts, N_BINS)
        Factors of ``2 R c``; row j is that of j + 1 nodes.
    """
    D = n_players - 1
    # The core puts R into the bin whose upper end is n_players (b / (N_BINS - 1))^2.
    R = n_players * (np.arange(N_BINS) / (N_BINS - 1)) ** 2
    k = np.arange(2, D + 1, 2)
    with np.errstate(divide="ignore"):
        logs = np.log(np.minimum(R / D, 1.0))
    binomials = gammaln(D + 1) - gammaln(k + 1) - gammaln(D - k + 1)
    sizes = np.exp(binomials + k * logs[:, None])  # (N_BINS, len(k))
    out = []
    for n_nodes in range(1, min(_MOST, (n_players + 1) // 2)):
        tau, weights = quadrature(n_nodes)
        means = weights @ np.abs(2.0 * tau[:, None] - 1.0) ** k
        gaps = np.clip(1.0 / (k + 1) - means + _ROUNDING, 0.0, 1.0 / (k + 1))
        later = k >= 2 * n_nodes
        out.append(sizes[:, later] @ gaps[later])
    return np.array(out).reshape(-1, N_BINS)


def enough_nodes(n_players: int, spreads: Floats, tol: float) -> tuple[int, Floats]:
    """Return the least number of nodes whose bound meets a tolerance, and the bounds of the rows.

    Parameters
    ----------
    n_players : int
        Number of factors of the games.
    spreads : ndarray of shape (n_rows, N_BINS)
        ``sum 2 R c |coef|`` over terms, by the bin of R, as the core returns it.
    tol : float
        Bound on the sum of the errors of all players, for every row.
    """
    bounds = spreads @ node_bounds(n_players).T
    enough = np.flatnonzero((bounds <= tol).all(axis=0))
    if len(enough):
        return int(enough[0]) + 1, bounds[:, enough[0]]
    return (n_players + 1) // 2, np.zeros(len(spreads))
