"""Clusters that agree with pairs."""

import numpy as np
import pytest

from kernelweave.baselines import MPCKMeans
from kernelweave.errors import InputError
from pair_problems import blobs


def test_known_clusters_are_recovered():
    X, y, pairs, labels = blobs()
    model = MPCKMeans(3, random_state=0).fit(X, pairs=pairs, labels=labels)
    table = np.zeros((3, 3))
    np.add.at(table, (y, model.labels_), 1)
    assert (np.sort(table, axis=1)[:, :2] == 0).all()
    assert (model.metrics_[:, :3] > 5 * model.metrics_[:, 3:].max()).all()
    assert (model.predict(X) == model.labels_).mean() > 0.98
    again = MPCKMeans(3, random_state=0).fit_predict(X, pairs=pairs, labels=labels)
    np.testing.assert_array_equal(again, model.labels_)


def test_a_giant_part_is_no_start():
    X, y, *_ = blobs()
    chain = np.column_stack([np.arange(149), np.arange(1, 150)])
    pairs, labels = np.concatenate([chain, [[0, 149]]]), np.r_[np.ones(149), -1]
    model = MPCKMeans(3, weight=0.0, random_state=0).fit(X, pairs=pairs, labels=labels)
    assert len(np.unique(model.labels_)) == 3
    with pytest.raises(InputError, match="n_clusters: must be at most the 150 rows"):
        MPCKMeans(151).fit(X, y)


def test_clusters_do_not_depend_on_the_order_of_pairs():
    X, _, pairs, labels = blobs(apart=2.0)
    model = MPCKMeans(3, random_state=0).fit(X, pairs=pairs, labels=labels)
    order = np.random.default_rng(1).permutation(len(pairs))
    other = MPCKMeans(3, random_state=0).fit(X, pairs=pairs[order, ::-1], labels=labels[order])
    np.testing.assert_array_equal(other.labels_, model.labels_)
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-12)
