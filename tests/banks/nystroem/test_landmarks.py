"""Landmarks of single kernels."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import RBF, Laplacian, Linear
from kernelweave.banks.nystroem.build import make_feature_bank
from many_rows import count_as_many


@pytest.fixture
def few(monkeypatch):
    count_as_many(monkeypatch, 2000)  # many blocks


def table(n=90, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


KERNELS = [RBF(width=1.0, columns=[0]), RBF(width=2.0, columns=[1]), Linear()]


def test_kernels_of_nothing_and_of_one_value(few):
    X = np.column_stack([table(), np.zeros(90), np.full(90, 3.0)])
    kernels = [*KERNELS[:2], Linear(columns=[3]), RBF(width=1.0, columns=[4])]
    bank = make_feature_bank(kernels, X, tol=1e-3)
    assert bank.is_constant.tolist() == [False, False, True, True]
    V = np.random.default_rng(11).normal(size=(90, 1))
    assert bank.quadratic_forms(V)[2] == 0.0
    assert np.isfinite(bank.combine(np.full(4, 0.25)) @ V).all()
    nothing = np.zeros((bank.blocks.n_columns, 1))
    assert not bank.function(nothing).values(kernels[:1], bank.source.views).any()


def test_kernels_other_than_gaussians_have_landmarks(few):
    X = table()
    kernels = [Linear(), Laplacian(width=3.0, columns=[0])]
    bank = make_feature_bank(kernels, X[:, :2], tol=1e-3)
    assert bank is None or bank.landmarks[0].rank == 2
