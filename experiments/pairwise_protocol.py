"""What is measured on linked documents: clusters, classes from few labels, numbers of pairs."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from kernelweave import PairwiseKernelLearner
from kernelweave.errors import InputError
from kernelweave.pairs import draw_pairs

from .pairwise_data import DRAWS, Trial, open_trial, unit
from .pairwise_methods import METHODS, cluster
from .store import Record

SIZES = (100, 300, 1000, 3000, 10_000)  # pairs of Figure 1
KINDS = {"true": "perfect labels", "noise": "corrected", "naive": "taken as true"}
FLIPPED = 0.2
COSTS = (0.1, 1.0, 10.0, 100.0)


def evaluate(part: str, data: str, method: str, trial: int, first_seed: int) -> Record:
    """Return the result of one system in one trial.

    Parameters
    ----------
    part : {"table", "figure"}
        Which part of the comparison.
    data : str
        Name of the documents.
    method : str
        A name in `METHODS`, or for the figure a kind of labels and a number of pairs, "noise@100".
    trial, first_seed : int
        Which trial, and the seed of the first.
    """
    begin = time.process_time()
    record = {"part": part, "data": data, "method": method, "trial": trial}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # convergence is kept as numbers
        opened = open_trial(data, trial, first_seed)
        found = _figure(opened, method) if part == "figure" else _table(opened, method)
    return record | found | {"seconds": time.process_time() - begin}


def _table(trial: Trial, method: str) -> Record:
    try:
        outcome = METHODS[method].run(trial)
    except InputError as error:
        return {"refused": str(error)}  # said in its row
    found: Record = {
        "nmi": float(normalized_mutual_info_score(trial.y, outcome.clusters)),
        "ari": float(adjusted_rand_score(trial.y, outcome.clusters)),
    }
    if outcome.features is not None:
        found["accuracy"] = classify(outcome.features, trial)
    return found | outcome.facts


def classify(features: Any, trial: Trial) -> float:
    """Return the accuracy of an SVM on the kernel, twenty documents of each class labelled.

    Parameters
    ----------
    features : array or sparse matrix of shape (n_samples, n_components)
        Their inner products are the kernel, which is brought to a diagonal of ones.
    trial : Trial
        Classes, and the labelled documents.
    """
    squares = features.multiply(features) if hasattr(features, "multiply") else features**2
    lengths = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    lengths = np.where(lengths > 0, lengths, 1.0)  # a document without a word is like no other
    scores = []
    for draw in range(DRAWS):
        train = trial.labelled(draw)
        test = np.setdiff1d(np.arange(len(trial.y)), train)
        K = features @ features[train].T
        K = np.asarray(K.toarray() if hasattr(K, "toarray") else K)
        K = K / np.outer(lengths, lengths[train])
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": COSTS}, cv=5)
        search.fit(K[train], trial.y[train])
        scores.append(float(search.score(K[test], trial.y[test])))
    return float(np.mean(scores))


def _figure(trial: Trial, method: str) -> Record:
    """Learn from drawn pairs, as many of one class as of two, a fifth of them labelled wrongly."""
    kind, size = method.split("@")
    pairs, truth = draw_pairs(trial.y, len(trial.y), int(size), trial.seed)
    random = np.random.default_rng([trial.seed, int(size)])
    labels = np.where(random.random(len(truth)) < FLIPPED, -truth, truth)
    options: dict[str, Any] = {}
    if kind == "noise":
        options = {"reliability": (1 - FLIPPED, 1 - FLIPPED), "prior": 0.5}
    X = unit(trial.X)
    learner = PairwiseKernelLearner(**options)
    learner.fit(X, pairs=pairs, labels=truth if kind == "true" else labels)
    outcome = cluster(trial, learner.transform(X), converged=learner.converged_)
    nmi = float(normalized_mutual_info_score(trial.y, outcome.clusters))
    return {"nmi": nmi} | outcome.facts
