"""Passes over rows in blocks: features, what they leave out, and sums."""

import numpy as np
import pytest

from kernelweave.banks import row_source
from kernelweave.banks.nystroem.landmarks import find_landmarks
from kernelweave.banks.row_source import LocalRows, feature_sums, fill_block, row_slices
from kernelweave.banks.views import Views
from kernelweave.kernels import RBF

X = np.random.default_rng(0).normal(size=(200, 2))


@pytest.fixture
def item():
    views, sample = Views.of([RBF(1.0)], X), [np.arange(60)]
    return find_landmarks([RBF(1.0)], [0], views, sample, tol=1e-4, max_rank=200)[0]


def test_blocks_of_features_and_what_they_leave_out(item):
    out = np.empty((200, item.rank))
    ((sums, means, worst),) = fill_block(out, [item], [X], np.full(200, 1 / 200), 1000)
    np.testing.assert_array_equal(out, item.features(X)[:, : item.rank])
    left = 1.0 - (item.features(X) ** 2).sum(axis=1)
    kept = 1.0 - (out**2).sum(axis=1)
    np.testing.assert_allclose(sums, [200.0, kept.sum(), left.sum(), 1.0], atol=1e-9)
    np.testing.assert_allclose(means, out.mean(axis=0))
    assert worst[0] == 1000 + left.argmax()


def test_sums_skip_rows_of_zeros(item):
    V = np.where(np.arange(200)[:, None] % 3, 0.0, X)
    np.testing.assert_allclose(feature_sums(item, X, V), item.features(X).T @ V, atol=1e-10)


def test_passes_over_blocks_are_one_pass(monkeypatch):
    monkeypatch.setattr(row_source, "WORK_ROWS", 64)
    source = LocalRows(Views.of([RBF(1.0)], X), 2)

    def work(views, V, first_row, known):
        return V.sum(axis=0), known * len(V), np.array([first_row])

    total, count, firsts = source.add_up(work, X, 2)
    np.testing.assert_allclose(total, X.sum(axis=0))
    assert count == 400
    assert firsts.tolist() == [0 + 64 + 128 + 192]
    found = source.collect(lambda views, V, first, known: known * V, X, 3.0)
    np.testing.assert_array_equal(found, 3.0 * X)


def test_blocks_cover_all_rows(monkeypatch):
    monkeypatch.setattr(row_source, "_BLOCK_BYTES", 800)
    parts = row_slices(205, 10, np.float64)
    assert parts[0] == slice(0, 10)
    assert parts[-1] == slice(200, 205)
    assert sum(s.stop - s.start for s in parts) == 205
    assert len(row_slices(205, 10, np.float64, n_columns=100)) == 205
