"""Contracts of kernels, banks, losses, weight sets and solvers, for whoever adds one.

Each function looks at one object from outside, compares what it says with the definition or with
plain NumPy, and raises an `AssertionError` that names the broken promise. They need small inputs
(up to a few hundred rows) and no test framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernelweave._types import Floats, Indices
from kernelweave.banks import CombinedKernel, KernelBank
from kernelweave.inner import Curvature, Solution, solve_inner, weight_curvature
from kernelweave.kernels import Kernel, n_rows, take
from kernelweave.losses import DualBox, Loss
from kernelweave.solvers import Result
from kernelweave.weights import WeightSet

__all__ = [
    "check_bank",
    "check_kernel",
    "check_loss",
    "check_solver_result",
    "check_weight_set",
]

_ROUNDING = 1e-10  # relative; what reordered float64 sums may differ by


def _require(holds: Any, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _close(found: Any, expected: Any, allowed: Any, what: str) -> None:
    """Require equal shapes and entries no further apart than ``allowed``."""
    found, expected = np.asarray(found), np.asarray(expected)
    _require(
        found.shape == expected.shape,
        f"{what}: the shape is {found.shape}, expected {expected.shape}.",
    )
    excess = np.abs(found - expected) - allowed
    if excess.size and not excess.max() <= 0:
        place = np.unravel_index(int(np.argmax(np.nan_to_num(excess, nan=np.inf))), excess.shape)
        at = f" at {tuple(map(int, place))}" if place else ""
        raise AssertionError(
            f"{what}: found {found[place]:.12g}, expected {expected[place]:.12g}{at}."
        )


def _unchanged(array: Floats, work: Callable[[], Any], what: str) -> Any:
    """Call ``work`` and require that it left ``array`` alone."""
    before = array.copy()
    out = work()
    _require(np.array_equal(array, before), f"{what} writes to its input.")
    return out


def check_kernel(kernel: Kernel, X: Any, *, tol: float = 1e-9) -> None:
    """Check that a kernel is symmetric, positive semi-definite and consistent with itself.

    Parameters
    ----------
    kernel : Kernel
        What to check.
    X : array, sparse matrix or data frame
        Rows that the kernel takes, two or more.
    tol : float
        How far values may be apart, relative to the largest diagonal entry.

    Raises
    ------
    AssertionError
        If a promise of `Kernel` is broken.

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> check_kernel(RBF(width=1.0), [[0.0], [1.0], [3.0]])
    """
    rows = kernel.prepare(X)
    n = n_rows(rows)
    _require(n >= 2, "check_kernel needs two or more rows.")
    gram = kernel(X)
    _require(gram.shape == (n, n), f"kernel(X) has shape {gram.shape} for {n} rows.")
    _require(gram.dtype == np.float64, f"kernel(X) has dtype {gram.dtype}, not float64.")
    _require(np.isfinite(gram).all(), "kernel(X) is not finite.")
    _require(np.array_equal(gram, gram.T), "kernel(X) is not exactly symmetric.")
    diagonal = kernel.diag(X)
    scale = max(float(diagonal.max()), 0.0)
    _require((diagonal >= 0).all(), f"kernel.diag(X) has the negative entry {diagonal.min():.6g}.")
    _close(diagonal, gram.diagonal(), tol * scale, "kernel.diag(X) against kernel(X)")
    lowest = float(np.linalg.eigvalsh(gram)[0])
    _require(
        lowest >= -n * tol * scale,
        f"kernel(X) is not positive semi-definite: its lowest eigenvalue is {lowest:.6g}.",
    )
    left, right = np.arange(0, n, 2), np.arange(n)[::-1][: n // 2 + 1]
    block = kernel.block(take(rows, left), take(rows, right))
    _close(block, gram[np.ix_(left, right)], tol * scale, "a block of some rows and columns")
    _close(
        kernel.diagonal(take(rows, left)), diagonal[left], tol * scale, "the diagonal of some rows"
    )
    _close(kernel.block(rows, take(rows, [0])), gram[:, :1], tol * scale, "one column")
    same = type(kernel).__sklearn_clone__(kernel)
    _require(same is kernel, "a kernel must be its own clone; it is an immutable value.")
    _require(kernel == kernel and hash(kernel) == hash(kernel), "a kernel must equal itself.")
    _require(bool(str(kernel)), "str(kernel) must name the kernel.")


def check_bank(
    bank: KernelBank, X: Any, *, tol: float | None = None, random_state: int = 0
) -> None:
    """Check a bank against the Gram matrices that its kernels give for ``X``.

    A form may leave out a positive semi-definite remainder ``E_j``; everything must then agree up
    to what `KernelBank.residual_forms` and `KernelBank.residual_roots` state about it.

    Parameters
    ----------
    bank : KernelBank
        What to check.
    X : array, sparse matrix or data frame
        The rows the bank was made of.
    tol : float, optional
        Relative rounding allowed; 1e-9, or 1e-5 where the bank stores single precision.
    random_state : int
        Seed of the vectors tried.

    Raises
    ------
    AssertionError
        If two answers of the bank contradict each other or the kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.banks import make_bank
    >>> from kernelweave.kernels import RBF, Linear
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> check_bank(make_bank([Linear(), RBF(width=2.0)], X), X)
    """
    rng = np.random.default_rng(random_state)
    n, m = bank.n_samples, bank.n_kernels
    if tol is None:
        tol = 1e-9 if bank.dtype == np.float64 else 1e-5
    grams = np.array(
        [scale * kernel(X) for scale, kernel in zip(bank.scales, bank.kernels, strict=True)]
    )
    _require(grams.shape == (m, n, n), "the kernels and the bank count rows differently.")
    traces = np.trace(grams, axis1=1, axis2=2)
    rounding = tol * np.maximum(traces, 0.0)
    _close(bank.traces(), traces, rounding, "traces()")
    centred = traces - grams.sum(axis=(1, 2)) / n
    left_out = bank.residual_forms(np.full((n, 1), n**-0.5))
    _close(bank.traces(centred=True), centred, rounding + left_out, "traces(centred=True)")
    for what, V in _vectors(n, rng):
        _check_forms(bank, grams, V, rounding * np.vdot(V, V), what)
    _check_subset(bank, rng, rounding)
    for weights in (np.ones(m), rng.dirichlet(np.ones(m)), np.eye(m)[m // 2], np.zeros(m)):
        _check_combined(bank, grams, weights, tol, rng)
    rows = bank.summary()
    _require(len(rows) == m, f"summary() describes {len(rows)} of {m} kernels.")
    _require(bank.nbytes >= 0, "nbytes is negative.")


def _vectors(n: int, rng: np.random.Generator) -> Iterator[tuple[str, Floats]]:
    yield "one vector", rng.normal(size=(n, 1))
    yield "three vectors", rng.normal(size=(n, 3))
    centred = rng.normal(size=(n, 2))
    yield "vectors that sum to zero", centred - centred.mean(axis=0)
    some = np.zeros((n, 2))
    some[::3] = rng.normal(size=some[::3].shape)
    yield "vectors with rows of zeros", some
    yield "zero", np.zeros((n, 1))


def _check_forms(bank: KernelBank, grams: Floats, V: Floats, rounding: Floats, what: str) -> None:
    everything = np.arange(bank.n_kernels)
    exact = np.einsum("no,jnk,ko->j", V, grams, V)
    quadratic_forms = _unchanged(V, lambda: bank.quadratic_forms(V), "forms")
    bound = _unchanged(V, lambda: bank.residual_forms(V), "residual_forms")
    _require((quadratic_forms >= 0).all(), f"forms ({what}): a form is negative.")
    _require((bound >= 0).all(), f"residual_forms ({what}): a bound is negative.")
    for j in everything:
        _require(
            quadratic_forms[j] <= exact[j] + rounding[j],
            f"quadratic_forms ({what}): kernel {j} gives {quadratic_forms[j]:.12g}, "
            f"above the exact {exact[j]:.12g}.",
        )
        left = exact[j] - quadratic_forms[j]
        _require(
            left <= bound[j] + rounding[j],
            f"residual_forms ({what}): kernel {j} leaves out {left:.6g}, bound {bound[j]:.6g}.",
        )
    some = everything[::-2]
    _close(
        bank.quadratic_forms(V, some),
        quadratic_forms[some],
        rounding[some],
        f"forms of some kernels ({what})",
    )
    support = np.flatnonzero(V.any(axis=1))
    products = bank.products(V, everything)
    inside = np.einsum("no,jno->j", V[support], products[:, support])
    _close(quadratic_forms, np.maximum(inside, 0.0), rounding, f"forms against products ({what})")
    exact_products = np.einsum("jnk,ko->jno", grams, V)
    entry = rounding[:, None] / max(np.sqrt(np.vdot(V, V)), 1e-300)  # trace * |V|, relatively
    roots = bank.residual_roots(everything)
    stated = np.sqrt(bound)[:, None] * roots + entry
    _close(products, exact_products, stated[:, :, None], f"products ({what})")
    rows = np.arange(0, bank.n_samples, 2)
    part = bank.products(V, some, rows)
    _close(part, products[some][:, rows], entry[some][:, :, None], f"rows of products ({what})")
    _close(
        bank.exact_products(V, some),
        exact_products[some],
        entry[some][:, :, None],
        f"exact_products ({what})",
    )


def _check_exact(
    bank: KernelBank, grams: Floats, weights: Floats, rounding: float, rng: np.random.Generator
) -> None:
    V = rng.normal(size=(bank.n_samples, 2))
    V[::3] = 0.0
    found = _unchanged(V, lambda: bank.exact_product(weights, V), "exact_product")
    expected = np.tensordot(weights, grams, axes=1) @ V
    _close(found, expected, bank.n_samples * rounding * np.abs(V).max(), "exact_product")


def _check_subset(bank: KernelBank, rng: np.random.Generator, rounding: Floats) -> None:
    which = rng.permutation(bank.n_kernels)[: max(1, bank.n_kernels - 1)]
    part = bank.subset(which)
    V = rng.normal(size=(bank.n_samples, 2))
    allowed = (rounding * np.vdot(V, V))[which]
    _require(part.kernels == tuple(bank.kernels[j] for j in which), "subset: the kernels differ.")
    _close(part.quadratic_forms(V), bank.quadratic_forms(V)[which], allowed, "subset: forms")
    _close(part.traces(), bank.traces()[which], rounding[which], "subset: traces")
    _close(
        part.traces(centred=True),
        bank.traces(centred=True)[which],
        rounding[which],
        "subset: centred traces",
    )
    _close(part.residual_forms(V), bank.residual_forms(V)[which], allowed, "subset: residual_forms")
    order = np.arange(len(which))[::-1]
    _close(
        part.products(V, order),
        bank.products(V, which[order]),
        allowed[order][:, None, None],
        "subset: products",
    )
    weights = rng.dirichlet(np.ones(len(which)))
    spread = np.zeros(bank.n_kernels)
    spread[which] = weights
    _close(
        part.combine(weights).dense(),
        bank.combine(spread).dense(),
        rounding.max(),
        "subset: combine",
    )


def _check_combined(
    bank: KernelBank, grams: Floats, weights: Floats, tol: float, rng: np.random.Generator
) -> None:
    n = bank.n_samples
    active = np.flatnonzero(weights)
    exact = np.tensordot(weights, grams, axes=1)
    rounding = tol * float(exact.diagonal().max(initial=0.0))
    roots = bank.residual_roots(active)
    left_out = np.einsum("j,jn,jk->nk", weights[active], roots, roots)
    dense = bank.combine(weights).dense()
    _close(dense, exact, left_out + rounding, "combine().dense()")
    _require(np.array_equal(dense, dense.T), "combine().dense() is not exactly symmetric.")
    coarse = bank.combine(weights, coarse=True).dense()
    lowest = float(np.linalg.eigvalsh(np.asarray(dense - coarse, dtype=np.float64))[0])
    _require(lowest >= -n * rounding, "combine(coarse=True) exceeds the whole kernel.")
    _check_exact(bank, grams, weights, rounding, rng)
    index = rng.permutation(n)[: max(1, n // 3)]
    columns = rng.permutation(n)[: max(1, n // 2)]
    V = rng.normal(size=(n, 2))
    partly = bank.combine(weights)
    partly.fetch(index[: max(1, n // 10)])
    states = {"fresh": bank.combine(weights), "partly": partly, "dense": _made_dense(bank, weights)}
    for state, kernel in states.items():
        what = f"combine() ({state})"
        _require(kernel.n_samples == n, f"{what}: n_samples is wrong.")
        _close(kernel.rows(index), dense[index], rounding, f"{what}.rows")
        _close(
            kernel.block(index, columns), dense[np.ix_(index, columns)], rounding, f"{what}.block"
        )
        _close(kernel.diag(), dense.diagonal(), rounding, f"{what}.diag")
        product = dense.astype(np.float64) @ V
        allowed = n * rounding * np.abs(V).max()
        _close(kernel @ V, product, allowed, f"{what} @ V")
        _close(
            kernel.block(index, index),
            dense[np.ix_(index, index)],
            rounding,
            f"{what}.block (square)",
        )
        factor = kernel.factor()
        if factor is not None:
            _close(factor.T @ factor, dense, rounding, f"{what}.factor")


def _made_dense(bank: KernelBank, weights: Floats) -> CombinedKernel:
    kernel = bank.combine(weights)
    first = kernel.dense()
    _require(kernel.dense() is first, "combine().dense() is not kept for the second call.")
    return kernel


@dataclass(frozen=True)
class _Task:
    """One loss on one bank, solved for several weights."""

    loss: Loss
    bank: KernelBank
    Y: Floats
    cost: Floats
    tol: float
    solver: Callable[..., Solution] = solve_inner
    curvature: Callable[..., Curvature] = weight_curvature

    @property
    def box(self) -> DualBox:
        return self.loss.box(self.Y, self.cost)

    def solve(self, weights: Floats, tol: float, start: Solution | None = None) -> Solution:
        kernel = self.bank.combine(weights)
        return self.solver(self.loss, kernel, self.Y, self.cost, tol=tol, start=start)

    def loss_at(self, fitted: Floats) -> float:
        """Return the conjugate of the dual shape, which is the loss by definition."""
        box, r = self.box, self.Y - fitted
        slack = np.maximum(np.abs(r) - box.dead_zone, 0.0)
        limit = np.where(r > 0, box.upper, -box.lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            free = np.where(box.ridge > 0, slack / box.ridge, np.inf)
        t = np.where(slack > 0, np.minimum(free, limit), 0.0)
        return float((t * slack - 0.5 * box.ridge * t * t).sum())

    def quadratic_forms(self, dual_coef: Floats) -> Floats:
        return self.bank.quadratic_forms(dual_coef)

    def infeasibility(self, dual_coef: Floats, like: Floats | None = None) -> float:
        """Return how far coefficients are outside their boxes or off balance, relative to sizes."""
        box = self.box
        off = np.maximum(box.lower - dual_coef, dual_coef - box.upper).max(initial=0.0)
        if self.loss.fit_intercept:
            off = max(off, np.abs(dual_coef.sum(axis=0)).max(initial=0.0))
        size = np.abs(dual_coef if like is None else like).sum()
        return float(off / max(size, 1e-300))


def check_loss(
    loss: Loss,
    bank: KernelBank,
    Y: Floats,
    cost: Floats,
    *,
    tol: float = 1e-10,
    random_state: int = 0,
    solve: Callable[..., Solution] = solve_inner,
    curvature: Callable[..., Curvature] = weight_curvature,
) -> None:
    """Check a loss with its inner solver.

    Bounds lie on the right sides, the gap asked for is met, the intercept is the best one, slopes
    ``-q_j / 2`` and the curvature agree with finite differences over the kernel weights.

    Parameters
    ----------
    loss : Loss
        What to check.
    bank : KernelBank
        Two or more kernels over a few dozen rows.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    tol : float
        The tightest relative gap asked of the solver.
    random_state : int
        Seed of the weights and coefficients tried.
    solve, curvature : callable
        The inner solver, and the second derivatives of the optimal value in the kernel weights.

    Raises
    ------
    AssertionError
        If a promise of `Loss` is broken, or the problem has no point where second derivatives
        can be compared.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.banks import make_bank
    >>> from kernelweave.kernels import RBF, Linear
    >>> from kernelweave.losses import Square
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> Y = np.sin(X[:, :1])
    >>> check_loss(Square(), make_bank([Linear(), RBF(width=1.0)], X), Y, np.ones_like(Y))
    """
    rng = np.random.default_rng(random_state)
    task = _Task(loss, bank, Y, cost, tol, solve, curvature)
    weights = rng.uniform(0.5, 1.5, bank.n_kernels) / bank.n_kernels
    best = task.solve(weights, tol)
    for asked in (0.3, 1e-2, 1e-4, tol):
        _check_solution(task, weights, task.solve(weights, asked), asked, best)
    _check_floor(task, weights, best)
    _check_warm(task, weights, best)
    _check_loss(task, best.fitted, rng)
    _check_repair(task, best, rng)
    _check_slopes(task, weights, best)
    _check_curvature(task, weights)


def _check_solution(
    task: _Task, weights: Floats, solution: Solution, asked: float, best: Solution
) -> None:
    what = f"solve(tol={asked:g})"
    dual_coef, loss = solution.dual_coef, task.loss
    _require(dual_coef.shape == task.Y.shape, f"{what}: dual_coef has shape {dual_coef.shape}.")
    _require(solution.intercept.shape == task.Y.shape[1:], f"{what}: intercept has a wrong shape.")
    size = abs(solution.primal) + 1e-300
    _require(
        solution.dual <= solution.primal + _ROUNDING * size,
        f"{what}: the dual value {solution.dual:.12g} is above the primal {solution.primal:.12g}.",
    )
    _require(
        solution.gap <= asked * size + 1e-13 * size,
        f"{what}: the relative gap is {solution.gap / size:.3g}.",
    )
    off = task.infeasibility(dual_coef)
    _require(off <= 1e-12, f"{what}: coefficients leave their set, relatively by {off:.3g}.")
    fitted = task.bank.combine(weights) @ dual_coef
    scale = float(np.abs(fitted).max(initial=0.0))
    _close(solution.fitted, fitted, 1e-7 * scale, f"{what}: fitted against K @ coef")
    quadratic = float(weights @ task.quadratic_forms(dual_coef))
    loss_value, intercept = loss.value(fitted, task.Y, task.cost)
    _close(solution.primal, 0.5 * quadratic + loss_value, 1e-8 * size, f"{what}: the primal value")
    ridge = loss.ridge_term(dual_coef, task.Y, task.cost)
    dual = loss.linear(dual_coef, task.Y, task.cost) - 0.5 * (quadratic + ridge)
    _close(solution.dual, dual, 1e-8 * size, f"{what}: the dual value")
    at_intercept = task.loss_at(fitted + solution.intercept)
    _close(at_intercept, loss_value, 1e-8 * size, f"{what}: the loss at the intercept returned")
    if not loss.fit_intercept:
        _require(not intercept.any(), f"{what}: an intercept without fit_intercept.")
    for lower, upper, kind in (
        (solution.dual, best.primal, "below its dual value"),
        (best.dual, solution.primal, "above its primal value"),
    ):
        _require(
            lower <= upper + _ROUNDING * size, f"{what}: a tighter solve ends {kind}, {upper:.12g}."
        )


def _check_floor(task: _Task, weights: Floats, best: Solution) -> None:
    floor = 0.05 * abs(best.primal)
    kernel = task.bank.combine(weights)
    solution = task.solver(task.loss, kernel, task.Y, task.cost, tol=0.0, floor=floor)
    _require(solution.gap <= floor * (1 + 1e-9), "solve(floor=...): the gap exceeds the floor.")


def _check_warm(task: _Task, weights: Floats, best: Solution) -> None:
    cold = task.solve(weights, 1e-6)
    warm = _unchanged(
        best.dual_coef, lambda: task.solve(weights, 1e-6, start=best), "solve(start=...)"
    )
    size = abs(best.primal) + 1e-300
    _close(warm.primal, best.primal, 1e-6 * size, "solve(start=...): the primal value")
    _require(
        warm.work <= max(cold.work, 1),
        f"a start at the solution takes {warm.work} updates, a cold one {cold.work}.",
    )


def _check_loss(task: _Task, fitted: Floats, rng: np.random.Generator) -> None:
    for F in (fitted, np.zeros_like(fitted), fitted + rng.normal(size=fitted.shape)):
        loss_value, bias = task.loss.value(F, task.Y, task.cost)
        rounding = _ROUNDING * (abs(loss_value) + 1e-300)
        _close(task.loss_at(F + bias), loss_value, rounding, "loss: the value at its own bias")
        if not task.loss.fit_intercept:
            _require(not bias.any(), "loss: a bias without fit_intercept.")
            continue
        spread = float(np.ptp(task.Y - F)) or 1.0
        for o in range(len(bias)):
            for step in (-1.0, -1e-2, -1e-4, 1e-4, 1e-2, 1.0):
                other = bias.copy()
                other[o] += step * spread
                value = task.loss_at(F + other)
                _require(
                    value >= loss_value - rounding,
                    f"loss: the bias {other[o]:.9g} of output {o} gives {value:.12g}, "
                    f"the one returned, {bias[o]:.9g}, gives {loss_value:.12g}.",
                )


def _check_repair(task: _Task, best: Solution, rng: np.random.Generator) -> None:
    size = float(np.abs(best.dual_coef).max(initial=0.0)) or 1.0
    tries = [3.0 * size * rng.normal(size=task.Y.shape) for _ in range(3)]
    tries += [
        10.0 * best.dual_coef,
        best.dual_coef + 1e-9 * size,
        np.full(task.Y.shape, 2.0 * size),
    ]
    for wild in tries:
        before = wild.copy()
        repaired = task.loss.repair(wild, task.Y, task.cost)
        _require(np.array_equal(wild, before), "repair writes to its input.")
        _require(np.isfinite(repaired).all(), "repair: coefficients are not finite.")
        off = task.infeasibility(repaired, wild)
        _require(off <= 1e-12, f"repair: the result leaves the set, relatively by {off:.3g}.")
    kept = task.loss.repair(best.dual_coef, task.Y, task.cost)
    _close(kept, best.dual_coef, 1e-9 * size, "repair of feasible coefficients")


def _check_slopes(task: _Task, weights: Floats, best: Solution) -> None:
    """Compare slopes with difference quotients, which enclose them because the value is convex."""
    slopes = -0.5 * task.quadratic_forms(best.dual_coef)
    for j in range(len(weights)):
        step = np.zeros(len(weights))
        step[j] = 1e-3 * weights[j]
        ahead, behind = (task.solve(weights + s, task.tol) for s in (step, -step))
        h = float(step[j])
        # Values are known to the gaps only, and a slope to the square root of its own gap.
        slack = (best.gap + ahead.gap + behind.gap + 1e-13 * abs(best.primal)) / h
        low = (best.dual - behind.primal) / h - slack
        high = (ahead.primal - best.dual) / h + slack
        _require(
            low <= slopes[j] <= high,
            f"kernel {j}: the slope -q/2 is {slopes[j]:.9g}, but differences of the optimal value "
            f"lie between {low:.9g} and {high:.9g}.",
        )


def _free_set(task: _Task, dual_coef: Floats) -> Any:
    box = task.box
    with np.errstate(invalid="ignore"):
        margin = np.nan_to_num(1e-7 * (box.upper - box.lower), posinf=0.0)
    inside = (dual_coef > box.lower + margin) & (dual_coef < box.upper - margin)
    return inside & (dual_coef != 0) if box.dead_zone > 0 else inside


def _check_curvature(task: _Task, weights: Floats) -> None:
    tol = 1e-3 * task.tol  # coefficients are known to the square root of a gap
    best = task.solve(weights, tol)
    kernel = task.bank.combine(weights)
    everything = np.arange(task.bank.n_kernels)

    def products(rows: Indices) -> Floats:
        return task.bank.products(best.dual_coef, everything, rows)

    found = task.curvature(task.loss, kernel, products, best.dual_coef, task.Y, task.cost)
    H = found.hessian
    quadratic_forms = task.quadratic_forms(best.dual_coef)
    top = float((quadratic_forms / weights).max(initial=0.0))
    _close(H, H.T, _ROUNDING * top, "curvature: the Hessian against its transpose")
    _require(
        np.linalg.eigvalsh(H)[0] >= -1e-7 * top, "curvature: the Hessian is not semi-definite."
    )
    majoriser = np.diag(quadratic_forms / weights)
    _require(
        np.linalg.eigvalsh(majoriser - H)[0] >= -1e-4 * top,
        "curvature: the Hessian exceeds that of the majoriser, diag(q / weights).",
    )
    free, compared = _free_set(task, best.dual_coef), 0
    for j in range(len(weights)):
        step = np.zeros(len(weights))
        step[j] = 1e-3 * weights[j]
        ahead, behind = (task.solve(weights + s, tol) for s in (step, -step))
        if any((_free_set(task, s.dual_coef) != free).any() for s in (ahead, behind)):
            continue
        compared += 1
        column = (
            -0.5
            * (task.quadratic_forms(ahead.dual_coef) - task.quadratic_forms(behind.dual_coef))
            / (2.0 * step[j])
        )
        _close(H[:, j], column, 1e-2 * top, f"curvature: column {j} of the Hessian")
        predicted = found.predict(best.dual_coef, step)
        moved = float(np.abs(ahead.dual_coef - best.dual_coef).max())
        _close(
            predicted, ahead.dual_coef, 0.1 * moved + 1e-5 * np.abs(best.dual_coef).max(), "predict"
        )
    _require(
        compared > 0,
        "curvature: the set of free coefficients changes along every kernel, so nothing could be "
        "compared; choose other data.",
    )


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
    _require(start.shape == (n_kernels,), f"start has shape {start.shape}.")
    _check_member(weight_set, start, rng, "start", tol)
    points = [start]
    for norms in _norms(n_kernels, rng):
        point = _check_update(weight_set, points, norms, rng, tol)
        points.append(point)
        mix = rng.dirichlet(np.ones(len(points)))
        points.append(np.tensordot(mix, np.array(points), axes=1))  # convex, so feasible too
    zero = np.zeros(n_kernels)
    _require(
        np.array_equal(weight_set.update(points[-1], zero), points[-1]),
        "update must return the weights it was given when all norms are zero.",
    )
    _require(weight_set.penalty(zero) == 0.0, "penalty of zero norms must be zero.")
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


def _check_member(
    weight_set: WeightSet, weights: Floats, rng: np.random.Generator, what: str, tol: float
) -> None:
    """Require weights of the set (or below it): no support value may fall short of them."""
    _require(np.isfinite(weights).all(), f"{what}: weights are not finite.")
    _require((weights >= 0).all(), f"{what}: a weight is negative.")
    n = len(weights)
    directions = [*np.eye(n), np.ones(n), *rng.uniform(size=(20, n)), weights, weights**3]
    for quadratic_forms in directions:
        value, limit = float(weights @ quadratic_forms), weight_set.support_value(quadratic_forms)
        _require(
            value <= limit * (1 + tol) + 1e-300,
            f"{what}: the weights {weights} are outside the set, or support_value is too small: "
            f"{value:.12g} > {limit:.12g}.",
        )


def _check_update(
    weight_set: WeightSet, points: list[Floats], norms: Floats, rng: np.random.Generator, tol: float
) -> Floats:
    theta = points[-1]
    new: Floats = _unchanged(norms, lambda: weight_set.update(theta, norms), "update")
    _check_member(weight_set, new, rng, "update", tol)
    value = _ratio(norms, new)
    for other in points:
        rival = _ratio(norms, other)
        _require(
            value <= rival * (1 + tol),
            f"update: sum(norms**2 / weights) is {value:.12g}, other weights give {rival:.12g}.",
        )
    penalty = weight_set.penalty(norms)
    _close(penalty, 0.5 * value, tol * value, "penalty against the value at the minimiser")
    _close(
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
    _require(
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
    _close(
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
    _require(np.isfinite(bound) and bound >= 0.0, f"{what} is {bound}.")
    for weights in points:
        # The dual value along the ray through the point, for these weights.
        curvature = float(weights @ quadratic_forms) + ridge
        if curvature <= 0.0:
            continue
        scale = max(linear / curvature, 0.0)
        scale = min(scale, 1.0) if bounded else scale
        value = scale * linear - 0.5 * scale**2 * curvature
        _require(
            bound <= value * (1 + tol) + 1e-300,
            f"{what} is {bound:.12g}, above the value {value:.12g} that some weights have.",
        )
    plain = linear - 0.5 * (weight_set.support_value(quadratic_forms) + ridge)
    _require(
        bound >= plain - tol * abs(plain),
        f"{what}: scaling made the bound worse than {plain:.12g}.",
    )
    larger = weight_set.lower_bound(linear, ridge, 1.5 * quadratic_forms, bounded=bounded)
    _require(larger <= bound * (1 + tol), f"{what}: larger forms give a larger bound.")


def check_solver_result(
    result: Result,
    bank: KernelBank,
    Y: Floats,
    cost: Floats,
    loss: Loss,
    weight_set: WeightSet,
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
    bank : KernelBank
        The kernels it was found for.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    loss : Loss
        The loss.
    weight_set : WeightSet
        Where weights live.
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
    >>> from kernelweave.solvers import newton_bundle
    >>> from kernelweave.weights import Simplex
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> bank, Y = make_bank([Linear(), RBF(width=1.0)], X), np.sin(X[:, :1])
    >>> result = newton_bundle(bank, Y, np.ones_like(Y), Square(), tol=1e-6, max_iter=50)
    >>> check_solver_result(result, bank, Y, np.ones_like(Y), Square(), Simplex(), tol=1e-6)
    """
    task = _Task(loss, bank, Y, cost, tol)
    upper, lower = result.objective, result.lower_bound
    size = max(abs(upper), 1e-300)
    _require(np.isfinite(upper), f"the objective is {upper}.")
    _require(lower <= upper, f"the lower bound {lower:.12g} is above the objective {upper:.12g}.")
    _close(result.gap, upper - lower, slack * size, "gap")
    within = result.gap <= tol * size * (1 + 1e-12) or upper <= 0.0
    _require(
        result.converged == within,
        f"converged is {result.converged} at a relative gap of {result.gap / size:.3g}.",
    )
    if reference is not None:
        low, high = np.broadcast_to(np.asarray(reference, dtype=np.float64), 2)
        _require(
            upper >= low - slack * size,
            f"the objective {upper:.12g} is below the optimum {low:.12g}.",
        )
        _require(
            lower <= high + slack * size,
            f"the lower bound {lower:.12g} is above the optimum {high:.12g}.",
        )
    _require(result.weights.shape == (bank.n_kernels,), "weights need one entry per kernel.")
    _check_member(weight_set, result.weights, np.random.default_rng(0), "weights", 1e-9)
    off = task.infeasibility(result.dual_coef)
    _require(off <= 1e-12, f"coefficients leave their set, relatively by {off:.3g}.")
    _check_objective(task, weight_set, result, slack)
    # Steps may use factored kernels, which are held far more exactly than the tolerance.
    _check_history(result, size, slack + 0.01 * tol)


def _check_objective(task: _Task, weight_set: WeightSet, result: Result, slack: float) -> None:
    bank, dual_coef = task.bank, result.dual_coef
    active: Indices = np.flatnonzero(result.weights)
    products = bank.exact_products(dual_coef, active)
    fitted = np.tensordot(result.weights[active], products, axes=1).reshape(task.Y.shape)
    quadratic_forms = np.zeros(bank.n_kernels)
    quadratic_forms[active] = np.maximum(np.einsum("jno,no->j", products, dual_coef), 0.0)
    total_loss, _ = task.loss.value(fitted, task.Y, task.cost)
    value = weight_set.penalty(result.weights * np.sqrt(quadratic_forms)) + total_loss
    rounding = slack * max(abs(result.objective), 1e-300)
    _require(
        value <= result.objective + rounding,
        f"weights and coefficients have the objective {value:.12g}, "
        f"above the {result.objective:.12g} stated.",
    )
    # What factored kernels leave out is bounded and added, so the objective may be a little high.
    held, _ = task.loss.value(bank.combine(result.weights) @ dual_coef, task.Y, task.cost)
    norms = result.weights * np.sqrt(quadratic_forms + bank.residual_forms(dual_coef))
    largest = weight_set.penalty(norms) + max(total_loss, held)
    _require(
        result.objective <= largest + rounding,
        f"weights and coefficients have the objective {value:.12g}, "
        f"below the {result.objective:.12g} stated.",
    )
    at_intercept = task.loss_at(fitted + result.intercept)
    _require(
        at_intercept <= total_loss + 2.0 * abs(held - total_loss) + rounding,
        f"the intercept gives a loss of {at_intercept:.12g}, the best one {total_loss:.12g}.",
    )


def _check_history(result: Result, size: float, slack: float) -> None:
    _require(len(result.history) > 0, "the history is empty.")
    before = result.history[0]
    for step in result.history:
        rounding = slack * size  # a bound recomputed from scratch may move by its rounding
        _require(
            step.upper <= before.upper + rounding, "the best upper bound rises in the history."
        )
        _require(
            step.lower >= before.lower - rounding, "the best lower bound falls in the history."
        )
        _require(
            step.solves >= before.solves
            and step.work >= before.work
            and step.n_passes >= before.n_passes,
            "a count of work falls in the history.",
        )
        before = step
    _close(before.upper, result.objective, slack * size, "the last upper bound of the history")
    last = min(before.lower, before.upper)  # from which a result takes its rounding error
    _require(
        result.lower_bound <= last + slack * size,
        f"the lower bound {result.lower_bound:.12g} is above the last {last:.12g} of the history.",
    )
