"""The subproblem of a bundle step: weights that minimise a model of the objective; options."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy

from kernelweave import _core
from kernelweave._types import Bools, Floats

from .bounds import Iterate

# Chosen by hand.
_ROUNDS = 20  # quadratic programs for one step at most
_ENOUGH = 1e-3  # gain of a round, relative to all so far, at which it is the last
_SHORTEST = 1e-3  # part of a round's way that is still tried
_LARGE = 1e6  # unknowns of a system that is not singular are of the size of one
_STRICT = 1e-6  # relative distance of the curvature from that of a model infinite at zero weight


@dataclass(frozen=True)
class BundleOptions:
    """Tunable numbers of `newton_bundle`, chosen by hand.

    Where a number has two names, the first is for banks whose quadratic forms are cheap.
    """

    stop_if_nonsmooth: bool = False  # stop where J is nondifferentiable, for a caller who smooths
    working_cheap: int = 160  # kernels added at a time
    working: int = 40
    first: int = 40  # kernels that get a weight to begin with
    idle: float = 0.6  # slope, relative to the largest, below which unweighted kernels are dropped
    near: float = 0.85  # slope, relative to the average one, from which a kernel is in the model
    patient: float = 0.3  # gap of a good working set, relative to the whole gap, before pricing
    sample_rows_cheap: int = 1000  # rows from which weights are learned on a sample first
    sample_rows: int = 300
    sample_tol: float = 0.1  # relative gap
    sample_tol_on_demand: float = 0.02
    n_cuts: int = 20  # kept
    far: float = 0.3  # change of the weights, in the l1 norm, beyond which predictions are poor
    flat: float = 0.3  # promised gain, in tolerances, at which the mixed bound is computed
    follow: float = 2.0  # promised gain, in tolerances, at which coefficients are followed
    loose: float = 0.05  # inner gap with kernels on demand, in tolerances, that is always enough
    worth: float = 2.0  # gap, in tolerances, that a mixture of cuts should promise to leave
    measurable: float = 1e-10  # relative gain below which rounding hides it
    closer: int = 3  # inner solves in a row at the same weights
    # Nondifferentiable points.
    nonsmooth: float = (
        1e-3  # promised gain, relative to the squared gap, below which J is not smooth
    )
    visible: float = 1e-6  # relative gap that rounding cannot account for
    aside: float = 0.2  # share of the way to where all cuts are lowest, at which one is added
    aside_least: float = 1e-4
    max_asides: int = 1  # such cuts before a caller who smooths takes over
    # The end.
    pruning_steps: int = 2  # to drop kernels once the tolerance is met
    undamped: float = 0.03  # share of the damping that is left in these
    max_failures: int = 8  # steps without visible gain before giving up
    max_fruitless: int = 3  # fallbacks in a row that lower the gap by less than a tenth
    patience: int = 30  # inner solves without halving the gap before the majorising fallback


DEFAULT_OPTIONS = BundleOptions()


@dataclass
class Damping:
    """How much of the majoriser's curvature is mixed in."""

    mu: float = 0.2

    def after(self, ratio: float, length: float) -> None:
        """Learn from a step: its gain relative to the promise, and its length in the l1 norm."""
        if ratio > 0.7:
            self.mu *= 0.2 if length < 0.5 else 0.5
        elif 0.05 < ratio <= 0.25:
            self.mu *= 2.0
        elif ratio <= 0.05:
            self.mu = 4.0 * max(self.mu, 1e-3)


@dataclass
class Cuts:
    """Cuts of the optimal value over the weights of the working set."""

    limit: int  # cuts that are kept
    constants: list[float] = field(default_factory=list)
    quadratic_forms: list[Floats] = field(default_factory=list)
    coefs: list[Floats] = field(default_factory=list)

    def push(self, point: Iterate) -> None:
        self.constants = [*self.constants, point.cut][-self.limit :]
        self.quadratic_forms = [*self.quadratic_forms, point.quadratic_forms][-self.limit :]
        self.coefs = [*self.coefs, point.dual_coef][-self.limit :]

    def keep(self, kept: Bools) -> None:
        """Restrict the cuts to some of the weights; the others stay zero."""
        self.quadratic_forms = [quadratic_forms[kept] for quadratic_forms in self.quadratic_forms]

    def with_point(self, point: Iterate) -> tuple[Floats, Floats]:
        """Return constants and slopes, the present point's own cut last."""
        constants = np.array([*self.constants, point.cut])
        return constants, -0.5 * np.array([*self.quadratic_forms, point.quadratic_forms])

    def mixed(self, point: Iterate) -> tuple[Floats, Floats, float]:
        """Return the mixture of coefficients whose cut has the highest minimum, where, and that.

        The minimum, over the simplex, is where all cuts together are lowest.
        """
        constants, slopes = self.with_point(point)
        heights = constants[:, None] + slopes  # of each cut at each kernel alone
        size = float(np.abs(heights).max()) or 1.0
        n_cuts, n_kernels = heights.shape
        answer = scipy.optimize.linprog(
            np.append(np.zeros(n_cuts), -1.0),
            A_ub=np.column_stack([-heights.T / size, np.ones(n_kernels)]),
            b_ub=np.zeros(n_kernels),
            A_eq=np.append(np.ones(n_cuts), 0.0)[None],
            b_eq=[1.0],
            bounds=[(0.0, 1.0)] * n_cuts + [(None, None)],
        )
        if answer.x is None:
            return point.dual_coef, point.inner, -np.inf
        shares = np.maximum(answer.x[:-1], 0.0)
        coefs = np.array([*self.coefs, point.dual_coef])
        lowest = np.maximum(-np.asarray(answer.ineqlin.marginals), 0.0)
        mixture = np.tensordot(shares / shares.sum(), coefs, axes=1)
        return np.asarray(mixture), lowest / (lowest.sum() or 1.0), size * float(answer.x[-1])


def minimise_curved(
    cuts: Floats, slopes: Floats, hessian: Floats, stiff: Floats, centre: Floats
) -> tuple[Floats, float]:
    """Minimise the largest of some cuts and `Curved`, plus a damping, on the simplex.

    Newton's method on the model, a quadratic program each. Cut k is ``cuts_k + slopes_k . x``; the
    last one is the tangent at the centre, which the curved model replaces. The damping is
    ``stiff @ (x - centre)**2 / 2``. Returns the minimiser and the largest piece there, undamped.
    """
    value = float(cuts[-1] + slopes[-1] @ centre)
    curved = Curved(-2.0 * slopes[-1], hessian, centre)

    def heights(x: Floats) -> tuple[float, float]:
        step = x - centre
        older = (cuts[:-1] + slopes[:-1] @ x).max(initial=-np.inf)
        level = max(value + curved.change(step), float(older))
        return level, level + 0.5 * float(stiff @ step**2)

    x, (level, height) = centre, heights(centre)
    begin = height
    for _ in range(_ROUNDS):
        change, slope, curvature = curved.expand(x - centre)
        constants, pieces = cuts.copy(), slopes + stiff * (x - centre)
        pieces[-1] += slope - slopes[-1]
        constants[-1] = value + change - float(slope @ x)
        goal = minimise_model(constants, pieces, curvature + np.diag(stiff), x)
        part = 1.0
        # Written so that a model without a value, NaN, is no gain.
        while not (trial := heights(x + part * (goal - x)))[1] < height and part > _SHORTEST:
            part *= 0.5
        gain = height - trial[1]
        if not gain > 0.0:
            break
        x, (level, height) = x + part * (goal - x), trial
        if gain <= _ENOUGH * (begin - height):
            break
    return x, level


class Curved:
    """A model of the optimal value by its slopes and its curvature at a point.

    While the free coefficients stay free, the scores ``z`` of the kernels' features, whose squared
    lengths by kernel are the forms, follow ``z = (I + H diag(x))^-1 r``. Here those of each kernel
    may change their length ``u`` only: ``u = (I + B diag(step))^-1 u_0``. For one kernel this is
    exact: its form is a multiple of ``1 / (x + c)^2``. A quadratic model would raise a weight that
    is too small by half of ``x + c`` at a time.
    """

    def __init__(self, quadratic_forms: Floats, hessian: Floats, centre: Floats) -> None:
        self.lengths = np.sqrt(np.maximum(quadratic_forms, 0.0))
        inverse = np.divide(
            1.0, self.lengths, out=np.zeros_like(self.lengths), where=self.lengths > 0
        )
        with np.errstate(over="ignore", invalid="ignore"):
            B = hessian * inverse[:, None] * inverse
        if not np.isfinite(B).all():  # squares of huge kernels: go on without curvature
            B = np.zeros_like(B)
        # No exact B is larger than this; one of rounding would make the model turn back.
        root = np.sqrt(centre[centre > 0])
        used = B[np.ix_(centre > 0, centre > 0)] * root[:, None] * root
        largest = float(np.linalg.eigvalsh(used)[-1]) if len(used) else 0.0
        self.B = B * min(1.0, (1.0 - _STRICT) / max(largest, 1e-300))

    def change(self, step: Floats) -> float:
        """Return the change of the value."""
        return -0.5 * float((step * self.lengths) @ self._solve(step, self.lengths))

    def expand(self, step: Floats) -> tuple[float, Floats, Floats]:
        """Return the change of the value, and the slopes and curvature after a step."""
        solved = self._solve(step, np.column_stack([self.lengths, self.B]))
        u, B = solved[:, 0], solved[:, 1:]
        change = -0.5 * float((step * self.lengths) @ u)
        return change, -0.5 * u * u, 0.5 * (B + B.T) * u[:, None] * u

    def _solve(self, step: Floats, sides: Floats) -> Floats:
        system = np.eye(len(step)) + self.B * step
        try:
            return np.asarray(np.linalg.solve(system, sides))
        except np.linalg.LinAlgError:
            # No exact system is singular where weights are not negative (see `_STRICT`). One that
            # is has lost the identity beside a huge B, and the model has no value at this step.
            return np.full_like(sides, np.nan)


def minimise_model(cuts: Floats, slopes: Floats, M: Floats, centre: Floats) -> Floats:
    """Minimise ``max_k(cuts_k + slopes_k . x) + (x - centre)' M (x - centre) / 2`` on the simplex.

    A primal-dual interior point method, then one exact solve on the support it finds: without that
    the outer method stalls at the accuracy of the interior point. Small entries are exactly zero.
    """
    size = max(float(np.abs(slopes).max(initial=0.0)), 1e-100 * float(np.abs(M).max()), 1e-300)
    cuts, slopes = (cuts - cuts.max()) / size, np.ascontiguousarray(slopes / size)
    M = np.ascontiguousarray(M / size)
    x, reduced, slack, multipliers = _core.solve_bundle_model(cuts, slopes, M, centre)
    # Near the solution one of each complementary pair is far larger than the other.
    guesses = [(x > reduced, multipliers > slack)]
    guesses += [(x > small, multipliers > small) for small in (1e-6, 1e-8, 1e-4)]
    for support, active in guesses:
        polished = _polish(cuts, slopes, M, centre, support, active)
        if polished is not None:
            x = polished
            break
    # What a weight does is its product with a slope: a tiny weight of a huge kernel is not small.
    effect = x * np.abs(slopes).max(axis=0)
    x = np.where((x < 1e-8) & (effect < 1e-10 * effect.sum()), 0.0, x)
    return np.asarray(x / x.sum())


def _polish(
    cuts: Floats,
    slopes: Floats,
    M: Floats,
    centre: Floats,
    in_support: Bools,
    is_active: Bools,
) -> Floats | None:
    """Solve the optimality conditions on the support exactly; None if the guess was wrong."""
    support, active = np.flatnonzero(in_support), np.flatnonzero(is_active)
    if not len(support) or not len(active):
        return None
    s, a = len(support), len(active)
    # Unknown: x on the support, multipliers of the active cuts, t, nu.
    system = np.zeros((s + a + 2, s + a + 2))
    side = np.zeros(s + a + 2)
    rows = M[support]
    system[:s, :s] = rows[:, support]
    system[:s, s : s + a] = slopes[np.ix_(active, support)].T
    system[:s, -1] = 1.0
    side[:s] = rows @ centre
    system[s : s + a, :s] = slopes[np.ix_(active, support)]
    system[s : s + a, -2] = -1.0
    side[s : s + a] = -cuts[active]
    system[-2, s : s + a] = 1.0
    side[-2] = 1.0
    system[-1, :s] = 1.0
    side[-1] = 1.0
    solved = _solve_any(system, side)
    out, lam = np.zeros(len(centre)), np.zeros(len(cuts))
    out[support], lam[active] = solved[:s], solved[s : s + a]
    if out.min() < 0 or lam.min() < -1e-9 or np.abs(system @ solved - side).max() > 1e-9:
        return None
    reduced = M @ (out - centre) + lam @ slopes + solved[-1]
    values = cuts + slopes @ out
    if reduced.min() < -1e-7 or values.max() > solved[-2] + 1e-9:
        return None
    return out


def _solve_any(system: Floats, side: Floats) -> Floats:
    """Solve a system that is singular where cuts depend on each other, which is rare."""
    try:
        solved = np.linalg.solve(system, side)
    except np.linalg.LinAlgError:
        solved = np.full(len(side), np.inf)
    if not np.abs(solved).max() < _LARGE or np.abs(system @ solved - side).max() > 1e-9:
        solved = np.linalg.lstsq(system, side, rcond=1e-14)[0]
    return np.asarray(solved)
