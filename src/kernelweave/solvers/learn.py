"""Which solver fits a learning problem."""

from __future__ import annotations

from dataclasses import replace

from kernelweave.losses.base import InnerSolver
from kernelweave.weights import Uniform

from .bounds import Result
from .bundle_model import BundleOptions
from .cvar import cvar_by_rescaling, cvar_by_root_search
from .fixed_weights import solve_fixed_weights
from .lp_alternation import lp_alternation
from .newton_bundle import newton_bundle
from .problem import Limits, Problem, WarmStart
from .smoothing import solve_by_smoothing

_ROUNDING = 1e-6  # relative gap below which smoothing no longer helps; by hand


def learn_weights(problem: Problem, limits: Limits, start: WarmStart | None = None) -> Result:
    """Learn kernel weights and a function by the solver that fits the problem.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.banks import make_bank
    >>> from kernelweave.kernels import RBF, Linear
    >>> from kernelweave.losses import Square
    >>> from kernelweave.weights import Simplex
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> bank, Y = make_bank([Linear(), RBF(width=1.0)], X), np.sin(X[:, :1])
    >>> problem = Problem(bank, Y, np.ones_like(Y), Square(), Simplex())
    >>> learn_weights(problem, Limits(tol=1e-6, max_iter=50)).converged
    True
    """
    weight_set, large = problem.weight_set, problem.bank.n_features is not None
    if problem.loss.inner_solver is InnerSolver.CVAR:
        return (cvar_by_root_search if large else cvar_by_rescaling)(problem, limits, start)
    if weight_set.is_fixed or problem.bank.n_kernels == 1:
        return solve_fixed_weights(replace(problem, weight_set=Uniform()), limits, start)
    if not weight_set.is_sparse:
        return lp_alternation(problem, limits, start)
    if problem.loss.is_piecewise and large:
        return solve_by_smoothing(problem, limits, start)
    return _learn_sparse(problem, limits, start)


def _learn_sparse(problem: Problem, limits: Limits, start: WarmStart | None) -> Result:
    """Learn weights on the simplex, with a smoothed loss where the optimal value is not smooth."""
    piecewise = problem.loss.is_piecewise
    found = newton_bundle(problem, limits, start, BundleOptions(stop_if_nonsmooth=piecewise))
    spent = found.history[-1].solves >= limits.max_iter
    near = found.at_rounding or found.gap <= max(limits.tol, _ROUNDING) * found.size
    if not piecewise or spent or near:
        return found
    return solve_by_smoothing(problem, limits, WarmStart.at(found), before=found)
