"""Figure 1 of Yang et al. (2012): accuracy under wrong labels, and gap against iterations.

Features are scaled to [0, 1] on the training part; Gaussians of ten widths on all features and on
each; 80 of 100 rows to train on, of which a random tenth, with its wrong labels, chooses the
settings; then all training rows are fitted. Of settings that are equally good on that tenth the
mean accuracy counts. As published there is no bias.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from kernelweave import MKLClassifier, NoisyLabelMKLClassifier, rbf_ladder
from kernelweave.banks import make_bank
from kernelweave.kernels import expand_kernels
from kernelweave.losses import CVaRHinge
from kernelweave.solvers import (
    Limits,
    Problem,
    gradient_play,
    learn_weights,
    mirror_prox,
)
from kernelweave.solvers.mirror_prox import GameOptions
from kernelweave.weights import Simplex

from .noisy_labels_data import Codes, Floats, flip, random, read_problem

N_SPLITS = 5
LEVELS = ("0", "0.1", "0.2", "0.3", "0.4")
SETS = ("heart_statlog", "ionosphere", "sonar")
GAP_SETS = ("heart_statlog", "sonar")
WIDTHS = tuple(2.0**k for k in range(-3, 7))
LAMS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
CAPS = (0.9, 0.7, 0.5, 0.3)
UNIFORM_COSTS = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4)  # the mean kernel is nearly constant
RBF_COSTS = (0.1, 1.0, 10.0, 100.0)
GAP_LAM, GAP_RHO, GAP_STEPS = 0.01, 100.0, 1000
GAP_TOL = 1e-3
GAP_SECONDS = 60.0  # of processor time, after which the published method is stopped

# What the figure is said to show, and the words for what is measured.
CLAIMS = (
    "StPMKL is hurt less by wrong labels than plain MKL, almost everywhere",
    "StPMKL beats MiPMKL, mostly where many labels are wrong",
    "without wrong labels StPMKL is about plain MKL, and MiPMKL may differ",
)


@dataclass(frozen=True)
class Column:
    """A line of the left panels."""

    label: str
    family: str  # columns of one family are fitted together


COLUMNS = {
    "plain": Column("plain l1-MKL", "mkl"),
    "capped": Column("StPMKL, cap 1-q", "mkl"),
    "tuned": Column("StPMKL, cap tuned", "mkl"),
    "best": Column("MiPMKL", "best"),
    "uniform": Column("uniform SVM", "uniform"),
    "rbf": Column("RBF-SVM", "rbf"),
}
FAMILIES = tuple(dict.fromkeys(column.family for column in COLUMNS.values()))
SOLVERS = {
    "paper": "Algorithm 1",
    "vi": "VI",
    "restarts": "Algorithm 1 with restarts",
    "fast": "fast",
}


@dataclass(frozen=True)
class Part:
    """Training rows with wrong labels, the tenth that chooses, and test rows."""

    X: Floats
    y: Codes
    chosen_by: Codes  # positions in the training rows
    X_test: Floats
    y_test: Codes

    @property
    def fitted_first(self) -> Codes:
        """Positions of the training rows that do not choose."""
        return np.setdiff1d(np.arange(len(self.y)), self.chosen_by)


@lru_cache(maxsize=1)
def open_part(data: str, split: int, level: str, seed: int) -> Part:
    """Read a data set, divide and scale it and make labels wrong."""
    X, y = read_problem(data, one_hot=False)
    state = int(random(seed, data, "figure", split).integers(2**31))
    train, test = next(StratifiedShuffleSplit(1, test_size=0.2, random_state=state).split(X, y))
    X = MinMaxScaler().fit(X[train]).transform(X)
    X = X[:, np.ptp(X[train], axis=0) > 0]
    draw = random(seed, data, "figure", split, level)
    observed = flip(y[train], level, split, draw)
    tenth = np.sort(draw.choice(len(train), max(2, round(0.1 * len(train))), replace=False))
    return Part(X[train], observed, tenth, X[test], y[test])


def kernels() -> list[Any]:
    """Return the published kernels."""
    return [rbf_ladder(WIDTHS), rbf_ladder(WIDTHS, per_feature=True)]


def _cvar_mkl(**options: Any) -> NoisyLabelMKLClassifier:
    return NoisyLabelMKLClassifier(
        kernels(), normalize=None, fit_intercept=False, n_jobs=1, **options
    )


Fit = Callable[[Floats, Codes], Sequence[Any]]


def _mkl(part: Part, level: float) -> dict[str, Any]:
    caps = list(dict.fromkeys((1.0, 1.0 - level, *CAPS)))
    own = caps.index(1.0 - level)
    fit: Fit = lambda X, y: _cvar_mkl().fit_path(X, y, LAMS, caps)  # noqa: E731
    first, again = _twice(fit, part)
    cap_of = np.arange(len(again)) % len(caps)
    sets = {
        "plain": cap_of == 0,
        "capped": cap_of == own,
        "tuned": (cap_of > 0) if level else np.ones(len(again), dtype=bool),
    }
    found = {name: _pick(first, again, part, among) for name, among in sets.items()}
    binding = [m for m in again if m.gamma_ < 1.0 and m.converged_]
    found["tuned"] |= {
        "n_fits": 2 * len(again),
        "n_unfinished": sum(not m.converged_ for m in (*first, *again)),
        "agreement": _agreement(binding, part),
    }
    return found


def _agreement(models: Sequence[Any], part: Part) -> float | None:
    """Return on which share of the test rows capped models answer as plain ones of smaller lam."""
    same = []
    for model in models[:3]:  # a plain fit each, so a sample
        lam = max(float(model.lam * model.gamma_), 1e-9)
        plain = _cvar_mkl(lam=lam, cap=1.0).fit(part.X, part.y)
        same.append(np.mean(plain.predict(part.X_test) == model.predict(part.X_test)))
    return float(np.mean(same)) if same else None


def _best(part: Part, level: float) -> dict[str, Any]:
    mkl = _cvar_mkl(robust="best")
    first, again = _twice(lambda X, y: mkl.fit_path(X, y, LAMS, [1.0 - level]), part)
    return {"best": _pick(first, again, part)}


def _uniform(part: Part, level: float) -> dict[str, Any]:
    svm = MKLClassifier(kernels(), norm="uniform", normalize=None, n_jobs=1)
    first, again = _twice(lambda X, y: svm.fit_path(X, y, UNIFORM_COSTS), part)
    return {"uniform": _pick(first, again, part)}


def _rbf(part: Part, level: float) -> dict[str, Any]:
    grid = [SVC(C=C, gamma=0.5 / width**2) for width in WIDTHS for C in RBF_COSTS]

    def fit(X: Floats, y: Codes) -> Sequence[Any]:
        return [SVC(**model.get_params()).fit(X, y) for model in grid]

    first, again = _twice(fit, part)
    return {"rbf": _pick(first, again, part)}


_RUN = {"mkl": _mkl, "best": _best, "uniform": _uniform, "rbf": _rbf}


def run_figure(data: str, split: int, level: str, family: str, seed: int) -> dict[str, Any]:
    """Return the accuracy of all methods of a family on one division."""
    part = open_part(data, split, level, seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # A cap below the least mean loss gives the function zero; its accuracy says enough.
        warnings.filterwarnings("ignore", "NoisyLabelMKLClassifier: with cap=", UserWarning)
        columns = _RUN[family](part, float(level))
    return {"columns": columns, "seconds": round(time.process_time() - start, 3)}


def _twice(fit: Fit, part: Part) -> tuple[Sequence[Any], Sequence[Any]]:
    """Fit all settings to the rows that do not choose, and to all."""
    rows = part.fitted_first
    return fit(part.X[rows], part.y[rows]), fit(part.X, part.y)


def _pick(
    first: Sequence[Any], again: Sequence[Any], part: Part, among: Any = None
) -> dict[str, Any]:
    """Return the mean test accuracy of the settings that are best on the tenth."""
    among = np.arange(len(first)) if among is None else np.flatnonzero(among)
    X, y = part.X[part.chosen_by], part.y[part.chosen_by]
    right = np.array([np.sum(first[k].predict(X) == y) for k in among])
    tied = among[right == right.max()]
    scores = [100 * float(np.mean(again[k].predict(part.X_test) == part.y_test)) for k in tied]
    return {"accuracy": float(np.mean(scores)), "n_tied": len(tied)}


class _TimeIsUp(Exception):
    pass


class Clock:
    """Keeps the bounds of a solver with the processor time at which they were known."""

    def __init__(self, limit: float = np.inf) -> None:
        self.rows: list[list[float]] = []
        self.limit = limit
        self.start = time.process_time()

    def __call__(self, step: Any) -> None:
        seconds = time.process_time() - self.start
        self.rows.append([step.solves, seconds, GAP_LAM * step.upper, GAP_LAM * step.lower])
        if seconds > self.limit:
            raise _TimeIsUp


def run_gap(
    data: str, solver: str, seed: int, *, steps: int = GAP_STEPS, seconds: float = GAP_SECONDS
) -> dict[str, Any]:
    """Return bounds against iterations, and the time to a certified relative gap."""
    part = open_part(data, 0, "0", seed)
    n = len(part.y)
    bank = make_bank(
        expand_kernels(kernels(), part.X),
        part.X,
        normalize=None,
        centred=False,
        tol=1e-2 * GAP_TOL,
    )
    Y = np.where(part.y == 1, 1.0, -1.0)[:, None]
    box = np.full_like(Y, 1.0 / n)
    loss = CVaRHinge((min(1.0, GAP_RHO / n),))
    problem = Problem(bank, Y, box / GAP_LAM, loss, Simplex())

    def solve(tol: float, max_iter: int, callback: Clock) -> Any:
        limits = Limits(tol, max_iter, callback)
        if solver == "fast":
            return learn_weights(problem, limits)
        options = GameOptions(GAP_LAM, float(n), restarts=solver == "restarts")
        return (gradient_play if solver == "vi" else mirror_prox)(problem, limits, options)

    curve = Clock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solve(1e-7 if solver == "fast" else 1e-12, steps, curve)
        timed = Clock(seconds)
        reached = False
        if solver != "vi":
            try:
                reached = bool(solve(GAP_TOL, 10**9, timed).converged)
            except _TimeIsUp:
                reached = False
    spent = time.process_time() - timed.start
    last = timed.rows[-1] if timed.rows else [0, 0.0, np.nan, np.nan]
    return {
        "n": n,
        "kernels": bank.n_kernels,
        "curve": [[int(s), round(t, 4), upper, lower] for s, t, upper, lower in _thin(curve.rows)],
        "timed": solver != "vi",
        "reached": reached,
        "seconds": round(spent, 3),
        "steps": int(last[0]),
        "last_gap": float(last[2] - last[3]),
    }


def _thin(rows: list[list[float]], most: int = 120) -> Iterable[list[float]]:
    kept = np.unique(np.linspace(0, len(rows) - 1, most).round().astype(int))
    return (rows[k] for k in kept)
