"""The contract of weight sets."""

from __future__ import annotations

import numpy as np

from kernelweave._types import Floats
from kernelweave.weights import WeightSet

from .assertions import close, require, unchanged


def check_weight_set(
    weight_set: WeightSet, n_kernels: int = 6, *, random_state: int = 0, tol: float = 1e-9
) -> None:
    """Check that a weight set minimises what it says it does and that its bounds are bounds.

    Parameters
    ----------
    weight_set : WeightSet
        What to check.
    n_kernels : int
        Number of weights.
    random_state : int
        Seed of the norms and forms tried.
    tol : float
        Relative rounding allowed.

    Raises
    ------
    AssertionError
        If a promise of `WeightSet` is broken.

    Examples
    --------
    >>> from kernelweave.weights import LpBall
    >>> check_weight_set(LpBall(1.5))
    """
    rng = np.random.default_rng(random_state)
    start = weight_set.start(n_kernels)
    require(start.shape == (n_kernels,), f"start has shape {start.shape}.")
    check_member(weight_set, start, rng, "start", tol)
    points = [start]
    for norms in _norms(n_kernels, rng):
        point = _check_update(weight_set, points, norms, rng, tol)
        points.append(point)
        mix = rng.dirichlet(np.ones(len(points)))
        points.append(np.tensordot(mix, np.array(points), axes=1))  # convex, so feasible too
    zero = np.zeros(n_kernels)
    require(
        np.array_equal(weight_set.update(points[-1], zero), points[-1]),
        "update must return the weights it was given when all norms are zero.",
    )
    require(weight_set.penalty(zero) == 0.0, "penalty of zero norms must be zero.")
    for quadratic_forms in (*_norms(n_kernels, rng), zero):
        _check_support(weight_set, np.array(points), quadratic_forms, rng, tol)


def _norms(n: int, rng: np.random.Generator) -> list[Floats]:
    sparse = rng.uniform(0.5, 1.0, n)
    sparse[n // 2 :] = 0.0
    spread = 10.0 ** rng.uniform(-6.0, 6.0, n)
    return [
        rng.uniform(0.1, 1.0, n),
        np.ones(n),
        sparse,
        np.eye(n)[n // 2],
        spread,
        1e-100 * rng.uniform(0.1, 1.0, n),
        1e100 * rng.uniform(0.1, 1.0, n),
    ]


def _ratio(norms: Floats, weights: Floats) -> float:
    """Return ``sum(norms**2 / weights)`` with 0 / 0 = 0."""
    used = norms > 0
    if (weights[used] <= 0).any():
        return np.inf
    return float((norms[used] * (norms[used] / weights[used])).sum())


def check_member(
    weight_set: WeightSet, weights: Floats, rng: np.random.Generator, what: str, tol: float
) -> None:
    """Require weights of the set (or below it): no support value may fall short of them."""
    require(np.isfinite(weights).all(), f"{what}: weights are not finite.")
    require((weights >= 0).all(), f"{what}: a weight is negative.")
    n = len(weights)
    directions = [*np.eye(n), np.ones(n), *rng.uniform(size=(20, n)), weights, weights**3]
    for quadratic_forms in directions:
        value, limit = float(weights @ quadratic_forms), weight_set.support_value(quadratic_forms)
        require(
            value <= limit * (1 + tol) + 1e-300,
            f"{what}: the weights {weights} are outside the set, or support_value is too small: "
            f"{value:.12g} > {limit:.12g}.",
        )


def _check_update(
    weight_set: WeightSet, points: list[Floats], norms: Floats, rng: np.random.Generator, tol: float
) -> Floats:
    theta = points[-1]
    new: Floats = unchanged(norms, lambda: weight_set.update(theta, norms), "update")
    check_member(weight_set, new, rng, "update", tol)
    value = _ratio(norms, new)
    for other in points:
        rival = _ratio(norms, other)
        require(
            value <= rival * (1 + tol),
            f"update: sum(norms**2 / weights) is {value:.12g}, other weights give {rival:.12g}.",
        )
    penalty = weight_set.penalty(norms)
    close(penalty, 0.5 * value, tol * value, "penalty against the value at the minimiser")
    close(
        weight_set.update(theta, 3.0 * norms),
        new,
        tol,
        "update must not depend on the scale of norms",
    )
    return new


def _check_support(
    weight_set: WeightSet,
    points: Floats,
    quadratic_forms: Floats,
    rng: np.random.Generator,
    tol: float,
) -> None:
    top = weight_set.support_value(quadratic_forms)
    reached = float((points @ quadratic_forms).max())
    require(
        reached <= top * (1 + tol),
        f"support_value: {top:.12g}, but feasible weights reach {reached:.12g}.",
    )
    # Updates with norms = weights * sqrt(forms) never lower weights . forms, and lead to its top.
    weights, before = weight_set.start(len(quadratic_forms)), -np.inf
    for _ in range(3000):
        weights = weight_set.update(weights, weights * np.sqrt(quadratic_forms))
        if weights @ quadratic_forms <= before * (1 + 1e-9):
            break
        before = float(weights @ quadratic_forms)
    close(
        float(weights @ quadratic_forms),
        top,
        1e-4 * top,
        "support_value against the best weights found",
    )
    for bounded in (True, False):
        for linear in (-1.0, 0.1 * top, top, 10.0 * top):
            for ridge in (0.0, float(rng.uniform()) * top):
                _check_lower(weight_set, points, quadratic_forms, linear, ridge, bounded, tol)


def _check_lower(
    weight_set: WeightSet,
    points: Floats,
    quadratic_forms: Floats,
    linear: float,
    ridge: float,
    bounded: bool,
    tol: float,
) -> None:
    bound = weight_set.lower_bound(linear, ridge, quadratic_forms, bounded=bounded)
    what = f"lower_bound(linear={linear:.3g}, ridge={ridge:.3g}, bounded={bounded})"
    require(np.isfinite(bound) and bound >= 0.0, f"{what} is {bound}.")
    for weights in points:
        # The dual value along the ray through the point, for these weights.
        curvature = float(weights @ quadratic_forms) + ridge
        if curvature <= 0.0:
            continue
        scale = max(linear / curvature, 0.0)
        scale = min(scale, 1.0) if bounded else scale
        value = scale * linear - 0.5 * scale**2 * curvature
        require(
            bound <= value * (1 + tol) + 1e-300,
            f"{what} is {bound:.12g}, above the value {value:.12g} that some weights have.",
        )
    plain = linear - 0.5 * (weight_set.support_value(quadratic_forms) + ridge)
    require(
        bound >= plain - tol * abs(plain),
        f"{what}: scaling made the bound worse than {plain:.12g}.",
    )
    larger = weight_set.lower_bound(linear, ridge, 1.5 * quadratic_forms, bounded=bounded)
    require(larger <= bound * (1 + tol), f"{what}: larger forms give a larger bound.")
