"""Widths learned by the radius criterion."""

import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from kernelweave import (
    ARD,
    RBF,
    RadiusKernelClassifier,
    RadiusMKLClassifier,
    enclosing_ball,
)
from kernelweave._memory import parse_bytes
from kernelweave._threads import threads
from kernelweave.errors import MemoryBudgetError
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
    radius_margin_value,
)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Spare these small arrays the threads, which wait for each other."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with threads(1):
        yield


def test_path_of_learned_widths():
    X, y = make_data(n_classes=3)
    model = RadiusKernelClassifier(n_starts=1)
    path = model.fit_path(X, y, [10.0, 0.1])
    assert [fitted.C for fitted in path] == [10.0, 0.1]
    assert not hasattr(model, "weights_")
    for fitted in path:
        alone = clone(model).set_params(C=fitted.C).fit(X, y)
        np.testing.assert_array_equal(fitted.decision_function(X), alone.decision_function(X))
        assert fitted.kernel_ == alone.kernel_


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_learned_gaussians(family, n_classes):
    X, y = make_data(60, n_classes)
    model = RadiusKernelClassifier(family, C=5.0).fit(X, y)
    assert model.converged_
    new = np.random.default_rng(1).normal(size=(9, 4))
    written = model.kernel_(new, X)
    np.testing.assert_allclose(model.kernel(new, X) * model.squared_radius_, written, rtol=1e-9)
    np.testing.assert_allclose(model.kernel_.diag(X), 1.0, rtol=1e-12)
    K = model.kernel_(X)
    assert enclosing_ball(K).squared_radius == pytest.approx(model.squared_radius_, rel=1e-5)
    Y = signed(model, y)
    exact = radius_margin_value(K, Y, np.full(Y.shape, 5.0))
    assert exact * (1 - 1e-8) <= model.objective_ <= exact * (1 + 1e-5)
    values = model.kernel(new, X[model.support_]) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(decide(model, new), values, rtol=1e-9, atol=1e-9)
    dual_coef = coefficients(model, len(y))
    hinge = np.maximum(0, 1 - Y * decide(model, X)).sum()
    value = 0.5 * np.vdot(dual_coef, model.kernel(X) @ dual_coef) + 5.0 * hinge
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert model.weights_.sum() == pytest.approx(1)
    assert (model.scales_ == 1).all()
    assert model.duality_gap_ == np.inf
    assert type(model.kernel_) is {"width": RBF, "ard": ARD}.get(family, type(model.kernel_))
    assert len(model.kernels_) == (3 if family == "mixture" else 1)
    assert model.score(X, y) > 0.8
    again = RadiusKernelClassifier(family, C=5.0).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_ard_beats_one_width_and_one_width_a_fixed_one():
    X, y = make_data(60)
    fixed = RadiusMKLClassifier(RBF(1.0), C=5.0, tol=1e-5).fit(X, y)
    one = RadiusKernelClassifier("width", C=5.0).fit(X, y)
    ard = RadiusKernelClassifier("ard", C=5.0).fit(X, y)
    assert ard.objective_ < one.objective_ < fixed.objective_
    # The learned kernel, given as it is, has the same value.
    for model in (one, ard):
        again = RadiusMKLClassifier(model.kernel_, C=5.0, tol=1e-6).fit(X, y)
        assert again.objective_ == pytest.approx(model.objective_, rel=1e-4)
        assert_same_decisions(model, again, X, rtol=1e-2)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_constant_column_changes_nothing(family):
    X, y = make_data()
    plain = RadiusKernelClassifier(family, n_starts=1).fit(X, y)
    more = np.insert(X, 2, 7.0, axis=1)
    model = RadiusKernelClassifier(family, n_starts=1).fit(more, y)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-3)
    assert_same_decisions(plain, RadiusKernelClassifier(family, n_starts=1).fit(X, y), X, 1e-9)
    if family == "ard":
        assert np.isinf(model.kernel_.widths[2])
        assert np.isfinite(np.delete(model.kernel_.widths, 2)).all()
        other = more.copy()
        other[:, 2] = -1e5  # it does not look there
        np.testing.assert_allclose(model.decision_function(other), model.decision_function(more))


def test_width_without_intercept_and_with_one_class_of_one_row():
    X, y = make_data(30)
    y = np.where(np.arange(30) == 3, "alone", "many")
    for family in FAMILIES:
        model = RadiusKernelClassifier(family, fit_intercept=False, n_starts=1).fit(X, y)
        assert (model.intercept_ == 0).all()
        assert np.isfinite(model.decision_function(X)).all()
    assert RadiusMKLClassifier(KERNELS, C=100.0).fit(X, y).score(X, y) == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_the_memory_a_width_needs_is_what_the_refusal_names(family):
    X, y = make_data(500)
    with pytest.raises(MemoryBudgetError) as caught:
        RadiusKernelClassifier(family, memory_limit="1MB").fit(X, y)
    limit = str(caught.value).split("memory_limit='")[1].split("'")[0]
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            RadiusKernelClassifier(family, memory_limit=limit, max_iter=15).fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.5 * parse_bytes(limit) <= peak <= parse_bytes(limit)
