"""Exact values against brute force over all coalitions through the fitted model itself."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from game_oracles import brute_force, coalition_values, interactions, outputs, product, shapley
from kernelweave import (
    ARD,
    RBF,
    Additive,
    HierarchicalMKLClassifier,
    Laplacian,
    Linear,
    MetricKernelClassifier,
    MetricKernelRegressor,
    MKLClassifier,
    MKLRegressor,
    NoiseTolerantKernelClassifier,
    NoisyLabelMKLClassifier,
    Overlap,
    Polynomial,
    Precomputed,
    ProductLattice,
    RadiusKernelClassifier,
    RadiusMKLClassifier,
    SumProductMKLClassifier,
    Words,
    complete_ladder,
    rbf_ladder,
)
from kernelweave.banks.nystroem import build
from kernelweave.inspection import explain
from kernelweave.kernels import Constant, Cosine, FromCallable, group
from quick import every

N, D = 70, 5
COLUMNS = list(range(D))


def numbers(seed=0, n=N, d=D):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, np.sin(X[:, 0]) * X[:, 1] + X[:, 2] ** 2


def categories(seed=0):
    X = np.random.default_rng(seed).integers(0, 3, (N, D)).astype(float)
    return X, (X[:, 0] == X[:, 1]) - 0.5 * X[:, 2]


def regressor(*kernels, **options):
    X, y = numbers()
    return MKLRegressor(list(kernels), **{"norm": 2.0, "C": 10, **options}).fit(X, y), X


def classifier(estimator, n_classes=2):
    X, y = numbers()
    if n_classes == 2:
        return estimator.fit(X, X[:, 0] + X[:, 1] > 0), X
    return estimator.fit(X, np.digitize(y, [0.0, 1.0])), X


def row_numbers():
    """A ready matrix on the first column, numbers in the others."""
    X, y = numbers()
    gram = X @ X.T
    X[:, 0] = np.arange(N)
    kernels = [Precomputed(gram), RBF(2.0, columns=[1, 2]), Precomputed(gram) * RBF(columns=[1, 3])]
    return MKLRegressor(kernels, norm=2.0, C=10).fit(X, y), X


def landmarks(monkeypatch):
    monkeypatch.setattr(build, "MANY_ROWS", 50)
    X, y = numbers()
    options = {"loss": "square", "norm": 2.0, "C": 10, "n_landmarks": 40}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the gap that so few landmarks leave
        model = MKLRegressor(rbf_ladder([1.0, 3.0]), **options).fit(X, y)
    assert model._function is not None
    return model, X


MODELS = {
    "Gaussians": lambda: regressor(*(RBF(w) for w in (0.5, 1.0, 2.0, 4.0))),
    "Laplacians": lambda: regressor(Laplacian(2.0, columns=[0, 1]), Laplacian(columns=[1, 2, 4])),
    "infinite width": lambda: regressor(ARD((1.0, 2.0, np.inf, 1.0, 3.0))),
    "one column each": lambda: regressor(*(RBF(w, columns=[j]) for j in COLUMNS for w in (0.5, 2))),
    "additive": lambda: regressor(Additive((1.0, 1.0, 0.5, 2.0, 2.0)), Linear()),
    "far from zero": lambda: regressor(Linear(centre=(3.0,) * D), RBF(2.0)),
    "polynomials": lambda: regressor(
        Polynomial(2), Polynomial(3, columns=[0, 1, 2]), Polynomial(5, columns=[3, 4])
    ),
    "shared columns": lambda: regressor(
        RBF(columns=[0, 1]) * Linear(columns=[1, 2]),
        RBF(columns=[0, 1]) * RBF(2.0, columns=[1, 3]),
        (RBF() + Linear(columns=[0, 1])) * (Polynomial(2) + Additive((1.0,) * D)),
    ),
    "sums that merge": lambda: regressor(Polynomial(2, coef0=0.0) * Linear(), Linear() ** 2),
    "multiples and groups": lambda: regressor(2.5 * RBF() + group(Linear() + Constant())),
    "cosines": lambda: regressor(
        Cosine(Linear()), Cosine(2.0 * RBF()), Cosine(Polynomial(2, columns=[0, 1, 3])) * RBF(2.0)
    ),
    "a function": lambda: regressor(FromCallable(lambda A, B: (A @ B.T + 1.0) ** 3), RBF()),
    "default kernels": lambda: (MKLRegressor().fit(*numbers()), numbers()[0]),
    "three classes": lambda: classifier(MKLClassifier([RBF(1.0), RBF(2.0)], norm=2.0), 3),
    "multinomial": lambda: classifier(MKLClassifier(loss="logistic"), 3),
    "cosine normalisation": lambda: classifier(
        MKLClassifier([RBF(), Linear()], normalize="cosine", norm=2.0)
    ),
    "radius": lambda: classifier(RadiusMKLClassifier([RBF(1.0), RBF(2.0)])),
    "radius widths": lambda: classifier(RadiusKernelClassifier()),
    "noisy labels": lambda: classifier(NoisyLabelMKLClassifier()),
    "noise tolerant": lambda: classifier(NoiseTolerantKernelClassifier()),
    "noise tolerant, three": lambda: classifier(NoiseTolerantKernelClassifier(), 3),
    "paths": lambda: classifier(
        SumProductMKLClassifier(
            (RBF(columns=[0, 1]) + Linear(columns=[2])) * (RBF(2.0) + Linear(columns=[0, 3]))
        )
    ),
    "hierarchy": lambda: classifier(
        HierarchicalMKLClassifier(
            ProductLattice([RBF(1.0, columns=[j]) for j in COLUMNS], max_order=3)
        )
    ),
    "overlaps": lambda: (
        MKLRegressor([Overlap() ** p for p in (1, 2, 4, 8)], norm=2.0, C=10).fit(*categories()),
        categories()[0],
    ),
    "ready matrix": row_numbers,
    "learned metric": lambda: (
        MetricKernelRegressor(shrink=1.0, shares=(0.5,)).fit(*numbers()),
        numbers()[0],
    ),
    "learned metric, product only": lambda: (
        MetricKernelRegressor(shares=(1.0,)).fit(*numbers()),
        numbers()[0],
    ),
    "learned metric, three": lambda: classifier(MetricKernelClassifier(), 3),
}


@pytest.mark.parametrize("name", every(2, MODELS))
def test_values_are_those_of_brute_force(name):
    model, X = MODELS[name]()
    function, rows, background = outputs(model), X[:3], X[10:17]
    e = explain(model, rows, background)
    values = e.values.reshape(*e.values.shape[:2], -1)
    size = max(1.0, np.abs(function(rows)).max())
    assert np.abs(values - brute_force(function, rows, background)).max() <= 1e-12 * size
    gaps = e.predictions.reshape(3, -1) - function(rows)
    assert np.abs(gaps).max() <= 1e-12 * size
    base = function(background).mean(axis=0)
    assert np.abs(e.base_values.reshape(3, -1) - base).max() <= 1e-12 * size


OPAQUE = {"cosines", "a function", "cosine normalisation", "paths"}
OPAQUE |= {"learned metric", "learned metric, three"}


@pytest.mark.parametrize("name", [name for name in MODELS if name not in OPAQUE])
def test_independent_values_are_those_of_the_grid(name):
    model, X = MODELS[name]()
    function, rows, background = outputs(model), X[:2], X[[10, 11]]
    e = explain(model, rows, background, value="independent")
    size = max(1.0, np.abs(function(rows)).max())
    found = brute_force(function, rows, background, independent=True)
    assert np.abs(e.values.reshape(*e.values.shape[:2], -1) - found).max() <= 1e-12 * size
    assert np.abs(e.predictions.reshape(2, -1) - function(rows)).max() <= 1e-12 * size
    assert e.errors is None


@pytest.mark.parametrize("name", sorted(OPAQUE))
def test_opaque_kernels_are_not_averaged_by_column(name):
    model, X = MODELS[name]()
    with pytest.raises(ValueError, match="pass value='joint'"):
        explain(model, X[:2], X[10:17], value="independent")


@pytest.mark.parametrize("name", ["Gaussians", "shared columns", "cosines", "polynomials", "paths"])
def test_interactions_are_those_of_brute_force(name):
    model, X = MODELS[name]()
    function, rows, background = outputs(model), X[:2], X[10:17]
    e = explain(model, rows, background, interactions=True)
    found = e.interaction_values
    groups = [(j,) for j in range(D)]
    for k, x in enumerate(rows):
        pairs = interactions(coalition_values(function, x, background, groups), D)[..., 0]
        off = ~np.eye(D, dtype=bool)
        assert np.abs(found[k][off] - pairs[off] / 2).max() <= 1e-12
    assert np.abs(found.sum(axis=2) - e.values).max() <= 1e-13
    assert np.abs(found - found.swapaxes(1, 2)).max() == 0.0


@pytest.mark.parametrize("name", ["Gaussians", "shared columns", "cosines", "overlaps", "additive"])
@pytest.mark.parametrize("value", ["joint", "independent"])
def test_groups_that_kernels_cross(name, value):
    if value == "independent" and name == "cosines":
        pytest.skip("opaque across groups")
    model, X = MODELS[name]()
    groups = [(0, 3), (1, 2), (4,)]
    function, rows, background = outputs(model), X[:2], X[10:12]
    by = {"first": [0, 3], "second": [1, 2]}
    e = explain(model, rows, background, by=by, value=value)
    assert e.feature_names == ("first", "second", "column 4")
    found = brute_force(function, rows, background, groups, independent=value == "independent")
    assert np.abs(e.values - found[..., 0]).max() <= 1e-12


@pytest.mark.parametrize(
    "model",
    [
        MKLRegressor(complete_ladder(), norm=2.0, C=10),
        MKLRegressor(norm=2.0, C=10),
        MKLRegressor([Words(columns=["c", "d"]), Words(columns="c") * RBF(columns=["a", "b"])]),
        MetricKernelRegressor(),
    ],
)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_numbers_and_categories(model, library):
    """Encoded columns of one category are one player; the oracle mixes columns of the frame."""
    X, y = numbers(d=4)
    X[:, 2:] = np.random.default_rng(1).integers(0, 3, (N, 2))
    make = pytest.importorskip(library).DataFrame

    def frame(rows):
        codes = {
            name: [f"{name} level{int(v)}" for v in rows[:, j]] for j, name in ((2, "c"), (3, "d"))
        }
        return make({"a": rows[:, 0], "b": rows[:, 1], **codes})

    model = clone(model).fit(frame(X), y)
    e = explain(model, frame(X[:3]), frame(X[10:17]))
    function = outputs(model)
    found = brute_force(lambda rows: function(frame(rows)), X[:3], X[10:17])[..., 0]
    size = max(1.0, np.abs(model.dual_coef_).sum())
    assert np.abs(e.values - found).max() <= 1e-13 * size
    assert np.abs(e.predictions - model.predict(frame(X[:3]))).max() <= 1e-13 * size
    assert e.feature_names == ("a", "b", "c", "d")
    assert e.data[0, 2] == f"c level{int(X[0, 2])}"


@pytest.mark.slow
def test_an_opaque_kernel_times_many_columns():
    X, y = numbers(d=11)
    kernel = FromCallable(lambda A, B: (A @ B.T) ** 2, columns=[0, 1, 2]) * RBF(3.0)
    model = MKLRegressor([kernel, RBF(3.0)], norm=2.0, C=10).fit(X, y)
    rows, background = X[:1], X[10:13]
    e = explain(model, rows, background, interactions=True)
    assert e.n_permutations == 0
    found = brute_force(outputs(model), rows, background)
    assert np.abs(e.values - found[..., 0]).max() <= 1e-12
    values = coalition_values(outputs(model), rows[0], background, [(j,) for j in range(11)])
    pairs = interactions(values, 11)[..., 0]
    off = ~np.eye(11, dtype=bool)
    assert np.abs(e.interaction_values[0][off] - pairs[off] / 2).max() <= 1e-12


def test_landmarks(monkeypatch):
    model, X = landmarks(monkeypatch)
    function, rows, background = outputs(model), X[:3], X[10:17]
    e = explain(model, rows, background)
    size = sum(np.abs(term.coef).sum() for term in model._terms().terms)
    found = brute_force(function, rows, background)
    assert np.abs(e.values - found[..., 0]).max() <= 1e-13 * (1 + size)
    assert np.abs(e.predictions - function(rows)[:, 0]).max() <= 1e-13 * (1 + size)


def test_a_diagonal_metric_is_a_mixture_of_gaussians():
    X, y = numbers(d=10)
    model = MetricKernelRegressor(shrink=0.0, shares=(0.15,)).fit(X, y)
    rows, background = X[:1], X[10:13]
    e = explain(model, rows, background)
    assert e.n_permutations == 0
    assert 0 < e.error_bound < 1e-2
    found = brute_force(outputs(model), rows, background)
    size = np.abs(model.dual_coef_).sum()
    assert np.abs(e.values - found[..., 0]).max() <= 1e-12 * size
    assert np.abs(e.values - found[..., 0]).sum() <= e.error_bound


def test_the_functional_game():
    model, X = MODELS["Gaussians"]()
    e = explain(model, X[:2], X[10:17], value="functional")
    terms = model._terms()
    total = sum(term.coef.sum() for term in terms.terms) + terms.intercept[0]
    assert abs(e.base_values[0] - total) <= 1e-12 * abs(total)
    assert np.abs(e.predictions - model.predict(X[:2])).max() <= 1e-12

    def value(x, present):  # factors of absent columns are one
        out = terms.intercept[0]
        for term in terms.terms:
            ((kernel, rows),) = term.factors
            squares = (rows[:, present] - x[present]) ** 2
            out += np.exp(-squares.sum(axis=1) / (2 * kernel.width**2)) @ term.coef[:, 0]
        return out

    for k, x in enumerate(X[:2]):
        masks = product([False, True], repeat=D)
        values = np.array([value(x, np.array(present)) for present in masks])
        assert np.abs(shapley(values, D) - e.values[k]).max() <= 1e-11


def test_joint_and_independent_agree_for_additive_kernels():
    model, X = MODELS["additive"]()
    joint = explain(model, X[:5], X[10:30])
    independent = explain(model, X[:5], X[10:30], value="independent")
    assert np.abs(joint.values - independent.values).max() <= 1e-12
    assert np.abs(joint.base_values - independent.base_values).max() <= 1e-12


def test_sampled_values_cover_the_exact_ones():
    """A function of nine columns is sampled, with standard errors that hold."""
    X, y = numbers(d=9, n=120)
    model = MKLRegressor([FromCallable(lambda A, B: np.tanh(A @ B.T / 9) + A @ B.T)]).fit(X, y)
    rows, background = X[:3], X[50:58]
    e = explain(model, rows, background, n_permutations=400, random_state=3)
    again = explain(model, rows, background, n_permutations=400, random_state=3, n_jobs=2)
    assert np.array_equal(e.values, again.values)
    assert e.n_permutations == 400
    assert "sampled, 400 permutations" in str(e[0])
    found = brute_force(outputs(model), rows, background)[..., 0]
    errors = np.abs(e.values - found)
    assert errors.max() > 1e-9  # it is a sample
    assert (errors <= 4 * e.errors + 1e-12).all()
    assert np.abs(e.predictions - model.predict(rows)).max() <= 1e-12
    assert explain(model, rows[:1], background).n_permutations == 512  # 500, in pairs for each row


def test_sparse_rows():
    X, y = numbers()
    X[np.abs(X) < 0.8] = 0.0
    kernels = [RBF(2.0), Linear() * RBF(3.0), Polynomial(2)]
    model = MKLRegressor(kernels, norm=2.0, C=10).fit(sp.csr_array(X), y)
    e = explain(model, sp.csr_array(X[:3]), sp.csr_array(X[10:17]))
    found = brute_force(lambda rows: model.predict(sp.csr_array(rows))[:, None], X[:3], X[10:17])
    assert np.abs(e.values - found[..., 0]).max() <= 1e-12
    assert np.array_equal(e.data, X[:3])


@pytest.mark.parametrize("kind", [MetricKernelRegressor, MetricKernelClassifier])
def test_walks_of_a_learned_metric(kind, monkeypatch):
    """One permutation for each background row: values add up, and are near the exact ones."""
    X, y = numbers(n=150)
    y = np.digitize(y, [0.0, 1.0]) if kind is MetricKernelClassifier else y
    model = kind(shares=(0.25,)).fit(X, y)
    exact = explain(model, X[:6], X)
    options = {"n_permutations": 150, "n_jobs": 1}
    found = explain(model, X[:6], X, **options)
    assert (exact.n_permutations, found.n_permutations) == (0, 150)
    sizes = 1e-12 * (1 + np.abs(model._terms().terms[0].coef).sum())
    assert (
        np.abs(found.predictions - outputs(model)(X[:6]).reshape(found.predictions.shape)).max()
        <= sizes
    )
    assert np.abs(found.base_values - exact.base_values).max() <= sizes
    away = np.abs(found.values - exact.values) / found.errors
    assert 0.01 < np.median(away) < 1.5
    assert away.max() < 5
    again = explain(model, X[:6], X, **options | {"n_jobs": 3})
    assert np.array_equal(found.values, again.values)
    monkeypatch.setattr("kernelweave.inspection.games._WALKED", 5000)  # terms in several blocks
    parts = explain(model, X[:6], X, **options)
    np.testing.assert_allclose(parts.values, found.values, atol=1e-4 * np.abs(found.values).max())
    assert np.array_equal(explain(model, X[:6], X, **options | {"n_jobs": 3}).values, parts.values)


def test_walks_are_for_joint_values_without_pairs():
    X, y = numbers()
    model = MetricKernelRegressor(shares=(0.25,)).fit(X, y)
    exact = explain(model, X[:3], X, n_permutations=70, interactions=True)
    assert exact.n_permutations == 0
    np.testing.assert_allclose(exact.values, explain(model, X[:3], X).values)
