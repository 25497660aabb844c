"""Constants of the worst case over wrong labels, against exact probabilities."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from kernelweave import NoisyLabelMKLClassifier, rbf_ladder
from kernelweave.datasets import make_views
from kernelweave.errors import InputError
from kernelweave.noise import chance_slack, expected_loss_bound, noise_cap


@pytest.mark.parametrize("probability", [0.3, 0.1, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_the_chance_constraint_is_kept(probability, seed):
    """All outcomes of ten labels, with losses that differ; the sharper condition (8) as well."""
    random = np.random.default_rng(seed)
    losses, right = random.exponential(size=10), random.uniform(0.5, 1.0, 10)
    outcomes = np.array(list(product([0, 1], repeat=10)))
    chances = np.where(outcomes, right, 1 - right).prod(axis=1)
    slack = chance_slack(probability)
    for extra in (slack * losses.sum(), slack * np.linalg.norm(losses)):
        violated = outcomes @ losses > right @ losses + extra
        assert chances[violated].sum() <= probability


def test_the_slack_of_a_chance_is_no_larger_than_needed():
    """One loss that counts alone comes within a factor of the bound of McDiarmid."""
    assert chance_slack(np.exp(-2.0)) == pytest.approx(1.0)
    assert chance_slack(0.05) == pytest.approx(np.sqrt(np.log(20) / 2))
    n = 1000
    violated = binom.sf(n / 2 + chance_slack(0.05) * np.sqrt(n), n, 0.5)
    assert 0.005 < violated <= 0.05


def test_dependent_labels_violate_the_constraint():
    """One coin for all labels: the paper's remark that independence is not needed is wrong."""
    means, chances = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    threshold = 0.5 + chance_slack(0.05) / np.sqrt(1000)
    assert chances[means > threshold].sum() == 0.5 > 0.05


@pytest.mark.parametrize("n", [1, 20, 500])
@pytest.mark.parametrize("level", [0.0, 0.2, 0.45])
def test_the_cap_holds_for_labels_that_are_right_or_wrong(n, level):
    cap = noise_cap(level, n, 0.05)
    assert cap <= 1.0
    assert binom.sf(np.floor(n * cap + 1e-9), n, 1 - level) <= 0.05
    assert noise_cap(level, 10**8, 0.05) == pytest.approx(1 - level, abs=2e-4)


def test_slack_is_another_cap_and_another_regularisation():
    data = make_views(80, random_state=0)
    slack = chance_slack(0.2)
    kernels = rbf_ladder([2.0, 8.0])
    first = NoisyLabelMKLClassifier(kernels, lam=0.1, cap=0.6, slack=slack, tol=1e-6)
    other = NoisyLabelMKLClassifier(
        kernels, lam=0.1 / (1 + slack), cap=(0.6 + slack) / (1 + slack), tol=1e-6
    )
    values = [model.fit(data.X, data.y).decision_function(data.X) for model in (first, other)]
    np.testing.assert_allclose(*values, atol=2e-3)


def test_the_expected_loss_is_below_its_bound():
    """A fit to few rows; its loss on many fresh rows with right labels."""
    rng = np.random.default_rng(0)
    n, n_test, lam, level = 400, 20_000, 1.0, 0.1
    X = rng.normal(size=(n + n_test, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    noisy = y[:n].copy()
    wrong = rng.choice(n, int(level * n), replace=False)
    noisy[wrong] *= -1
    model = NoisyLabelMKLClassifier(rbf_ladder([1.0, 4.0]), normalize=None, lam=lam)
    model.fit(X[:n], noisy)
    losses = np.maximum(0.0, 1.0 - noisy * model.decision_function(X[:n]))
    expected = np.maximum(0.0, 1.0 - y[n:] * model.decision_function(X[n:])).mean()
    bound = expected_loss_bound(losses, np.ones(3), lam, level)
    assert expected < bound
    # The parts: mean of the largest losses, complexity of three kernels, deviation.
    N, r = 360, np.sqrt(2.0)
    parts = np.sort(losses)[-N:].mean() + 2 * r * np.sqrt(3 / N)
    assert bound == pytest.approx(parts + (1 + r) * np.sqrt(np.log(20) / (2 * N)))
    fewer = expected_loss_bound(losses, np.ones(3), lam, 0.4)
    assert fewer > bound  # it grows with the share of wrong labels
    assert expected_loss_bound(losses, np.ones(3), 0.01, level) > 1.0  # and says nothing here


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chance_slack(0.0), "probability: must be a float in the range"),
        (lambda: noise_cap(0.5, 10), "noise_level: must be a float in the range"),
        (lambda: noise_cap(0.1, 0), "n_samples: must be an int in the range"),
        (lambda: expected_loss_bound([1.0], [1.0], 0.0, 0.1), "lam: must be a float"),
        (lambda: expected_loss_bound([-1.0], [1.0], 1.0, 0.1), "losses: must be one finite"),
        (lambda: expected_loss_bound([1.0], [], 1.0, 0.1), "traces: must be finite"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
