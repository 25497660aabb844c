"""The method of Dawid and Skene as an estimator."""

import numpy as np

from kernelweave.baselines import DawidSkene
from kernelweave.noise.annotators import find_consensus, read_answers


def test_it_is_the_consensus_without_columns():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (50, 4)).astype(float)
    table[rng.random(table.shape) < 0.3] = np.nan
    model = DawidSkene(tol=1e-9, max_iter=500).fit(table)
    found = find_consensus(read_answers(table), kappa=0.0, max_iter=500, tol=1e-9)
    np.testing.assert_array_equal(model.truth_, found.truth)
    assert model.labels_.tolist() == model.classes_[model.truth_.argmax(axis=1)].tolist()


def test_good_annotators_outvote_bad_ones():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 400)
    wrong = rng.random((400, 5)) < [0.05, 0.05, 0.5, 0.5, 0.5]
    table = np.where(wrong, 1 - truth[:, None], truth[:, None])
    majority = (table.mean(axis=1) > 0.5).astype(int)
    model = DawidSkene().fit(table)
    assert (model.labels_ == truth).mean() > (majority == truth).mean() + 0.05
