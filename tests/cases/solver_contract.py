"""The contract of solvers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernelweave._types import Indices
from kernelweave.banks import exact_bank
from kernelweave.solvers import Problem, Result
from kernelweave.testing.assertions import close, require
from kernelweave.testing.losses import InnerTask
from kernelweave.testing.weights import check_member
from kernelweave.weights import WeightSet


def check_solver_result(
    result: Result,
    problem: Problem,
    *,
    tol: float,
    reference: ArrayLike | None = None,
    slack: float = 1e-8,
) -> None:
    """Check that a solver's result is what it certifies, for the exact kernels.

    Parameters
    ----------
    result : Result
        What to check.
    problem : Problem
        The problem it was found for.
    tol : float
        The relative gap that the solver was asked for.
    reference : float, or a pair of floats, optional
        The optimal value of the problem, or a lower and an upper bound of it.
    slack : float
        Relative rounding allowed.

    Raises
    ------
    AssertionError
        If a bound is on the wrong side, or the objective is not that of the weights and
        coefficients returned.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.banks import make_bank
    >>> from kernelweave.kernels import RBF, Linear
    >>> from kernelweave.losses import Square
    >>> from kernelweave.solvers import Limits, Problem, newton_bundle
    >>> from kernelweave.weights import Simplex
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> bank, Y = make_bank([Linear(), RBF(width=1.0)], X), np.sin(X[:, :1])
    >>> problem = Problem(bank, Y, np.ones_like(Y), Square(), Simplex())
    >>> check_solver_result(newton_bundle(problem, Limits(tol=1e-6)), problem, tol=1e-6)
    """
    bank, weight_set = exact_bank(problem.bank), problem.weight_set
    task = InnerTask(problem.loss, bank, problem.Y, problem.cost, tol)
    upper, lower = result.objective, result.lower_bound
    size = max(abs(upper), 1e-300)
    require(np.isfinite(upper), f"the objective is {upper}.")
    require(lower <= upper, f"the lower bound {lower:.12g} is above the objective {upper:.12g}.")
    close(result.gap, upper - lower, slack * size, "gap")
    within = result.gap <= tol * size * (1 + 1e-12) or upper <= 0.0
    require(
        result.converged == within,
        f"converged is {result.converged} at a relative gap of {result.gap / size:.3g}.",
    )
    if reference is not None:
        low, high = np.broadcast_to(np.asarray(reference, dtype=np.float64), 2)
        require(
            upper >= low - slack * size,
            f"the objective {upper:.12g} is below the optimum {low:.12g}.",
        )
        require(
            lower <= high + slack * size,
            f"the lower bound {lower:.12g} is above the optimum {high:.12g}.",
        )
    require(result.weights.shape == (bank.n_kernels,), "weights need one entry per kernel.")
    check_member(weight_set, result.weights, np.random.default_rng(0), "weights", 1e-9)
    off = task.infeasibility(result.dual_coef)
    require(off <= 1e-12, f"coefficients leave their set, relatively by {off:.3g}.")
    _check_objective(task, weight_set, result, slack)
    # Steps may use factored kernels, which are held far more exactly than the tolerance.
    _check_history(result, size, slack + 0.01 * tol)


def _check_objective(task: InnerTask, weight_set: WeightSet, result: Result, slack: float) -> None:
    bank, dual_coef = task.bank, result.dual_coef
    active: Indices = np.flatnonzero(result.weights)
    products = bank.exact_products(dual_coef, active)
    fitted = np.tensordot(result.weights[active], products, axes=1).reshape(task.Y.shape)
    quadratic_forms = np.zeros(bank.n_kernels)
    quadratic_forms[active] = np.maximum(np.einsum("jno,no->j", products, dual_coef), 0.0)
    total_loss, _ = task.loss.value(fitted, task.Y, task.cost)
    value = weight_set.penalty(result.weights * np.sqrt(quadratic_forms)) + total_loss
    rounding = slack * max(abs(result.objective), 1e-300)
    require(
        value <= result.objective + rounding,
        f"weights and coefficients have the objective {value:.12g}, "
        f"above the {result.objective:.12g} stated.",
    )
    # What factored kernels leave out is bounded and added, so the objective may be a little high.
    held, _ = task.loss.value(bank.combine(result.weights) @ dual_coef, task.Y, task.cost)
    norms = result.weights * np.sqrt(quadratic_forms + bank.residual_forms(dual_coef))
    largest = weight_set.penalty(norms) + max(total_loss, held)
    require(
        result.objective <= largest + rounding,
        f"weights and coefficients have the objective {value:.12g}, "
        f"below the {result.objective:.12g} stated.",
    )
    at_intercept = task.loss_at(fitted + result.intercept)
    require(
        at_intercept <= total_loss + 2.0 * abs(held - total_loss) + rounding,
        f"the intercept gives a loss of {at_intercept:.12g}, the best one {total_loss:.12g}.",
    )


def _check_history(result: Result, size: float, slack: float) -> None:
    require(len(result.history) > 0, "the history is empty.")
    before = result.history[0]
    for step in result.history:
        rounding = slack * size  # a bound recomputed from scratch may move by its rounding
        require(step.upper <= before.upper + rounding, "the best upper bound rises in the history.")
        require(step.lower >= before.lower - rounding, "the best lower bound falls in the history.")
        require(
            step.solves >= before.solves
            and step.work >= before.work
            and step.n_passes >= before.n_passes,
            "a count of work falls in the history.",
        )
        before = step
    close(before.upper, result.objective, slack * size, "the last upper bound of the history")
    last = min(before.lower, before.upper)  # from which a result takes its rounding error
    require(
        result.lower_bound <= last + slack * size,
        f"the lower bound {result.lower_bound:.12g} is above the last {last:.12g} of the history.",
    )
