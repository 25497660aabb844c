"""The solver that fits a loss and a kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import KernelOperator
from kernelweave.losses.base import InnerSolver, Loss

from .cvar import solve_cvar
from .feature_newton import solve_on_features
from .newton import solve_newton
from .parts import solve_by_parts
from .ridge import solve_ridge
from .smo import solve_smo
from .smooth_features import solve_smooth_on_features
from .solution import Solution

_SOLVERS: dict[InnerSolver, Callable[..., Solution]] = {
    InnerSolver.SMO: solve_smo,
    InnerSolver.LINEAR_SYSTEM: solve_ridge,
    InnerSolver.CVAR: solve_cvar,
    InnerSolver.NEWTON: solve_newton,
}


def solve_inner(
    loss: Loss,
    K: KernelOperator,
    Y: Floats,
    cost: Floats,
    *,
    tol: float,
    floor: float = 0.0,
    start: Solution | None = None,
    enough: float = np.inf,
) -> Solution:
    """Solve for one fixed kernel until the gap is at most ``max(tol * primal, floor)``.

    Parameters
    ----------
    loss : Loss
        The loss.
    K : KernelOperator
        The kernel over the rows; solved in the primal where it offers features.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error; a row of cost zero is absent.
    tol, floor : float
        Relative and absolute gap to stop at.
    start : Solution, optional
        Where to begin.
    enough : float
        With one output, a solver may stop once its dual value has reached this.
    """
    features = K.features()
    if features is not None:
        smooth = loss.inner_solver is InnerSolver.NEWTON
        on_features = solve_smooth_on_features if smooth else solve_on_features
        return on_features(loss, features, Y, cost, tol=tol, floor=floor, start=start)
    if K.workspace is not None and loss.inner_solver is InnerSolver.SMO:
        return solve_by_parts(loss, K, Y, cost, tol=tol, floor=floor, start=start, enough=enough)
    solve = _SOLVERS[loss.inner_solver]
    return solve(loss, K, Y, cost, tol=tol, floor=floor, start=start, enough=enough)
