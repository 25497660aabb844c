"""Projected gradient steps on the weights of a sum-product structure, as published.

Each weight is moved in a unit of its own, since weights may differ by many orders. Exponents below
one make the penalty concave; it is then replaced by its tangent, again and again. Step lengths are
those of Barzilai and Borwein.

References
----------
Regularization for multiple kernel learning via sum-product networks (2014), arXiv:1402.3032,
equations (8) and (9).
E. G. Birgin, J. M. Martinez, M. Raydan (2000), Nonmonotone spectral projected gradient methods on
convex sets, SIAM J. Optim. 10 (the line search).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks.paths import PathForms
from kernelweave.weights.sum_product import SumProduct


@dataclass(frozen=True)
class ProjectedGradientOptions:
    """Constants of `projected_gradient`, chosen by hand."""

    max_tangents: int = 20  # linearisations of a concave penalty
    max_steps: int = 1000  # gradient steps per linearisation
    balance: float = 1e-4  # relative difference of the two parts of a derivative at the end
    memory: int = 10  # values of which a step has to undercut the largest
    smallest: float = 1e-30  # weight: zero would never be left again


OPTIONS = ProjectedGradientOptions()


def projected_gradient(penalty: SumProduct) -> Callable[[Floats, PathForms], Floats]:
    """Return the published counterpart of `SumProduct.update`."""

    def update(u: Floats, forms: PathForms) -> Floats:
        beta = np.exp(u)
        for _ in range(OPTIONS.max_tangents if (penalty.p < 1.0).any() else 1):
            moved = _descend(penalty, u, beta, forms)
            change = float(np.abs(np.log(moved / beta)).max())
            beta = moved
            if change < 1e-3:
                break
        return np.log(beta)

    return update


def _descend(penalty: SumProduct, u: Floats, anchor: Floats, forms: PathForms) -> Floats:
    """Minimise with concave penalties replaced by their tangents at ``anchor``."""
    slope = penalty.lam * penalty.counts * penalty.p * anchor ** (penalty.p - 1.0)
    concave = penalty.p < 1.0

    def evaluate(beta: Floats) -> tuple[float, Floats, Floats]:
        """Return the value, and what lowers and what raises it: gradient = push - pull."""
        with np.errstate(over="ignore"):  # such a point is rejected
            total, nodes = forms.sums(2.0 * u - np.log(beta))
            powers = penalty.lam * penalty.counts * beta**penalty.p
            terms = np.where(concave, slope * beta, powers)
            slopes = np.where(concave, slope, penalty.p * powers / beta)
            return 0.5 * total + float(terms.sum()), 0.5 * nodes / beta, slopes

    beta, length = anchor, 1.0
    here, pull, push = evaluate(beta)
    best, lowest, recent = beta, here, [here]
    for _ in range(OPTIONS.max_steps):
        gradient = push - pull
        unsettled = np.abs(gradient) > OPTIONS.balance * push + 1e-16 * here / beta
        if not (unsettled & ((beta > OPTIONS.smallest) | (gradient < 0.0))).any():
            break
        unit = beta / np.maximum(pull + np.maximum(penalty.p, 1.0) * push, 1e-300)
        while length > 1e-12:
            trial = np.maximum(beta - length * unit * gradient, OPTIONS.smallest)
            there, pull, push = evaluate(trial)
            # Nonmonotone Armijo rule: below the largest of the recent values.
            if there <= max(recent) - 1e-4 * float(gradient @ (beta - trial)):
                break
            length *= 0.25
        else:
            break
        change = trial - beta
        curvature = float(change @ (push - pull - gradient))
        # Barzilai-Borwein length in the metric of the units.
        length = float(change @ (change / unit)) / curvature if curvature > 0.0 else 4.0 * length
        length = min(length, 1e6)
        beta, here, recent = trial, there, [*recent[1 - OPTIONS.memory :], there]
        if here < lowest:
            best, lowest = beta, here
    return best
