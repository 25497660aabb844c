"""Systems that learn a kernel, a metric or clusters from pairs of documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from kernelweave import KernelSpectralClustering, PairwiseKernelLearner, estimate_pair_rates
from kernelweave.baselines import (
    GlobalDistanceMetric,
    InformationTheoreticMetric,
    MPCKMeans,
    NonParametricKernel,
    SimpleNPKL,
    SpectralKernelLearner,
)
from kernelweave.baselines.pair_base import leading_directions

from .pairwise_data import Trial, tfidf, unit

RESTARTS = 100  # of k-means: with twenty the result depends on the seed
DIRECTIONS = 100  # for full metrics, whose cost is cubic in the columns


@dataclass(frozen=True)
class Outcome:
    """What a system made of a trial.

    Parameters
    ----------
    clusters : ndarray of shape (n_samples,)
        Cluster of every document.
    features : array or sparse matrix, or None
        Their inner products are the learned kernel; None where there is none.
    facts : dict
        What else is worth keeping.
    """

    clusters: Any
    features: Any
    facts: dict[str, Any]


Run = Callable[[Trial], Outcome]


def cluster(trial: Trial, features: Any, kernel: Any = None, **facts: Any) -> Outcome:
    """Cluster by features, or by a kernel that is cheaper to multiply with."""
    affinity = "features" if kernel is None else "precomputed"
    model = KernelSpectralClustering(
        trial.n_clusters, affinity=affinity, n_init=RESTARTS, random_state=trial.seed
    ).fit(features if kernel is None else kernel)
    known = {"empty": model.n_empty_, "normalized": model.normalized_}
    return Outcome(model.labels_, features, known | facts)


def _equal(scale: Callable[[Any], Any]) -> Run:
    return lambda trial: cluster(trial, scale(trial.X))


def _equal_in_directions(trial: Trial) -> Outcome:
    X = unit(trial.X)
    directions = leading_directions(X, DIRECTIONS)
    return cluster(trial, X if directions is None else np.asarray(X @ directions))


def _equal_undivided(scale: Callable[[Any], Any]) -> Run:
    """Group eigenvectors in the way of kernels whose row sums are negative, as metrics may be."""

    def run(trial: Trial) -> Outcome:
        X = scale(trial.X)
        directions = leading_directions(X, trial.n_clusters)
        return _group(trial, X if directions is None else np.asarray(X @ directions), X)

    return run


def _group(trial: Trial, points: Any, features: Any, **facts: Any) -> Outcome:
    means = KMeans(trial.n_clusters, n_init=RESTARTS, random_state=trial.seed)
    return Outcome(means.fit_predict(points), features, facts)


def _learned(scale: Callable[[Any], Any], kind: str) -> Run:
    def run(trial: Trial) -> Outcome:
        X, labels, options = scale(trial.X), trial.constraints.labels, {}
        if kind in ("noise", "nonneg"):
            rates = estimate_pair_rates(
                labels[trial.known], trial.truth[trial.known], literal=kind == "noise"
            )
            options = {"reliability": rates.reliability, "prior": rates.prior, "correction": kind}
        learner = PairwiseKernelLearner(**options)
        learner.fit(X, pairs=trial.pairs, labels=trial.truth if kind == "true" else labels)
        impossible = learner.diagnostics_["impossible_share"]
        return cluster(
            trial, learner.transform(X), converged=learner.converged_, impossible=impossible
        )

    return run


def _shrunk(shape: str, **fixed: Any) -> Run:
    def run(trial: Trial) -> Outcome:
        learner = PairwiseKernelLearner(
            method="shrink",
            shape=shape,
            n_clusters=trial.n_clusters,
            random_state=trial.seed,
            **fixed,
        ).fit(trial.X, pairs=trial.links)
        best = learner.selection_[0]
        chosen = best.setting
        setting = f"gamma {chosen.gamma:g}, rho {chosen.rho:g}"
        if np.isfinite(chosen.rho):
            setting += f", alpha {chosen.alpha:g}"
        if shape != "diag":
            setting += f", {chosen.steps} steps"
        return cluster(
            trial,
            learner.transform(trial.X),
            learner.operator(trial.X),
            converged=learner.converged_,
            setting=setting,
            contrast=best.score,
        )

    return run


def _metric(make: Callable[[Trial], Any], scale: Callable[[Any], Any] = unit) -> Run:
    def run(trial: Trial) -> Outcome:
        X = scale(trial.X)
        model = make(trial).fit(X, pairs=trial.pairs, labels=trial.corrected)
        return cluster(trial, model.transform(X), converged=model.converged_)

    return run


def _embedding(make: Callable[[], Any]) -> Run:
    def run(trial: Trial) -> Outcome:
        model = make()
        Z = model.fit_transform(unit(trial.X), pairs=trial.pairs, labels=trial.corrected)
        return cluster(trial, Z, converged=model.converged_)

    return run


def _spectral(trial: Trial) -> Outcome:
    model = SpectralKernelLearner(DIRECTIONS)
    Z = model.fit_transform(unit(trial.X), pairs=trial.pairs, labels=trial.corrected)
    # Its leading eigenvectors are those of equal weights, so all of them are grouped.
    return _group(trial, Z, Z, converged=model.converged_)


def _mpck(trial: Trial) -> Outcome:
    model = MPCKMeans(trial.n_clusters, random_state=trial.seed)
    model.fit(unit(trial.X), pairs=trial.pairs, labels=trial.corrected)
    return Outcome(model.labels_, None, {"converged": model.converged_})


def _full(trial: Trial) -> Any:
    return GlobalDistanceMetric(diagonal=False, n_components=DIRECTIONS)


def _itml(trial: Trial) -> Any:
    return InformationTheoreticMetric(DIRECTIONS, random_state=trial.seed)


@dataclass(frozen=True)
class Method:
    """A way to clusters.

    Parameters
    ----------
    label : str
        Its name in tables.
    run : callable
        Returns the outcome of a trial.
    group : {"paper", "ours", "beyond"}
        Which table it belongs to.
    published : str or None
        Its column in the published table.
    quick : bool
        Whether it is part of a quick run.
    """

    label: str
    run: Run
    group: str
    published: str | None = None
    quick: bool = False


_REDUCED = f"on {DIRECTIONS} directions"
_INSIDE = "equal weights, links in the kernel"

# In the order of a run: what the conclusions rest on comes first.
METHODS = {
    "lk": Method("LK", _equal(unit), "paper", "lk", quick=True),
    "lkcnpc": Method("LKCnpc, literal", _learned(unit, "noise"), "paper", "lkcnpc", quick=True),
    "naive": Method("labels taken as true", _learned(unit, "naive"), "ours", quick=True),
    "true": Method("true labels", _learned(unit, "true"), "ours", quick=True),
    "lk-tfidf": Method("LK, tf-idf", _equal(tfidf), "ours", quick=True),
    "lkcnpc-tfidf": Method("LKCnpc, literal, tf-idf", _learned(tfidf, "noise"), "ours"),
    "naive-tfidf": Method("labels taken as true, tf-idf", _learned(tfidf, "naive"), "ours"),
    "shrink-diag": Method("shrink, one weight a word", _shrunk("diag"), "beyond"),
    "shrink-words": Method("shrink, words that interact", _shrunk("words"), "beyond"),
    "equal-diag": Method(
        "equal weights, power of idf chosen", _shrunk("diag", rho=np.inf, alpha=1.0), "beyond"
    ),
    "equal-words": Method(
        "equal weights, words that interact", _shrunk("words", rho=np.inf), "beyond"
    ),
    "nonneg": Method("LKCnpc, means not negative", _learned(unit, "nonneg"), "ours"),
    "skl": Method(f"SKL, {DIRECTIONS} eigenvectors", _spectral, "paper", "skl"),
    "npk": Method("NPK", _embedding(NonParametricKernel), "paper", "npk", quick=True),
    "simple-npkl": Method("SimpleNPKL, rank 200", _embedding(SimpleNPKL), "paper", "npk"),
    "gdm": Method(
        "GDM, one weight a word", _metric(lambda trial: GlobalDistanceMetric()), "paper", "gdm"
    ),
    "gdm-full": Method(f"GDM, full {_REDUCED}", _metric(_full), "paper", "gdm"),
    "itml": Method(f"ITML {_REDUCED}", _metric(_itml), "paper", "itml"),
    "mpck": Method("MPCK-means", _mpck, "paper", "mpck", quick=True),
    "lk-directions": Method(f"LK {_REDUCED}", _equal_in_directions, "ours"),
    "lk-undivided": Method("LK, row sums not divided by", _equal_undivided(unit), "ours"),
    "lk-undivided-tfidf": Method(
        "LK, row sums not divided by, tf-idf", _equal_undivided(tfidf), "ours"
    ),
    "gdm-tfidf": Method(f"GDM, full {_REDUCED}, tf-idf", _metric(_full, tfidf), "ours"),
    "itml-tfidf": Method(f"ITML {_REDUCED}, tf-idf", _metric(_itml, tfidf), "ours"),
    "equal-graph": Method(_INSIDE, _shrunk("graph", rho=np.inf), "beyond"),
    "shrink-graph": Method("shrink, links in the kernel", _shrunk("graph"), "beyond"),
}
