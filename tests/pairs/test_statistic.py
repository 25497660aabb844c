"""What unreliable labels say about the reliable ones."""

import numpy as np
import pytest

from kernelweave import estimate_pair_rates
from kernelweave.errors import InputError
from kernelweave.pairs.solver import PairProblem, solve_pairs
from kernelweave.pairs.statistic import Rates, check_rates, correct_statistic, theory_constants
from pair_oracles import solve_statistic


def draw(seed, m=7):
    random = np.random.default_rng(seed)
    same, different = random.random((2, m))
    share = random.uniform(0.2, 0.8)
    up, down = random.uniform(0.55, 1.0, 2)
    return same, different, share, Rates((up, down), random.uniform(0.2, 0.8))


@pytest.mark.parametrize("seed", range(20))
def test_conditions_of_the_optimum_hold(seed):
    same, different, share, rates = draw(seed)
    found = correct_statistic(same, different, share, rates)
    Z, A = np.column_stack([found.same, found.different]), np.column_stack([same, different])
    B, p = rates.matrix, np.array([rates.prior, 1 - rates.prior])
    mean = share * same + (1 - share) * different
    assert np.abs(Z @ p - mean).max() <= 1e-12 * max(1, np.abs(Z).max())
    # The slope of the objective is a multiple of p in every row.
    slope = (Z @ B - A) @ B.T
    across = slope @ np.array([-p[1], p[0]])
    assert np.abs(across).max() <= 1e-12 * max(1, np.abs(slope).max())
    np.testing.assert_allclose(found.contrast, p[0] * Z[:, 0] - p[1] * Z[:, 1], atol=1e-13)
    np.testing.assert_allclose(found.mean, mean)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("nonneg", [False, True])
def test_agrees_with_an_independent_solver(seed, nonneg):
    same, different, share, rates = draw(100 + seed)
    found = correct_statistic(same, different, share, rates, nonneg=nonneg)
    Z = solve_statistic(same, different, share, rates.reliability, rates.prior, nonneg=nonneg)
    scale = np.abs(Z).max()
    np.testing.assert_allclose(found.same, Z[:, 0], atol=2e-7 * scale)
    np.testing.assert_allclose(found.different, Z[:, 1], atol=2e-7 * scale)


def test_nonneg_binds_in_some_of_these_problems_and_keeps_the_mean():
    bound = 0
    for seed in range(30):
        same, different, share, rates = draw(seed)
        free = correct_statistic(same, different, share, rates)
        found = correct_statistic(same, different, share, rates, nonneg=True)
        assert min(found.same.min(), found.different.min()) >= 0
        assert found.impossible == 0
        total = rates.prior * found.same + (1 - rates.prior) * found.different
        np.testing.assert_allclose(total, found.mean)
        there = (free.same >= 0) & (free.different >= 0)
        np.testing.assert_allclose(found.same[there], free.same[there])
        bound += int((~there).sum())
    assert bound > 5


def test_nonneg_leaves_nothing_below_zero_by_rounding():
    same = np.random.default_rng(0).random(500)
    found = correct_statistic(same, 0.1 * same, 0.5, Rates((0.8, 0.8), 0.47), nonneg=True)
    assert found.different.min() == 0
    assert found.different.max() <= 1e-15
    assert found.impossible == 0


def test_rates_that_agree_make_the_constraint_idle():
    for seed in range(10):
        same, different, share, rates = draw(seed)
        p = rates.matrix @ [share, 1 - share]
        found = correct_statistic(same, different, share, Rates(rates.reliability, p[0]))
        free = np.column_stack([same, different]) @ np.linalg.inv(rates.matrix)
        np.testing.assert_allclose(np.column_stack([found.same, found.different]), free, atol=1e-12)


def test_labels_that_are_right_give_the_naive_statistic():
    same, different, share, _ = draw(3)
    found = correct_statistic(same, different, share, Rates((1.0, 1.0), share))
    np.testing.assert_allclose(found.contrast, share * same - (1 - share) * different, atol=1e-15)


@pytest.mark.parametrize("d", [0.6, 0.8, 0.95])
def test_symmetric_noise_on_balanced_pairs_only_rescales(d):
    same, different, _, _ = draw(4)
    found = correct_statistic(same, different, 0.5, Rates((d, d), 0.5))
    naive = 0.5 * same - 0.5 * different
    np.testing.assert_allclose(found.contrast, naive / (2 * d - 1), atol=1e-13)


def test_labels_of_opposite_sign_are_the_same_with_swapped_rates():
    same, different, share, rates = draw(5)
    up, down = rates.reliability
    one = correct_statistic(same, different, share, rates)
    turned = Rates((1 - down, 1 - up), rates.prior)
    other = correct_statistic(different, same, 1 - share, turned)
    np.testing.assert_allclose(other.contrast, one.contrast, atol=1e-12)


def test_the_share_of_impossible_means_counts_kernels_that_occur():
    found = correct_statistic(
        np.array([0.9, 0.5, 0.0, 0.4]), np.array([0.1, 0.5, 0.0, 0.3]), 0.5, Rates((0.7, 0.7), 0.5)
    )
    assert (found.different < 0).tolist() == [True, False, False, False]
    assert found.impossible == pytest.approx(1 / 3)
    nothing = correct_statistic(np.zeros(2), np.zeros(2), 0.5, Rates((0.7, 0.7), 0.5))
    assert nothing.impossible == 0


def test_a_statistic_from_wrong_labels_keeps_weights_near():
    random = np.random.default_rng(0)
    F = random.random((300, 6))
    t = np.where(F[:, 0] + 0.3 * random.standard_normal(300) > 0.5, 1.0, -1.0)
    c, lam = np.full(300, 1 / 300), 0.05
    true = F.T @ (c * t)
    right = solve_pairs(PairProblem(F, c, true, lam), tol=1e-11).weights
    for seed in range(5):
        s = np.where(np.random.default_rng(seed).random(300) < 0.2, -t, t)
        up = s > 0
        rates = check_rates((np.mean(t[up] > 0), np.mean(t[~up] < 0)), None, up.mean())
        found = correct_statistic(F[up].mean(axis=0), F[~up].mean(axis=0), up.mean(), rates)
        w = solve_pairs(PairProblem(F, c, found.contrast, lam), tol=1e-11).weights
        limit = np.linalg.norm(true - found.contrast) / (2 * lam)
        assert np.linalg.norm(right - w) <= limit * (1 + 1e-9)


def test_our_constant_is_below_the_published_one():
    random = np.random.default_rng(1)
    for _ in range(500):
        up, down = random.uniform(0.51, 1.0, 2)
        rates = Rates((up, down), random.uniform(0.01, 0.99))
        published, own = theory_constants(rates, random.uniform(0.05, 0.95))
        assert 0 < own <= published


def test_our_constant_bounds_how_errors_of_the_means_pass_on():
    random = np.random.default_rng(2)
    for seed in range(20):
        same, different, share, rates = draw(seed, 1)
        rare = min(share, 1 - share)
        _, own = theory_constants(rates, share)
        # Means over n+ and n- pairs err by up to 1 / sqrt(share), the mean of all by up to 1.
        a, b = random.choice([-1, 1], 2) / np.sqrt(rare)
        mean = share * a + (1 - share) * b
        if abs(mean) > 1:
            continue
        one = correct_statistic(same, different, share, rates).contrast
        other = correct_statistic(same + a, different + b, share, rates).contrast
        assert abs(other - one)[0] <= np.sqrt(own) + 1e-12


def test_flip_noise_shrinks_contrasts_by_the_excess_alone():
    random = np.random.default_rng(3)
    n, z_same, z_different = 400_000, 0.62, 0.24
    t = np.where(random.random(n) < 0.4, 1, -1)
    z = random.random(n) < np.where(t > 0, z_same, z_different)
    s = np.where(random.random(n) < 0.2, -t, t)
    excess = np.mean(t[s > 0] > 0) + np.mean(t[s < 0] < 0) - 1
    noisy = z[s > 0].mean() - z[s < 0].mean()
    true = z[t > 0].mean() - z[t < 0].mean()
    error = np.sqrt(0.25 / (s > 0).sum() + 0.25 / (s < 0).sum())
    assert abs(noisy - excess * true) <= 4 * error


class TestRates:
    def test_plain_shares_as_published(self):
        labels = [1] * 5 + [-1] * 5
        truth = [1, 1, 1, 1, -1, -1, -1, -1, 1, 1]
        rates = estimate_pair_rates(labels, truth, literal=True)
        assert rates.reliability == (0.8, 0.6)
        assert rates.prior == 0.6

    def test_smoothed_shares_with_a_prior_that_agrees(self):
        labels = [1] * 8 + [-1] * 8
        truth = [1] * 8 + [-1] * 5 + [1] * 3
        rates = estimate_pair_rates(labels, truth, share=0.3)
        assert rates.reliability == (0.9, 0.6)
        assert rates.prior == pytest.approx(0.9 * 0.3 + 0.4 * 0.7)
        assert rates.prior == pytest.approx((rates.matrix @ [0.3, 0.7])[0])
        assert estimate_pair_rates(labels, truth).prior == pytest.approx(0.65)

    @pytest.mark.parametrize(
        ("labels", "truth", "options", "sentence"),
        [
            ([1, 1], [1, -1], {}, "labels: the sample has no pair labelled -1"),
            ([-1, -1], [1, -1], {}, r"labels: the sample has no pair labelled \+1"),
            ([1, -1], [1, 0], {}, "labels and truth: must be .1 or -1"),
            ([1, -1], [1], {}, "labels and truth: must be .1 or -1"),
            ([1, -1], [1, np.nan], {}, "labels and truth: must be .1 or -1"),
            (["a", "b"], [1, -1], {}, "labels and truth: must be .1 or -1"),
            ([1, -1], [1, -1], {"share": 1.0}, "share: must lie strictly between 0 and 1"),
            ([1, -1], [1, -1], {"share": np.nan}, "share: must lie strictly between 0 and 1"),
        ],
    )
    def test_bad_samples(self, labels, truth, options, sentence):
        with pytest.raises(InputError, match=sentence):
            estimate_pair_rates(labels, truth, **options)

    @pytest.mark.parametrize(
        ("reliability", "prior", "sentence"),
        [
            ((0.5, 0.51), None, "reliability: labels with 0.5 . 0.51 right are no better"),
            ((0.3, 0.4), None, "reliability: with 0.3 . 0.4 < 1 the labels are wrong more often"),
            ((1.2, 0.9), None, r"reliability: both shares must lie in \[0, 1\]"),
            ((np.nan, 0.9), None, r"reliability: both shares must lie in \[0, 1\]"),
            (0.8, None, "reliability: must be two numbers"),
            ((0.8, 0.9, 0.7), None, "reliability: must be two numbers"),
            (("a", "b"), None, "reliability: must be two numbers"),
            ((0.8, 0.9), 1.5, "prior: the share of same pairs must lie in"),
            ((0.8, 0.9), np.nan, "prior: the share of same pairs must lie in"),
        ],
    )
    def test_bad_rates(self, reliability, prior, sentence):
        with pytest.raises(InputError, match=sentence):
            check_rates(reliability, prior, 0.5)

    def test_the_flipped_reading_is_there_for_those_who_ask(self):
        assert check_rates((0.3, 0.4), None, 0.5, flipped=True).excess == pytest.approx(-0.3)

    @pytest.mark.parametrize("prior", [0.0, 1.0])
    def test_nonneg_needs_both_kinds(self, prior):
        same, different, share, _ = draw(0)
        with pytest.raises(InputError, match="prior: with correction='nonneg'"):
            correct_statistic(same, different, share, Rates((0.8, 0.9), prior), nonneg=True)
