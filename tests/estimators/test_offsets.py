"""Common offsets of columns change nothing that an intercept can take up."""

import numpy as np
import pytest

from kernelweave import RBF, Linear, MKLClassifier, MKLRegressor, RadiusMKLClassifier
from kernelweave.errors import InputError, InputTypeError
from kernelweave.io import load, save
from kernelweave.kernels.plain import from_plain, to_plain
from quick import first


def rows(n, d=3):
    X = np.random.default_rng(0).normal(size=(n, d)).round(3)
    noise = np.random.default_rng(1).normal(size=n)
    return X, X[:, 0] - 0.5 * X[:, 1] + 0.3 * noise


@pytest.mark.parametrize("offset", [1e5, 2.0**30, 1e9])
@pytest.mark.parametrize("n", first(1, [120, 3200]))
def test_a_classifier_is_the_same_at_any_offset(n, offset):
    X, score = rows(n)
    y = score > 0
    here = MKLClassifier([Linear(), RBF(2.0)]).fit(X, y)
    there = MKLClassifier([Linear(), RBF(2.0)]).fit(X + offset, y)
    assert here.kernels_[0] == Linear()
    assert str(there.kernels_[0]) == "linear (centred)"
    assert there.converged_
    rounding = 1e-16 * offset  # of the rows themselves
    assert there.n_iter_ <= here.n_iter_ + 2
    assert there.scales_[0] == pytest.approx(here.scales_[0], 1e-6)
    assert abs(there.objective_ - here.objective_) < (1e-4 + rounding) * here.objective_
    assert np.mean(there.predict(X + offset) == here.predict(X)) > 0.99


@pytest.mark.parametrize("loss", ["square", "huber", "epsilon_insensitive"])
def test_a_regressor_is_the_same_at_any_offset(loss):
    X, y = rows(100)
    here = MKLRegressor([Linear()], loss=loss, tol=1e-6).fit(X, y)
    there = MKLRegressor([Linear()], loss=loss, tol=1e-6).fit(X + 1e8, y)
    assert there.objective_ == pytest.approx(here.objective_, 1e-5)
    np.testing.assert_allclose(there.predict(X + 1e8), here.predict(X), atol=1e-3)


def test_the_radius_is_the_same_at_any_offset():
    X, score = rows(80)
    here = RadiusMKLClassifier([Linear(), RBF(1.0)]).fit(X, score > 0)
    there = RadiusMKLClassifier([Linear(), RBF(1.0)]).fit(X + 1e7, score > 0)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-3)


@pytest.mark.parametrize(
    "options", [{"fit_intercept": False}, {"normalize": "diagonal"}, {"normalize": "cosine"}]
)
def test_where_zero_matters_nothing_is_centred(options):
    X, score = rows(60)
    model = MKLClassifier([Linear()], **options).fit(X + 1e4, score > 0)
    assert "centred" not in str(model.kernels_[0])


def test_constant_columns_are_nothing():
    X = np.full((40, 2), 1e6 + 0.1)
    model = MKLClassifier([Linear(), RBF(1.0)]).fit(X, np.arange(40) % 2)
    assert model.converged_
    assert not model.kernels_[0](X).any()
    assert np.isfinite(model.decision_function(X)).all()


def test_a_centre_is_saved(tmp_path):
    X, score = rows(60)
    model = MKLClassifier([Linear()]).fit(X + 1e6, score > 0)
    save(model, tmp_path / "model.kw")
    again = load(tmp_path / "model.kw")
    assert again.kernels_ == model.kernels_
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


def test_a_centre_is_part_of_the_kernel():
    kernel = Linear([1.0, 2.0])
    assert np.array_equal(kernel([[2.0, 2.0], [1.0, 4.0]]), [[1, 0], [0, 4]])
    assert np.array_equal(kernel.diag([[2.0, 2.0], [1.0, 4.0]]), [1, 4])
    assert repr(kernel) == "Linear(centre=(1.0, 2.0))"
    assert repr(Linear()) == "Linear()"
    assert from_plain(to_plain(kernel), "kernel") == kernel


def test_a_wrong_centre_is_refused():
    with pytest.raises(InputTypeError, match="one per column"):
        Linear("ab")
    with pytest.raises(InputError, match="finite"):
        Linear([np.nan])
    with pytest.raises(InputError, match="centre of 2 numbers needs dense rows"):
        Linear([1.0, 2.0])(np.ones((2, 3)))
