"""Regression of quantiles."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave import (
    MKLRegressor,
    MKLRegressorCV,
)
from kernelweave.banks import row_source
from kernelweave.banks.nystroem import build as large
from kernelweave.errors import InputError
from kernelweave.io import load, save
from loss_cases import (
    KERNELS,
    MANY,
    MANY_SCORE,
    NORMS,
    RANDOM,
    SCORE,
    SMOOTH,
    WEIGHT,
    N,
    X,
    quantile,
)


@pytest.fixture
def as_many_rows(monkeypatch):
    """Return a function after which a few rows count as many."""

    def count():
        monkeypatch.setattr(large, "MANY_ROWS", 10)
        monkeypatch.setattr(large, "_MOST_FEATURES", 1.0)
        monkeypatch.setattr(row_source, "_BLOCK_BYTES", 20_000)

    return count


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("level", [0.1, 0.5, 0.85])
def test_a_quantile_has_its_share_below(norm, level):
    model = quantile(level, norm=norm, tol=1e-8).fit(X, SCORE, WEIGHT)
    residual = SCORE - model.predict(X)
    close = 1e-3  # of rows at the quantile, known to the square root of the gap
    assert WEIGHT[residual > close].sum() <= (1 - level) * WEIGHT.sum() + 1e-9
    assert WEIGHT[residual < -close].sum() <= level * WEIGHT.sum() + 1e-9


def test_levels_flip_with_the_target():
    up = quantile(0.8, tol=1e-9).fit(X, SCORE)
    down = quantile(0.2, tol=1e-9).fit(X, -SCORE)
    assert down.objective_ == pytest.approx(up.objective_, rel=1e-8)
    assert_allclose(down.predict(X), -up.predict(X), atol=1e-3)


def test_the_median_is_a_tube_of_width_zero():
    half = quantile(0.5, tol=1e-9, C=2.0).fit(X, SCORE)
    tube = MKLRegressor(KERNELS, epsilon=0.0, C=1.0, tol=1e-9, target_scale=None).fit(X, SCORE)
    assert half.objective_ == pytest.approx(tube.objective_, rel=1e-8)


def test_levels_never_cross(tmp_path):
    levels = (0.05, 0.3, 0.5, 0.7, 0.95)
    model = quantile(levels, C=30.0).fit(X, SCORE)
    new = 2.0 * RANDOM.normal(size=(500, 4))
    predicted = model.predict(new)
    assert predicted.shape == (500, 5)
    assert (np.diff(predicted, axis=1) >= 0).all()
    raw = model._decide(new)
    assert not (np.diff(raw, axis=1) >= 0).all()  # sorting is needed here
    save(model, tmp_path / "model.kw")
    assert (load(tmp_path / "model.kw").predict(new) == predicted).all()
    chosen = MKLRegressorCV(KERNELS, loss="quantile", quantile=[0.1, 0.9], Cs=[0.01, 1.0])
    assert chosen.fit(X, SCORE).predict(new).shape == (500, 2)
    assert chosen.score(X, SCORE) > 0.2
    path = quantile((0.1, 0.9)).fit_path(X, SCORE, [0.1, 1.0])
    assert [part.predict(X).shape for part in path] == [(N, 2), (N, 2)]


@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_quantiles_by_nystroem_features(as_many_rows, norm):
    options = {"loss": "quantile", "quantile": (0.1, 0.5, 0.9), "norm": norm, "tol": 1e-4}
    exact = MKLRegressor(SMOOTH, **options).fit(MANY, MANY_SCORE)
    as_many_rows()
    model = MKLRegressor(SMOOTH, **options).fit(MANY, MANY_SCORE)
    assert model.converged_
    assert np.isfinite(model.landmark_gap_)
    assert model.objective_ == pytest.approx(exact.objective_, rel=3e-4)
    assert model.objective_ - model.duality_gap_ <= exact.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, (0.5, 0.5), (0.9, 0.1), (), ((0.1, 0.2),)])
def test_wrong_levels_are_refused(level):
    with pytest.raises(InputError, match="quantile: must be a number between 0 and 1"):
        quantile(level).fit(X, SCORE)


def test_several_levels_of_several_targets_are_refused():
    with pytest.raises(InputError, match="quantile: several levels need one target"):
        quantile((0.1, 0.9)).fit(X, np.column_stack([SCORE, SCORE]))
    model = quantile(0.3).fit(X, np.column_stack([SCORE, -SCORE]))
    assert model.predict(X).shape == (N, 2)
