"""The two methods of `PairwiseKernelLearner`: the published LKCnpc, and shrinkage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from scipy.special import expit, xlogy
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_random_state

from kernelweave._dask import is_parted
from kernelweave._types import Floats, Indices
from kernelweave._validation import is_frame, take_rows
from kernelweave.errors import InputError, numbering, warn
from kernelweave.kernels import Kernel, Linear, expand_kernels
from kernelweave.pairs import (
    Rates,
    Statistic,
    adjacency,
    check_rates,
    check_rows,
    correct_statistic,
    pair_features,
    pair_values,
    paired_rows,
    read_pairs,
    theory_constants,
)
from kernelweave.pairs.shapes import ShapedKernel, smoother
from kernelweave.pairs.shrink import (
    Assessment,
    Links,
    Setting,
    column_factors,
    learn,
    refuse_if_too_large,
    scale_rows,
    select,
    settings,
)
from kernelweave.pairs.solver import PairProblem, PairResult, solve_pairs

from .duplicates import spread_rows

_BINS = 500  # of scores, for a curve with four parameters
_UNBALANCED = 0.25  # share of one kind of pairs below which a bias is needed
_LEAST_COMPARED, _MOST_COMPARED = 200, 100  # pairs and kernels of the comparison with equal weights
_IMPOSSIBLE = 0.1  # share of impossible means above which a warning names remedies


@dataclass(frozen=True)
class PairModel:
    """A kernel learned from pairs; names as the fitted attributes of the learner."""

    kernels: list[Kernel] | None
    weights: Floats
    intercept: float
    scale: float
    threshold: float
    objective: float
    n_iter: int
    converged: bool
    rates: Rates | None = None
    statistic: Statistic | None = None
    diagnostics: dict[str, float] = field(default_factory=dict)
    selection: list[Assessment] = field(default_factory=list)
    setting: Setting | None = None


class LKCnpc:
    """The published logistic model of the pairs, with a statistic corrected for wrong labels.

    The learner's parameters are the options.
    """

    in_parts = True  # a Dask table stays where it is: rows that occur in pairs are taken

    def __init__(self, learner: Any) -> None:
        self.options = learner

    def pairs(self, y: Any, pairs: Any, labels: Any, n: int) -> tuple[Indices, Floats | None]:
        """Return checked pairs and labels, drawn from the classes where none are given."""
        o = self.options
        return read_pairs(pairs, labels, y, n, n_pairs=o.n_pairs, random_state=o.random_state)

    def fit(self, X: Any, pairs: Indices, labels: Floats | None) -> PairModel:
        """Learn one weight per kernel, or per column."""
        assert labels is not None
        options = self.options
        rows, pairs, index = paired_rows(X, pairs, options.memory_limit)
        given = options._given_kernels()
        if given is None and options.missing not in (None, "refuse"):
            raise InputError(
                f"missing: {options.missing!r} is a rule of kernels, but kernels is None; pass "
                "some."
            )
        kernels = None if given is None else self._expand_kernels(given, X, rows, index)
        with numbering(index):
            if kernels is None:
                rows = as_numbers(rows)
            F = pair_values(rows, pairs, kernels, options.memory_limit)
        statistic, rates = self._statistic(F, labels)
        n = len(pairs)
        lam = 0.01 / n if options.lam is None else float(options.lam)
        share = float((labels > 0).mean())
        unbalanced = min(share, 1.0 - share) < _UNBALANCED
        intercept = unbalanced if options.fit_intercept == "auto" else options.fit_intercept
        result = self._solve(F, statistic, rates, lam, intercept)
        if not result.converged:
            warn(
                f"{type(options).__name__} stopped after {result.n_iter} steps at a relative "
                f"projected gradient of {result.residual:.1e} (tol={options.tol:g}). Hint: raise "
                "max_iter or lam, or accept this by raising tol.",
                ConvergenceWarning,
            )
        if not result.weights.any():
            warn(
                f"{type(options).__name__}: all weights are zero, since no kernel sums to more "
                "over same pairs than over different ones. Hint: give as many pairs of either "
                "kind, or set fit_intercept=True."
            )
        elif kernels is not None:
            self._compare_with_equal(F, labels, lam, intercept)
        scores = np.asarray(F @ result.weights).ravel()
        keys = pairs.min(axis=1) * rows.shape[0] + pairs.max(axis=1)
        return PairModel(
            kernels,
            result.weights,
            result.bias,
            0.0,
            even_threshold(scores, labels)
            if intercept and unbalanced
            else best_threshold(scores, labels),
            result.objective,
            result.n_iter,
            result.converged,
            rates,
            statistic,
            {
                **self._diagnostics(F, statistic, rates, share),
                "lam": lam,
                "repeated_pairs": n - len(np.unique(keys)),
            },
        )

    def _solve(
        self, F: Any, statistic: Statistic, rates: Rates, lam: float, intercept: bool
    ) -> PairResult:
        n = F.shape[0]
        # The mean of the true labels, which is that of the given ones where these are trusted.
        balance = 2.0 * rates.prior - 1.0 if intercept else None
        problem = PairProblem(F, np.full(n, 1.0 / n), statistic.contrast, lam, balance=balance)
        return solve_pairs(problem, tol=self.options.tol, max_iter=self.options.max_iter)

    def _compare_with_equal(self, F: Any, labels: Floats, lam: float, intercept: bool) -> None:
        """Warn where equal weights rank pairs that are held out as well as learned ones."""
        n, m = F.shape
        if not isinstance(F, np.ndarray) or not 1 < m <= _MOST_COMPARED or n < _LEAST_COMPARED:
            return
        order = np.random.default_rng(0).permutation(n)
        test, train = order[: n // 5], order[n // 5 :]
        if min(len(np.unique(labels[test])), len(np.unique(labels[train]))) < 2:
            return
        statistic, rates = self._statistic(F[train], labels[train])
        weights = self._solve(F[train], statistic, rates, lam, intercept).weights
        equal, learned = (
            float(roc_auc_score(labels[test], scores))
            for scores in (F[test].sum(axis=1), F[test] @ weights)
        )
        if equal >= learned:
            warn(
                f"{type(self.options).__name__}: on pairs held out the learned weights rank no "
                f"better than equal ones (area under the curve {learned:.3f} and {equal:.3f}), so "
                "a sum of the kernels would do. Hint: make columns of the pair, and use "
                "NoiseTolerantKernelClassifier."
            )

    def _expand_kernels(
        self, kernels: Any, X: Any, rows: Any, index: Indices | None
    ) -> list[Kernel]:
        """Return the kernels; default widths come from rows spread over a Dask table."""
        given = kernels if isinstance(kernels, list | tuple) else [kernels]
        if is_parted(X) and not all(isinstance(one, Kernel) for one in given):
            index = spread_rows(len(X))
            rows = take_rows(X, index)
        with numbering(index):
            return expand_kernels(kernels, rows)

    def _statistic(self, F: Any, labels: Floats) -> tuple[Statistic, Rates]:
        """Return the means over same and different pairs, corrected for wrong labels."""
        options = self.options
        up = labels > 0
        share = float(up.mean())
        same = np.asarray(F.T @ (up / up.sum())).ravel()
        different = np.asarray(F.T @ (~up / (~up).sum())).ravel()
        naive = options.correction == "naive"
        if options.reliability is None and options.prior is not None and not naive:
            raise InputError(
                f"prior: {options.prior:g} says nothing without reliability, which is None."
            )
        if options.reliability is None or naive:  # labels are taken as true
            rates = Rates((1.0, 1.0), share)
        else:
            rates = check_rates(options.reliability, options.prior, share)
        nonneg = options.correction == "nonneg"
        if nonneg and F.min() < 0:
            raise InputError(
                "correction: 'nonneg' is for kernels without negative values, but some pairs have "
                "one."
            )
        return correct_statistic(same, different, share, rates, nonneg=nonneg), rates

    def _diagnostics(
        self, F: Any, statistic: Statistic, rates: Rates, share: float
    ) -> dict[str, float]:
        published, own = theory_constants(rates, share)
        impossible = statistic.impossible if F.min() >= 0 else 0.0
        if self.options.correction == "noise" and impossible > _IMPOSSIBLE:
            warn(
                f"reliability: {impossible:.0%} of the kernels get a negative mean over different "
                "pairs, which their values cannot have, so labels do not err at random. Hint: try "
                "correction='nonneg' or 'naive', or a larger lam."
            )
        return {
            "impossible_share": impossible,
            "noise_condition": float(np.linalg.cond(rates.matrix)),
            "error_constant": published,
            "own_error_constant": own,
        }


class Shrink:
    """Deviations from equal weights of the columns, with options chosen on held-out pairs.

    The learner's parameters are the options.
    """

    in_parts = False

    def __init__(self, learner: Any) -> None:
        self.options = learner

    def pairs(self, y: Any, pairs: Any, labels: Any, n: int) -> tuple[Indices, Floats | None]:
        """Return checked pairs; without labels all pairs are same, and different ones drawn."""
        if pairs is not None and labels is None:
            return check_rows(pairs, n), None
        return LKCnpc(self.options).pairs(y, pairs, labels, n)

    def fit(self, X: Any, pairs: Indices, labels: Floats | None) -> PairModel:
        """Learn one weight per column; set the learned kernel of the learner."""
        options = self.options
        if options.kernels is not None:
            raise InputError(
                "kernels: method='shrink' learns one weight for each column; kernels must be None."
            )
        X = as_numbers(X)
        low = X.data.min(initial=0.0) if hasattr(X, "tocsr") else X.min()
        if low < 0:
            raise InputError("X: method='shrink' needs columns without negative values.")
        same = np.unique(np.sort(pairs if labels is None else pairs[labels > 0], axis=1), axis=0)
        different = None if labels is None else pairs[labels < 0]
        links = Links(same, different, X.shape[0])
        random = check_random_state(options.random_state)
        setting, selection = self._choose(X, links, random)
        factors = column_factors(X, setting.gamma)
        scaled = scale_rows(X, factors)
        runs = [
            learn(
                scaled,
                links,
                setting.alpha,
                [setting.rho],
                random,
                tol=max(options.tol, 1e-6),
                max_iter=options.max_iter,
            )[setting.rho]
            for _ in range(1 if np.isinf(setting.rho) else options.n_resample)
        ]
        weights = np.mean([run.weights for run in runs], axis=0)
        S = smoother(adjacency(same, X.shape[0])) if setting.shape != "diag" else None
        options._factors = factors
        options._kernel = ShapedKernel(setting.shape, scaled, weights, S, setting.steps)
        converged = all(run.converged for run in runs)
        if not converged:
            warn(
                f"{type(options).__name__}: the search for weights stopped short of "
                f"tol={options.tol:g}. Hint: raise max_iter or rho, or accept this by raising tol.",
                ConvergenceWarning,
            )
        if different is None:  # for the threshold only
            different = check_random_state(0).randint(0, X.shape[0], size=(len(same), 2))
            different = different[different[:, 0] != different[:, 1]]
        both = np.concatenate([same, different])
        signs = np.repeat([1.0, -1.0], [len(same), len(different)])
        scores = np.asarray(pair_features(scaled, both) @ weights).ravel()
        return PairModel(
            None,
            weights,
            float(np.mean([run.bias for run in runs])),
            float(np.mean([run.scale for run in runs])),
            best_threshold(scores, signs),
            np.nan,
            sum(run.n_iter for run in runs),
            converged,
            selection=selection,
            setting=setting,
        )

    def _candidates(self) -> list[Setting]:
        """Return the options to compare."""
        options = self.options
        shapes = ("diag", "words") if options.shape == "auto" else (options.shape,)
        values = {name: getattr(options, name) for name in ("gamma", "alpha", "rho", "steps")}
        fixed = {name: None if value == "select" else value for name, value in values.items()}
        return [s for shape in shapes for s in settings(shape, **fixed)]

    def _choose(self, X: Any, links: Links, random: Any) -> tuple[Setting, list[Assessment]]:
        """Return the best setting, and all that were compared."""
        options, candidates = self.options, self._candidates()
        refuse_if_too_large(X, links, [one.alpha for one in candidates], options.memory_limit)
        if len(candidates) == 1:
            return candidates[0], []
        if options.n_clusters is None:
            raise InputError(
                "n_clusters: needed to compare options by clusters. Hint: give it, or give gamma, "
                "alpha, rho and steps."
            )
        few = min(len(p) for p in (links.same, links.different) if p is not None)
        if few < 2:
            raise InputError(
                "pairs: to compare options a part is held out, so two distinct pairs or more of "
                f"each kind are needed, got {few}. Hint: give gamma, alpha, rho and steps."
            )
        selection = select(
            X,
            links,
            candidates,
            options.n_clusters,
            n_splits=options.n_splits,
            holdout=options.holdout,
            random_state=random,
        )
        return selection[0].setting, selection


METHODS: dict[str, Any] = {"lkcnpc": LKCnpc, "shrink": Shrink}


def as_numbers(X: Any) -> Any:
    """Return the columns of a data frame as an array; other tables as they are."""
    return Linear().prepare(X) if is_frame(X) else X


def best_threshold(scores: Floats, labels: Floats) -> float:
    """Return the score from which pairs are called same, with the best balanced accuracy."""
    order = np.argsort(-scores, kind="stable")
    ordered, up = scores[order], labels[order] > 0
    gain = np.cumsum(up) / max(1, up.sum()) - np.cumsum(~up) / max(1, (~up).sum())
    last = np.append(ordered[1:] != ordered[:-1], True)  # equal scores are called alike
    places = np.flatnonzero(last)
    best = places[int(np.argmax(gain[places]))]
    below = ordered[best + 1] if best + 1 < len(ordered) else ordered[best] - 1.0
    return float(0.5 * (ordered[best] + below))


def even_threshold(scores: Floats, labels: Floats) -> float:
    """Return the score at which a pair is as likely to be same as different.

    Some labels are wrong: the probability of the label "same" rises with the score s from that of a
    different pair to that of a same one, ``low + (high - low) / (1 + exp(-slope (s - t)))``, and
    true labels are equally likely at t, half way. The curve is fitted by maximum likelihood.
    """
    up = labels > 0
    spread = float(scores.std())
    if up.all() or not up.any() or not spread:
        return best_threshold(scores, labels)
    z = (scores - scores.mean()) / spread
    # Pairs of about the same score count together: work does not grow with their number.
    parts = np.array_split(np.argsort(z, kind="stable"), min(len(z), _BINS))
    at = np.array([z[part].mean() for part in parts])
    size, same = (np.array([x[part].sum() for part in parts]) for x in (np.ones(len(z)), 1.0 * up))

    def loss(parameters: Floats) -> float:
        low, share, slope, place = parameters
        start = expit(low)
        rise = (1.0 - start) * expit(share) * expit(np.exp(slope) * (at - place))
        p = np.clip(start + rise, 1e-12, 1.0 - 1e-12)
        return -float(xlogy(same, p).sum() + xlogy(size - same, 1.0 - p).sum()) / len(z)

    bounds = [(-12.0, 12.0), (-12.0, 12.0), (np.log(0.1), np.log(100.0)), (z.min(), z.max())]
    found = [
        scipy.optimize.minimize(loss, [-2.0, 1.0, slope, place], method="L-BFGS-B", bounds=bounds)
        for slope in (0.0, 1.5)
        for place in np.quantile(z, [0.1, 0.2, 0.5, 0.8, 0.9])
    ]
    best = min(found, key=lambda one: float(one.fun))
    return float(scores.mean() + spread * best.x[3])
