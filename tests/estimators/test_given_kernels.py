"""The parameter `missing` of the estimators that take kernels, and what follows a fit with gaps."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from gap_cases import SOURCES, holed, two_sources
from kernelweave import (
    AnnotatorKernelClassifier,
    HierarchicalMKLClassifier,
    HierarchicalMKLRegressor,
    MetricKernelClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    NoiseTolerantKernelClassifier,
    NoisyLabelMKLClassifier,
    PairwiseKernelLearner,
    ProductLattice,
    RadiusMKLClassifier,
    RuleEnsembleClassifier,
    SumProductMKLClassifier,
    rbf_ladder,
    views,
)
from kernelweave.errors import InputError, RowError
from kernelweave.inspection import explain
from kernelweave.io import load, save
from kernelweave.kernels import RBF, Linear, Overlap, Polynomial

NAN = float("nan")
X = holed(40)
TOTAL = np.nansum(X, axis=1)
Y = np.where(TOTAL > 0, "x", "y")
NEW = holed(30, seed=5)
KERNELS = [RBF(1.5), Linear()]
RULES = ("off", "fill", "expected")
PAIRWISE = {"random_state": 0, "lam": 0.01}

# Every estimator with kernels: the class, its options, and its target.
MODELS = [
    (MKLClassifier, {}, Y),
    (MKLRegressor, {}, TOTAL),
    (MKLClassifierCV, {"Cs": [0.1, 1.0]}, Y),
    (MKLRegressorCV, {"Cs": [0.1, 1.0]}, TOTAL),
    (RadiusMKLClassifier, {}, Y),
    (NoisyLabelMKLClassifier, {}, Y),
    (NoiseTolerantKernelClassifier, {}, Y),
    (AnnotatorKernelClassifier, {}, np.array([Y, Y, np.where(np.arange(40) % 5, Y, "x")]).T),
    (HierarchicalMKLClassifier, {}, Y),
    (HierarchicalMKLRegressor, {}, TOTAL),
    (SumProductMKLClassifier, {}, Y),
]
NAMES = [kind.__name__ for kind, _, _ in MODELS]


def values(model, rows=NEW):
    return getattr(model, "decision_function", model.predict)(rows)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("kind", "options", "y"), MODELS, ids=NAMES)
def test_the_rule_is_that_of_kernels_without_one(kind, options, y, rule):
    model = kind(KERNELS, missing=rule, **options)
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert not kind(KERNELS, **options).__sklearn_tags__().input_tags.allow_nan
    model = clone(model).fit(X, y)
    own = kind([kernel.with_missing(rule) for kernel in KERNELS], **options).fit(X, y)
    np.testing.assert_array_equal(values(model), values(own))
    for row, value in zip(NEW[:3], values(model), strict=False):  # other holes, a row alone
        np.testing.assert_allclose(values(model, row[None])[0], value, atol=1e-9)
    with pytest.raises(RowError, match="first in row"):
        kind(KERNELS, missing="refuse", **options).fit(X, y)


@pytest.mark.filterwarnings("ignore:PairwiseKernelLearner. on pairs held out")
@pytest.mark.parametrize("rule", RULES)
def test_kernels_from_pairs_know_the_rule(rule):
    model = PairwiseKernelLearner(KERNELS, missing=rule, **PAIRWISE).fit(X, Y)
    own = PairwiseKernelLearner([k.with_missing(rule) for k in KERNELS], **PAIRWISE).fit(X, Y)
    np.testing.assert_array_equal(model.kernel(NEW), own.kernel(NEW))
    with pytest.raises(InputError, match=f"missing: '{rule}' is a rule of kernels"):
        PairwiseKernelLearner(missing=rule, **PAIRWISE).fit(np.nan_to_num(X), Y)


def test_default_kernels():
    plain = MKLClassifier().fit(X, Y)
    np.testing.assert_array_equal(values(MKLClassifier(missing="fill").fit(X, Y)), values(plain))
    off = MKLClassifier(missing="off").fit(X, Y)
    nothing = np.full((1, 3), NAN)
    np.testing.assert_allclose(values(off, nothing), off.intercept_[0], atol=1e-12)
    for rule in RULES:
        for model in (NoiseTolerantKernelClassifier(), HierarchicalMKLClassifier()):
            hierarchy = isinstance(model, HierarchicalMKLClassifier)
            assert model.__sklearn_tags__().input_tags.allow_nan == hierarchy
            model.set_params(missing=rule).fit(X, Y)
            assert np.isfinite(values(model)).all()
    with pytest.raises(InputError, match="missing must be 'fill' or 'off', got 'expected'"):
        MKLClassifier(missing="expected").fit(X, Y)


def test_default_kernels_of_a_frame_with_categories():
    frame = pd.DataFrame(X, columns=list("abc")).assign(town=np.where(X[:, 0] > 0, "Ulm", None))
    for model in (NoiseTolerantKernelClassifier(), HierarchicalMKLClassifier(C=30.0)):
        model.set_params(missing="fill").fit(frame, Y)
        assert model.score(frame, Y) > 0.8
        assert np.isfinite(values(model, frame.assign(town=None))).all()


def test_masked_and_sparse_gaps():
    masked = np.ma.array(np.where(np.isnan(X), 7.0, X), mask=np.isnan(X))
    for model in (MKLClassifier(), MKLClassifier(KERNELS, missing="off"), MetricKernelClassifier()):
        np.testing.assert_array_equal(
            values(clone(model).fit(masked, Y), masked), values(clone(model).fit(X, Y), X)
        )
    rows = np.where(np.arange(len(X))[:, None] % 4, np.nan_to_num(X), X)
    sparse = sp.csr_array(rows)
    for kernels in (KERNELS, None):
        model = MKLClassifier(kernels, missing="off").fit(sparse, Y)
        lacking = np.isnan(rows).any(axis=1)
        np.testing.assert_allclose(values(model, sparse)[lacking], model.intercept_[0], atol=1e-12)
        assert np.abs(values(model, sparse)[~lacking] - model.intercept_[0]).max() > 1e-3
    np.testing.assert_allclose(
        values(MKLClassifier(KERNELS, missing="off", tol=1e-8).fit(sparse, Y), sparse),
        values(MKLClassifier(KERNELS, missing="off", tol=1e-8).fit(rows, Y), rows),
        atol=1e-5,
    )
    for model in (MKLClassifier(), MKLClassifier(KERNELS)):
        with pytest.raises(RowError, match=r"row \d+"):
            model.fit(sparse, Y)


def test_a_rule_of_its_own_stays():
    frame = pd.DataFrame(X, columns=list("abc")).assign(town=np.where(X[:, 0] > 0, "Ulm", None))
    kernels = [RBF(columns=["a", "b"]), Overlap(columns="town", missing="category")]
    model = MKLClassifier(kernels, missing="off").fit(frame, Y)
    own = MKLClassifier([kernels[0].with_missing("off"), kernels[1]]).fit(frame, Y)
    np.testing.assert_array_equal(values(model, frame), values(own, frame))
    with pytest.raises(InputError, match=r"Polynomial: missing must be 'refuse' or 'off'"):
        MKLClassifier([Polynomial(2)], missing="expected").fit(X, Y)
    with pytest.raises(ValueError, match="The 'missing' parameter of MKLClassifier must be"):
        MKLClassifier(missing="drop").fit(X, Y)


@pytest.mark.parametrize("rule", ["off", "complete", "fill"])
def test_views_take_the_rule(rule):
    rows = two_sources(60)
    y = np.where(np.nansum(rows, axis=1) > 0, "x", "y")
    model = MKLClassifier(views(SOURCES), missing=rule).fit(rows, y)
    own = MKLClassifier(views(SOURCES, missing=rule)).fit(rows, y)
    new = two_sources(40, seed=1)
    np.testing.assert_array_equal(values(model, new), values(own, new))


def test_graphs_lattices_and_structures():
    nx = pytest.importorskip("networkx")
    graph = nx.DiGraph()
    graph.add_node("a", kernel=Linear())
    graph.add_node("b", kernel=RBF(1.5))
    graph.add_edge("a", "b")
    nodes = {"a": Linear(), "b": RBF(1.5)}
    own = {name: kernel.with_missing("off") for name, kernel in nodes.items()}
    expected = HierarchicalMKLClassifier(own, parents={"b": ["a"]}).fit(X, Y)
    for kernels, parents in ((graph, None), (nodes, {"b": ["a"]})):
        model = HierarchicalMKLClassifier(kernels, missing="off", parents=parents).fit(X, Y)
        np.testing.assert_array_equal(values(model), values(expected))
    for ladders in (rbf_ladder([1.0, 2.0], per_feature=True), [RBF(columns=0), Linear(columns=1)]):
        for rule in RULES:
            given = ProductLattice(ladders)
            assert len(given.expand(np.nan_to_num(X))) == len(
                ProductLattice(ladders, missing=rule).expand(X)
            )
            model = HierarchicalMKLClassifier(given, missing=rule).fit(X, Y)
            own = HierarchicalMKLClassifier(ProductLattice(ladders, missing=rule)).fit(X, Y)
            np.testing.assert_array_equal(values(model), values(own))
    structure = SumProductMKLClassifier(RBF(columns=[0]) * Linear() + RBF(2.0)).fit(
        np.nan_to_num(X), Y
    )
    again = SumProductMKLClassifier(structure.network_, missing="off").fit(X, Y)
    own = [k.with_missing("off") for k in (RBF(columns=[0]), Linear(), RBF(2.0))]
    expected = SumProductMKLClassifier(own[0] * own[1] + own[2]).fit(X, Y)
    np.testing.assert_allclose(values(again), values(expected), atol=1e-6)


def test_refusing_looks_at_the_whole_table():
    frame = pd.DataFrame(X, columns=list("abc"))
    filled = frame.fillna(0.0)
    message = rf"missing \(or infinite\) in 'a' \({frame['a'].isna().sum()} rows\)"
    for kernels in (None, [RBF(1.0, missing="fill")], views({"all": ["a", "b"]}, missing="off")):
        model = MKLClassifier(kernels, missing="refuse")
        with pytest.raises(InputError, match=message):
            model.fit(frame, Y)
        model.fit(filled, Y)
        with pytest.raises(InputError, match=message):
            model.predict(frame)
    dd = pytest.importorskip("dask.dataframe")
    parts = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(InputError, match=r"In rows \d+ to .* missing \(or infinite\) in 'a'"):
        MKLClassifier(missing="refuse").fit(parts, Y)


@pytest.mark.parametrize("rule", RULES)
def test_kernels_of_a_fit_keep_their_rule(rule):
    model = MKLClassifier([*KERNELS, 2 * RBF(1.0) + Linear()], missing=rule).fit(X, Y)
    again = MKLClassifier(model.kernels_, missing=rule).fit(X, Y)
    np.testing.assert_allclose(values(again), values(model), atol=1e-12)
    other = MKLClassifier(model.kernels_, missing="off" if rule == "fill" else "fill").fit(X, Y)
    np.testing.assert_allclose(values(other), values(model), atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("kind", "options", "y"), MODELS, ids=NAMES)
def test_model_files(kind, options, y, rule, tmp_path):
    model = kind(KERNELS, missing=rule, **options).fit(X, y)
    again = load(save(model, tmp_path / "model.kw"))
    assert again.missing == rule
    np.testing.assert_array_equal(values(again), values(model))
    np.testing.assert_array_equal(values(again.fit(X, y)), values(model))


def test_kernels_that_files_cannot_hold_are_replaced_by_fitted_ones(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"))
    some = RBF(columns=lambda frame: list(frame.columns[:2]))
    model = MKLClassifier([some], missing="off").fit(frame, Y)
    again = load(save(model, tmp_path / "model.kw"))
    np.testing.assert_allclose(values(again.fit(frame, Y), frame), values(model, frame))


@pytest.mark.parametrize("rule", [*RULES, "complete"])
def test_probabilities_intervals_and_dask_tables(rule):
    dd = pytest.importorskip("dask.dataframe")
    rows = two_sources(90)
    frame = pd.DataFrame(rows, columns=list("abcde"))
    total = np.nansum(rows, axis=1)
    y = np.where(total > 0, "x", "y")
    groups = {"a": ["a", "b"], "b": ["c", "d", "e"]}
    options = {"kernels": views(groups, rbf_ladder([1.0, 3.0])), "missing": rule}
    model = MKLClassifier(**options, calibration="sigmoid").fit(frame, y)
    new = pd.DataFrame(two_sources(60, seed=2)[::-1], columns=list("abcde"))
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1.0)
    parts = dd.from_pandas(frame, npartitions=3)
    again = MKLClassifier(**options, calibration="sigmoid").fit(parts, y)
    np.testing.assert_allclose(values(again, new), values(model, new))
    bounds = MKLRegressor(**options, loss="square", intervals="jackknife+").fit(frame, total)
    low, high = np.asarray(bounds.predict_interval(new)).T
    assert (low < high).all()
    found = explain(model, new[:5], frame, by="source")
    decisions = values(model, new[:5]) - values(model, frame).mean()
    np.testing.assert_allclose(np.asarray(found.values).reshape(5, -1).sum(axis=1), decisions)


def test_a_source_that_nobody_has_explains_nothing():
    rows = two_sources(60)
    y = np.where(np.nansum(rows, axis=1) > 0, "x", "y")
    model = MKLClassifier(views(SOURCES, rbf_ladder([1.0])), missing="off").fit(rows, y)
    lacking = rows[np.isnan(rows[:, 0])]
    found = explain(model, lacking[:4], lacking, by="source")
    np.testing.assert_allclose(np.asarray(found.values).reshape(4, 2)[:, 0], 0.0, atol=1e-12)
    other = explain(model, lacking[:4], rows, by="source")  # absent where others have it
    assert np.abs(np.asarray(other.values).reshape(4, 2)[:, 0]).max() > 1e-3


def test_a_gap_satisfies_no_rule():
    rows = np.where(np.arange(60)[:, None] % 2, 1.0, 0.0) + np.linspace(0, 0.1, 60)[:, None]
    model = RuleEnsembleClassifier().fit(rows, rows[:, 0] > 0.5)
    assert model.rules_
    gap = model.decision_function([[NAN]])
    np.testing.assert_allclose(gap, model.intercept_, atol=1e-12)


@pytest.mark.parametrize("rule", [*RULES, None])
def test_skops_and_pickle_keep_the_rule(rule):
    skops = pytest.importorskip("skops.io")
    model = MKLClassifier(None if rule is None else KERNELS, missing=rule).fit(X, Y)
    stored = skops.dumps(model)
    types = skops.get_untrusted_types(data=stored)
    assert all(name.startswith(("kernelweave.", "numpy.", "sklearn.")) for name in types), types
    for loaded in (skops.loads(stored, trusted=types), pickle.loads(pickle.dumps(model))):
        assert loaded.missing == rule
        np.testing.assert_array_equal(values(loaded), values(model))
