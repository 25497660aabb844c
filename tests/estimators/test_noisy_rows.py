"""Caps from noise levels, and rows that are assessed."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave import (
    NoisyLabelMKLClassifier,
)
from kernelweave._threads import threads
from kernelweave.io import load, save
from noisy_label_cases import KERNELS, make_data
from quick import first


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Spare these small arrays the threads, which wait for each other."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with threads(1):
        yield


def test_caps_from_the_noise_level():
    X, y = make_data(40)
    model = NoisyLabelMKLClassifier(KERNELS, noise_level=0.3).fit(X, y)
    assert_allclose(model.cap_, [0.7])
    assert model.noise_level_ == 0.3
    assert_allclose(NoisyLabelMKLClassifier(KERNELS).fit(X, y).cap_, [0.8])


@pytest.mark.parametrize("weighted", [False, True])
def test_caps_of_several_classes(weighted):
    X, y = make_data(60, 3, seed=1)
    weight = np.where(y == "very", 3, np.arange(60) % 3) if weighted else None
    q = 0.3
    model = NoisyLabelMKLClassifier(KERNELS, noise_level=q).fit(X, y, sample_weight=weight)
    counts = np.ones(60) if weight is None else weight
    # A label is wrong with probability q, then one of the two others: whose membership changes?
    wanted = []
    for c in model.classes_:
        share = counts[y == c].sum() / counts.sum()
        wanted.append(1 - (q * share + (1 - share) * q / 2))
    assert_allclose(model.cap_, wanted)
    assert np.ptp(model.cap_) > 0.01


def test_caps_of_balanced_classes():
    X, y = make_data(60, 3)
    y = np.resize(["a", "b", "c"], 60)
    model = NoisyLabelMKLClassifier(KERNELS, noise_level=0.3, tol=0.1).fit(X, y)
    assert_allclose(model.cap_, 1 - 2 * 0.3 / 3)
    high = NoisyLabelMKLClassifier(KERNELS, noise_level=0.49, tol=0.1)
    assert (high.fit(X, y).cap_ > 0.5).all()


def test_cap_wins_over_the_noise_level():
    X, y = make_data(30)
    with pytest.warns(UserWarning, match=r"cap=0.5 and noise_level=0.1 disagree") as caught:
        model = NoisyLabelMKLClassifier(KERNELS, cap=0.5, noise_level=0.1).fit(X, y)
    assert caught[0].filename == __file__
    assert_allclose(model.cap_, [0.5])
    NoisyLabelMKLClassifier(KERNELS, cap=0.9, noise_level=0.1).fit(X, y)  # no warning


def test_labels_of_weight_zero_are_not_assessed(tmp_path):
    X, y = make_data(60)
    weight = np.ones(len(y))
    weight[[0, 7]] = 0.0
    model = NoisyLabelMKLClassifier(KERNELS).fit(X, y, sample_weight=weight)
    assert np.flatnonzero(np.isnan(model.label_quality_)).tolist() == [0, 7]
    known = np.delete(model.label_quality_, [0, 7])
    assert known.min() >= 0
    assert known.max() <= 1
    assert not set(model.suspects().index) & {0, 7}
    again = load(save(model, tmp_path / "model.kw"))
    np.testing.assert_array_equal(again.label_quality_, model.label_quality_)
    np.testing.assert_array_equal(again.suspects().index, model.suspects().index)


@pytest.mark.parametrize("columns", first(1, [1, 2]))
@pytest.mark.parametrize("lam", [0.1, 1e-3])
def test_caps_that_leave_next_to_nothing(columns, lam):
    # The best function is zero or nearly so, and the kernels are far from their full rank.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, columns))
    y = (X[:, 0] + 0.5 * rng.normal(size=300) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the best function is zero")
        model = NoisyLabelMKLClassifier(cap=0.05, lam=lam).fit(X, y)
    assert model.converged_
    assert model.n_iter_ <= 60
    assert model.objective_ <= 0.05 * (1 + 1e-15)
    assert model.history_[-1].work <= 1_000_000
