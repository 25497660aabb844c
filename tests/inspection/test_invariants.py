"""What holds for all kernels and rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    ARD,
    RBF,
    Additive,
    CombinedClassifier,
    Laplacian,
    Linear,
    MKLRegressor,
    Overlap,
    Polynomial,
    RuleEnsembleRegressor,
)
from kernelweave.inspection import explain

N = 24


@st.composite
def kernels(draw, d):
    """Return a kernel on some of the columns."""
    columns = draw(st.lists(st.integers(0, d - 1), min_size=1, max_size=d, unique=True))
    width = draw(st.sampled_from([0.5, 1.0, 3.0]))
    widths = tuple([width] * (len(columns) - 1) + [draw(st.sampled_from([1.0, np.inf]))])
    kinds = [
        RBF(width, columns=columns),
        Laplacian(width, columns=columns),
        Linear(columns=columns),
        Polynomial(draw(st.integers(1, 4)), draw(st.sampled_from([0.0, 1.0])), columns=columns),
        Additive((width,) * len(columns), columns=columns),
        ARD(widths, columns=columns),
        Overlap(columns=columns),
    ]
    return draw(st.sampled_from(kinds))


@st.composite
def problems(draw):
    d, seed = draw(st.integers(2, 6)), draw(st.integers(0, 10_000))
    random = np.random.default_rng(seed)
    X = random.integers(-2, 3, (N, d)) / 2 if draw(st.booleans()) else random.normal(size=(N, d))
    first = draw(st.lists(kernels(d), min_size=1, max_size=3))
    if draw(st.booleans()):
        first.append(draw(kernels(d)) * draw(kernels(d)))
    y = random.normal(size=N)
    model = MKLRegressor(first, norm="uniform", normalize=None, C=1.0, tol=1e-2, max_iter=20)
    return model.fit(X.astype(float), y), X.astype(float), random


def tolerance(model):
    """Return the rounding error to expect: of all products of kernel values and coefficients."""
    total = 0.0
    for term in model._terms().terms:
        size = 1.0
        for kernel, rows in term.factors:
            size = size * np.abs(kernel.block(rows, rows)).max(initial=1.0)
        total += np.abs(term.coef).sum() * size
    return 1e-13 * (1 + total)


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from(["joint", "independent"]))
def test_values_add_up_and_unused_columns_have_none(problem, value):
    model, X, _ = problem
    e = explain(model, X[:3], X[8:14], value=value)
    tol = tolerance(model)
    assert np.abs(e.predictions - model.predict(X[:3])).max() <= tol
    if value == "joint":
        assert np.abs(e.base_values - model.predict(X[8:14]).mean()).max() <= tol
    used = {c for k in model.kernels_ for part in k.factors for c in part.positions(X)}
    unused = [j for j in range(X.shape[1]) if j not in used]
    assert (e.values[:, unused] == 0.0).all()


@settings(max_examples=40, deadline=None)
@given(problems())
def test_background_rows_may_be_permuted_and_repeated(problem):
    model, X, random = problem
    rows, background = X[:3], X[8:14]
    e, tol = explain(model, rows, background), tolerance(model)
    shuffled = explain(model, rows, background[random.permutation(6)])
    assert np.abs(e.values - shuffled.values).max() <= tol
    repeated = explain(model, rows, np.repeat(background, 2, axis=0))
    assert np.abs(e.values - repeated.values).max() <= tol
    own = explain(model, rows[:1], rows[:1])
    assert np.abs(own.values).max() <= tol


@settings(max_examples=40, deadline=None)
@given(problems())
def test_kernels_and_groups_of_one(problem):
    model, X, _ = problem
    rows, background, tol = X[:3], X[8:14], tolerance(model)
    e = explain(model, rows, background)
    by_kernel = explain(model, rows, background, by="kernel")
    assert np.abs(by_kernel.values.sum(axis=1) - e.values.sum(axis=1)).max() <= tol
    groups = {f"only {j}": [j] for j in range(X.shape[1])}
    grouped = explain(model, rows, background, by=groups)
    assert np.abs(grouped.values - e.values).max() <= tol
    pairs = explain(model, rows, background, interactions=True).interaction_values
    assert np.abs(pairs.sum(axis=2) - e.values).max() <= tol


@settings(max_examples=30, deadline=None)
@given(problems())
def test_symmetry(problem):
    """Twins share; exchanging two columns everywhere exchanges their values."""
    _, X, _ = problem
    X = X.copy()
    X[:, 1] = X[:, 0]
    y = np.random.default_rng(0).normal(size=N)
    both = MKLRegressor([RBF(1.5), Polynomial(2), Linear() * RBF(2.0)], norm="uniform").fit(X, y)
    e = explain(both, X[:3], X[8:14])
    assert np.abs(e.values[:, 0] - e.values[:, 1]).max() <= tolerance(both)
    order = np.arange(X.shape[1])[::-1]
    swapped = MKLRegressor([k.on(None) for k in both.kernels_], norm="uniform").fit(X[:, order], y)
    again = explain(swapped, X[:3][:, order], X[8:14][:, order])
    gap = np.abs(swapped.predict(X[:, order]) - both.predict(X)).max()  # of two fits
    assert np.abs(again.values[:, order] - e.values).max() <= 10 * gap + tolerance(both)


def test_the_decision_is_linear_in_its_terms():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 4)), random.normal(size=40)
    whole = MKLRegressor([RBF(1.0), Linear()], norm="uniform").fit(X, y)
    parts = []
    for j in range(2):
        model = MKLRegressor([RBF(1.0), Linear()], norm="uniform").fit(X, y)
        model.weights_ = np.where(np.arange(2) == j, whole.weights_, 0.0)
        model._support_views = model._support_views.subset([j])
        parts.append(explain(model, X[:3], X[10:20]).values)
    e = explain(whole, X[:3], X[10:20])
    assert np.abs(e.values - sum(parts)).max() <= 1e-13
    whole.dual_coef_ = 3.0 * whole.dual_coef_
    assert np.abs(explain(whole, X[:3], X[10:20]).values - 3.0 * e.values).max() <= 1e-13


def test_constant_columns_have_no_value():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 4))
    X[:, 2] = 7.0
    model = make_pipeline(StandardScaler(), MKLRegressor([RBF(2.0), Linear()])).fit(X, X[:, 0])
    assert (explain(model, X[:5], X[10:30]).values[:, 2] == 0.0).all()


def test_standard_errors_cover_the_choice_of_the_background():
    """1.96 standard errors hold 95 % of the values of all rows."""
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 4))
    model = MKLRegressor([RBF(2.0)], C=10).fit(X[:80], np.sin(X[:80, 0]) * X[:80, 1])
    whole = explain(model, X[:4], X).values
    inside = []
    for _ in range(40):
        e = explain(model, X[:4], X[random.choice(500, 50, replace=False)])
        inside.append(np.abs(e.values - whole) <= 1.96 * e.errors)
    assert 0.9 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize("by", ["column", "kernel", "rule"])
def test_what_background_rows_add_to_the_errors_of_importance(by):
    random = np.random.default_rng(1)
    X, Z = random.normal(size=(6, 3)), np.repeat(random.normal(size=(8, 3)), [1, 2] * 4, axis=0)
    F = random.normal(size=(80, 3))
    model = RuleEnsembleRegressor() if by == "rule" else MKLRegressor([RBF(2.0), Linear()])
    model.fit(F, F[:, 0] * F[:, 1] + F[:, 2])
    for names in {by, "column"}:
        e = explain(model, X, Z, by=names)
        single = np.array([explain(model, X, z[None], by=names).values for z in Z])
        changes = ((single - e.values) * np.sign(e.values)).mean(axis=1)
        expected = (changes**2).sum(axis=0) / (12 * 11)
        assert np.allclose((e.shared_errors**2).sum(axis=0), expected, atol=1e-14)
        assert explain(model, X, Z[:1], by=names).shared_errors is None


@pytest.mark.parametrize("kind", ["kernels", "rules", "members that do not add up"])
def test_errors_of_importance_cover_rows_and_background(kind):
    """The spread of repeated draws is about what each draw states."""
    random = np.random.default_rng(2)
    X = random.exponential(size=(3000, 5))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    if kind == "rules":
        model = RuleEnsembleRegressor(C=10).fit(X[:150], y[:150])
    elif kind == "kernels":
        model = MKLRegressor([RBF(2.0)], C=10).fit(X[:80], y[:80])
    else:
        model = CombinedClassifier().fit(X[:80], y[:80] > 2)
    few = None if kind != "members that do not add up" else 12
    found = []
    for _ in range(60):
        rows = random.permutation(3000)[:72]
        e = explain(model, X[rows[:60]], X[rows[60:]], n_permutations=few)
        found.append([*e.mean_sizes(), np.abs(e.values).std(axis=0, ddof=1) / np.sqrt(60)])
    means, errors, of_rows = np.swapaxes(found, 0, 1)
    deciding = means.mean(axis=0) > 0.2 * means.mean(axis=0).max()
    spread = means.std(axis=0, ddof=1)[deciding]
    ratios = [spread / np.sqrt((e**2).mean(axis=0))[deciding] for e in (errors, of_rows)]
    assert 0.7 < np.sqrt(np.mean(ratios[0] ** 2)) < 1.2
    assert ratios[1].max() > 1.2 * ratios[0].max()  # the rows alone are not enough


def test_many_background_rows_are_thinned_out():
    random = np.random.default_rng(0)
    X = random.normal(size=(1200, 3))
    model = MKLRegressor([RBF(2.0)], C=10).fit(X[:80], X[:80, 0] ** 2)
    e = explain(model, X[:4], X)
    some = explain(model, X[:4], X[np.linspace(0, 1199, 500).astype(int)])
    assert e.n_background == some.n_background == 500
    assert np.array_equal(e.values, some.values)
    # Of 500 drawn out of 1200 rows; those given alone are taken for a sample of many.
    assert np.abs(e.errors / some.errors - np.sqrt(1 - 500 / 1200)).max() <= 1e-12


def test_rows_are_explained_alike_alone_and_together():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 20))
    model = MKLRegressor([RBF(4.0)], C=10).fit(X, X[:, 0])
    together = explain(model, X, X)
    alone = explain(model, X[7:8], X)
    assert np.abs(alone.values[0] - together.values[7]).max() <= 1e-9
    assert together.nodes <= 10
    assert 0 < together.error_bound <= 1e-9
