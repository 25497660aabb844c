"""Rounds of MPCK-means."""

import numpy as np
import pytest

from kernelweave.baselines import MPCKMeans
from pair_problems import blobs


def cost(model, X, pairs, labels):
    """Return the objective, written out pair by pair."""
    A, mu, label = model.metrics_, model.cluster_centers_, model.labels_
    total = sum(A[k] @ (x - mu[k]) ** 2 - np.log(A[k]).sum() for x, k in zip(X, label, strict=True))
    square = (X[pairs[:, 0]] - X[pairs[:, 1]]) ** 2
    top = (square[labels < 0] @ A.T).max(axis=0)
    for g, (i, j), s in zip(square, label[pairs], labels, strict=True):
        if s > 0 and i != j:
            total += model.weight * 0.5 * (A[i] + A[j]) @ g
        if s < 0 and i == j:
            total += model.weight * (top[i] - A[i] @ g)
    return total


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0, 10.0])
@pytest.mark.filterwarnings("ignore:labels.*labelled both:UserWarning")
def test_no_round_raises_the_objective(weight, seed):
    X, _, pairs, labels = blobs(seed=seed, apart=1.5)
    flip = np.random.default_rng(seed).random(len(labels)) < 0.3
    labels = np.where(flip, -labels, labels)
    model = MPCKMeans(4, weight=weight, random_state=seed).fit(X, pairs=pairs, labels=labels)
    assert (np.diff(model.history_) <= 1e-9 * np.abs(model.history_[1:])).all()
    assert model.objective_ == pytest.approx(cost(model, X, pairs, labels), rel=1e-9)
