import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.model_selection import GridSearchCV

from kernelweave import (
    HierarchicalMKLRegressor,
    MetricKernelRegressor,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    NoiseTolerantKernelClassifier,
    ProductLattice,
    SumProductMKLClassifier,
    learned_metric,
    rbf_ladder,
    views,
)
from kernelweave.errors import InputError
from kernelweave.io import load, save
from kernelweave.kernels import RBF, MetricLaplacian

X, Y = make_friedman1(160, n_features=8, random_state=0)
LABEL = np.where(Y > np.median(Y), "high", "low")
FAMILY = learned_metric(n_steps=1)


def test_two_parts_of_the_metric_that_the_estimator_learns():
    first, second = FAMILY.expand(X, y=Y)
    assert [str(first), str(second)] == [
        "learned metric (l1) on 8 columns",
        "learned metric (l2) on 8 columns",
    ]
    model = MetricKernelRegressor(n_steps=1).fit(X, Y)
    share = model.share_
    np.testing.assert_allclose(
        share * first(X) + (1 - share) * second(X), model.kernel_(X), atol=1e-12
    )


def test_labels_are_signs_of_classes():
    (text, _), (signs, _) = (
        FAMILY.expand(X, y=y) for y in (LABEL, np.where(LABEL == "low", 1, -1))
    )
    np.testing.assert_allclose(text(X), signs(X), atol=1e-7)


@pytest.mark.parametrize(
    "model",
    [
        MKLRegressor([FAMILY, RBF(1.0)], norm=2, C=10.0),
        MKLRegressor(FAMILY, norm="uniform", C=10.0),
        MKLRegressor(views({"left": ([0, 1, 2], [FAMILY]), "right": [3, 4]}), norm=2, C=10.0),
        HierarchicalMKLRegressor(ProductLattice([FAMILY, rbf_ladder([1.0])]), C=100.0),
        HierarchicalMKLRegressor([FAMILY], C=100.0),
    ],
    ids=["list", "alone", "views", "lattice", "graph"],
)
def test_regressors_learn_the_metric_inside_the_fit(model, tmp_path):
    model = clone(model).fit(X[:120], Y[:120])
    assert any(isinstance(kernel, MetricLaplacian) for kernel in model.kernels_)
    assert model.score(X[120:], Y[120:]) > 0.6
    save(model, tmp_path / "model.kw")
    again = load(tmp_path / "model.kw")
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-12)


def test_classifiers_and_structures():
    model = MKLClassifier([FAMILY, RBF(1.0)], norm=2).fit(X[:120], LABEL[:120])
    assert model.score(X[120:], LABEL[120:]) > 0.75
    network = SumProductMKLClassifier([FAMILY]).fit(X[:120], LABEL[:120])
    assert network.score(X[120:], LABEL[120:]) > 0.75


def test_every_fold_learns_its_own_metric(monkeypatch):
    rows = []
    expand = type(FAMILY).expand
    monkeypatch.setattr(
        type(FAMILY),
        "expand",
        lambda self, X, weight=None, y=None: rows.append(len(y)) or expand(self, X, weight, y),
    )
    search = GridSearchCV(MKLRegressor([FAMILY], norm=2), {"C": [1.0]}, cv=4).fit(X, Y)
    assert rows == [120, 120, 120, 120, 160]
    assert search.best_score_ > 0.5
    rows.clear()
    MKLClassifierCV([FAMILY], norm=2, Cs=[1.0], cv=4).fit(X, LABEL)
    assert rows == [120, 120, 120, 120, 160]


def test_weights_of_norm_one_are_warned_of():
    with pytest.warns(UserWarning, match="norm=1: prefers kernels that have seen the targets"):
        MKLRegressor([FAMILY]).fit(X, Y)


def test_weights_count_like_repeated_rows_and_many_rows_are_drawn():
    weight = np.zeros(160)
    weight[:100] = 2.0
    (kernel, _), (part, _) = FAMILY.expand(X, weight, Y), FAMILY.expand(X[:100], None, Y[:100])
    np.testing.assert_allclose(kernel(X), part(X), atol=1e-9)
    drawn = learned_metric(metric_rows=50)
    (first, _), (second, _) = drawn.expand(X, y=Y), drawn.expand(X, y=Y)
    assert first == second
    assert first != FAMILY.expand(X, y=Y)[0]


def test_mixed_frames():
    frame = pd.DataFrame({"size": X[:, 3], "town": np.where(X[:, 0] > 0.5, "Ulm", "Bonn")})
    frame["day"] = pd.date_range("2024-01-01", periods=160)
    model = MKLRegressor([FAMILY], norm=2, C=10.0).fit(frame, Y)
    assert model.kernels_[0].encoding.keys == ("size", "town", "day")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_steps": -1}, r"learned_metric\(n_steps=-1\): must be a whole number >= 0"),
        ({"metric_rows": 2.5}, r"learned_metric\(metric_rows=2.5\): must be a whole number >= 10"),
        ({"shrink": 2}, r"learned_metric\(shrink=2\): must be a number between 0 and 1"),
        ({"select": "aic"}, r"learned_metric\(select='aic'\): must be 'loo' or 'cv'"),
        ({"ridges": []}, "ridges: must be one or more finite numbers > 0"),
    ],
)
def test_bad_options_get_a_sentence(options, message):
    with pytest.raises(InputError, match=message):
        learned_metric(**options)


def test_without_targets_there_is_a_sentence():
    with pytest.raises(InputError, match="learned_metric: learns from targets, and here there are"):
        FAMILY.expand(X)
    with pytest.raises(InputError, match="learned_metric: learns from targets, and here there are"):
        NoiseTolerantKernelClassifier([FAMILY]).fit(X, LABEL)
    with pytest.raises(InputError, match="learned_metric: y has one value only: 3"):
        FAMILY.expand(X, y=np.full(160, 3.0))
