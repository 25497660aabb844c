"""Fits with kernels on demand: the model of stored kernels, certified."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from kernelweave import (
    MKLClassifier,
    MKLRegressor,
    NoisyLabelMKLClassifier,
    RadiusMKLClassifier,
    SumProductMKLClassifier,
)
from kernelweave.banks import build, on_demand
from kernelweave.banks.nystroem import build as large
from kernelweave.errors import InputError
from kernelweave.inner import Curvature, parts, systems
from kernelweave.kernels import RBF, Laplacian, Linear

RNG = np.random.default_rng(3)
N = 360
X = RNG.normal(size=(N, 5))
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * RNG.normal(size=N)
KERNELS = [RBF(width=0.7), RBF(width=1.5), RBF(width=3.0), Laplacian(width=5.0)]
FITS = {
    "one kernel": (MKLClassifier(KERNELS[:1], C=5.0), "two"),
    "norm 1": (MKLClassifier(KERNELS, C=2.0), "two"),
    "norm 2": (MKLClassifier(KERNELS, norm=2, C=2.0), "two"),
    "uniform": (MKLClassifier(KERNELS, norm="uniform", loss="squared_hinge"), "two"),
    "three classes": (MKLClassifier(KERNELS), "three"),
    "epsilon": (MKLRegressor(KERNELS, C=2.0), "number"),
    "huber": (MKLRegressor(KERNELS, loss="huber", norm=2), "number"),
    "quantiles": (MKLRegressor(KERNELS, loss="quantile", quantile=[0.2, 0.8]), "number"),
}
TARGETS = {
    "two": SIGNAL > 0,
    "three": np.digitize(SIGNAL, [-0.5, 0.6]),
    "number": SIGNAL,
}


@pytest.fixture
def many(monkeypatch):
    """Let hundreds of rows be too many for Gram matrices."""
    monkeypatch.setattr(large, "MANY_ROWS", 100)
    monkeypatch.setattr(large, "TOO_MANY_ROWS", 200)
    monkeypatch.setattr(parts, "_OPTIONS", replace(parts._OPTIONS, least=40, most=80))
    monkeypatch.setattr(on_demand, "OPTIONS", replace(on_demand.OPTIONS, stored_rows=50))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", FITS)
def test_same_optimum_as_stored_kernels(kind, weighted, request):
    model, target = FITS[kind]
    y = TARGETS[target]
    weight = RNG.choice([0.5, 1.0, 3.0], size=N) if weighted else None
    stored = model.fit(X, y, sample_weight=weight)
    known, predicted = (stored.objective_, stored.duality_gap_), stored.predict(X)
    request.getfixturevalue("many")
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        solve = parts.solve_by_parts
        from kernelweave.inner import solve as module

        patch.setattr(module, "solve_by_parts", lambda *a, **k: seen.append(1) or solve(*a, **k))
        model.fit(X, y, sample_weight=weight)
    assert seen  # no other solver was at work
    assert model.converged_
    assert np.isnan(model.landmark_gap_)
    assert model.duality_gap_ <= 1e-3 * model.objective_
    # Both optima lie within their brackets.
    assert model.objective_ - model.duality_gap_ <= known[0] * (1 + 1e-9)
    assert known[0] - known[1] <= model.objective_ * (1 + 1e-9)
    if target == "number":
        assert_allclose(model.predict(X), predicted, atol=0.1)
    else:
        assert (model.predict(X) == predicted).mean() > 0.97


M = 2000
WIDE = np.random.default_rng(4).normal(size=(M, 5))
WAVE = np.sin(2 * WIDE[:, 0]) + WIDE[:, 1] * WIDE[:, 2] + 0.3 * RNG.normal(size=M)
NARROW = [RBF(width=0.2), RBF(width=0.1)]  # the ball touches nearly all points
OTHERS = {
    "radius": RadiusMKLClassifier(KERNELS),
    "radius, all points": RadiusMKLClassifier(NARROW, normalize="trace"),
    "radius, upper bound": RadiusMKLClassifier(KERNELS, radius="upper"),
    "radius, three classes": RadiusMKLClassifier(KERNELS[1:], C=3.0),
    "do": RadiusMKLClassifier(KERNELS[:2], criterion="do", norm=1),
    "noise": NoisyLabelMKLClassifier(KERNELS, lam=1e-3),
    "noise, scaled": NoisyLabelMKLClassifier(KERNELS, lam=0.3, noise_level=0.3),
    "noise, three classes": NoisyLabelMKLClassifier(KERNELS[1:]),
    "structure": SumProductMKLClassifier(
        RBF(width=1.0, columns=[0]) * RBF(width=1.0, columns=[1]) + KERNELS[0] + Linear()
    ),
    "structure, three classes": SumProductMKLClassifier((KERNELS[0] + KERNELS[1]) * KERNELS[3]),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_methods_have_the_same_optimum(kind, many, monkeypatch):
    target = np.digitize(WAVE, [-0.5, 0.6]) if "three" in kind else WAVE > 0
    made, weights = [], np.where(WIDE[:, 3] > 1.0, 0.0, 1.0)
    for rows in (10**6, 100):  # from which on kernels are computed
        monkeypatch.setattr(large, "TOO_MANY_ROWS", rows)
        monkeypatch.setattr(large, "MANY_ROWS", rows)
        made.append(clone(OTHERS[kind]).fit(WIDE, target, sample_weight=weights))
    stored, computed = made
    assert stored.objective_ != computed.objective_  # found another way
    for model, other in (made, made[::-1]):
        assert model.converged_
        assert model.duality_gap_ <= 1.01e-3 * model.objective_
        assert model.objective_ - model.duality_gap_ <= other.objective_ * (1 + 1e-9)
    assert (stored.predict(WIDE) == computed.predict(WIDE)).mean() > 0.98


def test_the_best_case_of_noisy_labels(many, monkeypatch):
    found = []
    for rows in (10**6, 100):
        monkeypatch.setattr(large, "TOO_MANY_ROWS", rows)
        monkeypatch.setattr(large, "MANY_ROWS", rows)
        found.append(NoisyLabelMKLClassifier(KERNELS, robust="best").fit(X, SIGNAL > 0))
    assert found[0].objective_ == pytest.approx(found[1].objective_, rel=1e-3)


@pytest.mark.parametrize("kind", ["radius", "noise", "structure"])
def test_other_methods_without_folds(kind, many):
    model = clone(OTHERS[kind]).set_params(calibration="sigmoid").fit(X, SIGNAL > 0)
    assert ((model.predict_proba(X)[:, 1] > 0.5) == (SIGNAL > 0)).mean() > 0.9


@pytest.mark.parametrize("kind", ["radius, all points", "noise", "structure"])
def test_other_methods_do_not_depend_on_threads(kind, many):
    one, two = (clone(OTHERS[kind]).set_params(n_jobs=k).fit(X, SIGNAL > 0) for k in (1, 2))
    assert_array_equal(one.weights_, two.weights_)
    assert_array_equal(one.dual_coef_, two.dual_coef_)


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("kind", ["two", "three", "number"])
@pytest.mark.parametrize("norm", [1, 2, "uniform"])
def test_smooth_losses_multiply_by_the_whole_matrix(kind, norm, held, many, monkeypatch):
    number = kind == "number"
    model = (
        MKLRegressor(KERNELS, norm=norm, loss="square", C=3.0, target_scale=None)
        if number
        else MKLClassifier(KERNELS, norm=norm, loss="logistic")
    )
    y = TARGETS[kind]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "MANY_ROWS", N + 1)
        stored = clone(model).fit(X, y)
    options = replace(on_demand.OPTIONS, whole_bytes=16.0 if held else np.inf)
    monkeypatch.setattr(build, "ON_DEMAND", options)
    monkeypatch.setattr(systems, "MAX_FREE", 100)
    seen, whole, at = [], on_demand.ComputedSum._compute, on_demand.ComputedSum.product_at
    monkeypatch.setattr(
        on_demand.ComputedSum, "_compute", lambda *args: seen.append("whole") or whole(*args)
    )
    monkeypatch.setattr(
        on_demand.ComputedSum, "product_at", lambda *args: seen.append("product") or at(*args)
    )
    model.fit(X, y)
    assert ("whole" in seen) is held
    assert "product" in seen
    assert model.converged_
    assert np.isnan(model.landmark_gap_)
    assert model.duality_gap_ <= 1e-3 * model.objective_
    assert model.objective_ - model.duality_gap_ <= stored.objective_ * (1 + 1e-9)
    assert stored.objective_ - stored.duality_gap_ <= model.objective_ * (1 + 1e-9)
    if number:
        assert_allclose(model.predict(X), stored.predict(X), atol=0.1)
    else:
        assert_allclose(model.predict_proba(X), stored.predict_proba(X), atol=0.05)


def test_intervals_from_one_matrix(request, monkeypatch):
    model = MKLRegressor(KERNELS, loss="square", intervals="jackknife+", norm="uniform")
    stored = clone(model).fit(X, SIGNAL).predict_interval(X[:50])
    request.getfixturevalue("many")
    columns, multiply = [], on_demand.ComputedSum.exact_product
    monkeypatch.setattr(
        on_demand.ComputedSum,
        "exact_product",
        lambda self, V: columns.append(V.shape[1]) or multiply(self, V),
    )
    computed = clone(model).fit(X, SIGNAL).predict_interval(X[:50])
    assert_allclose(computed, stored, atol=1e-9)
    assert max(columns, default=1) == 1  # products with n columns would take minutes


def test_threads_do_not_change_a_bit(many):
    fits = [MKLClassifier(KERNELS, C=2.0, n_jobs=n_jobs).fit(X, SIGNAL > 0) for n_jobs in (1, 2, 3)]
    for other in fits[1:]:
        assert_array_equal(fits[0].weights_, other.weights_)
        assert_array_equal(fits[0].dual_coef_, other.dual_coef_)
        assert fits[0].duality_gap_ == other.duality_gap_


def test_smooth_losses_of_more_rows_keep_landmarks(many, monkeypatch):
    monkeypatch.setattr(large, "WHOLE_ROWS", N - 1)
    model = MKLClassifier([RBF(width=1.5)], loss="logistic").fit(X, SIGNAL > 0)
    assert np.isfinite(model.landmark_gap_)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (MKLClassifier(KERNELS[1:3]), "two"),
        (MKLClassifier(KERNELS[1:3], loss="logistic"), "three"),
        (MKLRegressor(KERNELS[1:3], loss="square"), "number"),
    ],
)
def test_landmarks_in_place_of_exact_kernels(model, target, many, monkeypatch):
    exact = clone(model).fit(X, TARGETS[target])
    assert np.isnan(exact.landmark_gap_)
    fits = [clone(model).set_params(n_landmarks=k).fit(X, TARGETS[target]) for k in (10, 40, 160)]
    for found, k in zip(fits, (10, 40, 160), strict=True):
        assert [len(rows) for rows in found._function.rows] == [k] * len(found._function.rows)
        assert found.landmark_gap_ <= 1.01e-3 * found.objective_
        # A function of landmarks is one of the exact kernels.
        assert found.objective_ >= exact.objective_ - exact.duality_gap_
        assert found.objective_ - found.duality_gap_ <= exact.objective_
    distances = [found.objective_ - exact.objective_ for found in fits]
    assert distances[0] > distances[1] > distances[2]
    # Fewer rows than are many: a Gram matrix.
    monkeypatch.setattr(large, "MANY_ROWS", N + 1)
    few = clone(model).set_params(n_landmarks=10).fit(X, TARGETS[target])
    assert np.isnan(few.landmark_gap_)


def test_held_out_rows_and_warm_starts(many):
    model = MKLClassifier(KERNELS, calibration="sigmoid", warm_start=True).fit(X, SIGNAL > 0)
    assert model.predict_proba(X).shape == (N, 2)
    before = model.n_iter_
    assert model.fit(X, SIGNAL > 0).n_iter_ <= before


def test_coefficients_that_follow_a_step_prove_the_optimum(many, monkeypatch):
    bundles = importlib.import_module("kernelweave.solvers.newton_bundle")
    follow, ends = bundles._Bundle._follow, []

    def noted(self, *args):
        found = follow(self, *args)
        ends.append(found)
        return found

    models = [MKLClassifier(KERNELS, C=C) for C in (0.5, 2.0, 10.0)]
    monkeypatch.setattr(bundles._Bundle, "_follow", noted)
    quick = [clone(model).fit(X, SIGNAL > 0) for model in models]
    assert any(ends)  # some fit ended there
    monkeypatch.setattr(bundles._Bundle, "_follow", lambda self, *args: False)
    plain = [clone(model).fit(X, SIGNAL > 0) for model in models]
    for one, other in zip(quick, plain, strict=True):
        assert one.n_iter_ <= other.n_iter_
        assert one.duality_gap_ <= 1e-3 * one.objective_
        assert one.objective_ - one.duality_gap_ <= other.objective_
        assert other.objective_ - other.duality_gap_ <= one.objective_


def test_products_of_structures_that_single_precision_does_not_hold(many, monkeypatch):
    monkeypatch.setattr(build, "_SMALL", 100)
    model = SumProductMKLClassifier(Linear() * Linear(columns=[0]), normalize=None)
    with pytest.raises(InputError, match="products of its kernels overflow"):
        model.fit(1e11 * X, SIGNAL > 0)


def test_coefficients_that_overflow_are_not_followed(many, monkeypatch):
    """The bank on demand predicts them after a step by iterations, which may lose all digits."""
    model = MKLRegressor(KERNELS, loss="square", C=10.0)
    expected = clone(model).fit(X, SIGNAL)
    asked = []

    def predict(self, dual_coef, step):
        asked.append(1)
        return np.full_like(dual_coef, np.nan)

    monkeypatch.setattr(Curvature, "predict", predict)
    found = model.fit(X, SIGNAL)
    assert asked
    assert found.converged_
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-3)
