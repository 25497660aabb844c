import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score

from kernelweave import _core
from kernelweave.kernels.metric import Metric
from kernelweave.ridge.metric import (
    MetricOptions,
    Setting,
    _Search,
    gradient_outer_product,
    gradients,
    learn_metric,
    metric_of,
    solve_ridge,
)

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(40, 4))
X[:, 3] = X[:, 3] > 0
Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 2] * X[:, 3]])
WEIGHT = RANDOM.uniform(0.5, 2.0, 40)
ROOT = np.array(RANDOM.normal(size=(4, 4)))
METRIC = Metric(RANDOM.uniform(0.2, 2, 4), ROOT @ ROOT.T / 4)


def kernel(A, B, metric=METRIC, widths=(2.0, 1.5), share=0.4):
    D1, D2 = metric.distances(A, B)
    return share * np.exp(-D1 / widths[0]) + (1 - share) * np.exp(-D2 / widths[1])


def test_the_ridge_solution_satisfies_its_equations():
    K = kernel(X, X)
    found = solve_ridge(K.copy(), 0.3, Y, WEIGHT)
    residual = Y - K @ found.dual_coef - found.intercept
    np.testing.assert_allclose(WEIGHT[:, None] * residual, 0.3 * found.dual_coef, atol=1e-12)
    np.testing.assert_allclose(found.dual_coef.sum(axis=0), 0, atol=1e-12)


def test_leave_one_out_residuals_are_those_of_refits():
    K = kernel(X, X)
    found = solve_ridge(K.copy(), 0.3, Y, WEIGHT)
    for i in (0, 7, 39):
        rest = np.delete(np.arange(40), i)
        again = solve_ridge(K[np.ix_(rest, rest)].copy(), 0.3, Y[rest], WEIGHT[rest])
        value = K[i, rest] @ again.dual_coef + again.intercept
        np.testing.assert_allclose(Y[i] - value, found.loo_residuals[i], atol=1e-11)


def test_a_weight_of_two_is_the_row_twice():
    weight = np.ones(40)
    weight[5] = 2.0
    once = solve_ridge(kernel(X, X), 0.3, Y, weight)
    twice = np.vstack([X, X[5:6]])
    both = solve_ridge(kernel(twice, twice), 0.3, np.vstack([Y, Y[5:6]]), np.ones(41))
    values = kernel(X, X) @ once.dual_coef + once.intercept
    np.testing.assert_allclose(
        kernel(X, twice) @ both.dual_coef + both.intercept, values, atol=1e-11
    )


def test_an_indefinite_matrix_has_no_solution():
    assert solve_ridge(-np.eye(5), 0.1, np.ones((5, 1)), np.ones(5)) is None


def test_gradients_are_central_differences():
    coef = RANDOM.normal(size=(40, 2))
    at = RANDOM.normal(size=(5, 4))
    found = gradients(at, X, METRIC, (2.0, 1.5), 0.4, coef)
    step = 1e-6
    for j in range(4):
        move = step * np.eye(4)[j]
        slope = (kernel(at + move, X) - kernel(at - move, X)) @ coef / (2 * step)
        np.testing.assert_allclose(found[:, :, j].T, slope, atol=2e-8)


def test_signs_of_ties_are_zero():
    V = RANDOM.normal(size=(40, 40))
    expected = np.einsum("im,imj->ij", V, np.sign(X[:, None] - X[None]))
    np.testing.assert_allclose(_core.signed_sums(X, X, V), expected, atol=1e-12)


def test_the_metric_is_scaled_and_tied():
    F = RANDOM.normal(size=(4, 4))
    F = F @ F.T
    metric = metric_of(F, np.array([0, 1, 1, 2]), 0.3)
    np.testing.assert_allclose(np.mean(metric.weights**2), 1, atol=1e-14)
    assert metric.weights[1] == metric.weights[2]
    M = metric.root @ metric.root
    np.testing.assert_allclose(np.trace(M), 4, atol=1e-12)
    expected = 0.3 * F + 0.7 * np.diag(np.diag(F))
    np.testing.assert_allclose(M, expected * 4 / np.trace(expected), atol=1e-12)
    assert metric_of(np.zeros((4, 4)), np.arange(4), 0.3) is None


def test_many_outputs_are_mixed_without_bias():
    outputs = RANDOM.normal(size=(40, 12))
    options = MetricOptions(n_steps=0)
    random = np.random.RandomState(0)
    (step,) = learn_metric(X, outputs, np.ones(40), np.arange(4), options, random)
    slopes = gradients(X, X, step.metric, step.widths, step.share, step.solution.dual_coef)
    exact = np.einsum("oij,oik->jk", slopes, slopes) / 40
    draws = [
        gradient_outer_product(X, np.ones(40), step, np.random.RandomState(seed))
        for seed in range(200)
    ]
    error = np.std(draws, axis=0) / np.sqrt(200)
    assert (np.abs(np.mean(draws, axis=0) - exact) <= 5 * error + 1e-12).all()


def test_distances_of_the_search_give_the_same_gradients():
    metric = Metric(np.array([1.0, 0.5, 2.0, 0.1]), np.diag([1.0, 0.3, 1.5, 1.0]))
    search = _Search(X, X[:, :1], np.ones(40), metric, MetricOptions())
    step = search.run(Setting(1, 2, 1))
    arguments = (X, X, metric, step.widths, step.share, step.solution.dual_coef)
    known = gradients(*arguments, search.distances())
    np.testing.assert_array_equal(known, gradients(*arguments))


def test_grids_of_one_value_are_solved():
    options = MetricOptions(n_steps=1, shares=(0.5,), widths=(2.5,), ridges=(0.1,))
    random = np.random.RandomState(0)
    steps = learn_metric(X, X[:, :1], np.ones(40), np.arange(4), options, random)
    assert [(step.width, step.ridge, step.n_solves) for step in steps] == [(2.5, 0.1, 1)] * 2


def test_the_search_finds_the_best_setting_of_the_grid():
    rows, y = make_friedman1(120, random_state=0)
    target = ((y - y.mean()) / y.std())[:, None]
    options = MetricOptions(n_steps=0)
    search = _Search(rows, target, np.ones(120), Metric.identity(10), options)
    step = search.run(Setting(2, 2, 1))
    walked = len(search.seen)
    every = [search.error(Setting(b, r, h)) for b in range(3) for r in range(5) for h in range(3)]
    assert step.loo_error == min(every)
    assert walked < 30


@pytest.mark.parametrize(("useless", "least"), [(0, 0.93), (20, 0.92)])
def test_useless_columns_lose_their_weight(useless, least):
    rows, y = make_friedman1(900, n_features=5 + useless, noise=1.0, random_state=1)
    clean = make_friedman1(900, n_features=5 + useless, noise=0.0, random_state=1)[1]
    rows, train = (rows - rows.mean(axis=0)) / rows.std(axis=0), slice(0, 300)
    shift, scale = y[train].mean(), y[train].std()
    options = MetricOptions()
    steps = learn_metric(
        rows[train],
        ((y[train] - shift) / scale)[:, None],
        np.ones(300),
        np.arange(5 + useless),
        options,
        np.random.RandomState(0),
    )
    step = steps[2]
    K = kernel(rows[300:], rows[train], step.metric, step.widths, step.share)
    predicted = (K @ step.solution.dual_coef + step.solution.intercept)[:, 0] * scale + shift
    assert r2_score(clean[300:], predicted) >= least
    F = np.diag(gradient_outer_product(rows[train], np.ones(300), step, None))
    assert F[:5].sum() / F.sum() >= 0.99


def test_an_oblique_direction_is_found():
    random = np.random.RandomState(2)
    rows = random.normal(size=(1300, 10))
    direction = random.normal(size=10)
    y = np.sin(2 * rows @ direction / np.linalg.norm(direction))
    steps = learn_metric(
        rows[:300], y[:300, None], np.ones(300), np.arange(10), MetricOptions(), None
    )
    scores = []
    for step in (steps[0], steps[2]):
        K = kernel(rows[300:], rows[:300], step.metric, step.widths, step.share)
        predicted = (K @ step.solution.dual_coef + step.solution.intercept)[:, 0]
        scores.append(r2_score(y[300:], predicted))
    assert scores[1] > scores[0] + 0.3
    assert scores[1] >= 0.86


def test_constant_targets_keep_the_metric():
    options = MetricOptions(n_steps=2)
    steps = learn_metric(X[:, :1] * 0, Y, np.ones(40), np.arange(1), options, None)
    assert steps == []  # all distances are zero
