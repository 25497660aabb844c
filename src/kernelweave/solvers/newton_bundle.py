"""Newton bundle method for l1 weights: proximal bundle steps with curvature, on a working set.

Every inner solve gives a cut ``J(x) >= lin - x . q / 2`` of the optimal value J over the weights
(its dual value is linear in the weights), valid however roughly the inner problem was solved. A
step minimises the maximum of the cuts and a model of J by its slopes and curvature, with a proximal
term from the majorising update. A failed step leaves its cut behind. Far from the solution this is
a proximal bundle method; near it, it is Newton's method.

References
----------
K. C. Kiwiel (1990), Proximity control in bundle methods for convex nondifferentiable minimization,
Mathematical Programming 46.
O. Chapelle, A. Rakotomamonjy (2008), Second order optimization of kernel parameters, NIPS workshop
on kernel learning: the Hessian of J in the kernel weights.
A. Rakotomamonjy, F. Bach, S. Canu, Y. Grandvalet (2008), SimpleMKL, JMLR 9: the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import linprog

from kernelweave._types import Bools, Floats, Indices
from kernelweave.banks import CombinedKernel, KernelBank
from kernelweave.candidates import Listed
from kernelweave.inner import MAX_FREE, Curvature, Solution, weight_curvature
from kernelweave.inner.curvature import feature_hessian
from kernelweave.losses import Loss
from kernelweave.weights import Simplex

from .bounds import Bounds, Callback, Result, WarmStart
from .bundle_model import minimise_curved
from .evaluator import Evaluator, Iterate
from .sample import start_from_function, take_sample

_WORKING_CHEAP, _WORKING_DEAR = 160, 40  # kernels taken up at a time
_FIRST = 40  # kernels that get a weight to begin with
_CUTS = 20
_SAMPLE_CHEAP, _SAMPLE_DEAR = 1000, 300  # rows from which weights are learned on a part first
_SAMPLE_TOL = 0.1
_IDLE = 0.6  # slope, relative to the largest, below which a kernel without weight is set aside
_NEAR = 0.85  # slope, relative to the average one, from which a kernel is in the model
_FAR = 0.3  # change of the weights, in the l1 norm, beyond which a prediction is worth little
_ASIDE, _ASIDE_LEAST = 0.2, 1e-4  # how far aside of a solution cuts are looked for
_ASIDES = 1  # steps of this kind before a kink is left to the caller
_WORTH = 2.0  # gap, relative to what is tolerated, that a mixture should promise to leave
_FLAT = 0.3  # promised gain, relative to what is tolerated, at which the bound is looked at
_KINK = 1e-3  # promised gain, relative to the squared gap, below which the value is not smooth
_VISIBLE = 1e-6  # relative gap that rounding cannot account for
_THINNER, _UNDAMPED = 2, 0.03  # steps to leave kernels out, and what is left of the damping there
_MEASURABLE = 1e-10  # relative gain below which rounding hides it
_PATIENT = 0.3  # how far a good working set is solved, relative to the gap, before pricing
_FAILURES = 8  # such steps without progress before giving up
_CLOSER = 3  # inner solves in a row at the same weights
_FRUITLESS = 3  # fallbacks in a row that lower the gap by less than a tenth before giving up
_PATIENCE = 30  # solves without halving the gap before falling back to majorising updates


def newton_bundle(
    bank: KernelBank,
    Y: Floats,
    cost: Floats,
    loss: Loss,
    *,
    tol: float,
    max_iter: int,
    start: WarmStart | None = None,
    report: Callback | None = None,
    provisional: bool = False,
    leave_kinks: bool = False,
) -> Result:
    """Learn weights on the simplex.

    Parameters
    ----------
    bank : KernelBank
        The kernels.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    loss : Loss
        The loss.
    tol : float
        Relative duality gap to stop at.
    max_iter : int
        Maximum number of inner solves.
    start : WarmStart, optional
        Weights and coefficients to begin from.
    report : callable, optional
        Called with every `Step`.
    provisional : bool
        Whether bounds may be those of the forms in which kernels are held, for a caller who looks
        at the exact kernels himself.
    leave_kinks : bool
        Whether to stop where the optimal value is not smooth and few cuts do not close the gap, or
        nothing does, for a caller who goes on with rounded corners.

    Returns
    -------
    result : Result
        Weights that sum to one, with a certificate.
    """
    bundle = _Bundle(bank, Y, cost, loss, tol, max_iter, report)
    if provisional:
        bundle.evaluator.exact = None
    if leave_kinks:
        bundle.asides = _ASIDES
    if start is None and len(Y) >= (_SAMPLE_CHEAP if bundle.cheap else _SAMPLE_DEAR):
        bundle.guess(_learn_on_sample(bank, Y, cost, loss, max_iter))
    return bundle.run(start)


def _learn_on_sample(
    bank: KernelBank, Y: Floats, cost: Floats, loss: Loss, max_iter: int
) -> Result:
    """Return what is learned roughly from some of the rows."""
    part, targets, costs = take_sample(bank, Y, cost)
    solves = max(1, max_iter // 2)
    bundle = _Bundle(part, targets, costs, loss, _SAMPLE_TOL, solves, None)
    bundle.evaluator.exact = None  # these bounds are internal
    return bundle.run(None)


@dataclass
class _Damping:
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
class _Cuts:
    """Cuts of the optimal value over the weights of the working set."""

    constants: list[float] = field(default_factory=list)
    quadratic_forms: list[Floats] = field(default_factory=list)
    coefs: list[Floats] = field(default_factory=list)

    def push(self, point: Iterate) -> None:
        self.constants = [*self.constants, point.cut][-_CUTS:]
        self.quadratic_forms = [*self.quadratic_forms, point.quadratic_forms][-_CUTS:]
        self.coefs = [*self.coefs, point.dual_coef][-_CUTS:]

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
        answer = linprog(
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


class _Bundle:
    def __init__(
        self,
        bank: KernelBank,
        Y: Floats,
        cost: Floats,
        loss: Loss,
        tol: float,
        max_iter: int,
        report: Callback | None,
    ) -> None:
        self.bank, self.loss = bank, loss
        self.tol, self.max_iter = tol, max_iter
        self.bounds = Bounds(tol, report)
        self.evaluator = Evaluator(bank, Y, cost, loss, Simplex(), self.bounds)
        self.listed = Listed(bank, centred=loss.fit_intercept)
        # A large working set saves solves and costs readings, so it is for banks that read cheaply.
        self.cheap = bank.nbytes <= 0.05 * 8.0 * bank.n_samples**2 * bank.n_kernels
        self.working = _WORKING_CHEAP if self.cheap else _WORKING_DEAR
        self.cuts = _Cuts()
        self.damping = _Damping()
        self.curvature: Curvature | None = None
        self.which: Indices = np.arange(0)
        self.guessed: Result | None = None
        self.aside, self.aside_gap = _ASIDE, np.inf
        self.asides: float = np.inf  # how many are left
        self.promised = np.inf  # gain of the last step, as the model saw it
        self.patience = 1.0  # as _PATIENT, while the working set is but a guess
        self.failures = 0
        self.step: Floats = np.empty(0)  # of the weights the model looked at
        self.working_lower = -np.inf  # best bound of the problem restricted to the working set

    def run(self, start: WarmStart | None) -> Result:
        point = self._begin(start)
        closer = 0  # inner solves in a row at the same weights
        mark_gap, mark_solves, fruitless = np.inf, 0, 0
        while self.bounds.solves < self.max_iter:
            point = self._price(point)
            self.bounds.note()
            if self.bounds.converged:
                point = self._thin_out(point)
                if self.evaluator.verify():
                    break
            if self.bounds.gap <= 0.5 * mark_gap:
                mark_gap, mark_solves = self.bounds.gap, self.bounds.solves
            elif self.bounds.solves - mark_solves >= _PATIENCE:
                self.evaluator.measure_rounding()
                if self.bounds.converged:
                    break
                if np.isfinite(self.asides) and self._is_visible():
                    break
                fruitless = fruitless + 1 if self.bounds.gap > 0.9 * mark_gap else 0
                lower = None if fruitless >= _FRUITLESS else self._majorise(point)
                if lower is None:
                    break
                point = lower
                mark_gap, mark_solves = self.bounds.gap, self.bounds.solves
                continue
            aim = self._inner_aim()
            if point.solution.gap > aim and closer < _CLOSER:
                before, point = point.solution.gap, self._tighten(point, aim)
                closer += 1
                if point.solution.gap > 0.9 * before:  # held up by rounding
                    closer, mark_solves = _CLOSER, mark_solves - _PATIENCE // 3
                continue
            trial, predicted = self._model_step(point)
            at_kink = self._is_visible() and self._is_kink(predicted)
            if point.solution.gap > 0.2 * predicted and closer < _CLOSER and not at_kink:
                # The expected gain is smaller than the inner error: look closer first.
                aim = max(min(0.05 * predicted, 0.1 * self._slack()), 1e-14 * self.bounds.upper)
                point, closer = self._tighten(point, aim), closer + 1
                continue
            closer = 0
            if predicted <= _FLAT * self.tol * self.bounds.size:
                lowest = self._mix(point)
                if self.bounds.converged:
                    continue
                if (self.failures > 1 or at_kink) and self.aside >= _ASIDE_LEAST:
                    if self.asides <= 0 and self._is_visible():
                        break
                    self.asides -= 1
                    point = self._step_aside(point, lowest)
                    continue
            if self.failures >= _FAILURES:  # solved as far as numbers go
                break
            point = self._try(point, trial, predicted)
        self.bounds.note()
        self.evaluator.settle()
        return self.bounds.result()

    def _thin_out(self, point: Iterate) -> Iterate:
        """Go a step or two further if that leaves kernels out, though the tolerance is met.

        Kernels that are nearly alike would share a weight that one of them could have. Where rows
        are many, a step costs too much for that, as it does where exact kernels are read.
        """
        if self.bank.by_features or self.evaluator.exact is not False:
            return point
        for _ in range(_THINNER):
            self.damping.mu *= _UNDAMPED
            trial, predicted = self._model_step(point)
            fewer = np.count_nonzero(trial) < np.count_nonzero(point.inner)
            if not fewer or predicted <= 0.0 or self.bounds.solves >= self.max_iter:
                break
            point = self._try(point, trial, predicted)
        return point

    def _mix(self, point: Iterate) -> Floats:
        """Bound by a mixture of coefficients; return the weights at which all cuts are lowest.

        Where the coefficients of a solution are not unique (equal rows of every kernel in use, as
        with columns of few values), those of one solution prove little, and a mixture is needed.
        """
        dual_coef, lowest, height = self.cuts.mixed(point)
        allowed = _WORTH * self.tol * self.bounds.size
        if height < self.bounds.upper - allowed and not self.failures:
            return lowest  # steps still go down, and nothing is worth a reading but the end
        quadratic_forms = self.listed.read(dual_coef)
        self.bounds.n_passes += 1
        self.evaluator.offer_lower(self.evaluator.at(point.weights, dual_coef), quadratic_forms)
        return lowest

    def _step_aside(self, point: Iterate, lowest: Floats) -> Iterate:
        """Look a little way towards where all cuts are lowest, and go there if that is better.

        For when the mixture of cuts does not close the gap, and the model sees no way down: at a
        kink its curvature stands for no more than the very next step.
        """
        gap = self.bounds.upper - self.bounds.lower
        if gap > 0.99 * self.aside_gap:  # the last cut of this kind brought nothing
            self.aside *= 0.5
        self.aside_gap = gap
        weights = self._spread((1.0 - self.aside) * point.inner + self.aside * lowest)
        kernel = self.bank.combine(weights)
        start = point.start_at(kernel)
        floor = max(1e-2 * self.tol * self.bounds.size, 1e-14 * self.bounds.upper)
        solution = self.evaluator.solve(kernel, floor=floor, start=start)
        new = self.evaluator.evaluate(kernel, solution, self.which)
        better = new.solution.primal < point.solution.primal
        self.cuts.push(point if better else new)
        return new if better else point

    def guess(self, sample: Result) -> None:
        """Begin from what was learned elsewhere.

        Its weights name the kernels that matter, so fewer are looked at, and the others less often.
        """
        self.guessed = sample
        self.working, self.patience = _WORKING_DEAR, _PATIENT
        self.damping.mu = 0.04  # first steps are short
        self.bounds.solves += sample.history[-1].solves

    def _slack(self) -> float:
        """Return the smaller of the certified gap and that of the working set, absolute."""
        return min(self.bounds.gap, self._working_gap()) * self.bounds.size

    def _is_visible(self) -> bool:
        """Tell whether the gap is so large that rounding cannot be what keeps it open."""
        return self._slack() > _VISIBLE * self.bounds.size

    def _is_kink(self, predicted: float) -> bool:
        """Tell whether a step promises so little that the gap cannot come from its length."""
        return predicted <= _KINK * self._slack() * (self._slack() / self.bounds.size)

    def _inner_aim(self) -> float:
        """Return the inner gap at which a step is worth computing."""
        size = self.bounds.size
        # Near the end a step promises a tenth to a hundredth of the one before.
        aim = min(1e-3 * size, 0.1 * self._slack(), 0.005 * self.promised)
        return max(aim, 1e-3 * self.tol * size)

    def _begin(self, start: WarmStart | None) -> Iterate:
        """Choose first weights and a working set, and solve there."""
        Y, cost = self.evaluator.Y, self.evaluator.cost
        first: Solution | None
        if start is not None:
            kernel = self.bank.combine(start.weights / start.weights.sum())
            dual_coef = self.loss.repair(start.dual_coef, Y, cost)
            first = self.evaluator.start(kernel, dual_coef)
        else:
            kernel = self.bank.combine(self._first_weights())
            # The function that a sample suggests is near that of all rows.
            sampled = None if self.guessed is None else self.guessed.function
            first = start_from_function(self.evaluator, sampled)
        solution = self.evaluator.solve(kernel, tol=1e-3, start=first)
        quadratic_forms = self.listed.read(solution.dual_coef)
        self.bounds.n_passes += self.listed.n_passes
        extra = np.argsort(-quadratic_forms, kind="stable")[: self.working]
        self.which = np.union1d(np.flatnonzero(kernel.weights), extra[quadratic_forms[extra] > 0])
        point = self.evaluator.evaluate(kernel, solution, self.which, quadratic_forms[self.which])
        self.evaluator.offer_lower(point, quadratic_forms)
        return point

    def _first_weights(self) -> Floats:
        """Return what a sample suggests, or weights by the slopes of a rough uniform solution."""
        if self.guessed is not None:
            return self.guessed.weights
        m = self.bank.n_kernels
        uniform = np.full(m, 1.0 / m)
        rough = self.evaluator.solve(self.bank.combine(uniform, coarse=True), tol=0.1)
        quadratic_forms = self.listed.read(rough.dual_coef)
        weights = np.zeros(m)
        heavy = np.argsort(-quadratic_forms, kind="stable")[:_FIRST]
        weights[heavy] = quadratic_forms[heavy]
        # No slope at all: nothing depends on any kernel, and the bias is the whole model.
        return weights / weights.sum() if weights.sum() > 0 else uniform

    def _working_gap(self) -> float:
        return (self.bounds.upper - self.working_lower) / self.bounds.size

    def _price(self, point: Iterate) -> Iterate:
        """Update the bound on the working set; read other kernels once it is the tighter one."""
        self.working_lower = max(
            self.working_lower, self.evaluator.lower_bound(point, point.quadratic_forms)
        )
        self.listed.note(point.dual_coef, self.which, point.quadratic_forms)
        if self._working_gap() > max(self.patience * self.bounds.gap, 0.7 * self.tol):
            return point
        level = float(point.quadratic_forms.max(initial=0.0))
        before = self.listed.n_passes
        priced = self.listed.price(point.dual_coef, level)
        self.bounds.n_passes += self.listed.n_passes - before
        # One number bounds every form, so a vector of it stands for all kernels.
        self.evaluator.offer_lower(point, np.full(self.bank.n_kernels, priced.bound))
        if self.bounds.converged:
            return point
        margin = self.bounds.upper - self.bounds.lower
        fresh = priced.ids[priced.quadratic_forms > level + 0.05 * margin][: self.working]
        fresh = np.setdiff1d(fresh, self.which)
        idle = (point.inner == 0) & (point.quadratic_forms < 0.8 * level)
        if not len(fresh):
            return point
        return self._change_working_set(point, np.union1d(self.which[~idle], fresh))

    def _change_working_set(self, point: Iterate, which: Indices) -> Iterate:
        self.which = which
        self.cuts = _Cuts()
        self.working_lower = -np.inf
        point = self.evaluator.evaluate(point.kernel, point.solution, which)
        self.working_lower = self.evaluator.lower_bound(point, point.quadratic_forms)
        return point

    def _solve(self, kernel: CombinedKernel, gap: float, start: Solution) -> Iterate:
        solution = self.evaluator.solve(kernel, floor=gap, start=start)
        return self.evaluator.evaluate(kernel, solution, self.which)

    def _tighten(self, point: Iterate, gap: float) -> Iterate:
        return self._solve(point.kernel, gap, point.solution)

    def _model_step(self, point: Iterate) -> tuple[Floats, float]:
        """Return the weights that minimise the model, and the decrease they promise."""
        theta, size = point.inner, abs(self.bounds.upper)
        # A kernel far below the average slope would not get a weight now; leave it out.
        near = (theta > 0) | (point.quadratic_forms >= _NEAR * (theta @ point.quadratic_forms))
        inside = np.flatnonzero(near)
        quadratic_forms, theta = point.quadratic_forms[inside], theta[inside]
        damping = self.damping.mu
        self.curvature = None
        if self.bank.by_features:
            hessian = feature_hessian(
                self.loss,
                point.kernel,
                self.which[inside],
                point.dual_coef,
                self.evaluator.Y,
                self.evaluator.cost,
            )
        elif self._most_free(point) <= MAX_FREE:
            self.curvature = weight_curvature(
                self.loss,
                point.kernel,
                lambda rows: self.bank.products(point.dual_coef, self.which[inside], rows),
                point.dual_coef,
                self.evaluator.Y,
                self.evaluator.cost,
            )
            hessian = self.curvature.hessian
        else:
            hessian = np.zeros((len(inside), len(inside)))
            damping = max(1.0, damping)
        stiff = damping * quadratic_forms / (theta + 0.02) + 1e-9 * size
        constants, slopes = self.cuts.with_point(point)
        best, model = minimise_curved(constants, slopes[:, inside], hessian, stiff, theta)
        self.step = best - theta
        predicted = point.solution.dual - model
        trial = np.zeros(len(self.which))
        trial[inside] = best
        return trial, predicted

    def _most_free(self, point: Iterate) -> int:
        curved = self.loss.inverse_curvature(point.dual_coef, self.evaluator.Y, self.evaluator.cost)
        return max(len(rows) for rows, _ in curved)

    def _try(self, point: Iterate, trial: Floats, predicted: float) -> Iterate:
        """Solve at the trial weights; return the new point if it is the better one."""
        self.promised = predicted if predicted > 0 else self.promised
        kernel = self.bank.combine(self._spread(trial))
        start = self._predicted_start(point, kernel)
        size = self.bounds.upper
        measurable = predicted > _MEASURABLE * size
        # A dual value above the present objective settles that the step was too long.
        enough = point.solution.primal if measurable else np.inf
        floor = max(0.2 * predicted, 1e-14 * size)
        solution = self.evaluator.solve(kernel, floor=floor, start=start, enough=enough)
        gain = point.solution.primal - solution.primal
        aim = self._inner_aim()
        if measurable and gain > 0.05 * predicted and solution.gap > aim:
            # The next step wants it closer, so go on before anything is read.
            if self.bounds.solves < self.max_iter:
                solution = self.evaluator.solve(kernel, floor=aim, start=solution)
        new = self.evaluator.evaluate(kernel, solution, self.which)
        if measurable:
            ratio = gain / predicted
        else:
            # Gains too small to see in the objective still show in the slopes, and so in the bound.
            ratio = 1.0 - self._local_gap(new) / max(self._local_gap(point), 1e-300)
            self.failures = 0 if ratio > 0.05 else self.failures + 1
        self.damping.after(ratio, float(np.abs(self.step).sum()))
        if ratio > 0.05:
            self.cuts.push(point)
            return new if self.cheap else self._set_aside(new)
        self.cuts.push(new)
        return point

    def _set_aside(self, point: Iterate) -> Iterate:
        """Leave kernels out of the working set that get no weight soon; pricing looks at them."""
        kept = (point.inner > 0) | (
            point.quadratic_forms >= _IDLE * point.quadratic_forms.max(initial=0.0)
        )
        if kept.sum() > 0.75 * len(kept):
            return point
        self.listed.note(point.dual_coef, self.which, point.quadratic_forms)
        self.which, self.patience = self.which[kept], _PATIENT
        self.cuts.keep(kept)
        return replace(point, which=self.which, quadratic_forms=point.quadratic_forms[kept])

    def _local_gap(self, point: Iterate) -> float:
        """Return what a point's own bounds leave open on the working set."""
        return point.solution.primal - self.evaluator.lower_bound(point, point.quadratic_forms)

    def _spread(self, inner: Floats) -> Floats:
        weights = np.zeros(self.bank.n_kernels)
        weights[self.which] = inner
        return weights

    def _predicted_start(self, point: Iterate, kernel: CombinedKernel) -> Solution:
        """Follow the free coefficients along the step if that beats staying put."""
        dual_coef = point.dual_coef
        if self.bank.by_features:  # a machine begins from the function there
            return point.start_at(kernel)
        if self.curvature is not None and float(np.abs(self.step).sum()) <= _FAR:
            followed = self.curvature.predict(dual_coef, self.step)
            followed = self.loss.repair(followed, self.evaluator.Y, self.evaluator.cost)
            ahead = self.evaluator.start(kernel, followed)
            stay = point.cut - 0.5 * float(kernel.weights[self.which] @ point.quadratic_forms)
            if self.evaluator.dual_value(ahead) > stay:
                return ahead
        return point.start_at(kernel)

    def _majorise(self, point: Iterate) -> Iterate | None:
        """Ten plain updates, then a fresh bundle; None if rounding error spoils the updates."""
        allowed = 1e-4 * abs(self.bounds.upper)
        for _ in range(10):
            if self.bounds.solves >= self.max_iter:
                break
            norms = self._spread(point.inner * np.sqrt(point.quadratic_forms))
            kernel = self.bank.combine(self.evaluator.weight_set.update(point.weights, norms))
            start = point.start_at(kernel)
            before, point = point.solution.primal, self._solve(kernel, allowed, start)
            if not point.solution.primal <= before + 10.0 * allowed:  # exact ones go down
                return None
        self.cuts = _Cuts()
        self.damping = _Damping(1.0)
        return point
