"""First-order methods for the game between functions and the weights of their losses.

``min over f, max over alpha``: ``lam/2 (sum_j |f_j|)^2 + 1/n sum_i alpha_i (1 - y_i f(x_i))``. A
function has coefficients of its own for every kernel while these methods run. What is certified and
returned is the classifier in which all kernels share the coefficients ``y alpha / (n lam)``, the
form that every solution has.

References
----------
T. Yang, M. Mahdavi, R. Jin, L. Zhang, Y. Zhou (2012), Multiple kernel learning from noisy labels by
stochastic programming, ICML: problem (11), Algorithm 1 (one primal copy), Theorem 2 (the rate).
A. Nemirovski (2004), Prox-method with rate of convergence O(1/t) for variational inequalities,
SIAM J. Optim. 15.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import Bank, KernelBank, exact_bank
from kernelweave.losses import CVaRHinge

from .bounds import Bounds, Result, Step
from .evaluator import make_evaluator
from .problem import Limits, Problem


@dataclass(frozen=True)
class GameOptions:
    """The units of the game, and tunable numbers of `mirror_prox`, chosen by hand."""

    lam: float  # weight of the squared norm
    n: float  # number of rows, or the sum of their weights
    restarts: bool = True  # balance the two step lengths, restart from averages; False: published
    check: int = 10  # steps between two computations of the gap
    refresh: int = 50  # steps after which squared norms are recomputed, against drift
    power_steps: int = 40  # of the power method for the largest eigenvalue
    restart: float = 0.5  # a restart follows when the gap of the average has fallen to this share


def group_shrink(norms: Floats, strength: float) -> Floats:
    """Return the factors ``f_j / g_j`` of ``min 1/2 sum |f_j - g_j|^2 + strength/2 (sum |f_j|)^2``.

    The norms are those of the g_j.
    """
    ordered = np.sort(norms)[::-1]
    sums = np.cumsum(ordered) / (1.0 + strength * np.arange(1, len(norms) + 1))
    kept = np.flatnonzero(ordered > strength * sums)
    if not len(kept):
        return np.ones_like(norms)  # all norms are zero
    cut = strength * sums[kept[-1]]
    shares = np.divide(cut, norms, out=np.ones_like(norms), where=norms > 0)
    return np.asarray(np.maximum(0.0, 1.0 - shares))


@dataclass
class Functions:
    """One function per kernel: coefficients, values on the training rows, squared norms."""

    dual_coef: Floats  # (n_kernels, n_samples, n_outputs)
    values: Floats
    squares: Floats  # (n_kernels,)

    @classmethod
    def zero(cls, n_kernels: int, shape: tuple[int, ...]) -> Functions:
        return cls(
            np.zeros((n_kernels, *shape)), np.zeros((n_kernels, *shape)), np.zeros(n_kernels)
        )

    @property
    def total(self) -> Floats:
        """Values of the sum of all functions."""
        return np.asarray(self.values.sum(axis=0))

    @property
    def norms(self) -> Floats:
        return np.sqrt(self.squares)

    def refresh(self) -> None:
        """Recompute the squared norms; cancellation must not make them negative."""
        self.squares = np.maximum(np.einsum("jno,jno->j", self.dual_coef, self.values), 0.0)

    def moved(self, length: float, Z: Floats, products: Floats) -> Functions:
        """Return ``f_j + length sum_i Z_i k_j(x_i, .)``, given the products ``K_j Z``."""
        squares = self.squares + length * (
            2.0 * np.tensordot(self.values, Z, axes=2) + length * np.tensordot(products, Z, axes=2)
        )
        return Functions(
            self.dual_coef + length * Z,
            self.values + length * products,
            np.maximum(squares, 0.0),
        )

    def scaled(self, factors: Floats) -> Functions:
        """Return ``factors_j f_j``."""
        wide = factors[:, None, None]
        return Functions(wide * self.dual_coef, wide * self.values, factors**2 * self.squares)


class Average:
    """Running means of functions, weights of losses, and the products these have."""

    def __init__(self) -> None:
        self.count = 0
        self.dual_coef = self.values = self.alpha = self.products = np.zeros(1)

    def add(self, functions: Functions, alpha: Floats, products: Floats) -> None:
        self.count += 1
        share = 1.0 / self.count
        self.dual_coef = self.dual_coef + share * (functions.dual_coef - self.dual_coef)
        self.values = self.values + share * (functions.values - self.values)
        self.alpha = self.alpha + share * (alpha - self.alpha)
        self.products = self.products + share * (products - self.products)

    @property
    def functions(self) -> Functions:
        """The mean functions; their norms are not the means of norms."""
        mean = Functions(self.dual_coef, self.values, np.empty(0))
        mean.refresh()
        return mean


def cvar_loss(problem: Problem) -> CVaRHinge:
    """Return the loss of a problem for which it must be a `CVaRHinge`."""
    assert isinstance(problem.loss, CVaRHinge), "the loss must be a CVaRHinge"
    return problem.loss


class Game:
    """The problem, its certificates and the best classifier so far.

    The loss of the problem is a `CVaRHinge`, its weights are on the simplex, and its costs are the
    largest dual coefficients, ``weights / (n lam)``.
    """

    def __init__(self, problem: Problem, limits: Limits, options: GameOptions) -> None:
        bank, loss = problem.bank, cvar_loss(problem)
        self.bank, self.Y, self.lam, self.n = bank, problem.Y, options.lam, options.n
        self.unit = options.n * options.lam  # weights of losses are this times dual coefficients
        self.sets = loss.sets(self.unit * problem.cost)
        self.bounds = Bounds(limits.tol)
        self.evaluator = make_evaluator(problem, self.bounds)
        self.everything = np.arange(bank.n_kernels)
        self.callback = limits.callback
        self.history: list[Step] = []
        # The zero function is a classifier too, and early steps may be worse.
        equal = np.full(bank.n_kernels, 1.0 / bank.n_kernels)
        self.evaluator.at(equal, np.zeros_like(self.Y))

    def products(self, alpha: Floats) -> Floats:
        """Return ``K_j (y alpha)`` of all kernels."""
        self.bounds.n_passes += 1
        return self.bank.products(self.Y * alpha, self.everything)

    def project(self, alpha: Floats) -> Floats:
        """Return the nearest weights of losses that are allowed."""
        columns = [known.project(alpha[:, o]) for o, known in enumerate(self.sets)]
        return np.column_stack(columns)

    def ascent(self, functions: Functions) -> Floats:
        """Return the gradient in the weights of losses."""
        return np.asarray((1.0 - self.Y * functions.total) / self.n)

    def primal(self, functions: Functions) -> float:
        """Return the objective of functions with coefficients of their own."""
        slack = 1.0 - self.Y * functions.total
        losses = sum(known.worst(slack[:, o])[0] for o, known in enumerate(self.sets))
        size = float(functions.norms.sum())
        return 0.5 * self.lam * size * size + losses / self.n  # inf, where ** would raise

    def dual(self, alpha: Floats, products: Floats) -> float:
        """Return the value that these weights of losses prove."""
        quadratic_forms = np.maximum(np.tensordot(products, self.Y * alpha, axes=2), 0.0)
        largest = float(quadratic_forms.max()) / self.n**2
        return float(alpha.sum()) / self.n - 0.5 * largest / self.lam

    def offer(self, functions: Functions, alpha: Floats, products: Floats, steps: int) -> float:
        """Certify a pair, note it, and return its own gap."""
        gap = self.primal(functions) - self.dual(alpha, products)
        if not np.isfinite(gap):  # steps that are far too long
            return np.inf
        norms = functions.norms if functions.squares.any() else np.ones(self.bank.n_kernels)
        point = self.evaluator.at(norms / norms.sum(), self.Y * alpha / self.unit)
        quadratic_forms = np.maximum(np.tensordot(products, self.Y * alpha, axes=2), 0.0)
        self.evaluator.offer_lower(point, quadratic_forms / self.unit**2)
        self.bounds.solves = steps
        return gap

    def note(self, functions: Functions, alpha: Floats, products: Floats, steps: int) -> None:
        """Add the bounds of a pair, in units of the returned objective, to the history."""
        upper = self.primal(functions) / self.lam
        lower = self.dual(alpha, products) / self.lam
        step = Step(upper, lower, steps, 0, self.bounds.n_passes)
        self.history.append(step)
        if self.callback is not None:
            self.callback(step)

    def result(self) -> Result:
        """Return the best classifier, evaluated with the exact kernels."""
        self.evaluator.settle()
        bounds = self.bounds
        bounds.history = [*self.history, *bounds.history[-1:]]
        return bounds.result()


def mirror_prox(problem: Problem, limits: Limits, options: GameOptions) -> Result:
    """Learn kernels and a classifier by accelerated mirror prox.

    `max_iter` counts steps. Without restarts this is the published algorithm: equal steps of length
    ``sqrt(n / (2 m)) / B``, averages of everything. Values are divided by ``lam``, as those of the
    support vector machine.
    """
    game = Game(problem, limits, options)
    bank, Y, lam, n = problem.bank, problem.Y, options.lam, options.n
    restarts, max_iter = options.restarts, limits.max_iter
    if restarts:
        length, balance = _safe_step(bank, n, options.power_steps), 1.0
    else:
        top = _largest_entry(exact_bank(bank)) or 1.0  # any step will do where every kernel is zero
        length, balance = float(np.sqrt(n / (2.0 * bank.n_kernels * top))), 1.0
    functions = Functions.zero(bank.n_kernels, Y.shape)
    anchor = np.zeros_like(Y)  # the dual copy that prox steps start from
    average, mark = Average(), np.inf
    for step in range(1, max_iter + 1):
        alpha = game.project(anchor + length / balance * game.ascent(functions))
        products = game.products(alpha)
        primal_step = length * balance
        half = functions.moved(primal_step / n, Y * alpha, products)
        functions = half.scaled(group_shrink(half.norms, primal_step * lam))
        anchor = game.project(anchor + length / balance * game.ascent(functions))
        average.add(functions, alpha, products)
        if step % options.refresh == 0:
            functions.refresh()
        if step % options.check and step < max_iter:
            continue
        mean = average.functions
        game.note(mean, average.alpha, average.products, step)
        gap = game.offer(mean, average.alpha, average.products, step)
        if restarts:
            game.offer(functions, alpha, products, step)
        if game.evaluator.verify():
            break
        if restarts and gap <= options.restart * mark:
            mark, functions, anchor = gap, mean, average.alpha
            size, other = float(np.sqrt(mean.squares.sum())), float(np.linalg.norm(anchor))
            if size > 0 and other > 0:
                balance = float(np.sqrt(balance * size / other))
            average = Average()
    return game.result()


def _largest_entry(bank: KernelBank) -> float:
    """Return the largest diagonal entry of all normalised kernels."""
    entries = (kernel.diagonal(bank.views[j]).max() for j, kernel in enumerate(bank.kernels))
    return max(float(scale * top) for scale, top in zip(bank.scales, entries, strict=True))


def _safe_step(bank: Bank, n: float, power_steps: int) -> float:
    """Return the longest step that the proof covers, from the largest eigenvalue of the sum."""
    kernel = bank.combine(np.ones(bank.n_kernels))
    # A fixed vector without structure: one of ones is lost on centred data.
    vector = np.random.default_rng(0).standard_normal((bank.n_samples, 1))
    largest = 0.0
    for _ in range(power_steps):
        image = kernel @ vector
        largest = float(np.linalg.norm(image) / np.linalg.norm(vector))
        if largest == 0.0:
            return 1.0  # every kernel is zero
        vector = image / np.linalg.norm(image)
    return n / float(np.sqrt(1.02 * largest))
