"""What must hold of a fitted model whatever the solver did inside."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR
from sklearn.utils.class_weight import compute_sample_weight

from flat_models import KERNELS, TIGHT, make_data, make_model
from kernelweave import (
    RBF,
    Linear,
    MKLClassifier,
    MKLRegressor,
    Overlap,
    Polynomial,
    Precomputed,
    rbf_ladder,
)
from quick import first

NORMS = [1.0, 1.5, 3.0, "uniform"]
TASKS = ["binary", "multiclass", "epsilon_insensitive", "square", "huber"]


def fitted(task, kernels=None, *, seed=0, n=50, **options):
    X, y = make_data(task, n, seed)
    return make_model(task, kernels, **options).fit(X, y), X, y


def decide(model, X):
    """Return decision values, one column per output."""
    values = model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)
    return values.reshape(values.shape[0], -1)


def signed(model, y):
    """Return the targets of every output."""
    if not hasattr(model, "classes_"):
        return np.reshape(y, (len(y), -1)).astype(float)
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    return np.where(np.asarray(y)[:, None] == classes, 1.0, -1.0)


def coefficients(model, n):
    """Return dual coefficients of all rows, one column per output."""
    dual_coef = np.zeros((n, len(model.dual_coef_)))
    dual_coef[model.support_] = model.dual_coef_.T
    return dual_coef


def total_loss(model, task, targets, values, cost):
    gap = np.abs(targets - values)
    unit = getattr(model, "target_scale_", 1.0)
    epsilon = unit * getattr(model, "epsilon", 0.0)
    losses = {
        "epsilon_insensitive": unit * np.maximum(gap - epsilon, 0),
        "square": gap**2 / 2,
        "huber": np.where(gap <= epsilon, gap**2 / 2, epsilon * gap - epsilon**2 / 2),
    }
    hinge = np.maximum(1 - targets * values, 0)
    return float((cost * losses.get(task, hinge)).sum())


def quadratic_forms(model, X):
    """Return ``tr(B' K_j B)`` of the normalised kernels."""
    dual_coef = coefficients(model, len(X))
    grams = [scale * k(X) for scale, k in zip(model.scales_, model.kernels_, strict=True)]
    return np.array([np.vdot(dual_coef, gram @ dual_coef) for gram in grams])


def group_penalty(model, q):
    """Return the penalty of the functions, their weights chosen anew (the group norm of w)."""
    norms = model.weights_ * np.sqrt(np.maximum(q, 0))
    if model.norm == "uniform":
        return 0.5 * len(q) * (norms**2).sum()
    r = 2 * model.norm / (model.norm + 1)
    return 0.5 * (norms**r).sum() ** (2 / r)


def assert_same_optimum(*models, factor=1.0):
    """Check that all objectives agree within their gaps; the first is multiplied by ``factor``."""
    first = models[0]
    upper, gap = factor * first.objective_, factor * first.duality_gap_
    for other in models[1:]:
        slack = 1e-9 * abs(upper)
        assert upper - gap <= other.objective_ + slack
        assert other.objective_ - other.duality_gap_ <= upper + slack
        assert other.objective_ == pytest.approx(upper, rel=4 * TIGHT)


def assert_same_decisions(first, second, X, atol=5e-3):
    values = decide(first, X)
    np.testing.assert_allclose(values, decide(second, X), atol=atol * (1 + np.abs(values).max()))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("norm", NORMS)
def test_objective_follows_from_the_attributes(task, norm):
    model, X, y = fitted(task, norm=norm)
    loss = total_loss(model, task, signed(model, y), decide(model, X), model.C)
    assert group_penalty(model, quadratic_forms(model, X)) + loss == pytest.approx(
        model.objective_, rel=1e-8
    )
    dual_coef = coefficients(model, len(X))
    penalty = 0.5 * np.vdot(dual_coef, model.kernel(X) @ dual_coef)
    assert penalty + loss == pytest.approx(model.objective_, rel=1e-6)


@pytest.mark.parametrize("normalize", [None, "trace", "diagonal", "cosine"])
@pytest.mark.parametrize("task", TASKS)
def test_decisions_follow_from_support_rows(task, normalize):
    model, X, _ = fitted(task, tol=1e-3, normalize=normalize)
    new = np.random.default_rng(1).normal(size=(17, 4))
    values = model.kernel(new, X[model.support_]) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(decide(model, new), values, rtol=1e-9, atol=1e-9)
    assert model.dual_coef_.shape == (len(model.intercept_), len(model.support_))
    assert (np.diff(model.support_) > 0).all()
    assert model.dual_coef_.any(axis=0).all()


@pytest.mark.parametrize("normalize", [None, "trace", "diagonal"])
def test_kernel_is_the_weighted_sum(normalize):
    model, X, _ = fitted("binary", norm=2.0, normalize=normalize, tol=1e-3)
    Y = np.random.default_rng(1).normal(size=(6, 4))
    blocks = [k(X, Y) for k in model.kernels_]
    expected = np.tensordot(model.weights_ * model.scales_, blocks, axes=1)
    np.testing.assert_allclose(model.kernel(X, Y), expected, rtol=1e-9, atol=1e-12)
    gram = model.kernel(X)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gram, model.kernel(X, X), rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(gram)[0] > -1e-9 * np.trace(gram)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("norm", NORMS)
def test_weights_lie_in_their_set(task, norm):
    model, X, _ = fitted(task, norm=norm, tol=1e-3)
    assert (model.weights_ >= 0).all()
    if norm == "uniform":
        np.testing.assert_allclose(model.weights_, 1 / len(KERNELS))
    else:
        assert np.linalg.norm(model.weights_, norm) == pytest.approx(1.0, abs=1e-9)
    parts = model.weights_ * quadratic_forms(model, X)
    np.testing.assert_allclose(model.contributions_, parts / parts.sum(), atol=1e-6)
    assert model.contributions_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("task", TASKS)
def test_coefficients_are_feasible(task):
    model, X, y = fitted(task, tol=1e-3, C=30.0)
    dual_coef = coefficients(model, len(X))
    size = np.abs(dual_coef).sum()
    np.testing.assert_allclose(dual_coef.sum(axis=0), 0, atol=1e-12 * size)
    if task in ("binary", "multiclass"):
        assert (dual_coef * signed(model, y) >= 0).all()
        assert np.abs(dual_coef).max() <= model.C
    elif task == "epsilon_insensitive":
        assert np.abs(dual_coef).max() <= model.C * model.target_scale_
    elif task == "huber":
        assert np.abs(dual_coef).max() <= model.C * model.epsilon * model.target_scale_ * (
            1 + 1e-12
        )


@pytest.mark.parametrize("task", TASKS)
def test_without_intercept(task):
    model, X, y = fitted(task, fit_intercept=False)
    assert (model.intercept_ == 0).all()
    loss = total_loss(model, task, signed(model, y), decide(model, X), model.C)
    assert group_penalty(model, quadratic_forms(model, X)) + loss == pytest.approx(
        model.objective_, rel=1e-8
    )
    assert model.objective_ >= fitted(task)[0].objective_ * 0.5  # a bias only helps, up to scales


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_a_bias_never_costs(norm):
    # Unnormalised, because the normalisation itself depends on whether there is one.
    free = fitted("binary", norm=norm, normalize=None)[0]
    bound = fitted("binary", norm=norm, normalize=None, fit_intercept=False)[0]
    assert free.objective_ <= bound.objective_ * (1 + TIGHT)


def test_rows_are_judged_one_by_one():
    model, X, _ = fitted("multiclass", tol=1e-3)
    whole = model.decision_function(X)
    parts = np.vstack([model.decision_function(X[i : i + 7]) for i in range(0, len(X), 7)])
    np.testing.assert_allclose(parts, whole, rtol=1e-10, atol=1e-10)
    one = np.vstack([model.decision_function(row[None]) for row in X])
    np.testing.assert_allclose(one, whole, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("factor", [1e-3, 8.0, 1e4])
@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
@pytest.mark.parametrize("task", ["binary", "epsilon_insensitive"])
def test_scaled_kernels(task, norm, factor):
    plain, X, _ = fitted(task, norm=norm, normalize=None)
    scaled, _, _ = fitted(
        task, [factor * k for k in KERNELS], norm=norm, normalize=None, C=2.0 / factor
    )
    assert_same_optimum(plain, scaled, factor=1 / factor)
    assert_same_decisions(plain, scaled, X)


@pytest.mark.parametrize("normalize", ["trace", "diagonal", "cosine"])
def test_normalisation_takes_scales_away(normalize):
    plain, X, _ = fitted("binary", norm=2.0, normalize=normalize)
    scaled, _, _ = fitted(
        "binary",
        [factor * k for factor, k in zip([1e-4, 3.0, 1e5, 0.2, 7.0], KERNELS, strict=True)],
        norm=2.0,
        normalize=normalize,
    )
    assert_same_optimum(plain, scaled)
    assert_same_decisions(plain, scaled, X)
    np.testing.assert_allclose(scaled.weights_, plain.weights_, atol=1e-3)


@pytest.mark.parametrize("norm", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("task", ["binary", "multiclass", "epsilon_insensitive"])
def test_constant_and_zero_kernels_change_nothing(task, norm):
    n = 50
    _, y = make_data(task, n)
    X = np.arange(n)[:, None]
    table = make_data(task, n)[0]
    grams = [Precomputed(k(table)) for k in KERNELS[:3]]
    useless = [Precomputed(np.zeros((n, n))), Precomputed(np.full((n, n), 5.0))]
    plain = make_model(task, grams, norm=norm).fit(X, y)
    more = make_model(task, [useless[0], *grams, useless[1]], norm=norm).fit(X, y)
    assert_same_optimum(plain, more)
    assert_same_decisions(plain, more, X)
    np.testing.assert_allclose(more.weights_[[0, -1]], 0.0, atol=1e-9)
    np.testing.assert_allclose(more.weights_[1:-1], plain.weights_, atol=1e-3)


def test_only_useless_kernels_leave_the_majority_and_the_middle():
    X = np.arange(12.0)[:, None]
    y = np.array([0] * 4 + [1] * 8)
    nothing = [Precomputed(np.zeros((12, 12))), Precomputed(np.ones((12, 12)))]
    for norm in (1.0, 2.0, "uniform"):
        model = MKLClassifier(nothing, norm=norm).fit(X, y)
        assert (model.predict(X) == 1).all()
        assert model.objective_ == pytest.approx(8.0)  # four rows on the wrong side of the margin
        assert np.isfinite(model.weights_).all()
        regression = MKLRegressor(nothing, loss="square", norm=norm).fit(X, X[:, 0])
        np.testing.assert_allclose(regression.predict(X), 5.5)


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("task", TASKS)
def test_order_of_kernels(task, norm):
    order = [3, 0, 4, 2, 1]
    plain, X, _ = fitted(task, norm=norm)
    other, _, _ = fitted(task, [KERNELS[j] for j in order], norm=norm)
    assert_same_optimum(plain, other)
    assert_same_decisions(plain, other, X)
    np.testing.assert_allclose(other.weights_, plain.weights_[order], atol=2e-3)


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("task", TASKS)
def test_order_of_rows(task, norm):
    model, X, y = fitted(task, norm=norm)
    order = np.random.default_rng(3).permutation(len(X))
    other = make_model(task, norm=norm).fit(X[order], y[order])
    assert_same_optimum(model, other)
    assert_same_decisions(model, other, X)


def test_order_of_columns():
    X, y = make_data("binary")
    plain = MKLClassifier([RBF(1.0), Linear()], tol=TIGHT).fit(X, y)
    other = MKLClassifier([RBF(1.0), Linear()], tol=TIGHT).fit(X[:, ::-1], y)
    assert_same_optimum(plain, other)


def test_duplicates_share_a_weight():
    plain, X, _ = fitted("binary", norm=1.0)
    twice, _, _ = fitted("binary", KERNELS + KERNELS[:3], norm=1.0)
    assert_same_optimum(plain, twice)
    assert_same_decisions(plain, twice, X)
    sums = twice.weights_[:5].copy()
    sums[:3] += twice.weights_[5:]
    np.testing.assert_allclose(sums, plain.weights_, atol=2e-3)


@pytest.mark.parametrize("strengths", [(1.0, 0.9, 0.8), (1.0, 0.8, 0.6, 0.5)], ids=len)
@pytest.mark.parametrize("task", ["binary", "epsilon_insensitive"])
def test_no_certificate_without_all_kernels(task, strengths):
    # Copies of the stronger signals come first whenever some kernels are preferred to others, so
    # that the weaker ones, which the optimum needs as well, are found last.
    n, copies = 60, 80
    X = np.random.default_rng(0).normal(size=(n, len(strengths)))
    rows, signal = np.arange(n)[:, None], np.tanh(2 * X) @ strengths
    y = np.where(signal > 0, "yes", "no") if task == "binary" else signal
    grams = [Precomputed(RBF(1.0, columns=j)(X)) for j in range(len(strengths))]
    alone = make_model(task, grams).fit(rows, y)
    assert (alone.weights_ > 0.02).all()
    for tol in (0.1, 1e-2, TIGHT):
        model = make_model(task, [gram for gram in grams for _ in range(copies)], tol=tol)
        model.fit(rows, y)
        assert model.duality_gap_ <= tol * model.objective_
        assert model.objective_ - model.duality_gap_ <= alone.objective_ * (1 + 1e-9)
    assert_same_optimum(alone, model)
    sums = model.weights_.reshape(len(strengths), copies).sum(axis=1)
    np.testing.assert_allclose(sums, alone.weights_, atol=5e-3)


def test_duplicates_are_equal_when_the_norm_is_larger():
    plain, _, _ = fitted("binary", norm=2.0)
    twice, _, _ = fitted("binary", KERNELS + KERNELS[:3], norm=2.0)
    np.testing.assert_allclose(twice.weights_[:3], twice.weights_[5:], atol=1e-3)
    assert twice.objective_ < plain.objective_  # a copy is room in the ball


@pytest.mark.parametrize("task", ["binary", "multiclass", "epsilon_insensitive"])
def test_unused_kernels_may_be_dropped(task):
    X, y = make_data(task)
    ladder = [rbf_ladder([0.3, 1.0, 3.0], per_feature=True), *KERNELS]
    model = make_model(task, ladder).fit(X, y)
    kept = [k for k, weight in zip(model.kernels_, model.weights_, strict=True) if weight > 0]
    assert len(kept) < len(model.kernels_)
    again = make_model(task, kept).fit(X, y)
    assert_same_optimum(model, again)
    assert_same_decisions(model, again, X)


@pytest.mark.parametrize("task", TASKS)
def test_larger_balls_cost_less(task):
    models = [fitted(task, norm=norm)[0] for norm in (1.0, 1.3, 2.0, 5.0)]
    objectives = np.array([model.objective_ for model in models])
    assert (np.diff(objectives) <= TIGHT * objectives[:-1]).all()
    # Equal weights that sum to one lie in every ball.
    assert objectives[0] <= fitted(task, norm="uniform")[0].objective_ * (1 + TIGHT)


@pytest.mark.parametrize("task", TASKS)
def test_larger_costs_cost_more(task):
    objectives = np.array([fitted(task, C=C)[0].objective_ for C in (1e-2, 0.3, 10.0, 100.0)])
    assert (np.diff(objectives) >= -TIGHT * objectives[1:]).all()  # level once nothing is at a loss
    assert objectives[2] > 2 * objectives[0]


def test_labels_swapped():
    X, y = make_data("binary")
    plain = MKLClassifier(KERNELS, tol=TIGHT).fit(X, y == "yes")
    other = MKLClassifier(KERNELS, tol=TIGHT).fit(X, y == "no")
    assert_same_optimum(plain, other)
    values = plain.decision_function(X)
    np.testing.assert_allclose(other.decision_function(X), -values, atol=1e-3)


def test_two_classes_as_strings_numbers_and_booleans():
    X, y = make_data("binary")
    models = [MKLClassifier(KERNELS).fit(X, y == "yes"), MKLClassifier(KERNELS).fit(X, y)]
    models.append(MKLClassifier(KERNELS).fit(X, np.where(y == "yes", 7, -3)))
    for model in models[1:]:
        np.testing.assert_array_equal(model.dual_coef_, models[0].dual_coef_)
        np.testing.assert_array_equal(model.weights_, models[0].weights_)
    np.testing.assert_array_equal(models[1].predict(X), np.where(models[0].predict(X), "yes", "no"))


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_one_kernel_is_svc(norm, C):
    X, y = make_data("binary", 60)
    model = MKLClassifier(RBF(0.8), norm=norm, normalize=None, C=C, tol=1e-9).fit(X, y)
    peer = SVC(gamma=1 / (2 * 0.8**2), C=C, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-4)
    np.testing.assert_allclose(model.weights_, [1.0])


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_one_kernel_is_svr(C, epsilon):
    X, y = make_data("epsilon_insensitive", 60)
    model = MKLRegressor(
        RBF(0.8), normalize=None, C=C, epsilon=epsilon, target_scale=None, tol=1e-9
    ).fit(X, y)
    peer = SVR(gamma=1 / (2 * 0.8**2), C=C, epsilon=epsilon, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=1e-4)


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
def test_one_kernel_is_kernel_ridge(C):
    X, y = make_data("square", 60)
    Y = np.column_stack([y, X[:, 0] ** 2])
    for target in (y, Y):
        model = MKLRegressor(RBF(0.8), loss="square", normalize=None, C=C, fit_intercept=False)
        peer = KernelRidge(alpha=1 / C, kernel="rbf", gamma=1 / (2 * 0.8**2)).fit(X, target)
        np.testing.assert_allclose(model.fit(X, target).predict(X), peer.predict(X), atol=1e-7)
        np.testing.assert_allclose(model.dual_coef_, np.atleast_2d(peer.dual_coef_.T), atol=1e-5)


def test_uniform_is_svc_on_the_mean_kernel():
    X, y = make_data("binary", 60)
    kernels = [RBF(0.8), Linear(), Polynomial(2)]
    model = MKLClassifier(kernels, norm="uniform", normalize=None, C=0.5, tol=1e-8).fit(X, y)
    gram = np.mean([k(X) for k in kernels], axis=0)
    peer = SVC(kernel="precomputed", C=0.5, tol=1e-7).fit(gram, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(gram), atol=1e-3)


def test_learned_weights_are_optimal_for_svc():
    # The learned kernel, frozen, gives back the same machine.
    model, X, y = fitted("binary", tol=1e-8)
    peer = SVC(kernel="precomputed", C=model.C, tol=1e-7).fit(model.kernel(X), y)
    values = peer.decision_function(model.kernel(X))
    np.testing.assert_allclose(model.decision_function(X), values, atol=2e-3)


COUNTS = np.tile([1, 2, 0, 1, 3], 10)


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("task", TASKS)
def test_whole_weights_are_repeated_rows(task, norm):
    X, y = make_data(task)
    weighted = make_model(task, norm=norm).fit(X, y, sample_weight=COUNTS)
    repeated = make_model(task, norm=norm).fit(np.repeat(X, COUNTS, axis=0), np.repeat(y, COUNTS))
    assert_same_optimum(weighted, repeated)
    assert_same_decisions(weighted, repeated, X)
    np.testing.assert_allclose(weighted.scales_, repeated.scales_, rtol=1e-9)


@pytest.mark.parametrize("kind", ["frame", "row numbers", "sparse"])
@pytest.mark.parametrize("task", ["binary", "square"])
def test_whole_weights_are_repeated_rows_for_any_table(task, kind):
    X, y = make_data(task)
    kernels = [RBF(0.8), Linear()]
    if kind == "frame":
        X = pd.DataFrame(X, columns=list("abcd"))
        repeated = X.loc[np.repeat(np.arange(50), COUNTS)].reset_index(drop=True)
    elif kind == "sparse":
        repeated = sp.csr_array(np.repeat(X, COUNTS, axis=0))
        X = sp.csr_array(X)
    else:
        kernels = [Precomputed(k(X)) for k in kernels]
        X = np.arange(50)[:, None]
        repeated = np.repeat(X, COUNTS, axis=0)
    first = make_model(task, kernels).fit(X, y, sample_weight=COUNTS)
    second = make_model(task, kernels).fit(repeated, np.repeat(y, COUNTS))
    assert_same_optimum(first, second)
    assert_same_decisions(first, second, X)


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_no_weight_is_no_row(task, as_frame):
    X, y = make_data(task)
    kept = np.arange(50) % 3 > 0
    table = pd.DataFrame(X, columns=list("abcd")) if as_frame else X
    few = table[kept].reset_index(drop=True) if as_frame else X[kept]
    weighted = make_model(task).fit(table, y, sample_weight=kept.astype(float))
    removed = make_model(task).fit(few, y[kept])
    assert_same_optimum(weighted, removed)
    assert_same_decisions(weighted, removed, table)
    assert kept[weighted.support_].all()


@pytest.mark.parametrize("task", TASKS)
def test_equal_weights_are_a_cost(task):
    X, y = make_data(task)
    weighted = make_model(task, C=2.0).fit(X, y, sample_weight=np.full(50, 2.5))
    assert_same_optimum(make_model(task, C=5.0).fit(X, y), weighted)
    ones = make_model(task).fit(X, y, sample_weight=np.ones(50))
    assert_same_optimum(make_model(task).fit(X, y), ones)


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("class_weight", [{0: 0.5, 2: 4.0}, "balanced"])
def test_weights_of_classes_are_costs_of_rows(class_weight, norm):
    X, y = make_data("multiclass")
    model = make_model("multiclass", norm=norm, normalize=None, class_weight=class_weight)
    weights = compute_sample_weight(class_weight, y)
    rows = make_model("multiclass", norm=norm, normalize=None).fit(X, y, sample_weight=weights)
    assert_same_optimum(model.fit(X, y), rows)
    assert_same_decisions(model, rows, X)


def test_weights_of_named_classes():
    X, y = make_data("binary")
    plain = make_model("binary").fit(X, y)
    heavy = make_model("binary", class_weight={"yes": 50.0}).fit(X, y)
    assert (heavy.predict(X)[y == "yes"] == "yes").all()
    assert (heavy.predict(X) == "yes").sum() >= (plain.predict(X) == "yes").sum()


def test_weights_of_rows_and_classes_multiply():
    X, y = make_data("binary")
    rows = np.random.default_rng(0).uniform(0.5, 2.0, size=50)
    both = make_model("binary", class_weight={"no": 3.0}).fit(X, y, sample_weight=rows)
    # The means that kernels are divided by know weights of rows only, so take them away.
    kernels = [scale * k for scale, k in zip(both.scales_, KERNELS, strict=True)]
    one = make_model("binary", kernels, normalize=None)
    one.fit(X, y, sample_weight=rows * np.where(y == "no", 3.0, 1.0))
    assert_same_optimum(both, one)


@pytest.mark.parametrize("task", TASKS)
def test_slopes_are_level_on_the_kernels_in_use(task):
    model, X, _ = fitted(task, tol=1e-8)
    q = quadratic_forms(model, X)
    used = model.weights_ > 1e-6
    np.testing.assert_allclose(q[used], q.max(), rtol=1e-3)
    # The gap is at least half of what the largest slope exceeds the mean slope by.
    excess = 0.5 * (q.max() - model.weights_ @ q)
    assert excess <= model.duality_gap_ + 1e-6 * model.objective_


@pytest.mark.parametrize("norm", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("task", ["binary", "square"])
def test_weights_follow_the_slopes(task, norm):
    model, X, _ = fitted(task, tol=1e-8, norm=norm)
    raw = quadratic_forms(model, X) ** (1 / (norm - 1))
    np.testing.assert_allclose(model.weights_, raw / np.linalg.norm(raw, norm), atol=2e-3)


# More than 3000 rows are held in single precision when the tolerance is loose.
@pytest.mark.parametrize(
    ("n", "norm"), first(3, [(900, 1.0), (900, 2.0), (900, "uniform"), (3100, 1.0)])
)
def test_certificates_of_many_rows(n, norm):
    X, y = make_data("binary", n)
    kernels = [rbf_ladder([0.5, 2.0], per_feature=True), rbf_ladder([1.0, 3.0]), Polynomial(2)]
    close = MKLClassifier(kernels, norm=norm, tol=1e-6).fit(X, y)
    for tol in (1e-1, 1e-2, 1e-4):
        model = MKLClassifier(kernels, norm=norm, tol=tol).fit(X, y)
        slack = 1e-7 * close.objective_
        assert model.duality_gap_ <= tol * model.objective_
        assert model.objective_ - model.duality_gap_ <= close.objective_ + slack
        assert model.objective_ >= close.objective_ - close.duality_gap_ - slack
    # The exact kernels at the fitted coefficients cost no more than was said.
    loss = total_loss(model, "binary", signed(model, y), decide(model, X), model.C)
    assert group_penalty(model, quadratic_forms(model, X)) + loss <= model.objective_ * (1 + 1e-7)


def test_equal_rows_with_opposite_labels_cannot_both_be_right():
    X = np.repeat(np.random.default_rng(0).normal(size=(10, 3)), 2, axis=0)
    y = np.tile([0, 1], 10)
    model = MKLClassifier([RBF(1.0), Linear()], C=1.0).fit(X, y)
    assert model.objective_ == pytest.approx(20.0, rel=2e-3)  # f = 0, every row at a loss of one
    np.testing.assert_allclose(model.decision_function(X), 0, atol=0.1)


CS = [3.0, 0.01, 100.0, 1.0, 3.0]


@pytest.mark.parametrize("norm", first(1, [1.0, 2.0, "uniform"]))
@pytest.mark.parametrize("task", TASKS)
def test_path_is_separate_fits(task, norm):
    X, y = make_data(task)
    models = make_model(task, norm=norm).fit_path(X, y, CS)
    assert [model.C for model in models] == CS
    for model, C in zip(models, CS, strict=True):
        alone = make_model(task, norm=norm, C=C).fit(X, y)
        assert model.converged_
        assert_same_optimum(alone, model)
        assert_same_decisions(alone, model, X)
        np.testing.assert_array_equal(model.predict(X).shape, alone.predict(X).shape)


def test_path_leaves_complete_estimators():
    X, y = make_data("binary")
    frame = pd.DataFrame(X, columns=list("abcd"))
    start = make_model("binary", tol=1e-3, class_weight="balanced")
    weight = np.linspace(0.5, 2.0, 50)
    models = start.fit_path(frame, y, (C for C in [1.0, 10.0]), sample_weight=weight)
    assert [model.get_params()["class_weight"] for model in models] == ["balanced"] * 2
    for model in models:
        assert list(model.feature_names_in_) == list("abcd")
        assert model.n_features_in_ == 4
        assert list(model.classes_) == ["no", "yes"]
        assert model.score(frame, y) > 0.6
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize("norm", first(1, [1.0, 2.0, "uniform"]))
@pytest.mark.parametrize("task", TASKS)
def test_warm_refit_finds_the_same_optimum(task, norm):
    X, y = make_data(task)
    model = make_model(task, norm=norm, warm_start=True).fit(X, y)
    first = model.n_iter_
    model.fit(X, y)
    assert_same_optimum(make_model(task, norm=norm).fit(X, y), model)
    assert model.n_iter_ <= first
    model.set_params(C=20.0).fit(X, y)
    assert_same_optimum(make_model(task, norm=norm, C=20.0).fit(X, y), model)
    model.set_params(C=0.05).fit(X, y)
    assert_same_optimum(make_model(task, norm=norm, C=0.05).fit(X, y), model)


def test_warm_refit_on_other_data_is_a_fit():
    X, y = make_data("binary")
    model = make_model("binary", warm_start=True).fit(X, y)
    for other in (make_data("binary", 50, seed=1), make_data("binary", 40, seed=2)):
        cold = make_model("binary").fit(*other)
        assert_same_optimum(cold, model.fit(*other))
    three = make_data("multiclass", 40)
    assert_same_optimum(make_model("multiclass").fit(*three), model.fit(*three))


@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_warm_refit_with_other_kernels_is_a_fit(norm):
    X, y = make_data("binary")
    model = make_model("binary", KERNELS[:3], norm=norm, warm_start=True).fit(X, y)
    for kernels in (KERNELS[3:], KERNELS, KERNELS[:1], KERNELS[:2]):
        model.set_params(kernels=kernels).fit(X, y)
        assert_same_optimum(make_model("binary", kernels, norm=norm).fit(X, y), model)


def test_cold_refit_is_bitwise_the_same():
    X, y = make_data("multiclass")
    model = make_model("multiclass", tol=1e-3).fit(X, y)
    before = [model.weights_.copy(), model.dual_coef_.copy(), model.intercept_.copy()]
    model.fit(X, y)
    for old, new in zip(before, (model.weights_, model.dual_coef_, model.intercept_), strict=True):
        np.testing.assert_array_equal(new, old)


def test_trace_makes_the_centred_diagonal_one():
    model, X, _ = fitted("binary", tol=1e-3)
    centre = np.eye(50) - 1 / 50
    for scale, kernel in zip(model.scales_, KERNELS, strict=True):
        assert scale * np.trace(centre @ kernel(X) @ centre) / 50 == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("normalize", "fit_intercept"), [("trace", False), ("diagonal", False), ("diagonal", True)]
)
def test_the_plain_diagonal_becomes_one(normalize, fit_intercept):
    model, X, _ = fitted("binary", tol=1e-3, normalize=normalize, fit_intercept=fit_intercept)
    for scale, kernel in zip(model.scales_, KERNELS, strict=True):
        assert scale * kernel.diag(X).mean() == pytest.approx(1.0)


def test_cosine_makes_every_diagonal_entry_one():
    model, X, y = fitted("binary", norm=2.0, normalize="cosine")
    np.testing.assert_allclose(model.scales_, 1.0)
    new = np.random.default_rng(1).normal(size=(9, 4))
    np.testing.assert_allclose(model.kernel(new).diagonal(), model.weights_.sum(), rtol=1e-9)
    grams = []
    for kernel in KERNELS:
        gram = kernel(X)
        lengths = np.sqrt(gram.diagonal())
        grams.append(Precomputed(gram / lengths[:, None] / lengths))
    other = make_model("binary", grams, norm=2.0, normalize=None)
    assert_same_optimum(other.fit(np.arange(50)[:, None], y), model)


def test_no_normalisation_leaves_scales_at_one():
    model, _, _ = fitted("binary", normalize=None, tol=1e-3)
    np.testing.assert_array_equal(model.scales_, 1.0)


def test_scales_of_the_training_rows_serve_new_ones():
    model, X, _ = fitted("binary", norm=2.0, tol=1e-3)
    new = 3 * np.random.default_rng(1).normal(size=(8, 4))
    blocks = [scale * k(new, X) for scale, k in zip(model.scales_, KERNELS, strict=True)]
    expected = np.tensordot(model.weights_, blocks, axes=1)
    np.testing.assert_allclose(model.kernel(new, X), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_unit_trace_with_c_is_unit_diagonal_with_c_over_n(norm):
    X, y = make_data("binary", 40)
    rows = np.arange(40)[:, None]
    grams = [kernel(X) for kernel in KERNELS]
    unit = [Precomputed(gram / np.trace(gram)) for gram in grams]
    paper = make_model("binary", unit, norm=norm, normalize=None, C=100.0).fit(rows, y)
    ours = make_model("binary", norm=norm, normalize="diagonal", C=100.0 / 40).fit(X, y)
    assert_same_optimum(paper, ours, factor=1 / 40)
    np.testing.assert_allclose(ours.decision_function(X), paper.decision_function(rows), atol=5e-3)
    np.testing.assert_allclose(ours.weights_, paper.weights_, atol=2e-3)


def test_centring_changes_nothing_but_the_scale():
    X, y = make_data("binary", 40)
    rows = np.arange(40)[:, None]
    centre = np.eye(40) - 1 / 40
    plain = [Precomputed(k(X)) for k in KERNELS]
    centred = [Precomputed(centre @ k(X) @ centre) for k in KERNELS]
    first = make_model("binary", plain).fit(rows, y)
    second = make_model("binary", centred).fit(rows, y)
    assert_same_optimum(first, second)
    assert_same_decisions(first, second, rows)


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_a_common_offset_of_columns_is_absorbed(norm, offset):
    # With an intercept neither kernel depends on it; years, prices and times come with one.
    X, y = make_data("binary")
    for kernels in ([Linear()], [RBF(0.8)], [RBF(0.8), Linear(), Linear(columns=[0, 1])]):
        plain = make_model("binary", kernels, norm=norm).fit(X, y)
        moved = make_model("binary", kernels, norm=norm, tol=1e-4).fit(X + offset, y)
        assert moved.objective_ == pytest.approx(plain.objective_, rel=1e-3)
        np.testing.assert_allclose(
            moved.decision_function(X + offset), plain.decision_function(X), atol=0.1
        )


def test_a_ready_matrix_is_the_kernel():
    X, y = make_data("multiclass")
    rows = np.arange(50)[:, None]
    by_columns = make_model("multiclass").fit(X, y)
    by_rows = make_model("multiclass", [Precomputed(k(X)) for k in KERNELS]).fit(rows, y)
    assert_same_optimum(by_columns, by_rows)
    np.testing.assert_allclose(by_rows.weights_, by_columns.weights_, atol=2e-3)
    np.testing.assert_allclose(
        by_rows.decision_function(rows), by_columns.decision_function(X), atol=5e-3
    )


def test_rows_of_a_matrix_may_come_in_any_order_and_number():
    X, y = make_data("binary")
    grams = [Precomputed(k(X)) for k in KERNELS]
    rows = np.random.default_rng(4).permutation(50)[:30]
    few = make_model("binary", grams).fit(rows[:, None], y[rows])
    direct = make_model("binary").fit(X[rows], y[rows])
    assert_same_optimum(direct, few)
    np.testing.assert_allclose(
        few.decision_function(np.arange(50)[:, None]), direct.decision_function(X), atol=5e-3
    )


def test_sparse_rows_are_the_same_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8)) * (rng.random((60, 8)) < 0.4)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    kernels = [RBF(1.0), Linear(), Polynomial(2), RBF(2.0, columns=[0, 1])]
    dense = MKLClassifier(kernels, tol=TIGHT).fit(X, y)
    for table in (sp.csr_array(X), sp.csc_matrix(X), sp.coo_array(X)):
        sparse = MKLClassifier(kernels, tol=TIGHT).fit(table, y)
        assert_same_optimum(dense, sparse)
        values = dense.decision_function(X)
        np.testing.assert_allclose(sparse.decision_function(table), values, atol=2e-3)
        np.testing.assert_allclose(sparse.decision_function(X), values, atol=2e-3)


def test_categories_and_numbers_together():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": rng.normal(size=60), "colour": rng.choice(["red", "blue", "green"], size=60)}
    )
    y = (frame["colour"] == "red").to_numpy().astype(int)
    kernels = [RBF(1.0, columns="size"), Overlap(columns="colour")]
    model = MKLClassifier(kernels, tol=TIGHT).fit(frame, y)
    assert model.weights_[1] > 0.99
    assert model.score(frame, y) == 1.0
    default = MKLClassifier().fit(frame, y)  # finds out which columns are numbers
    assert default.score(frame, y) == 1.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_sparse_rows_near_the_largest_number(loss):
    """Kernel values times coefficients overflow: the fit is no worse than the zero function."""
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy(size=(54, 4)) * (rng.random((54, 4)) < 0.5)
    X *= 3e153 / np.abs(X).max()
    y = rng.integers(0, 2, 54)
    model = MKLClassifier(norm=4.0, loss=loss, C=2e7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(sp.csr_array(X), y)
    constant = 2e7 * (2 * min(y.sum(), 54 - y.sum()) if loss == "hinge" else 54)
    assert 0 <= model.objective_ <= constant
    assert np.isfinite(model.decision_function(sp.csr_array(X))).all()
