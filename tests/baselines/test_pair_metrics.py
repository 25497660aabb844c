"""Metrics learned from pairs against an independent convex solver."""

import cvxpy as cp
import numpy as np
import pytest

from kernelweave.baselines import GlobalDistanceMetric, InformationTheoreticMetric, MPCKMeans
from kernelweave.errors import InputError
from kernelweave.pairs import draw_pairs


def problem(n=40, m=4, n_pairs=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, m)) * rng.uniform(0.5, 2, m) + 2 * y[:, None] * np.eye(m)[0]
    pairs, labels = draw_pairs(y, n, n_pairs, seed)
    return X, pairs, labels, X[pairs[:, 0]] - X[pairs[:, 1]]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("m", [2, 10, 30])
def test_column_weights_are_optimal(m, seed):
    X, pairs, labels, V = problem(m=m, seed=seed)
    model = GlobalDistanceMetric(ridge=1e-3, tol=1e-9).fit(X, pairs=pairs, labels=labels)
    sigma, G = (V[labels > 0] ** 2).sum(axis=0), V[labels < 0] ** 2
    sigma = sigma + 1e-3 * sigma.mean()
    a = cp.Variable(m, nonneg=True)
    value = sigma @ a - cp.log(cp.sum(cp.sqrt(G @ a)))
    best = cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)
    ours = model.components_**2
    assert sigma @ ours - np.log(np.sqrt(G @ ours).sum()) == pytest.approx(best, abs=1e-6)
    assert model.objective_ == pytest.approx(best, abs=1e-6)
    assert sigma @ ours == pytest.approx(0.5, abs=1e-4)
    np.testing.assert_allclose(ours, a.value, atol=2e-3 * ours.max())


@pytest.mark.parametrize("seed", range(3))
def test_the_full_metric_is_optimal(seed):
    X, pairs, labels, V = problem(m=4, seed=seed)
    model = GlobalDistanceMetric(diagonal=False, ridge=1e-3, tol=1e-9)
    model.fit(X, pairs=pairs, labels=labels)
    S = V[labels > 0].T @ V[labels > 0]
    S = S + 1e-3 * np.trace(S) / 4 * np.eye(4)
    A = cp.Variable((4, 4), PSD=True)
    roots = [cp.sqrt(cp.trace(np.outer(v, v) @ A)) for v in V[labels < 0]]
    value = cp.trace(S @ A) - cp.log(cp.sum(roots))
    best = cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)
    assert model.objective_ == pytest.approx(best, abs=1e-6)
    ours = model.components_ @ model.components_.T
    np.testing.assert_allclose(ours, A.value, atol=2e-3 * np.abs(ours).max())
    diagonal = GlobalDistanceMetric(ridge=1e-3).fit(X, pairs=pairs, labels=labels)
    assert model.objective_ <= diagonal.objective_ + 1e-6


def test_columns_that_only_cost_get_no_weight_and_equal_rows_are_refused():
    X, pairs, labels, _ = problem()
    X = np.column_stack([X, np.ones(len(X))])
    assert GlobalDistanceMetric().fit(X, pairs=pairs, labels=labels).components_[-1] == 0
    X[pairs[labels < 0]] = 0.0
    with pytest.raises(InputError, match="different pairs are equal"):
        GlobalDistanceMetric().fit(X, pairs=pairs, labels=labels)


def nearest_metric(V, labels, bounds, gamma):
    m = V.shape[1]
    A, xi = cp.Variable((m, m), PSD=True), cp.Variable(len(V))
    start = np.where(labels > 0, *bounds)
    value = cp.trace(A) - cp.log_det(A) - m
    value += gamma * cp.sum(cp.multiply(1 / start, xi) - cp.log(cp.multiply(1 / start, xi)) - 1)
    square = cp.hstack([cp.trace(np.outer(v, v) @ A) for v in V])
    rules = [cp.multiply(labels, square - xi) <= 0]
    best = cp.Problem(cp.Minimize(value), rules).solve(solver=cp.CLARABEL)
    return best, A.value


@pytest.mark.parametrize("solver", ["descent", "projections"])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(2))
def test_the_metric_is_the_nearest_within_bounds(gamma, solver, seed):
    X, pairs, labels, V = problem(m=3, n_pairs=16, seed=seed)
    model = InformationTheoreticMetric(
        gamma=gamma, bounds=(1.0, 8.0), solver=solver, tol=1e-8, max_iter=100_000
    ).fit(X, pairs=pairs, labels=labels)
    best, A = nearest_metric(V, labels, (1.0, 8.0), gamma)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.metric_, A, atol=1e-3 * np.abs(A).max())
    inverse = np.eye(3) + V.T @ (V * (labels * model.multipliers_)[:, None])
    np.testing.assert_allclose(np.linalg.inv(inverse), model.metric_, atol=1e-3)


def test_bounds_are_percentiles_or_given():
    X, pairs, labels, _ = problem()
    model = InformationTheoreticMetric().fit(X, pairs=pairs, labels=labels)
    square = np.sum((X[:, None] - X) ** 2, axis=2)[np.triu_indices(len(X), 1)]
    np.testing.assert_allclose(model.bounds_, np.percentile(square, [5, 95]))
    for bad in ((1.0,), (0.0, 1.0), "ab", (1.0, np.nan)):
        with pytest.raises(InputError, match="bounds: must be two finite numbers > 0"):
            InformationTheoreticMetric(bounds=bad).fit(X, pairs=pairs, labels=labels)
    with pytest.raises(InputError, match="nearly all rows are equal"):
        InformationTheoreticMetric().fit(np.ones_like(X), pairs=pairs, labels=labels)


@pytest.mark.parametrize("kind", [GlobalDistanceMetric, InformationTheoreticMetric])
def test_directions_are_the_leading_ones(kind):
    X, pairs, labels, _ = problem(m=8)
    options = {"diagonal": False} if kind is GlobalDistanceMetric else {"bounds": (1.0, 20.0)}
    model = kind(n_components=3, **options).fit(X, pairs=pairs, labels=labels)
    P = np.linalg.svd(X)[2][:3].T
    small = kind(**options).fit(X @ P, pairs=pairs, labels=labels)
    assert model.transform(X).shape == (len(X), 3)
    K, expected = (Z @ Z.T for Z in (model.transform(X), small.transform(X @ P)))
    np.testing.assert_allclose(K, expected, atol=1e-3 * np.abs(K).max())


def blobs(n=150, seed=0, apart=6.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 5)) * [1, 1, 1, 5, 5]
    X[:, :3] += apart * np.eye(3)[y]
    return X, y, *draw_pairs(y, n, 200, seed)


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
