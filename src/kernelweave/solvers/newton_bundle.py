"""Newton bundle method for l1 weights: proximal bundle steps with curvature, on a working set.

Every inner solve gives a cut ``J(x) >= lin - x . q / 2`` of the optimal value J over the weights
(its dual value is linear in the weights), valid however roughly the inner problem was solved. A
step minimises the maximum of the cuts and a model of J by its slopes and curvature, with a proximal
term from the majorising update (`bundle_model`). A failed step leaves its cut behind. Far from the
solution this is a proximal bundle method; near it, it is Newton's method.

References
----------
K. C. Kiwiel (1990), Proximity control in bundle methods for convex nondifferentiable minimization,
Mathematical Programming 46: cuts, descent and null steps, and the choice of the proximal weight.
O. Chapelle, A. Rakotomamonjy (2008), Second order optimization of kernel parameters, NIPS workshop
on automatic selection of optimal kernels: the Hessian of J in the kernel weights.
A. Rakotomamonjy, F. Bach, S. Canu, Y. Grandvalet (2008), SimpleMKL, JMLR 9: the problem.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelweave._linalg import all_finite
from kernelweave._types import Floats, Indices
from kernelweave.banks import WeightedSum
from kernelweave.candidates import Listed
from kernelweave.inner import MAX_FREE, Curvature, Solution, weight_curvature
from kernelweave.inner.curvature import feature_hessian, is_smooth

from .anderson import Patience
from .bounds import DualPoint, Iterate, Result
from .bundle_model import DEFAULT_OPTIONS, BundleOptions, Cuts, Damping, minimise_curved
from .evaluator import make_evaluator
from .problem import Limits, Problem, WarmStart
from .sample import start_from_sample, take_sample


def newton_bundle(
    problem: Problem,
    limits: Limits,
    start: WarmStart | None = None,
    options: BundleOptions = DEFAULT_OPTIONS,
) -> Result:
    """Learn weights on the simplex."""
    bundle = _Bundle(problem, limits, options)
    if start is None and len(problem.Y) >= bundle.sample_rows:
        tol = options.sample_tol_on_demand if bundle.on_demand else options.sample_tol
        sample = Limits(tol, max(1, limits.max_iter // 2), provisional=True)
        internal = replace(options, stop_if_nonsmooth=False)
        part, index = take_sample(problem)
        bundle.guess(_Bundle(part, sample, internal).run(None), index)
    return bundle.run(start)


class _Bundle:
    """The state of the method: the working set `which`, its cuts, the damping."""

    def __init__(self, problem: Problem, limits: Limits, options: BundleOptions) -> None:
        self.bank, self.loss = problem.bank, problem.loss
        self.Y, self.cost = problem.Y, problem.cost
        self.tol, self.max_iter, self.options = limits.tol, limits.max_iter, options
        self.bounds = limits.bounds()
        self.evaluator = make_evaluator(problem, self.bounds)
        self.listed = Listed(self.bank, centred=self.loss.fit_intercept)
        # A large working set saves solves and costs passes, so it is for banks with cheap ones.
        n, m = self.bank.n_samples, self.bank.n_kernels
        self.cheap = self.bank.nbytes <= 0.05 * 8.0 * n**2 * m
        self.working = options.working_cheap if self.cheap else options.working
        self.sample_rows = options.sample_rows_cheap if self.cheap else options.sample_rows
        self.on_demand = self.bank.workspace is not None
        self.cuts = Cuts(options.n_cuts)
        self.damping = Damping()
        self.curvature: Curvature | None = None
        self.ahead: Solution | None = None  # start of the next solve, by coefficients that follow
        self.which: Indices = np.arange(0)
        self.guessed: tuple[Result, Indices] | None = None  # on a sample, and its rows
        self.aside, self.aside_gap = options.aside, np.inf
        self.asides_left = options.max_asides if options.stop_if_nonsmooth else np.inf
        self.promised = np.inf  # gain of the last step that the model promised
        self.patience = 1.0  # as `patient`, while the working set is but a guess
        self.failures = 0
        self.step: Floats = np.empty(0)  # of the weights in the model
        self.working_lower = -np.inf  # best bound of the problem restricted to the working set

    def run(self, start: WarmStart | None) -> Result:
        options, bounds = self.options, self.bounds
        point = self._begin(start)
        closer, fruitless = 0, 0  # inner solves at the same weights, and fallbacks, in a row
        patience = Patience(0.5, options.patience)
        while bounds.solves < self.max_iter:
            point = self._price(point)
            bounds.note()
            if bounds.converged:
                point = self._prune(point)
                if self.evaluator.verify():
                    break
            if patience.is_exhausted(bounds.gap, bounds.solves):
                self.evaluator.measure_rounding()
                if bounds.converged or (options.stop_if_nonsmooth and self._is_visible()):
                    break
                fruitless = fruitless + 1 if bounds.gap > 0.9 * patience.gap else 0
                lower = None if fruitless >= options.max_fruitless else self._majorise(point)
                if lower is None:
                    break
                point = lower
                patience.renew(bounds.gap, bounds.solves)
                continue
            aim = self._inner_aim()
            if point.solution.gap > aim and closer < options.closer:
                before, point = point.solution.gap, self._solve(point.kernel, aim, point.solution)
                closer += 1
                if point.solution.gap > 0.9 * before:  # held up by rounding
                    closer = options.closer
                    patience.since -= options.patience // 3
                continue
            trial, predicted = self._model_step(point)
            if self._follow(point, trial, predicted):
                continue
            nonsmooth = self._is_visible() and self._is_nonsmooth(predicted)
            inexact = point.solution.gap > (0.5 if self.on_demand else 0.2) * predicted
            if inexact and closer < options.closer and not nonsmooth:
                # The expected gain is smaller than the inner error: solve more exactly first.
                aim = max(min(0.05 * predicted, 0.1 * self._slack()), 1e-14 * bounds.upper)
                point, closer = self._solve(point.kernel, aim, point.solution), closer + 1
                continue
            closer = 0
            if predicted <= options.flat * self.tol * bounds.size:
                lowest = self._mix(point)
                if bounds.converged:
                    continue
                if (self.failures > 1 or nonsmooth) and self.aside >= options.aside_least:
                    if self.asides_left <= 0 and self._is_visible():
                        break
                    self.asides_left -= 1
                    point = self._step_aside(point, lowest)
                    continue
            if self.failures >= options.max_failures:  # the rest is rounding
                break
            point = self._try(point, trial, predicted)
        bounds.note()
        self.evaluator.settle()
        return bounds.result()

    def _prune(self, point: Iterate) -> Iterate:
        """Take a step or two that drop kernels, though the tolerance is met.

        Kernels that are nearly alike would share a weight that one of them could have. With large
        n, or where exact kernels are evaluated, a step costs too much for that.
        """
        large = point.kernel.features() is not None or self.on_demand
        if large or self.evaluator.exact is not False:
            return point
        for _ in range(self.options.pruning_steps):
            self.damping.mu *= self.options.undamped
            trial, predicted = self._model_step(point)
            fewer = np.count_nonzero(trial) < np.count_nonzero(point.inner)
            if not fewer or predicted <= 0.0 or self.bounds.solves >= self.max_iter:
                break
            point = self._try(point, trial, predicted)
        return point

    def _follow(self, point: Iterate, trial: Floats, predicted: float) -> bool:
        """Bound by the coefficients expected after the step; return whether that is enough.

        Weights that are nearly right leave the largest quadratic form above the average, and so a
        gap of first order. Coefficients that follow the step leave one of second order. Where
        kernels are on demand, this costs a part of the solve that it saves, which begins there
        otherwise.
        """
        self.ahead = None
        hopeless = predicted > self.options.follow * self.tol * self.bounds.size
        if not self.on_demand or self.curvature is None or hopeless:
            return False
        followed = self.curvature.predict(point.dual_coef, self.step)
        followed = self.loss.repair(followed, self.Y, self.cost)
        if not all_finite(followed):  # iterations that overflow
            return False
        kernel = self.bank.combine(self._spread(trial))
        self.ahead = self.evaluator.start(kernel, followed)
        quadratic_forms = self.listed.read(followed)
        self.bounds.n_passes += 1
        inner = quadratic_forms[self.which]
        new = self.evaluator.evaluate(kernel, self.ahead, self.which, inner)
        self.evaluator.offer_lower(new, quadratic_forms)
        return self.bounds.converged

    def _mix(self, point: Iterate) -> Floats:
        """Bound by a mixture of coefficients; return the weights at which all cuts are lowest.

        Where the coefficients of a solution are not unique (equal rows of every kernel in use, as
        with columns of few values), those of one solution prove little, and a mixture is needed.
        """
        dual_coef, lowest, height = self.cuts.mixed(point)
        allowed = self.options.worth * self.tol * self.bounds.size
        if height < self.bounds.upper - allowed and not self.failures:
            return lowest  # steps still go down, and a pass pays only at the end
        quadratic_forms = self.listed.read(dual_coef)
        self.bounds.n_passes += 1
        if not self.on_demand:
            mixed: Iterate | DualPoint = self.evaluator.at(point.weights, dual_coef)
        else:  # the upper bound would cost another pass
            mixed = self.evaluator.dual_point(dual_coef)
        self.evaluator.offer_lower(mixed, quadratic_forms)
        return lowest

    def _step_aside(self, point: Iterate, lowest: Floats) -> Iterate:
        """Add a cut a little way towards where all cuts are lowest; move there if it is better.

        For when the mixture of cuts does not close the gap and the model promises no descent: at a
        nondifferentiable point its curvature holds for a very short step only.
        """
        gap = self.bounds.upper - self.bounds.lower
        if gap > 0.99 * self.aside_gap:  # the last such cut did not raise the bound
            self.aside *= 0.5
        self.aside_gap = gap
        weights = self._spread((1.0 - self.aside) * point.inner + self.aside * lowest)
        kernel = self.bank.combine(weights)
        floor = max(1e-2 * self.tol * self.bounds.size, 1e-14 * self.bounds.upper)
        new = self._solve(kernel, floor, point.start_at(kernel))
        better = new.solution.primal < point.solution.primal
        self.cuts.push(point if better else new)
        return new if better else point

    def guess(self, sample: Result, index: Indices) -> None:
        """Begin from the result on some rows.

        Its weights show which kernels matter, so the working set is smaller and pricing rarer.
        """
        self.guessed = sample, index
        self.working, self.patience = self.options.working, self.options.patient
        # First steps are short; less so where solves cost much more than steps.
        self.damping.mu = 0.004 if self.on_demand else 0.04
        self.bounds.solves += sample.history[-1].solves

    def _slack(self) -> float:
        """Return the smaller of the certified gap and that of the working set, absolute."""
        return min(self.bounds.gap, self._working_gap()) * self.bounds.size

    def _is_visible(self) -> bool:
        """Return whether the gap is so large that it cannot be rounding."""
        return self._slack() > self.options.visible * self.bounds.size

    def _is_nonsmooth(self, predicted: float) -> bool:
        """Return whether a step promises too little for a smooth J: gap times relative gap."""
        return predicted <= self.options.nonsmooth * self._slack() * (
            self._slack() / self.bounds.size
        )

    def _inner_aim(self) -> float:
        """Return the inner gap at which a step is worth computing."""
        size = self.bounds.size
        # Near the end a step promises a tenth to a hundredth of the one before.
        aim = min(1e-3 * size, 0.1 * self._slack(), 0.005 * self.promised)
        least = self.options.loose if self.on_demand else 1e-3
        return max(aim, least * self.tol * size)

    def _begin(self, start: WarmStart | None) -> Iterate:
        """Choose first weights and a working set, and solve there."""
        first: Solution | None
        if start is not None:
            kernel = self.bank.combine(start.weights / start.weights.sum())
            dual_coef = self.loss.repair(start.dual_coef, self.Y, self.cost)
            first = self.evaluator.start(kernel, dual_coef)
        else:
            kernel = self.bank.combine(self._first_weights())
            # The function that a sample suggests is near that of all rows.
            first = self.guessed and start_from_sample(self.evaluator, kernel, *self.guessed)
        solution = self.evaluator.solve(kernel, tol=1e-3, start=first)
        quadratic_forms = self.listed.read(solution.dual_coef)
        self.bounds.n_passes += self.listed.n_passes
        extra = np.argsort(-quadratic_forms, kind="stable")[: self.working]
        self.which = np.union1d(np.flatnonzero(kernel.weights), extra[quadratic_forms[extra] > 0])
        point = self.evaluator.evaluate(kernel, solution, self.which, quadratic_forms[self.which])
        self.evaluator.offer_lower(point, quadratic_forms)
        return point

    def _first_weights(self) -> Floats:
        """Return the weights of a sample, or the slopes of a rough solution with equal weights."""
        if self.guessed is not None:
            return self.guessed[0].weights
        m = self.bank.n_kernels
        uniform = np.full(m, 1.0 / m)
        rough = self.evaluator.solve(self.bank.combine(uniform, coarse=True), tol=0.1)
        quadratic_forms = self.listed.read(rough.dual_coef)
        weights = np.zeros(m)
        heavy = np.argsort(-quadratic_forms, kind="stable")[: self.options.first]
        weights[heavy] = quadratic_forms[heavy]
        # No slope at all: nothing depends on any kernel, and the bias is the whole model.
        return weights / weights.sum() if weights.sum() > 0 else uniform

    def _working_gap(self) -> float:
        return (self.bounds.upper - self.working_lower) / self.bounds.size

    def _price(self, point: Iterate) -> Iterate:
        """Update the bound on the working set; price other kernels once it is the tighter one."""
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
        # The price bounds the quadratic form of every kernel.
        self.evaluator.offer_lower(point, np.full(self.bank.n_kernels, priced.bound))
        if self.bounds.converged:
            return point
        margin = self.bounds.upper - self.bounds.lower
        fresh = priced.ids[priced.prices > level + 0.05 * margin][: self.working]
        fresh = np.setdiff1d(fresh, self.which)
        idle = (point.inner == 0) & (point.quadratic_forms < 0.8 * level)
        if not len(fresh):
            return point
        self.which = np.union1d(self.which[~idle], fresh)
        self.cuts = Cuts(self.options.n_cuts)  # those so far lack the new kernels
        point = self.evaluator.evaluate(point.kernel, point.solution, self.which)
        self.working_lower = self.evaluator.lower_bound(point, point.quadratic_forms)
        return point

    def _solve(self, kernel: WeightedSum, gap: float, start: Solution) -> Iterate:
        solution = self.evaluator.solve(kernel, floor=gap, start=start)
        return self.evaluator.evaluate(kernel, solution, self.which)

    def _model_step(self, point: Iterate) -> tuple[Floats, float]:
        """Return the weights that minimise the model, and the decrease they promise."""
        theta, size = point.inner, abs(self.bounds.upper)
        # A kernel far below the average slope would not get a weight now; leave it out.
        average = theta @ point.quadratic_forms
        near = (theta > 0) | (point.quadratic_forms >= self.options.near * average)
        inside = np.flatnonzero(near)
        quadratic_forms, theta = point.quadratic_forms[inside], theta[inside]
        damping = self.damping.mu
        hessian = self._hessian(point, self.which[inside])
        if hessian is None:
            hessian = np.zeros((len(inside), len(inside)))
            damping = max(1.0, damping)
        # The majoriser of J has the curvature q / theta; its multiple is the proximal term.
        stiff = damping * quadratic_forms / (theta + 0.02) + 1e-9 * size
        constants, slopes = self.cuts.with_point(point)
        best, model = minimise_curved(constants, slopes[:, inside], hessian, stiff, theta)
        self.step = best - theta
        predicted = point.solution.dual - model
        trial = np.zeros(len(self.which))
        trial[inside] = best
        return trial, predicted

    def _hessian(self, point: Iterate, which: Indices) -> Floats | None:
        """Return the Hessian of J in the weights of some kernels; None where it costs too much."""
        self.curvature = None
        dual_coef, Y, cost = point.dual_coef, self.Y, self.cost
        if point.kernel.features() is not None:
            return feature_hessian(self.loss, point.kernel, which, dual_coef, Y, cost)
        if not (self.on_demand or is_smooth(self.loss, point.kernel)):
            curved = self.loss.inverse_curvature(dual_coef, Y, cost)
            if max(len(rows) for rows, _ in curved) > MAX_FREE:
                return None

        def products(rows: Indices) -> Floats:
            return self.bank.rough_products(dual_coef, which, rows)

        self.curvature = weight_curvature(self.loss, point.kernel, products, dual_coef, Y, cost)
        return self.curvature.hessian

    def _try(self, point: Iterate, trial: Floats, predicted: float) -> Iterate:
        """Solve at the trial weights; return the new point if it is the better one."""
        self.promised = predicted if predicted > 0 else self.promised
        kernel = self.bank.combine(self._spread(trial))
        start = self._predicted_start(point, kernel)
        size = self.bounds.upper
        measurable = predicted > self.options.measurable * size
        # A dual value above the present objective settles that the step was too long.
        enough = point.solution.primal if measurable else np.inf
        floor = max(0.2 * predicted, 1e-14 * size)
        if self.on_demand:  # going on later would compute the same block again
            floor = min(floor, max(0.02 * predicted, self._inner_aim()))
        solution = self.evaluator.solve(kernel, floor=floor, start=start, enough=enough)
        gain = point.solution.primal - solution.primal
        aim = self._inner_aim()
        if measurable and gain > 0.05 * predicted and solution.gap > aim:
            # The next step needs a smaller gap, so go on before the pass over the kernels.
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
            return new if self.cheap else self._drop_idle(new)
        self.cuts.push(new)
        return point

    def _drop_idle(self, point: Iterate) -> Iterate:
        """Drop kernels from the working set that get no weight soon; pricing may add them again."""
        largest = point.quadratic_forms.max(initial=0.0)
        kept = (point.inner > 0) | (point.quadratic_forms >= self.options.idle * largest)
        if kept.sum() > 0.75 * len(kept):
            return point
        self.listed.note(point.dual_coef, self.which, point.quadratic_forms)
        self.which, self.patience = self.which[kept], self.options.patient
        self.cuts.keep(kept)
        return replace(point, which=self.which, quadratic_forms=point.quadratic_forms[kept])

    def _local_gap(self, point: Iterate) -> float:
        """Return the gap of a point's own bounds on the working set."""
        return point.solution.primal - self.evaluator.lower_bound(point, point.quadratic_forms)

    def _spread(self, inner: Floats) -> Floats:
        weights = np.zeros(self.bank.n_kernels)
        weights[self.which] = inner
        return weights

    def _predicted_start(self, point: Iterate, kernel: WeightedSum) -> Solution:
        """Follow the free coefficients along the step if that beats staying put."""
        if self.ahead is not None:
            return self.ahead
        near = float(np.abs(self.step).sum()) <= self.options.far
        # Where kernels are on demand, a pass over all rows costs more than it saves.
        if self.curvature is not None and near and not self.on_demand:
            followed = self.curvature.predict(point.dual_coef, self.step)
            followed = self.loss.repair(followed, self.Y, self.cost)
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
            before = point.solution.primal
            point = self._solve(kernel, allowed, point.start_at(kernel))
            if not point.solution.primal <= before + 10.0 * allowed:  # exact ones go down
                return None
        self.cuts = Cuts(self.options.n_cuts)
        self.damping = Damping(1.0)
        return point
