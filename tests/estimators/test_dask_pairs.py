"""Pairs of the rows of a Dask table: the same models from the rows that occur in pairs."""

from __future__ import annotations

import itertools
import os
import signal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from kernelweave import RBF, Linear, Overlap, PairwiseKernelLearner, io, rbf_ladder
from kernelweave._dask import PartedTable
from kernelweave.errors import InputError, MemoryBudgetError
from kernelweave.pairs import values

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

# True of some of these small problems.
pytestmark = pytest.mark.filterwarnings("ignore:.*rank no better than equal ones")

CHUNKS = (1, 80, 0, 49, 70)  # one row, no rows, uneven
N = sum(CHUNKS)
FITTED = "weights_ intercept_ threshold_ objective_ n_iter_ converged_ diagnostics_".split()


def table(n=N, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(3, size=n)
    X = np.column_stack([y[:, None] == np.arange(3), random.random((n, 3)) < 0.4]) * 1.0
    return X + 0.1 * random.random((n, 6)), y


def some_pairs(y, count=600, rows=None):
    """Draw pairs of some rows, as many same as different ones."""
    drawn = np.random.default_rng(1).choice(len(y), size=(6 * count, 2))
    drawn = drawn[drawn[:, 0] != drawn[:, 1]]
    same = y[drawn[:, 0]] == y[drawn[:, 1]]
    drawn = np.concatenate([drawn[same][: count // 2], drawn[~same][: count // 2]])
    labels = np.repeat([1, -1], count // 2)
    assert len(drawn) == len(labels)
    return drawn if rows is None else rows[drawn], labels


def parted(X):
    return da.from_array(X, chunks=(CHUNKS, *((s,) for s in X.shape[1:])))


def frame():
    X, y = table()
    return pd.DataFrame(X, columns=list("abcdef")).assign(g=pd.Categorical(y % 2 == 0)), y


def unknown_lengths(X):
    """Hold a frame in parts of lengths that Dask does not know, one of them empty."""
    ends = np.cumsum((0, *CHUNKS))
    parts = [dask.delayed(X.iloc[a:b]) for a, b in itertools.pairwise(ends)]
    return dd.from_delayed(parts, meta=X.iloc[:0], verify_meta=False)


def assert_same(there, here):
    for name in FITTED:
        np.testing.assert_equal(getattr(there, name), getattr(here, name), err_msg=name)


class Counted:
    """A lazy table of rows ``[i % 7, i % 5, 1]`` that notes which parts are computed."""

    def __init__(self, n, chunk):
        self.computed = []
        self.X = da.map_blocks(
            self._rows, chunks=((chunk,) * (n // chunk), (3,)), dtype=float, meta=np.empty((0, 0))
        )

    def _rows(self, block_info=None):
        (first, last), _ = block_info[None]["array-location"]
        self.computed.append(first)
        return rows_of(np.arange(first, last))


def rows_of(i):
    return np.column_stack([i % 7, i % 5, np.ones(len(i))]).astype(float)


@pytest.mark.parametrize("kernels", [None, [Linear(columns=[0, 1]), RBF(2.0), rbf_ladder()]])
@pytest.mark.parametrize("intercept", [False, True])
def test_an_array_gives_the_model_of_the_same_rows_here(kernels, intercept):
    X, y = table()
    pairs, labels = some_pairs(y)
    model = PairwiseKernelLearner(
        kernels, reliability=(0.9, 0.95), lam=1e-3, fit_intercept=intercept
    )
    here = model.fit(X, pairs=pairs, labels=labels)
    expected = {name: getattr(here, name) for name in FITTED}
    scores, verdict = here.score_pairs(X, pairs), here.predict_pairs(X, pairs)
    area, kernel = here.score(X, pairs=pairs, labels=labels), here.kernel(X[:50])
    there = model.fit(
        parted(X), pairs=da.from_array(pairs, chunks=100), labels=da.from_array(labels, chunks=70)
    )
    for name, value in expected.items():
        np.testing.assert_equal(getattr(there, name), value, err_msg=name)
    assert there.weights_.any()
    assert there.n_features_in_ == 6
    np.testing.assert_array_equal(there.score_pairs(parted(X), pairs), scores)
    np.testing.assert_array_equal(there.predict_pairs(parted(X), pairs), verdict)
    assert there.score(parted(X), pairs=pairs, labels=labels) == area
    np.testing.assert_array_equal(there.kernel(parted(X)[:50]), kernel)


@pytest.mark.parametrize(
    "kernels",
    [
        None,
        [Linear(columns=["a"]), Overlap(columns="g"), rbf_ladder(columns=["b", "c"])],
        [RBF(1.0, columns=lambda X: [name for name in X.columns if name < "d"]), Linear()],
    ],
)
def test_a_frame_of_unknown_lengths_gives_the_model_of_the_same_rows_here(kernels):
    X, y = frame()
    X = X if kernels and not callable(kernels[0].columns) else X.drop(columns="g")
    every_third = np.arange(0, N, 3)
    pairs, labels = some_pairs(y[every_third], rows=every_third)
    here = PairwiseKernelLearner(kernels, lam=1e-3).fit(X, pairs=pairs, labels=labels)
    parts = unknown_lengths(X)
    there = PairwiseKernelLearner(kernels, lam=1e-3).fit(parts, pairs=pairs, labels=labels)
    assert_same(there, here)
    assert there.kernels_ == here.kernels_
    assert there.feature_names_in_.tolist() == list(X.columns)
    np.testing.assert_array_equal(there.score_pairs(parts, pairs), here.score_pairs(X, pairs))


def test_classes_of_dask_are_drawn_from():
    X, y = table()
    here = PairwiseKernelLearner(random_state=0, n_pairs=200).fit(X, y)
    there = PairwiseKernelLearner(random_state=0, n_pairs=200).fit(parted(X), parted(y))
    assert_same(there, here)
    assert there.score(parted(X), parted(y)) == here.score(X, y)
    classes = dd.from_pandas(pd.Series(y).astype(str), npartitions=3)
    assert there.score(parted(X), classes) == here.score(X, y)
    lazy = there.transform(parted(X))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), here.transform(X))


def test_sparse_parts_and_truth_values():
    X, y = table()
    X = (X > 0.5).astype(float)
    pairs, labels = some_pairs(y)
    here = PairwiseKernelLearner().fit(sp.csr_array(X), pairs=pairs, labels=labels)
    thin = parted(X).map_blocks(sp.csr_array, dtype=float)
    assert_same(PairwiseKernelLearner().fit(thin, pairs=pairs, labels=labels), here)
    here = PairwiseKernelLearner().fit(X, pairs=pairs, labels=labels)
    assert_same(PairwiseKernelLearner().fit(parted(X > 0), pairs=pairs, labels=labels), here)


def test_shrink_fetches_the_table():
    X, y = table()
    pairs, _ = some_pairs(y)
    pairs = pairs[y[pairs[:, 0]] == y[pairs[:, 1]]]
    options = {"gamma": 0.5, "alpha": 1.0, "rho": 1.0, "n_resample": 1, "random_state": 0}
    here = PairwiseKernelLearner(method="shrink", **options).fit(X, pairs=pairs)
    there = PairwiseKernelLearner(method="shrink", **options).fit(parted(X), pairs=pairs)
    np.testing.assert_array_equal(there.weights_, here.weights_)
    np.testing.assert_array_equal(there.score_pairs(parted(X), pairs), here.score_pairs(X, pairs))
    # A later fit of the other method must forget the scales of columns.
    again = there.set_params(method="lkcnpc").fit(parted(X), y)
    assert_same(again, PairwiseKernelLearner(**options).fit(X, y))


@pytest.mark.parametrize("kernels", [None, [Linear(columns=[0]), RBF(2.0)]])
def test_only_parts_with_rows_in_pairs_are_computed(kernels):
    n, chunk = 400_000_000, 1_000_000  # 9.6 GB
    where = np.concatenate([np.arange(5), np.arange(n - 300, n), [200_000_000, 250_000_000]])
    pairs, labels = some_pairs(where % 7, 400, rows=where)
    rows, places = np.unique(pairs, return_inverse=True)
    here = PairwiseKernelLearner(kernels).fit(
        rows_of(rows), pairs=places.reshape(-1, 2), labels=labels
    )
    lazy = Counted(n, chunk)
    limit = PairwiseKernelLearner(kernels, memory_limit="1MB")
    with dask.config.set(scheduler="synchronous"):
        there = limit.fit(lazy.X, pairs=pairs, labels=labels)
        assert sorted(lazy.computed) == [0, 200_000_000, 250_000_000, n - chunk]
        scores = there.score_pairs(lazy.X, [[0, n - 1], [2, n - 2]])
    assert_same(there, here)
    assert len(lazy.computed) == 6
    np.testing.assert_array_equal(
        scores, here.score_pairs(rows_of(np.array([0, 2, n - 2, n - 1])), [[0, 3], [1, 2]])
    )


def test_default_widths_are_those_of_rows_spread_over_the_table(monkeypatch):
    monkeypatch.setattr("kernelweave.estimators.duplicates._WIDTH_ROWS", 40)
    X, y = table()
    X[100:] *= 3.0
    pairs, labels = some_pairs(y[:60])
    there = PairwiseKernelLearner([rbf_ladder()]).fit(parted(X), pairs=pairs, labels=labels)
    few = X[np.unique(np.linspace(0, N - 1, 40).astype(int))]
    assert there.kernels_ == rbf_ladder().expand(few)
    assert there.kernels_ != rbf_ladder().expand(X[:60])


def test_the_fitted_model_is_an_ordinary_one(tmp_path):
    X, y = table()
    pairs, labels = some_pairs(y)
    model = PairwiseKernelLearner([Linear(), RBF(1.0)], memory_limit="2GB")
    model.fit(parted(X), pairs=pairs, labels=labels)
    io.save(model, tmp_path / "model.kw")
    loaded = io.load(tmp_path / "model.kw")
    assert loaded.memory_limit == "2GB"
    np.testing.assert_array_equal(loaded.score_pairs(X, pairs), model.score_pairs(X, pairs))
    assert not any("dask" in type(v).__module__ for v in vars(model).values())


@pytest.mark.slow
def test_two_processes_give_the_same_bits_even_if_one_is_lost(monkeypatch):
    distributed = pytest.importorskip("distributed")
    X, y = frame()
    X = X.drop(columns="g")
    pairs, labels = some_pairs(y)
    here = PairwiseKernelLearner([Linear(), rbf_ladder()]).fit(X, pairs=pairs, labels=labels)
    options = {"dashboard_address": ":0", "worker_dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as workers,
        distributed.Client(workers) as client,
    ):
        parts = unknown_lengths(X).persist()
        distributed.wait(parts)
        victims = list(client.run(os.getpid).values())[:1]  # a process this test has started
        original = PartedTable.take

        def take(self, index):
            while victims:
                os.kill(victims.pop(), signal.SIGKILL)
            return original(self, index)

        monkeypatch.setattr(PartedTable, "take", take)
        there = PairwiseKernelLearner([Linear(), rbf_ladder()])
        there.fit(parts, pairs=pairs, labels=labels)
        scores = there.score_pairs(parts, pairs)
    assert not victims
    assert_same(there, here)
    np.testing.assert_array_equal(scores, here.score_pairs(X, pairs))


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("kernels", [None, [Linear(columns=[0]), RBF(2.0), Linear(columns=[4])]])
@pytest.mark.parametrize("shift", [0.0, -0.3])  # values without a sign are screened
def test_values_beyond_the_memory_go_to_a_file(monkeypatch, kernels, mapped, shift):
    X, y = table()
    X = X + shift
    pairs, labels = some_pairs(y, 2000)
    options = {"lam": 1e-3, "fit_intercept": shift < 0, "tol": 1e-10}
    here = PairwiseKernelLearner(kernels, **options).fit(X, pairs=pairs, labels=labels)
    monkeypatch.setattr(values, "_WHOLE", 1000.0)
    monkeypatch.setattr("kernelweave.banks.row_source._BLOCK_BYTES", 10_000)
    monkeypatch.setattr("kernelweave.banks.pairs.check_memory", lambda *args: None)
    built = []
    original = values.PairBlocks.filled
    monkeypatch.setattr(
        values.PairBlocks, "filled", lambda *args: built.append(original(*args)) or built[-1]
    )
    # Rows of the table need 9.6 kB, values at pairs 48 kB or more.
    limit = "20KB" if mapped else None
    there = PairwiseKernelLearner(kernels, memory_limit=limit, **options)
    there.fit(parted(X), pairs=pairs, labels=labels)
    assert built[0].blocks.mapped == mapped
    assert len(built[0].blocks.blocks) > 2
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-7, atol=1e-10)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-12)
    assert there.intercept_ == pytest.approx(here.intercept_, abs=1e-7)
    again = PairwiseKernelLearner(kernels, memory_limit="1GB", **options)
    assert_same(again.fit(X, pairs=pairs, labels=labels), there)


def test_bad_pairs_and_rows_are_refused_as_here():
    X, y = table()
    pairs, labels = some_pairs(y)
    outside = np.vstack([pairs, [[0, N]]])
    signs = np.append(labels, 1)
    for rows in (X, parted(X), unknown_lengths(pd.DataFrame(X, columns=list("abcdef")))):
        with pytest.raises(InputError, match=rf"pairs: row numbers must lie between 0 and {N - 1}"):
            PairwiseKernelLearner().fit(rows, pairs=outside, labels=signs)
    gap = X.copy()
    gap[150, 2] = np.nan
    touched = np.vstack([[[7, 150]], 2 * pairs[pairs.max(axis=1) < 70]])
    signs = np.resize([1, -1], len(touched))
    for rows in (gap, parted(gap)):
        with pytest.raises(InputError, match="NaN or infinity, first in row 150, column 2"):
            PairwiseKernelLearner().fit(rows, pairs=touched, labels=signs)
    with pytest.raises(ValueError, match="6 features"):
        PairwiseKernelLearner().fit(X, y).score_pairs(parted(X)[:, :3], pairs)
    with pytest.raises(NotFittedError):
        PairwiseKernelLearner().score_pairs(parted(X), pairs)


def test_a_missing_value_of_a_frame_is_named_by_its_row():
    X, y = frame()
    X.loc[150, "c"] = np.nan
    pairs, labels = some_pairs(y)
    pairs = np.vstack([pairs, [[7, 150]]])
    model = PairwiseKernelLearner([RBF(columns=["c"]), Linear(columns=["a"])])
    words = r"column 'c' has a missing.* in row 150;"
    with pytest.raises(InputError, match=words):
        model.fit(unknown_lengths(X), pairs=pairs, labels=np.append(labels, 1))
    assert not hasattr(model, "weights_")


def test_rows_beyond_the_memory_are_refused_and_sparse_ones_measured():
    X, y = table()
    pairs, labels = some_pairs(y)
    model = PairwiseKernelLearner(memory_limit="5KB")
    with pytest.raises(MemoryBudgetError, match=r"200 rows of 6 columns need .*memory_limit"):
        model.fit(parted(X), pairs=pairs, labels=labels)
    model.set_params(memory_limit="1MB").fit(parted(X), pairs=pairs, labels=labels)
    with pytest.raises(MemoryBudgetError, match=r"200 rows of 6 columns need .*memory_limit"):
        model.set_params(memory_limit="5KB").score_pairs(parted(X), pairs)
    wide = np.zeros((N, 500))
    wide[:, :6] = X > 0.5
    thin = parted(wide).map_blocks(sp.csr_array, dtype=float)
    here = PairwiseKernelLearner().fit(sp.csr_array(wide), pairs=pairs, labels=labels)
    there = PairwiseKernelLearner(memory_limit="50KB").fit(thin, pairs=pairs, labels=labels)
    assert_same(there, here)
