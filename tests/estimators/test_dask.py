"""Tables held by Dask: the same models, and lazy predictions."""

from __future__ import annotations

import itertools
import os
import signal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV

from dask_cases import KERNELS, parted, rule_frame, table
from kernelweave import (
    RBF,
    HierarchicalMKLClassifier,
    HierarchicalMKLRegressor,
    Linear,
    MKLClassifier,
    MKLRegressor,
    NoiseTolerantKernelClassifier,
    NoisyLabelMKLClassifier,
    Overlap,
    PairwiseKernelLearner,
    RadiusMKLClassifier,
    RuleEnsembleClassifier,
    RuleEnsembleClassifierCV,
    RuleEnsembleRegressor,
    SumProductMKLClassifier,
    io,
    rbf_ladder,
)
from kernelweave.banks import row_source as source
from kernelweave.banks.nystroem import build as large
from kernelweave.banks.nystroem.dask import DaskBlocks
from kernelweave.errors import InputError, InputTypeError, MemoryBudgetError
from many_rows import count_as_many
from quick import first

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture
def many(monkeypatch):
    count_as_many(monkeypatch, 12_000)


@pytest.fixture
def passes(monkeypatch):
    """Let few rows be read in passes, of several blocks."""
    monkeypatch.setattr(large, "MANY_ROWS", 10)
    monkeypatch.setattr(large, "PASS_ROWS", 10)
    monkeypatch.setattr(source, "WORK_ROWS", 40)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    options = {"dashboard_address": ":0", "worker_dashboard_address": None}
    with (
        dask.config.set({"distributed.worker.memory.terminate": False}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


def frame(n=300):
    X, f = table(n)
    color = np.where(f > 0.3, "red", np.where(X[:, 2] > 0, "green", "blue"))
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "color": color}), np.where(f > 0, "up", "down")


@pytest.mark.parametrize("norm", first(1, [1.0, 2.0, "uniform"]))
def test_a_classifier_is_the_one_of_the_same_rows_here(many, norm):
    X, f = table()
    y = np.where(f > 0, "up", "down")
    here = MKLClassifier(KERNELS, norm=norm, tol=1e-7).fit(X, y)
    there = MKLClassifier(KERNELS, norm=norm, tol=1e-7).fit(parted(X), parted(y))
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-6)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-3)
    np.testing.assert_array_equal(there.predict(X), here.predict(X))
    assert there.converged_
    assert there.n_features_in_ == 3
    assert there.landmark_gap_ <= there.duality_gap_


SAME = ("weights_", "intercept_", "objective_", "duality_gap_")


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_a_fit_that_begins_from_a_sample_is_the_same_to_the_last_bit(
    many, classes, norm, monkeypatch
):
    """Blocks end at the same rows wherever these are, and sums are taken in the same order."""
    monkeypatch.setattr(source, "_BLOCK_BYTES", 60_000)
    X, f = table(1500)
    y = np.digitize(f, np.quantile(f, np.arange(1, classes) / classes))
    model = MKLClassifier(KERNELS, norm=norm)
    here = clone(model).fit(X, y)
    for chunks in ((700, 0, 1, 799), (300,) * 5):
        parts = da.from_array(X, chunks=(chunks, (X.shape[1],)))
        there = clone(model).fit(parts, y)
        for name in SAME:
            np.testing.assert_array_equal(getattr(there, name), getattr(here, name), err_msg=name)
        np.testing.assert_array_equal(there.decision_function(X), here.decision_function(X))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "square", "huber"])
@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_a_regression_that_begins_from_a_sample_is_the_same_to_the_last_bit(many, loss, norm):
    X, f = table(1200)
    model = MKLRegressor(KERNELS, loss=loss, norm=norm)
    here = clone(model).fit(X, f)
    there = clone(model).fit(da.from_array(X, chunks=(500, X.shape[1])), f)
    for name in SAME:
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name), err_msg=name)
    np.testing.assert_array_equal(there.predict(X), here.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "square", "huber"])
def test_regression_of_two_targets(many, loss):
    X, f = table()
    Y = np.column_stack([f, -0.5 * f + X[:, 2]])
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    weight[3] = 0.0
    model = MKLRegressor(KERNELS, loss=loss, epsilon=0.2, tol=1e-6)
    here = model.fit(X, Y, weight).predict(X)
    value = model.objective_
    there = model.fit(parted(X), parted(Y), sample_weight=parted(weight))
    assert there.objective_ == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(there.predict(X), here, atol=2e-2)


def test_default_kernels_are_those_of_the_rows_here(many, monkeypatch):
    monkeypatch.setattr("kernelweave.estimators.duplicates._WIDTH_ROWS", 40)
    X, f = table()
    here, there = MKLClassifier().fit(X, f > 0), MKLClassifier().fit(parted(X), parted(f > 0))
    assert here.kernels_ == there.kernels_
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-3)


def test_frames_keep_names_and_categories(many):
    X, y = frame()
    kernels = [rbf_ladder([1.0], columns=["a"]), Linear(columns=["b"]), Overlap(columns=["color"])]
    here = MKLClassifier(kernels).fit(X, y)
    there = MKLClassifier(kernels).fit(dd.from_pandas(X, npartitions=4), pd.Series(y))
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-3)
    assert there.feature_names_in_.tolist() == ["a", "b", "color"]
    lazy = there.predict(dd.from_pandas(X, npartitions=3))
    np.testing.assert_array_equal(lazy.compute(), here.predict(X))


def test_many_columns_of_chunks_and_whole_numbers(many):
    X = np.random.default_rng(0).integers(0, 5, size=(300, 3))
    y = X.sum(axis=1) > 6
    there = MKLClassifier(KERNELS).fit(da.from_array(X, chunks=(100, 2)), y)
    here = MKLClassifier(KERNELS).fit(X.astype(float), y)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-3)


def test_few_rows_come_here():
    X, f = table()
    here, there = MKLClassifier(KERNELS).fit(X, f > 0), MKLClassifier(KERNELS).fit(parted(X), f > 0)
    assert there.objective_ == here.objective_
    np.testing.assert_array_equal(there.decision_function(X), here.decision_function(X))


@pytest.mark.parametrize(
    "model",
    [
        NoiseTolerantKernelClassifier(),
        NoisyLabelMKLClassifier(KERNELS),
        RadiusMKLClassifier(KERNELS),
        SumProductMKLClassifier(),
        HierarchicalMKLClassifier(),
        HierarchicalMKLRegressor(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_estimators_take_dask_too(model):
    X, f = table(120)
    y = f > 0 if is_classifier(model) else f
    parts = da.from_array(X, chunks=(50, 3))
    here = clone(model).fit(X, y)
    there = clone(model).fit(parts, da.from_array(y, chunks=40))
    names = [n for n in ("predict", "decision_function", "predict_proba") if hasattr(model, n)]
    for name in names:
        expected = getattr(here, name)(X)
        lazy = getattr(there, name)(parts)
        assert isinstance(lazy, da.Array)
        assert lazy.shape == expected.shape
        np.testing.assert_allclose(lazy.compute().astype(float), expected.astype(float), atol=1e-9)


NOISE_ATTRIBUTES = [
    "weights_", "ridge_weights_", "contributions_", "scales_", "support_", "dual_coef_",
    "intercept_", "loo_scores_", "label_quality_", "wrong_label_probability_", "rates_",
]  # fmt: skip


def noisy(n=300, classes=2, seed=0):
    """Return rows, true classes and labels of which a quarter is drawn anew."""
    X, f = table(n, seed)
    true = np.digitize(f, np.quantile(f, np.arange(1, classes) / classes))
    rng = np.random.default_rng(7)
    return X, true, np.where(rng.random(n) < 0.25, rng.integers(0, classes, n), true)


def assert_same(one, other):
    for name in NOISE_ATTRIBUTES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.kernels_ == other.kernels_


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"mode": "class"}, {"average": "kernels"}], ids=["auto", "class", "kernels"]
)
def test_a_noise_tolerant_model_is_that_of_the_rows_here_to_the_last_bit(passes, options, classes):
    X, true, y = noisy(classes=classes)
    here = NoiseTolerantKernelClassifier(KERNELS[::2], **options).fit(X, y)
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            there = NoiseTolerantKernelClassifier(KERNELS[::2], **options).fit(parted(X), parted(y))
            lazy = there.predict_proba(parted(X))
            assert isinstance(lazy, da.Array)
            np.testing.assert_allclose(lazy.compute(), here.predict_proba(X), atol=1e-12)
        assert_same(there, here)
    assert there.suspects(10).index.tolist() == here.suspects(10).index.tolist()
    assert np.mean(there.predict(X) == true) > 1.5 / classes
    # Gram matrices of all rows give the same, but for what rounding leaves out of landmarks.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "PASS_ROWS", 5000)
        exact = NoiseTolerantKernelClassifier(KERNELS[::2], **options).fit(X, y)
    np.testing.assert_allclose(here.loo_scores_, exact.loo_scores_, atol=1e-5)
    np.testing.assert_allclose(here.decision_function(X), exact.decision_function(X), atol=1e-5)


@pytest.mark.slow
def test_a_noise_tolerant_model_of_a_frame_can_be_saved(passes, tmp_path):
    X, y = frame()
    model = NoiseTolerantKernelClassifier().fit(dd.from_pandas(X, npartitions=4), pd.Series(y))
    here = NoiseTolerantKernelClassifier().fit(X, y)
    assert_same(model, here)
    assert model.feature_names_in_.tolist() == ["a", "b", "color"]
    io.save(model, tmp_path / "model.kw")
    loaded = io.load(tmp_path / "model.kw")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.suspects(5).index.tolist() == model.suspects(5).index.tolist()
    again = model.fit(X[["a", "b"]][:9], y[:9])  # few rows: all of them support it
    assert again._function is None
    assert again.predict(X[["a", "b"]]).shape == y.shape


def test_a_support_vector_machine_at_the_end_fetches_its_rows(passes):
    X, _, y = noisy()
    model = NoiseTolerantKernelClassifier(mode="class", final="svm")
    here = clone(model).fit(X, y)
    there = clone(model).fit(parted(X), parted(y))
    assert_same(there, here)


@pytest.mark.slow
def test_a_cluster_gives_a_noise_tolerant_model_to_the_last_bit(passes, cluster, monkeypatch):
    from kernelweave.banks.nystroem.dask import DaskRows

    X, _, y = noisy(2000, seed=3)
    here = NoiseTolerantKernelClassifier(KERNELS).fit(X, y)
    parts = da.from_array(X, chunks=(250, 3))
    assert_same(NoiseTolerantKernelClassifier(KERNELS).fit(parts, y), here)
    distributed = pytest.importorskip("distributed")
    parts = parts.persist()
    distributed.wait(parts)
    victim = next(iter(cluster.run(os.getpid).values()))  # a process this test has started
    original = DaskRows.collect

    def collect(self, *args):
        os.kill(victim, signal.SIGKILL)
        return original(self, *args)

    monkeypatch.setattr(DaskRows, "collect", collect)
    model = NoiseTolerantKernelClassifier(KERNELS).fit(parts, y)
    assert victim not in cluster.run(os.getpid).values()
    assert_same(model, here)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"lam": 0.1},
        # A cap that does nothing; the value is so flat that it leaves weights open until the end.
        {"lam": 0.003, "cap": 0.9, "tol": 1e-6},
        {"lam": 0.1, "noise_level": "auto", "slack": 0.1},
        {"lam": 0.1, "fit_intercept": False},
    ],
    ids=["bound", "idle", "auto", "plain"],
)
def test_a_capped_classifier_is_that_of_the_rows_here(passes, monkeypatch, options):
    X, f = table()
    # Mostly yes, and linear kernels, so that the constant has a weight.
    y = np.where(np.where(np.arange(300) % 7, X[:, 1] + 0.3 * f + 1, -1) > 0, "yes", "no")
    kernels = [Linear(columns=[0]), Linear(columns=[1]), RBF(width=2.0, columns=[2])]
    model = NoisyLabelMKLClassifier(kernels, **{"tol": 1e-4, **options})
    monkeypatch.setattr(large, "_MOST_FEATURES", 1.0)
    here = clone(model).fit(X, y)
    there = clone(model).fit(parted(X), parted(y))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "MANY_ROWS", 5000)
        exact = clone(model).fit(X, y)
    assert exact._function is None
    for fitted in (here, there):
        assert fitted.converged_
        assert fitted._function is not None
        assert abs(fitted.objective_ - exact.objective_) <= exact.duality_gap_ + fitted.duality_gap_
        assert fitted.gamma_ == pytest.approx(exact.gamma_, abs=1e-2)
        np.testing.assert_allclose(fitted.cap_, exact.cap_, atol=1e-6)
        np.testing.assert_allclose(fitted.weights_, exact.weights_, atol=0.02)
        assert fitted.bias_weight_ == pytest.approx(exact.bias_weight_, abs=0.02)
        np.testing.assert_allclose(
            fitted.decision_function(X), exact.decision_function(X), atol=0.02
        )
        np.testing.assert_allclose(fitted.label_quality_, exact.label_quality_, atol=1e-4)
        np.testing.assert_allclose(
            fitted.dual_weights_.mean(), exact.dual_weights_.mean(), atol=0.01
        )
    if options.get("fit_intercept", True):
        assert exact.bias_weight_ > 0.05
    lazy = there.predict(parted(X))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), there.predict(X))
    assert len(there.suspects()) > 0


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "paper", "max_iter": 30},
        {"robust": "best"},
        {"slack": 0.1, "uncertainty": "exact"},
    ],
    ids=["paper", "best", "exact"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_capped_classifiers_fetch_their_rows(passes, options):
    X, f = table(80)
    model = NoisyLabelMKLClassifier(KERNELS[:3], **options)
    parts = da.from_array(X, chunks=(30, 3))
    here, there = clone(model).fit(X, f > 0), clone(model).fit(parts, f > 0)
    np.testing.assert_array_equal(there.decision_function(X), here.decision_function(X))


def test_a_capped_classifier_of_several_classes_fetches_its_rows(passes):
    X, _, y = noisy(120, classes=3)
    model = NoisyLabelMKLClassifier(KERNELS[:3])
    parts = da.from_array(X, chunks=(50, 3))
    here, there = clone(model).fit(X, y), clone(model).fit(parts, y)
    np.testing.assert_array_equal(there.decision_function(X), here.decision_function(X))


def test_a_capped_classifier_can_be_saved_and_knows_constant_kernels(passes, monkeypatch, tmp_path):
    monkeypatch.setattr(large, "_MOST_FEATURES", 1.0)
    X, f = table()
    model = NoisyLabelMKLClassifier(KERNELS[:2], lam=0.1).fit(parted(X), f > 0)
    io.save(model, tmp_path / "model.kw")
    loaded = io.load(tmp_path / "model.kw")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    constant = np.zeros_like(X)
    with pytest.warns(UserWarning, match="the best function is zero"):
        model.fit(parted(constant), np.arange(300) % 2)
    np.testing.assert_allclose(model.label_quality_, 0.5)


def test_pairs_take_dask_too():
    X, f = table(120)
    y = np.where(f > 0, 1, 0)
    parts = da.from_array(X, chunks=(50, 3))
    here = PairwiseKernelLearner(random_state=0).fit(X, y)
    there = PairwiseKernelLearner(random_state=0).fit(parts, da.from_array(y, chunks=60))
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-12)
    np.testing.assert_allclose(there.transform(parts).compute(), here.transform(X), atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        RuleEnsembleClassifier(),
        RuleEnsembleRegressor(),
        RuleEnsembleRegressor(1.0, linear_terms=True),
    ],
)
def test_rules_are_those_of_the_same_rows_here(model):
    X, y = rule_frame()
    y = y.to_numpy() if isinstance(model, RuleEnsembleClassifier) else y.to_numpy().astype(float)
    y = X["age"].fillna(40.0).to_numpy() if model.linear_terms else y
    weight = np.random.default_rng(6).integers(1, 3, len(X)).astype(float)
    here = clone(model).fit(X, y, weight)
    table = dd.from_pandas(X, npartitions=5)
    there = clone(model).fit(table, da.from_array(y, chunks=90), da.from_array(weight, chunks=70))
    assert there.objective_ == here.objective_
    pd.testing.assert_frame_equal(there.to_frame(), here.to_frame())
    np.testing.assert_array_equal(there.predict(table).compute(), here.predict(X))
    assert there.feature_names_in_.tolist() == ["age", "dose", "site"]
    assert there.linear_terms_ == here.linear_terms_
    assert bool(there.linear_terms_) == model.linear_terms


def test_given_propositions_and_gaps_in_arrays():
    P = np.random.default_rng(0).random((300, 5)) < 0.4
    y = P[:, 0] & ~P[:, 3]
    here = RuleEnsembleClassifier(propositions="given").fit(P, y)
    there = RuleEnsembleClassifier(propositions="given").fit(parted(P), y)
    assert [str(r) for r in there.rules_] == [str(r) for r in here.rules_]
    X = np.where(P, np.nan, P.cumsum(axis=0) / 100.0)
    here = RuleEnsembleClassifier().fit(X, y)
    there = RuleEnsembleClassifier().fit(parted(X), y)
    assert there.objective_ == here.objective_


def test_paths_and_searches_fetch_their_rows():
    X, y = rule_frame(150)
    table = dd.from_pandas(X, npartitions=3)
    path = RuleEnsembleClassifier().fit_path(table, y, [0.1, 1.0])
    assert path[1].objective_ == RuleEnsembleClassifier().fit_path(X, y, [0.1, 1.0])[1].objective_
    found = RuleEnsembleClassifierCV(Cs=[0.1, 1.0], cv=2).fit(table, y)
    assert found.C_ == RuleEnsembleClassifierCV(Cs=[0.1, 1.0], cv=2).fit(X, y).C_


def test_widths_are_those_of_rows_with_a_weight(many, monkeypatch):
    monkeypatch.setattr("kernelweave.estimators.duplicates._WIDTH_ROWS", 5)
    X, f = table()
    weight = np.zeros(300)
    weight[[3, 4, 8, 9, 200, 201]] = 1.0  # none of them among five rows spread over the table
    model = MKLRegressor([rbf_ladder()]).fit(parted(X), f, sample_weight=weight)
    assert np.isfinite([kernel.width for kernel in model.kernels_]).all()


def test_the_fitted_model_is_an_ordinary_one(many, tmp_path):
    X, f = table()
    model = MKLClassifier(KERNELS).fit(parted(X), parted(f > 0))
    io.save(model, tmp_path / "model.kw")
    loaded = io.load(tmp_path / "model.kw")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert not any("dask" in type(v).__module__ for v in vars(model).values())


@pytest.mark.parametrize(
    ("X", "y", "error", "words"),
    [
        (lambda X: da.from_array(X[:, 0], chunks=50), None, InputError, "two dimensions"),
        (lambda X: da.from_array(X.astype(str), chunks=50), None, InputTypeError, "numbers"),
        (lambda X: dask.delayed(X), None, InputTypeError, "an array or a data frame"),
        (lambda X: parted(np.where(np.arange(300) == 170, np.nan, X.T).T), None, InputError,
         r"row 170 \(row 19 of part 3\), column 0"),
        (parted, np.zeros(10), ValueError, "inconsistent numbers of samples"),
        (lambda X: parted(X)[:0], np.zeros(0), InputError, "Found 0 row"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused_in_a_sentence(X, y, error, words):
    values, f = table()
    with pytest.raises(error, match=words):
        MKLClassifier(KERNELS).fit(X(values), f > 0 if y is None else y)


def test_a_part_that_a_kernel_refuses_is_named(many, monkeypatch):
    monkeypatch.setattr(large, "_SAMPLE", 4)  # rows that are looked at here
    monkeypatch.setattr(source, "_BLOCK_BYTES", 3200)
    monkeypatch.setattr("kernelweave.estimators.duplicates._WIDTH_ROWS", 4)
    X, y = frame()
    X.loc[250, "a"] = np.nan
    with pytest.raises(InputError, match=r"missing or infinite value in row 250;"):
        MKLClassifier([RBF(columns=["a"]), Linear(columns=["b"])]).fit(
            dd.from_pandas(X, npartitions=4), y
        )


def test_a_table_that_this_process_cannot_hold_is_not_fetched(monkeypatch):
    monkeypatch.setattr("kernelweave._dask.table.parse_bytes", lambda limit: 5000.0)
    X, f = table()
    with pytest.raises(MemoryBudgetError, match="300 rows of 3 columns"):
        RadiusMKLClassifier(KERNELS).fit(parted(X), f > 0)


@pytest.mark.slow
def test_a_cluster_gives_the_same_bits_as_threads(many, cluster):
    X, f = table()
    with dask.config.set(scheduler="synchronous"):
        alone = MKLClassifier(KERNELS).fit(parted(X), f > 0)
    model = MKLClassifier(KERNELS).fit(parted(X), parted(f > 0))
    np.testing.assert_array_equal(model.weights_, alone.weights_)
    assert model.objective_ == alone.objective_
    lazy = model.predict(parted(X))
    np.testing.assert_array_equal(lazy.compute(), alone.predict(X))


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_changes_nothing(many, cluster, monkeypatch):
    distributed = pytest.importorskip("distributed")
    X, f = table(2000, seed=3)
    X = da.from_array(X, chunks=(250, 3))
    with dask.config.set(scheduler="synchronous"):
        alone = MKLClassifier(KERNELS).fit(X, f > 0)
    X = X.persist()
    distributed.wait(X)
    victim = next(iter(cluster.run(os.getpid).values()))  # a process this test has started
    passes = itertools.count()
    original = DaskBlocks.sums

    def sums(self, V):
        if next(passes) == 20:
            os.kill(victim, signal.SIGKILL)
        return original(self, V)

    monkeypatch.setattr(DaskBlocks, "sums", sums)
    model = MKLClassifier(KERNELS).fit(X, f > 0)
    assert next(passes) > 21
    assert victim not in cluster.run(os.getpid).values()
    np.testing.assert_array_equal(model.weights_, alone.weights_)
    assert model.objective_ == alone.objective_


@pytest.mark.slow
def test_features_that_no_worker_could_hold_are_refused_first(many, cluster, monkeypatch):
    from kernelweave.banks.nystroem import dask as banks_dask

    monkeypatch.setattr(banks_dask, "_SHARE", 1e-9)
    X, f = table()
    with pytest.raises(MemoryBudgetError, match=r"2 Dask worker\(s\) have"):
        MKLClassifier(KERNELS).fit(parted(X), f > 0)


@pytest.mark.slow
def test_grid_search_over_a_cluster(cluster):
    joblib = pytest.importorskip("joblib")
    X, f = table(120)
    search = GridSearchCV(MKLClassifier(KERNELS), {"C": [0.1, 1.0]}, cv=2)
    expected = search.fit(X, f > 0).cv_results_["mean_test_score"]
    with joblib.parallel_backend("dask"):
        search.fit(X, f > 0)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected)
