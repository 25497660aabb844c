"""Losses of the flat estimators: probabilities, several labels, quantiles."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from kernelweave import (
    Linear,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
)
from kernelweave.banks import row_source
from kernelweave.banks.nystroem import build as large
from kernelweave.errors import InputError
from kernelweave.io import load, save
from loss_cases import (
    KERNELS,
    MANY,
    MANY_SCORE,
    NORMS,
    RANDOM,
    SCORE,
    SMOOTH,
    WEIGHT,
    N,
    X,
    quantile,
)
from quick import first

TWO = np.where(SCORE > 0.3, "yes", "no")
THREE = np.digitize(SCORE, [-0.7, 0.8])
LABELS = np.column_stack([SCORE > 0, X[:, 2] + X[:, 3] > 0.5, X[:, 0] > 0]).astype(int)
TARGETS = {"two": TWO, "three": THREE, "labels": LABELS}


def logistic(**options):
    return MKLClassifier(KERNELS, loss="logistic", **options)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", TARGETS)
def test_fits_are_certified(kind, norm):
    y = TARGETS[kind]
    model = logistic(norm=norm, tol=1e-6, C=3.0).fit(X, y, WEIGHT)
    assert model.converged_
    assert 0 <= model.duality_gap_ <= 1e-6 * model.objective_
    # The objective is that of the model: its norm, and its losses.
    F = np.atleast_2d(model.decision_function(X).T).T
    log_proba = model.predict_log_proba(X)
    if kind == "labels":
        own = -np.logaddexp(0, np.where(y > 0, -F, F)).sum(axis=1)
        assert_allclose(log_proba, -np.logaddexp(0, -F), rtol=1e-12)
    else:
        codes = np.searchsorted(model.classes_, y)
        own = log_proba[np.arange(N), codes]
        assert_allclose(np.exp(log_proba).sum(axis=1), 1.0, rtol=1e-14)
    block = model.kernel(X[model.support_])
    squared_norm = np.einsum("oi,ik,ok->", model.dual_coef_, block, model.dual_coef_)
    objective = 0.5 * squared_norm - 3.0 * WEIGHT @ own
    assert objective == pytest.approx(model.objective_, rel=1e-5)
    assert len(model.support_) == N  # every row has a coefficient


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_expected_and_true_shares_agree(kind, class_weight):
    y = TARGETS[kind]
    model = logistic(class_weight=class_weight).fit(X, y, WEIGHT)
    proba = model.predict_proba(X)
    if kind == "labels":
        true, found = y, proba
    elif kind == "two":
        true, found = (y == "yes")[:, None], proba[:, 1:]
    else:
        true, found = y[:, None] == model.classes_, proba
    for o in range(true.shape[1]):
        weight = WEIGHT
        if class_weight == "balanced":
            codes = true[:, o] if kind != "three" else np.searchsorted(model.classes_, y)
            counts = np.bincount(codes.astype(int), WEIGHT)
            weight = WEIGHT * (WEIGHT.sum() / (len(counts) * counts))[codes.astype(int)]
        assert weight @ found[:, o] == pytest.approx(weight @ true[:, o], rel=1e-11)


@pytest.mark.parametrize("kind", ["two", "three"])
def test_one_linear_kernel_is_logistic_regression(kind):
    y, C = TARGETS[kind], 0.7
    model = MKLClassifier([Linear()], loss="logistic", normalize=None, C=C, tol=1e-9).fit(X, y)
    other = LogisticRegression(C=C, tol=1e-10, max_iter=1000).fit(X, y)
    ours, theirs = model.decision_function(X), other.decision_function(X)
    if kind == "three":  # functions of all classes are determined up to a constant
        ours, theirs = (f - f.mean(axis=1, keepdims=True) for f in (ours, theirs))
    reach = np.sqrt(2 * model.duality_gap_) * 2 * np.linalg.norm(X, axis=1).max()
    assert_allclose(ours, theirs, atol=reach + 1e-6)
    assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=reach + 1e-6)


def test_swapped_labels_flip_the_function():
    model = logistic(tol=1e-8).fit(X, TWO)
    other = logistic(tol=1e-8).fit(X, np.where(TWO == "yes", "a", "b"))
    assert_allclose(other.decision_function(X), -model.decision_function(X), atol=1e-3)
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-7)


def test_scaled_kernels_and_cost():
    options = {"loss": "logistic", "normalize": None, "tol": 1e-9}
    one = MKLClassifier(KERNELS, C=2.0, **options).fit(X, TWO)
    ten = MKLClassifier([10.0 * kernel for kernel in KERNELS], C=0.2, **options).fit(X, TWO)
    assert ten.objective_ == pytest.approx(one.objective_ / 10.0, rel=1e-7)
    assert_allclose(ten.decision_function(X), one.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("y", [TWO, THREE, SCORE], ids=["two", "three", "quantile"])
def test_weights_are_repetitions(y):
    counts = RANDOM.integers(1, 4, size=N)
    if y is SCORE:
        model = MKLRegressor(KERNELS, loss="quantile", quantile=(0.2, 0.8))
    else:
        model = logistic()
    weighted = model.fit(X, y, counts).intercept_.copy()
    coefficients = model.weights_.copy()
    model.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert (model.weights_ == coefficients).all()
    assert (model.intercept_ == weighted).all()


@pytest.mark.parametrize("kind", TARGETS)
def test_paths_warm_starts_and_files(kind, tmp_path):
    y = TARGETS[kind]
    path = logistic(tol=1e-5).fit_path(X, y, [0.1, 1.0, 10.0])
    for model in path:
        alone = logistic(tol=1e-5, C=model.C).fit(X, y)
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-5)
    again = logistic(tol=1e-5, warm_start=True).fit(X, y)
    first = again.n_iter_
    again.fit(X, y)
    assert again.n_iter_ <= first
    save(path[1], tmp_path / "model.kw")
    loaded = load(tmp_path / "model.kw")
    assert (loaded.predict(X) == path[1].predict(X)).all()
    assert (loaded.predict_proba(X) == path[1].predict_proba(X)).all()
    chosen = MKLClassifierCV(KERNELS, loss="logistic", Cs=[0.1, 1.0], scoring="neg_log_loss")
    if kind != "labels":
        assert chosen.fit(X, y).C_ in (0.1, 1.0)
        assert chosen.predict_proba(X).shape == (N, len(np.unique(y)))


@pytest.fixture
def as_many_rows(monkeypatch):
    """Return a function after which a few rows count as many."""

    def count():
        monkeypatch.setattr(large, "MANY_ROWS", 10)
        monkeypatch.setattr(large, "_MOST_FEATURES", 1.0)
        monkeypatch.setattr(row_source, "_BLOCK_BYTES", 20_000)

    return count


MANY_TARGETS = {
    "two": MANY_SCORE > 0.3,
    "three": np.digitize(MANY_SCORE, [-0.7, 0.8]),
    "labels": np.column_stack([MANY_SCORE > 0, MANY[:, 2] > 0.3]).astype(int),
}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("norm", first(1, [1.0, 2.0, "uniform"]))
@pytest.mark.parametrize("C", first(1, [5.0, 0.1]))
def test_nystroem_features_reach_the_same_optimum(as_many_rows, kind, norm, C):
    y, weight = MANY_TARGETS[kind], np.random.default_rng(3).uniform(0.2, 2.0, size=300)
    model = MKLClassifier(SMOOTH, loss="logistic", norm=norm, C=C, tol=1e-4)
    exact = clone(model).fit(MANY, y, weight)
    as_many_rows()
    model.fit(MANY, y, weight)
    assert model.converged_
    assert np.isfinite(model.landmark_gap_)
    assert model.objective_ - model.duality_gap_ <= exact.objective_ * (1 + 1e-9)
    assert exact.objective_ - exact.duality_gap_ <= model.objective_ * (1 + 1e-9)
    assert_allclose(model.predict_proba(MANY), exact.predict_proba(MANY), atol=0.05)
    parts = clone(model).fit(da.from_array(MANY, chunks=(90, 4)), y, weight)
    assert parts.objective_ == pytest.approx(model.objective_, rel=2e-4)


def test_more_than_3000_rows_of_exact_kernels(monkeypatch):
    """Conjugate gradients find the same optimum as factorisations."""
    for y in (TWO, THREE):
        exact = logistic(tol=1e-6).fit(X, y)
        monkeypatch.setattr("kernelweave.inner.systems.MAX_FREE", 10)
        model = logistic(tol=1e-6).fit(X, y)
        monkeypatch.undo()
        assert model.converged_
        assert model.objective_ == pytest.approx(exact.objective_, rel=2e-6)


def test_without_an_intercept():
    for y in (TWO, THREE):
        model = logistic(fit_intercept=False, tol=1e-7).fit(X, y)
        assert model.converged_
        assert not model.intercept_.any()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("C", [1e-8, 1e-3, 1e4, 1e6])
def test_extreme_costs(C):
    for y in (TWO, THREE):
        model = logistic(C=C, norm="uniform").fit(X, y)
        assert model.converged_
        assert np.isfinite(model.predict_log_proba(X)).all()


def test_probabilities_are_named_where_they_are_missing():
    model = MKLClassifier(KERNELS).fit(X, TWO)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="loss='logistic'"):
        model.predict_proba  # noqa: B018
    assert hasattr(logistic(), "predict_log_proba")


def test_a_class_without_weight_is_refused():
    weight = np.where(THREE == 1, 0.0, 1.0)
    with pytest.raises(InputError, match=r"sample_weight: all rows of class 1 have weight zero"):
        logistic().fit(X, THREE, weight)
    MKLClassifier(KERNELS).fit(X, THREE, weight)  # margins need no probabilities


def test_a_label_of_one_value():
    labels = np.column_stack([LABELS[:, 0], np.ones(N, dtype=int)])
    with pytest.warns(UserWarning, match="label 1 is the same in all rows"):
        model = logistic().fit(X, labels)
    assert (model.predict(X)[:, 1] == 1).all()
    assert model.converged_


def test_squared_hinge_is_between():
    model = MKLClassifier(KERNELS, loss="squared_hinge", tol=1e-6).fit(X, TWO)
    margin = np.where(TWO == "yes", 1, -1) * model.decision_function(X)
    block = model.kernel(X[model.support_])
    squared_norm = model.dual_coef_[0] @ block @ model.dual_coef_[0]
    losses = 0.5 * (np.maximum(0, 1 - margin) ** 2).sum()
    assert model.objective_ == pytest.approx(0.5 * squared_norm + losses, rel=1e-5)


def test_other_parameters_are_ignored():
    one, two = (quantile(0.4, epsilon=e).fit(X, SCORE) for e in (0.0, 5.0))
    assert (one.predict(X) == two.predict(X)).all()
    one, two = (MKLRegressor(KERNELS, quantile=q).fit(X, SCORE) for q in (0.1, (0.9, 0.1)))
    assert (one.predict(X) == two.predict(X)).all()
