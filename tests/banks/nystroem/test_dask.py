"""Nystroem features of a Dask table."""

from __future__ import annotations

import pytest

from dask_cases import KERNELS, parted, table
from kernelweave import (
    MKLClassifier,
)
from kernelweave.errors import MemoryBudgetError
from many_rows import count_as_many

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


@pytest.fixture
def many(monkeypatch):
    count_as_many(monkeypatch, 12_000)


def test_features_that_this_process_cannot_hold_are_refused_first(many, monkeypatch):
    monkeypatch.setattr(
        "kernelweave.banks.nystroem.dask._worker_limits", lambda: None
    )  # of another test
    X, f = table()
    with dask.config.set(scheduler="synchronous"):
        model = MKLClassifier(KERNELS, memory_limit="20kB")
        with pytest.raises(MemoryBudgetError, match=r"without a cluster: its features need .* kB"):
            model.fit(parted(X), f > 0)
        assert model.set_params(memory_limit="100MB").fit(parted(X), f > 0).converged_
