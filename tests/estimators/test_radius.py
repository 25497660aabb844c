"""Radius-margin classifiers: optimum, certificates, invariances, and life with scikit-learn."""

import pickle
import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave import (
    RBF,
    Linear,
    MKLClassifier,
    Polynomial,
    Precomputed,
    RadiusKernelClassifier,
    RadiusMKLClassifier,
    enclosing_ball,
    rbf_ladder,
)
from kernelweave._threads import threads
from kernelweave.errors import InputError
from kernelweave.io import load, save
from quick import every, first
from radius_cases import (
    FAMILIES,
    KERNELS,
    assert_same_decisions,
    coefficients,
    decide,
    make_data,
    signed,
)
from radius_oracles import (
    ball_oracle,
    chapelle_value,
    radius_margin_value,
    solve_do,
    solve_radius,
)
from radius_problems import CASES, TIGHT, assert_same_kernel, optimum, radii_of

CONFIGURATIONS = {
    "radius": {},
    "norm 1": {"norm": 1},
    "norm 2": {"norm": 2, "normalize": None},
    "uniform": {"norm": "uniform"},
    "projection": {"solver": "projection", "normalize": "trace"},
    "upper": {"radius": "upper"},
    "upper, norm 1": {"radius": "upper", "norm": 1, "normalize": None},
    "trace": {"radius": "trace", "norm": 2},
    "chapelle": {"criterion": "chapelle"},
    "chapelle, norm 1": {"criterion": "chapelle", "norm": 1},
    "literal": {"criterion": "chapelle_literal", "norm": 2},
    "do": {"criterion": "do", "norm": 1},
    "do, norm 2": {"criterion": "do", "norm": 2, "normalize": None, "solver": "projection"},
    "no intercept": {"fit_intercept": False},
}


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Spare these small arrays the threads, which wait for each other."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with threads(1):
        yield


@pytest.mark.parametrize("case", every(2, CASES), ids=str)
def test_optimum(case):
    value, _ = optimum(case)
    model = case.fit()
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert model.lower_bound_ <= value * (1 + 1e-8)
    assert model.objective_ >= value * (1 - 1e-8)
    assert model.converged_
    assert 0 <= model.duality_gap_ <= TIGHT * model.objective_
    assert model.duality_gap_ == model.objective_ - model.lower_bound_
    exact = radius_margin_value(model.kernel(case.rows), case.problem.Y, case.cost)
    assert exact == pytest.approx(value, rel=1e-6)


def test_weights_are_those_of_the_reference():
    for case in CASES[7::5]:  # where the optimum is unique
        _, theta = optimum(case)
        weights = case.fit().weights_ * case.fit().scales_
        weights, theta = (w * radii_of(case) for w in (weights, theta))
        np.testing.assert_allclose(weights / weights.sum(), theta / theta.sum(), atol=2e-3)


@pytest.mark.parametrize("case", CASES[::4], ids=str)
@pytest.mark.parametrize("normalize", ["radius", None])
def test_projection(case, normalize):
    value, _ = optimum(case)
    model = case.fit(solver="projection", tol=1e-4, max_iter=3000, normalize=normalize)
    assert model.converged_
    assert value * (1 - 1e-8) <= model.objective_ <= value * (1 + 1.01e-4)
    assert model.lower_bound_ <= value * (1 + 1e-8)


@pytest.mark.parametrize(("kernels", "n_classes"), [("of columns", 3), ("mixed", 2)])
def test_optimum_on_kernels_of_columns(kernels, n_classes):
    # More rows than the rank of a one-feature kernel, so that it need not be held as a matrix.
    X, y = make_data(32, n_classes, seed=5)
    family = [rbf_ladder([1.5, 4.0], per_feature=True)] if kernels == "of columns" else KERNELS
    model = RadiusMKLClassifier(family, C=3.0, tol=TIGHT).fit(X, y)
    grams = np.stack([kernel(X) for kernel in model.kernels_])
    Y = signed(model, y)
    value, _ = solve_radius(grams, Y, np.full(Y.shape, 3.0))
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert model.lower_bound_ <= value * (1 + 1e-8)
    for tol in (1e-1, 1e-3):
        loose = RadiusMKLClassifier(family, C=3.0, tol=tol).fit(X, y)
        assert loose.lower_bound_ <= value * (1 + 1e-8)
        assert value * (1 - 1e-8) <= loose.objective_ <= value * (1 + 1.01 * tol)


def few_dimensions(seed, n_columns):
    """The ball of few dimensions changes its points at the optimum, and with them the slopes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, n_columns))
    X[:, 3] = np.round(X[:, 3])
    return X, X[:, 0] + 0.5 * X[:, 3] + 0.3 * rng.normal(size=60) > 0


@cache
def optimum_of_columns(seed, C, n_columns):
    X, y = few_dimensions(seed, n_columns)
    grams = np.stack([np.outer(column, column) for column in X.T])
    return solve_radius(grams, np.where(y, 1.0, -1.0), np.full((60, 1), C))[0]


def fit_columns(seed, C, n_columns, **options):
    kernels = [Linear(columns=j) for j in range(n_columns)]
    return RadiusMKLClassifier(kernels, C=C, **options).fit(*few_dimensions(seed, n_columns))


def one_column_each(seed, C, n_columns=6, **options):
    value = optimum_of_columns(seed, C, n_columns)
    model = fit_columns(seed, C, n_columns, **options)
    assert value * (1 - 1e-8) <= model.objective_
    assert model.lower_bound_ <= value * (1 + 1e-8)
    return model, value


@pytest.mark.parametrize(("seed", "n_columns"), first(1, [(3, 6), (30, 6), (32, 4)]))
@pytest.mark.parametrize("C", first(1, [0.068, 0.03, 0.08, 1.0]))
def test_kernels_of_one_column_each(seed, C, n_columns):
    model, value = one_column_each(seed, C, n_columns)
    assert model.converged_
    assert model.objective_ <= value * (1 + 1e-3)
    close, _ = one_column_each(seed, C, n_columns, tol=1e-6)
    assert close.converged_
    assert close.objective_ == pytest.approx(value, rel=1e-6)
    assert model.n_iter_ <= close.n_iter_ <= 100


@pytest.mark.parametrize("n_columns", [12, 25, 60])
@pytest.mark.parametrize("C", first(1, [0.08, 0.01, 3.0]))
def test_kernels_of_many_columns(C, n_columns):
    for seed in (3, 7):
        model = fit_columns(seed, C, n_columns)
        assert model.converged_
        assert model.n_iter_ <= 100


def test_kernels_that_lose_their_weight_at_kinks_have_none():
    model, _ = one_column_each(30, 0.068, tol=1e-6)
    assert (model.weights_ == 0).sum() == 2
    assert model.weights_[model.weights_ > 0].min() > 0.01


@pytest.mark.parametrize("max_iter", [12, 17, 25])
def test_iterations_are_limited_at_kinks_too(max_iter):
    with pytest.warns(ConvergenceWarning, match="solves at a relative duality gap"):
        model, value = one_column_each(30, 0.068, tol=1e-8, max_iter=max_iter)
    assert model.n_iter_ <= max_iter
    assert model.objective_ <= 1.1 * value


@pytest.mark.parametrize("normalize", ["radius", "trace", "diagonal", None])
@pytest.mark.parametrize("case", CASES[4::7], ids=str)
def test_neither_scale_nor_normalisation_matters(case, normalize):
    grams = case.problem.grams
    plain = case.fit()
    factors = 10 ** np.random.default_rng(case.seed).uniform(-6, 6, len(grams))
    scaled = case.fit(factors[:, None, None] * grams, normalize=normalize)
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=3 * TIGHT)
    assert_same_kernel(plain, scaled, case.rows)
    assert_same_decisions(plain, scaled, case.rows)


@pytest.mark.parametrize("case", CASES[3::7], ids=str)
def test_the_origin_does_not_matter(case):
    grams, n = case.problem.grams, len(case.problem.y)
    H = np.eye(n) - 1 / n
    shifts = np.trace(grams, axis1=1, axis2=2)[:, None, None] / n * 3
    plain = case.fit()
    for other in (H @ grams @ H, grams + shifts):
        model = case.fit(other)
        assert model.objective_ == pytest.approx(plain.objective_, rel=3 * TIGHT)
        assert_same_kernel(plain, model, case.rows)
        assert_same_decisions(plain, model, case.rows)


def test_constant_kernels_get_no_weight_and_are_named():
    X, y = make_data()
    n = len(y)
    grams = [Precomputed(k(X)) for k in KERNELS[:3]]
    nothing = [Precomputed(np.zeros((n, n))), Precomputed(np.full((n, n), 5.0), name="five")]
    rows = np.arange(n)[:, None]
    for options in CONFIGURATIONS.values():
        model = RadiusMKLClassifier(grams, **options).fit(rows, y)
        with pytest.warns(UserWarning, match=r"kernels\[0\] = .*, kernels\[4\] = five") as caught:
            more = clone(model).set_params(kernels=[nothing[0], *grams, nothing[1]]).fit(rows, y)
        assert caught[0].filename == __file__
        assert (more.weights_[[0, 4]] == 0).all()
        np.testing.assert_array_equal(more.weights_[1:4], model.weights_)
        np.testing.assert_array_equal(more.decision_function(rows), model.decision_function(rows))


@pytest.mark.parametrize("case", CASES[5::8], ids=str)
def test_further_kernels_never_cost(case):
    value, _ = optimum(case)
    more = case.fit([*case.problem.grams, case.problem.grams[0] ** 2], tol=1e-5)
    assert more.lower_bound_ <= value
    copies = case.fit(np.repeat(case.problem.grams, 3, axis=0), tol=1e-5)
    assert copies.objective_ == pytest.approx(value, rel=2e-5)


def test_order_of_kernels_rows_and_labels():
    X, y = make_data()
    plain = RadiusMKLClassifier(KERNELS, tol=1e-6).fit(X, y)
    other = RadiusMKLClassifier(KERNELS[::-1], tol=1e-6).fit(X, y)
    assert other.objective_ == pytest.approx(plain.objective_, rel=4e-6)
    np.testing.assert_allclose(other.weights_[::-1], plain.weights_, atol=2e-3)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = RadiusMKLClassifier(KERNELS, tol=1e-6).fit(X[order], y[order])
    assert shuffled.objective_ == pytest.approx(plain.objective_, rel=4e-6)
    assert_same_kernel(plain, shuffled, X)
    assert_same_decisions(plain, shuffled, X)
    swapped = RadiusMKLClassifier(KERNELS, tol=1e-6).fit(X, np.where(y == "yes", "no", "yes"))
    assert_same_kernel(plain, swapped, X)
    np.testing.assert_allclose(swapped.decision_function(X), -plain.decision_function(X), atol=3e-3)


@pytest.mark.parametrize("case", CASES[::2], ids=str)
def test_surrogates_enclose_the_optimum_and_come_near_it(case):
    value, _ = optimum(case)
    upper, trace = case.fit(radius="upper", tol=1e-6), case.fit(radius="trace", tol=1e-6)
    assert trace.lower_bound_ <= value * (1 + 1e-8)
    assert upper.objective_ >= value * (1 - 1e-8)
    exact = radius_margin_value(upper.kernel(case.rows), case.problem.Y, case.cost)
    assert value * (1 - 1e-8) <= exact <= 1.02 * value
    assert exact <= upper.objective_ * (1 + 1e-8)


@pytest.mark.parametrize("normalize", first(1, ["radius", None]))
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("case", CASES[1::7], ids=str)
def test_do(case, norm, normalize):
    fixed = {"criterion": "do", "norm": norm, "normalize": normalize}
    tight = case.fit(**fixed, tol=1e-6)
    # Radii are normalised to 1e-5, which the scales know of.
    grams = tight.scales_[:, None, None] * case.problem.grams
    value, _ = solve_do(grams, case.problem.Y, case.cost[:, 0], norm)
    for model in (tight, case.fit(**fixed, tol=1e-2, solver="projection", max_iter=500)):
        slack = 0.02 * model.tol  # radii are part of the criterion, and known to a share of it
        assert model.converged_
        assert value * (1 - slack) <= model.objective_ <= value * (1 + 1.02 * model.tol)
        assert model.lower_bound_ <= value * (1 + slack)
        assert model.duality_gap_ <= model.tol * model.objective_
        assert np.linalg.norm(model.weights_, norm) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("case", CASES[2:20:6], ids=str)
def test_chapelle_on_the_simplex(case, literal):
    criterion = "chapelle_literal" if literal else "chapelle"
    model = case.fit(criterion=criterion, norm=1, tol=1e-4)
    grams = model.scales_[:, None, None] * case.problem.grams
    m = len(grams)

    def value(theta):
        K = np.tensordot(theta, grams, axes=1)
        return chapelle_value(K, case.problem.Y, case.cost[:, 0], literal=literal)

    assert model.converged_
    assert model.lower_bound_ == -np.inf
    assert model.duality_gap_ == np.inf
    assert model.weights_.sum() == pytest.approx(1, rel=1e-12)
    assert value(model.weights_) == pytest.approx(model.objective_, rel=1e-6)
    draws = np.random.default_rng(case.seed).dirichlet(np.full(m, 0.6), size=3)
    for theta in [*np.eye(m), np.full(m, 1 / m), *draws]:
        assert model.objective_ <= value(theta) * (1 + 1e-4)
    # Stationary: no move of one percent of the weight pays.
    for j in range(m):
        step = 0.99 * model.weights_ + 0.01 * np.eye(m)[j]
        assert value(step) >= model.objective_ * (1 - 2e-6)


@pytest.mark.parametrize("solver", ["lbfgs", "projection"])
def test_chapelle_at_any_scale(solver):
    for case in CASES[3:20:11]:
        options = {"tol": 1e-3, "max_iter": 1000}
        model = case.fit(criterion="chapelle", solver=solver, **options)
        grams = model.scales_[:, None, None] * case.problem.grams

        def value(theta, grams=grams, case=case):
            K = np.tensordot(theta, grams, axes=1)
            return chapelle_value(K, case.problem.Y, case.cost[:, 0])

        assert model.converged_
        # Weights are given for unit radius of K + I/C, which has shrunk the ridge as well.
        assert model.weights_.any()
        best = min(
            value(scale * theta)
            for theta in (np.full(len(grams), 1 / len(grams)), *np.eye(len(grams)))
            for scale in (1e-2, 0.3, 10.0)
        )
        assert model.objective_ <= best * (1 + 1e-3)
        assert np.isfinite(decide(model, case.rows)).all()


@pytest.mark.parametrize("criterion", ["chapelle", "chapelle_literal", "do"])
def test_criteria_agree_where_no_row_is_at_a_loss(criterion):
    """With C beyond all bounds only margin and radius are left."""
    X, y = make_data(30)
    options = {"C": 1e7, "tol": 1e-4, "norm": 1}
    radius = RadiusMKLClassifier(KERNELS[:2], **options).fit(X, y)
    other = RadiusMKLClassifier(KERNELS[:2], criterion=criterion, **options).fit(X, y)
    if criterion != "do":  # which has the radii of the kernels, not of the sum
        assert other.objective_ == pytest.approx(radius.objective_, rel=1e-3)
        assert_same_kernel(radius, other, X, rtol=0.03)
    assert (other.predict(X) == y).all()


@pytest.mark.parametrize(("C", "normalize"), [(0.1, None), (1.0, "radius"), (100.0, "diagonal")])
def test_uniform_is_svc_on_the_kernel_of_unit_radius(C, normalize):
    X, y = make_data()
    model = RadiusMKLClassifier(KERNELS, norm="uniform", normalize=normalize, C=C, tol=1e-8)
    model.fit(X, y)
    np.testing.assert_allclose(model.weights_, 0.2)
    K = np.tensordot(model.weights_ * model.scales_, [k(X) for k in KERNELS], axes=1)
    r2, _ = ball_oracle(K)
    assert model.squared_radius_ == pytest.approx(r2, rel=1e-7)
    np.testing.assert_allclose(model.kernel(X), K / r2, rtol=1e-6)
    peer = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K / r2, y)
    values = peer.decision_function(K / r2)
    np.testing.assert_allclose(model.decision_function(X), values, atol=1e-3)
    assert model.converged_
    value = radius_margin_value(K, signed(model, y), np.full((50, 1), C))
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert model.lower_bound_ <= value * (1 + 1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_kernel_is_flat_learning_at_unit_radius(n_classes):
    X, y = make_data(n_classes=n_classes)
    for kernel in (1e5 * Linear(), RBF(0.7)):
        peer = MKLClassifier(kernel, normalize="radius", C=3.0, tol=1e-8).fit(X, y)
        assert enclosing_ball(peer.kernel(X)).squared_radius == pytest.approx(1, rel=1e-5)
        for norm in (None, 1, 2, "uniform"):
            model = RadiusMKLClassifier(kernel, norm=norm, C=3.0, tol=1e-8).fit(X, y)
            assert model.objective_ == pytest.approx(peer.objective_, rel=1e-5)
            assert_same_decisions(peer, model, X)
            np.testing.assert_allclose(model.kernel(X), peer.kernel(X), rtol=1e-5)


def test_uniform_is_flat_learning_with_another_cost():
    X, y = make_data()
    model = RadiusMKLClassifier(KERNELS, norm="uniform", C=5.0, tol=1e-8).fit(X, y)
    r2 = model.squared_radius_
    peer = MKLClassifier(KERNELS, norm="uniform", normalize="radius", C=5.0 / r2, tol=1e-8)
    assert_same_decisions(peer.fit(X, y), model, X)


@pytest.mark.parametrize(
    ("name", "n_classes"), [(name, 2 + k % 2) for k, name in enumerate(CONFIGURATIONS)]
)
def test_decisions_follow_from_support_rows(name, n_classes):
    X, y = make_data(n_classes=n_classes)
    model = RadiusMKLClassifier(KERNELS, **CONFIGURATIONS[name]).fit(X, y)
    new = np.random.default_rng(1).normal(size=(17, 4))
    values = model.kernel(new, X[model.support_]) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(decide(model, new), values, rtol=1e-9, atol=1e-9)
    assert model.dual_coef_.shape == (len(model.intercept_), len(model.support_))
    assert len(model.intercept_) == (1 if n_classes == 2 else 3)
    assert (np.diff(model.support_) > 0).all()
    assert (model.weights_ >= 0).all()
    expected = np.tensordot(
        model.weights_ * model.scales_ / model.squared_radius_,
        [k(new, X) for k in model.kernels_],
        axes=1,
    )
    np.testing.assert_allclose(model.kernel(new, X), expected, rtol=1e-9, atol=1e-12)
    dual_coef = coefficients(model, len(y))
    assert (dual_coef * signed(model, y) >= 0).all()
    if model.fit_intercept:
        np.testing.assert_allclose(dual_coef.sum(axis=0), 0, atol=1e-11 * np.abs(dual_coef).sum())
    else:
        assert (model.intercept_ == 0).all()
    assert model.score(X, y) > 0.55
    parts = model.weights_ * [
        np.vdot(dual_coef, s * k(X) @ dual_coef)
        for s, k in zip(model.scales_, model.kernels_, strict=True)
    ]
    np.testing.assert_allclose(model.contributions_, parts / parts.sum(), atol=1e-6)


@pytest.mark.parametrize("name", ["radius", "norm 1", "uniform", "projection", "upper", "trace"])
def test_objective_follows_from_the_attributes(name):
    """``1/2 |w|^2 + C hinge`` on the kernel as it is returned, of unit radius."""
    X, y = make_data(n_classes=3)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y))
    options = {"C": 4.0, "class_weight": {"yes": 2.0}} | CONFIGURATIONS[name]
    model = RadiusMKLClassifier(KERNELS, **options).fit(X, y, sample_weight=weight)
    dual_coef, K, Y = coefficients(model, len(y)), model.kernel(X), signed(model, y)
    cost = 4.0 * weight * np.where(y == "yes", 2.0, 1.0)
    hinge = np.maximum(0, 1 - Y * decide(model, X)).sum(axis=1)
    value = 0.5 * np.vdot(dual_coef, K @ dual_coef) + cost @ hinge
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert (np.abs(dual_coef) <= cost[:, None] * (1 + 1e-6)).all()


def test_ball_of_the_learned_kernel():
    X, y = make_data(n_classes=3)
    for name in ("radius", "norm 1", "norm 2", "uniform", "projection", "no intercept"):
        model = RadiusMKLClassifier(KERNELS, tol=1e-5, **CONFIGURATIONS[name]).fit(X, y)
        assert enclosing_ball(model.kernel(X)).squared_radius == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("name", ["radius", "norm 2", "uniform", "upper", "chapelle, norm 1", "do"])
def test_path(name):
    X, y = make_data()
    model = RadiusMKLClassifier(KERNELS, **CONFIGURATIONS[name])
    path = model.fit_path(X, y, [10.0, 0.1, 1.0])
    assert [fitted.C for fitted in path] == [10.0, 0.1, 1.0]
    assert not hasattr(model, "weights_")
    for fitted in path:
        alone = clone(model).set_params(C=fitted.C).fit(X, y)
        assert fitted.converged_
        assert fitted.objective_ == pytest.approx(alone.objective_, rel=2e-3)
        assert fitted.lower_bound_ <= alone.objective_
        assert_same_decisions(alone, fitted, X, rtol=0.1)
        assert fitted.squared_radius_ > 0


@pytest.mark.parametrize("options", [{}, {"criterion": "do", "norm": 1}, {"norm": "uniform"}])
def test_warm_start(options):
    X, y = make_data()
    model = RadiusMKLClassifier(KERNELS, warm_start=True, tol=1e-5, C=3.0, **options).fit(X, y)
    first, value = model.n_iter_, model.objective_
    model.fit(X, y)
    assert model.objective_ == pytest.approx(value, rel=1e-5)
    assert model.n_iter_ <= first
    model.set_params(C=30.0).fit(X, y)
    cold = RadiusMKLClassifier(KERNELS, tol=1e-5, C=30.0, **options).fit(X, y)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-4)
    fewer = RadiusMKLClassifier(KERNELS, tol=1e-5, C=30.0, **options).fit(X[:30], y[:30])
    model.fit(X[:30], y[:30])  # other rows: nothing to begin from
    np.testing.assert_array_equal(model.weights_, fewer.weights_)


def both_estimators():
    models = {name: RadiusMKLClassifier(KERNELS, **o) for name, o in CONFIGURATIONS.items()}
    return models | {family: RadiusKernelClassifier(family, n_starts=1) for family in FAMILIES}


@pytest.mark.parametrize("name", both_estimators())
def test_pickle_save_and_load(name, tmp_path):
    X, y = make_data(n_classes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = both_estimators()[name].fit(X, y)
    for again in (pickle.loads(pickle.dumps(model)), load(save(model, tmp_path / "model.kw"))):
        assert type(again) is type(model)
        assert set(vars(again)) == set(vars(model))
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(again.kernel(X), model.kernel(X))
        for attribute in ("squared_radius_", "objective_", "duality_gap_", "converged_", "n_iter_"):
            assert getattr(again, attribute) == getattr(model, attribute)
        assert [str(k) for k in again.kernels_] == [str(k) for k in model.kernels_]
        assert again.get_params().keys() == model.get_params().keys()
        pd.testing.assert_frame_equal(again.to_frame(), model.to_frame(), check_exact=True)
        if hasattr(model, "lower_bound_"):
            assert again.lower_bound_ == model.lower_bound_
        if hasattr(model, "kernel_"):
            np.testing.assert_array_equal(again.kernel_(X), model.kernel_(X))


def test_grid_search():
    X, y = make_data(60)
    grid = {"C": [0.1, 10.0], "criterion": ["radius", "chapelle"], "norm": [1, 2]}
    search = GridSearchCV(RadiusMKLClassifier(KERNELS), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.6
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    pipeline = make_pipeline(StandardScaler(), RadiusKernelClassifier())
    names = {"radiuskernelclassifier__C": [1.0, 10.0], "radiuskernelclassifier__family": ["width"]}
    assert GridSearchCV(pipeline, names, cv=2).fit(X, y).best_score_ > 0.6


def test_ready_matrices_in_cross_validation():
    X, y = make_data(60)
    rows = np.arange(60)[:, None]
    ready = RadiusMKLClassifier([Precomputed(k(X)) for k in KERNELS], C=3.0)
    scores = cross_val_score(ready, rows, y, cv=4)
    np.testing.assert_allclose(
        scores, cross_val_score(clone(ready).set_params(kernels=KERNELS), X, y, cv=4)
    )
    # The ball is that of the training rows alone.
    model = clone(ready).fit(rows[:40], y[:40])
    assert enclosing_ball(model.kernel(rows[:40])).squared_radius == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("name", ["radius", "do", "width", "ard"])
def test_frames(name):
    X, y = make_data(n_classes=3)
    model = both_estimators()[name]
    plain = clone(model).fit(X, y)
    for frame in (
        pd.DataFrame(X, columns=list("abcd")),
        pl.DataFrame(dict(zip("abcd", X.T, strict=True))),
    ):
        fitted = clone(model).fit(frame, y)
        np.testing.assert_array_equal(fitted.decision_function(frame), plain.decision_function(X))
        assert fitted.feature_names_in_.tolist() == list("abcd")
    named = RadiusMKLClassifier([RBF(1.0, columns=["a", "c"]), Linear(columns="b")])
    named.fit(pd.DataFrame(X, columns=list("abcd")).assign(town="Ulm"), y)
    same = RadiusMKLClassifier([RBF(1.0, columns=[0, 2]), Linear(columns=1)]).fit(X, y)
    np.testing.assert_array_equal(named.weights_, same.weights_)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("radius", "array"),
        ("radius", "pandas"),
        ("radius", "polars"),
        ("uniform", "array"),
        ("chapelle, norm 1", "array"),
        ("do", "pandas"),
        ("width", "pandas"),
        ("ard", "array"),
    ],
)
def test_rows_without_weight_do_not_move_the_ball(name, kind):
    X, y = make_data()
    X[:6] *= 40.0  # far away, so that they would
    weight = np.ones(len(y))
    weight[:6] = 0.0
    model = both_estimators()[name].set_params(tol=1e-4)
    make = {
        "array": np.asarray,
        "pandas": lambda X: pd.DataFrame(X, columns=list("abcd")),
        "polars": lambda X: pl.DataFrame(dict(zip("abcd", X.T, strict=True))),
    }[kind]
    without = clone(model).fit(make(X[6:]), y[6:])
    model.fit(make(X), y, sample_weight=weight)
    assert model.squared_radius_ == pytest.approx(without.squared_radius_, rel=1e-2)
    assert model.objective_ == pytest.approx(without.objective_, rel=2e-4)
    assert_same_decisions(without, model, make(X), rtol=1e-2)
    assert model.support_.min() >= 6
    with_them = clone(model).fit(make(X), y)
    assert with_them.objective_ > 1.05 * model.objective_


@pytest.mark.parametrize("name", both_estimators())
def test_a_weight_of_two_is_a_row_given_twice(name):
    X, y = make_data(40)
    weight = np.random.default_rng(0).integers(1, 3, len(y))
    model = both_estimators()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weighted = clone(model).fit(X, y, sample_weight=weight)
        repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))
    assert weighted.objective_ == repeated.objective_


@pytest.mark.parametrize("name", ["radius", "projection", "upper", "chapelle", "do", *FAMILIES])
def test_bits_do_not_depend_on_threads(name):
    X, y = make_data(300, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = both_estimators()[name].set_params(max_iter=8)
        one, two = (clone(model).set_params(n_jobs=k).fit(X, y) for k in (1, 2))
    np.testing.assert_array_equal(one.weights_, two.weights_)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    assert one.squared_radius_ == two.squared_radius_
    assert one.objective_ == two.objective_


def test_sparse_rows():
    X, y = make_data()
    X[np.abs(X) < 0.5] = 0
    kernels = [Linear(), RBF(1.0), Polynomial(2)]
    plain = RadiusMKLClassifier(kernels, tol=1e-6).fit(X, y)
    model = RadiusMKLClassifier(kernels, tol=1e-6).fit(sp.csr_array(X), y)
    assert model.objective_ == pytest.approx(plain.objective_, rel=3e-6)
    assert_same_decisions(plain, model, X)


def test_class_weights_are_weights_of_rows():
    X, y = make_data(n_classes=3)
    factors = {"yes": 3.0, "very": 0.5}
    weight = np.array([factors.get(label, 1.0) for label in y])
    for model in (RadiusMKLClassifier(KERNELS), RadiusKernelClassifier()):
        by_class = clone(model).set_params(class_weight=factors).fit(X, y)
        by_row = clone(model).fit(X, y, sample_weight=weight)
        assert by_class.objective_ == pytest.approx(by_row.objective_, rel=2e-3)
        balanced = clone(model).set_params(class_weight="balanced").fit(X, y)
        assert balanced.objective_ != by_class.objective_


def test_a_refused_fit_leaves_the_model_alone():
    X, y = make_data()
    model = RadiusMKLClassifier(KERNELS).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(InputError):
        model.fit(np.ones_like(X), y)
    np.testing.assert_array_equal(model.decision_function(X), before)
    with pytest.raises(InputError):
        model.set_params(criterion="do").fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)
