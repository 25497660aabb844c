"""Row blocks: the same numbers in memory and in a file, which takes no memory for long."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from kernelweave.banks.nystroem.blocks import LocalBlocks, new_store, release

STATUS = Path("/proc/self/status")


def filled(n_rows, n_columns, n_blocks, *, mapped):
    """Return blocks of normal numbers, of uneven lengths."""
    store = new_store(n_rows, n_columns, np.float32, mapped=mapped)
    ends = np.linspace(0, n_rows, n_blocks + 1).astype(int)
    ends[1:-1] += 3
    random = np.random.default_rng(0)
    parts = [store[a:b] for a, b in pairwise(ends)]
    for part in parts:
        part[:] = random.standard_normal(part.shape)
        release(part)
    return LocalBlocks(parts, mapped=mapped)


def resident_pages_of_files():
    """Return the memory that pages of files take in this process, in bytes."""
    lines = STATUS.read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))


def test_a_file_has_the_numbers_of_memory():
    here, there = (filled(500, 7, 4, mapped=mapped) for mapped in (False, True))
    random = np.random.default_rng(1)
    W, V, q = random.normal(size=(7, 2)), random.normal(size=(500, 2)), random.uniform(size=500)
    columns, index = np.array([5, 1]), np.array([499, 3, 130])
    for _ in range(2):  # what was given back is there again
        np.testing.assert_array_equal(there.times(W), here.times(W))
        np.testing.assert_array_equal(there.sums(V), here.sums(V))
        np.testing.assert_array_equal(there.gram(q, columns)[0], here.gram(q, columns)[0])
        np.testing.assert_array_equal(there.rows(index, columns), here.rows(index, columns))
    some = there.select(columns)
    np.testing.assert_array_equal(some.rows(index), here.rows(index, columns))


@pytest.mark.skipif(not STATUS.exists(), reason="the system does not tell what memory files take")
def test_passes_over_a_file_leave_no_pages_behind():
    blocks = filled(40_000, 400, 16, mapped=True)  # 64 MB
    columns, q = np.arange(0, 400, 2), np.ones(40_000)
    before = resident_pages_of_files()
    blocks.times(np.ones((400, 1)))
    blocks.sums(np.ones((40_000, 1)))
    blocks.gram(q, columns)
    blocks.rows(np.arange(0, 40_000, 50))
    some = blocks.select(columns)
    assert some.nbytes == blocks.nbytes / 2
    assert resident_pages_of_files() - before < blocks.nbytes / 4


def test_rows_without_curvature_have_no_gram():
    inner, edge = filled(500, 7, 4, mapped=False).gram(np.zeros(500), np.array([5, 1]))
    assert inner.shape == (2, 2)
    assert not inner.any()
    assert not edge.any()
