"""Fits by features of landmarks: the same optimum, and bounds that hold for the exact kernels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from kernelweave import RBF, Linear, MKLClassifier, MKLRegressor, Polynomial, _core, io, report
from kernelweave.banks import row_source as source
from kernelweave.banks.nystroem import build as large
from kernelweave.banks.nystroem.blocks import LocalBlocks
from kernelweave.banks.nystroem.build import make_feature_bank
from kernelweave.cli.console import certificate, summarize
from kernelweave.datasets import make_additive
from kernelweave.inner import solve_inner
from kernelweave.inner.curvature import feature_hessian
from kernelweave.losses import Hinge, Smoothed
from kernelweave.plots import plot_history
from quick import first


@pytest.fixture
def many(monkeypatch):
    """Return a function that fits twice: rows counted as many, and as few."""

    def both(model, X, y, **options):
        plain = clone(model).fit(X, y, **options)
        monkeypatch.setattr(large, "MANY_ROWS", 10)
        monkeypatch.setattr(large, "_MOST_FEATURES", 1.0)
        monkeypatch.setattr(source, "_BLOCK_BYTES", 20_000)
        return clone(model).fit(X, y, **options), plain

    return both


def table(n=240, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    cuts = np.quantile(f, np.linspace(0, 1, classes + 1)[1:-1])
    return X, np.searchsorted(cuts, f), f


KERNELS = [RBF(width=w, columns=[c]) for c in range(4) for w in (0.7, 1.5, 3.0)] + [Linear()]


def brackets(ours, other):
    """The bounds of two fits of one problem must overlap."""
    lower = ours.objective_ - ours.duality_gap_
    assert lower <= other.objective_ * (1 + 1e-9)
    assert other.objective_ - other.duality_gap_ <= ours.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, "uniform"])
@pytest.mark.parametrize("C", first(1, [1.0, 0.1, 50.0]))
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers_reach_the_same_optimum(many, norm, C, classes):
    X, y, _ = table(classes=classes)
    ours, plain = many(MKLClassifier(KERNELS, norm=norm, C=C, tol=1e-4), X, y)
    assert ours.converged_
    brackets(ours, plain)
    assert ours.objective_ == pytest.approx(plain.objective_, rel=2e-4)
    assert ours.landmark_gap_ <= ours.duality_gap_ * (1 + 1e-9) + 1e-9 * ours.objective_
    # f is unique, and within sqrt(2 gap k(x, x)) of the optimum
    reach = np.sqrt(2 * (ours.duality_gap_ + plain.duality_gap_) * 4.0)
    difference = (ours.decision_function(X) - ours.intercept_) - (
        plain.decision_function(X) - plain.intercept_
    )
    assert np.abs(difference).max() <= 2 * reach + 1e-6


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "huber", "square"])
@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_regressors_reach_the_same_optimum(many, loss, norm):
    X, _, f = table()
    ours, plain = many(MKLRegressor(KERNELS, norm=norm, loss=loss, C=3.0, tol=1e-4), X, f)
    assert ours.converged_
    brackets(ours, plain)
    assert ours.objective_ == pytest.approx(plain.objective_, rel=2e-4)
    np.testing.assert_allclose(ours.predict(X), plain.predict(X), atol=0.05)


def test_without_an_intercept_and_with_weights(many):
    X, y, _ = table()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    model = MKLClassifier(KERNELS, fit_intercept=False, tol=1e-4, class_weight="balanced")
    ours, plain = many(model, X, y, sample_weight=weight)
    brackets(ours, plain)
    assert ours.objective_ == pytest.approx(plain.objective_, rel=2e-4)
    assert ours.intercept_ == 0.0


def test_the_objective_is_that_of_the_predictor(many):
    X, y, _ = table()
    ours, _ = many(MKLClassifier(KERNELS, norm=2.0, tol=1e-4), X, y)
    sign = np.where(y == 1, 1.0, -1.0)
    loss = np.maximum(0.0, 1.0 - sign * ours.decision_function(X)).sum()
    function = ours._function
    squared = np.array(
        [
            (c.T @ ours.kernels_[j].block(P, P) @ c).item() / ours.scales_[j]
            for j, P, c in zip(function.which, function.rows, function.coefs, strict=True)
        ]
    )
    # The best weights for given norms, at p = 2: (sum norms^(4/3))^(3/2) / 2.
    penalty = 0.5 * (squared ** (2 / 3)).sum() ** 1.5
    assert penalty + loss == pytest.approx(ours.objective_, rel=1e-6)


def test_predictions_do_not_depend_on_threads_or_batches(many, monkeypatch):
    X, y, _ = table()
    ours, _ = many(MKLClassifier(KERNELS, n_jobs=1), X, y)
    again = MKLClassifier(KERNELS, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(ours.weights_, again.weights_)
    np.testing.assert_array_equal(ours.decision_function(X), again.decision_function(X))
    monkeypatch.setattr("kernelweave.estimators.base._BLOCK_BYTES", 8 * 40 * 7)
    np.testing.assert_allclose(ours.decision_function(X), again.decision_function(X), atol=1e-12)


def test_in_a_file_as_in_memory(many, monkeypatch):
    monkeypatch.setattr("kernelweave.banks.row_source.check_memory", lambda *args: None)
    X, y, _ = table()
    ours, _ = many(MKLClassifier(KERNELS), X, y)
    outside = MKLClassifier(KERNELS, memory_limit=5000.0).fit(X, y)
    np.testing.assert_array_equal(ours.weights_, outside.weights_)


def test_where_blocks_end_does_not_show(many, monkeypatch):
    """Local files, other files and the parts of a Dask table cut the same rows differently."""
    X, y, _ = table(n=1500)
    model = MKLClassifier(KERNELS, C=1.0)
    first, _ = many(model, X, y)
    for size in (7_000, 1e9):
        monkeypatch.setattr(source, "_BLOCK_BYTES", size)
        other = clone(model).fit(X, y)
        assert other.objective_ == pytest.approx(first.objective_, rel=1e-9)
        np.testing.assert_allclose(
            other.decision_function(X), first.decision_function(X), rtol=0, atol=1e-6
        )


def test_a_path_over_C(many):
    X, y, _ = table()
    many(MKLClassifier(KERNELS), X, y)
    model = MKLClassifier(KERNELS, tol=1e-4)
    for fitted, C in zip(model.fit_path(X, y, [0.1, 10.0]), (0.1, 10.0), strict=True):
        brackets(fitted, MKLClassifier(KERNELS, tol=1e-4, C=C).fit(X, y))


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_a_path_is_refined_as_a_fit_is(many, monkeypatch, norm):
    """Landmarks that leave out too much are looked for again, once for the whole path."""
    X, y, _ = table()
    many(MKLClassifier(KERNELS), X, y)
    monkeypatch.setattr(
        large, "_options", lambda tol, most=500: {"tol": 10 * tol, "max_rank": most}
    )
    made = []
    monkeypatch.setattr(
        MKLClassifier,
        "_bank",
        lambda *args, plain=MKLClassifier._bank: made.append(args[2]) or plain(*args),
    )
    model = MKLClassifier(KERNELS, norm=norm)
    alone = clone(model).set_params(C=10.0).fit(X, y)
    assert made == [10.0, 1000.0]
    path = model.fit_path(X, y, [0.1, 10.0, 1.0])
    assert made == [10.0, 1000.0] * 2
    assert alone.converged_
    assert all(fitted.converged_ for fitted in path)
    assert all(fitted.duality_gap_ <= 1e-3 * fitted.objective_ for fitted in path)
    brackets(path[1], alone)


def test_landmarks_that_leave_something_out_say_so(many, monkeypatch):
    X, y, _ = table()
    many(MKLClassifier(KERNELS), X, y)
    monkeypatch.setattr(large, "TOO_MANY_ROWS", 100)
    monkeypatch.setattr(large, "ON_DEMAND_ROWS", 0)
    monkeypatch.setattr(large, "_MOST_LANDMARKS", 20)
    model = MKLClassifier([RBF(width=1.0)]).fit(X, y)
    assert model.converged_
    assert model.landmark_gap_ <= 1e-3 * model.objective_
    assert model.duality_gap_ > model.landmark_gap_
    monkeypatch.setattr(large, "MANY_ROWS", 10**9)
    exact = MKLClassifier([RBF(width=1.0)]).fit(X, y)
    brackets(model, exact)
    assert model.objective_ > exact.objective_
    # The bound for the exact kernels says next to nothing, so it is no certificate anywhere.
    assert model.duality_gap_ > 0.05 * model.objective_
    near = f"{model.landmark_gap_ / model.objective_:.1e}"
    name, text = certificate(summarize(model))
    assert name == "objective"
    assert f"approximate kernels, not certified: within {near} of the optimum of the Nyst" in text
    page = report.to_html(model, X, y, cv=None)
    assert "certified gap" not in page
    assert "with approximate kernels, not certified: the objective" in page
    assert "Duality gap of the Nystroem problem" in page
    title = plot_history(model, Figure().subplots()).get_title(loc="left")
    assert title.startswith("approximate kernels, not certified")
    assert "not certified" in model._repr_html_()


def test_too_few_solves_are_said_to_be(many):
    X, y, _ = table()
    many(MKLClassifier(KERNELS), X, y)
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        MKLClassifier(KERNELS, C=100.0, tol=1e-6, max_iter=1).fit(X, y)


def test_model_files_keep_landmarks(many, tmp_path):
    X, y, _ = table(classes=3)
    ours, _ = many(MKLClassifier(KERNELS), X, y)
    io.save(ours, tmp_path / "model.kw")
    back = io.load(tmp_path / "model.kw")
    np.testing.assert_array_equal(back.decision_function(X), ours.decision_function(X))
    assert back.landmark_gap_ == ours.landmark_gap_


@pytest.fixture
def passes(monkeypatch):
    """Count readings of features, in units of all rows; an epoch of coordinate descent is one."""
    count = {"rows": 0.0}
    for name in ("times", "sums", "gram"):
        plain = getattr(LocalBlocks, name)

        def counted(self, *args, plain=plain, **options):
            count["rows"] += self.n_samples
            return plain(self, *args, **options)

        monkeypatch.setattr(LocalBlocks, name, counted)
    descend = _core.descend_box

    def counted_descent(block, *args, **options):
        count["rows"] += len(block)
        return descend(block, *args, **options)

    monkeypatch.setattr(_core, "descend_box", counted_descent)
    return count


def test_weights_cost_few_passes_beyond_one_svm(passes):
    """Features are read in passes, and the number of these is what a fit of many rows costs."""
    X, y = make_additive(12_000, 8, random_state=0)
    kernels = [RBF(width=w, columns=[c]) for c in range(8) for w in (1.0, 2.0, 4.0)]
    bank = make_feature_bank(kernels, X, tol=1e-3)
    target, cost = np.where(y == y.max(), 1.0, -1.0)[:, None], np.ones((len(y), 1))
    solve_inner(Hinge(), bank.combine(np.full(24, 1 / 24)), target, cost, tol=1e-3)
    first, passes["rows"] = passes["rows"], 0.0
    model = MKLClassifier(kernels, tol=1e-3).fit(X, y)
    assert model.converged_
    assert first >= 15 * len(y)
    assert passes["rows"] <= 5 * first


@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_columns_far_from_zero_end_in_a_warning_at_worst(norm):
    """Newton systems of such features are indefinite by rounding."""
    X = np.random.default_rng(0).normal(size=(3200, 2))
    y = X[:, 0] * X[:, 1] > 0
    kernels = [
        Linear(),
        Linear(columns=[1]),
        Polynomial(2, columns=[0]),
        Polynomial(2, columns=[1]),
    ]
    model = MKLClassifier(kernels, norm=norm, normalize=None, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(100 * X + 1e5, y)
    assert np.isfinite(model.objective_)
    assert model.duality_gap_ >= 0


def test_large_costs_on_some_thousand_rows():
    """In single precision the Gram matrix of the free rows is not positive definite."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3500, 3))
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=3500) > 0
    model = MKLClassifier([RBF(width=1.0, columns=[c]) for c in range(3)], C=100.0)
    features = clone(model).fit(X, y)
    assert features._function is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "MANY_ROWS", 10**9)
        grams = clone(model).fit(X, y)
    assert grams._function is None
    assert features.converged_
    assert grams.converged_
    brackets(features, grams)


def test_known_scores_are_not_summed_again(many, monkeypatch):
    X, y, _ = table(n=600, classes=4)
    many(MKLClassifier(KERNELS), X, y)
    bank = make_feature_bank(KERNELS, X, tol=1e-3)
    Y, cost = np.where(y[:, None] == np.arange(4), 1.0, -1.0), np.ones((600, 4))
    loss = Smoothed(Hinge(), 0.3)
    kernel = bank.combine(np.full(len(KERNELS), 1.0 / len(KERNELS)))
    dual_coef = solve_inner(loss, kernel, Y, cost, tol=1e-3).dual_coef
    bank.quadratic_forms(dual_coef)
    sums = []
    plain = LocalBlocks.sums
    monkeypatch.setattr(LocalBlocks, "sums", lambda b, V: sums.append(1) or plain(b, V))
    feature_hessian(loss, kernel, np.arange(len(KERNELS)), dual_coef, Y, cost)
    assert not sums
