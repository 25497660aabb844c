"""What all methods that learn from pairs have in common."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave.baselines import (
    GlobalDistanceMetric,
    InformationTheoreticMetric,
    MPCKMeans,
    NonParametricKernel,
    SimpleNPKL,
    SpectralKernelLearner,
)
from kernelweave.errors import InputError
from kernelweave.pairs import draw_pairs
from pair_problems import metric_problem

ALL = [
    SpectralKernelLearner(),
    NonParametricKernel(6, tol=1e-6, max_iter=20_000),
    SimpleNPKL(6),
    SimpleNPKL(6, loss="hinge", b=100.0, tol=1e-5, max_iter=1000),
    GlobalDistanceMetric(tol=1e-10),
    GlobalDistanceMetric(diagonal=False, tol=1e-8),
    InformationTheoreticMetric(tol=1e-8),
    InformationTheoreticMetric(solver="projections", tol=1e-6, max_iter=20_000),
]


def name(model):
    return f"{type(model).__name__}-{'-'.join(map(str, model.get_params().values()))}"


@pytest.fixture(params=ALL, ids=name)
def model(request):
    return clone(request.param)


def problem(n=30, m=5, n_pairs=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = np.abs(rng.normal(size=(n, m)) + 2 * np.eye(m)[y])
    pairs, labels = draw_pairs(y, n, n_pairs, seed)
    return X, y, pairs, labels


def gram(model, X):
    Z = model.embedding_ if hasattr(model, "embedding_") else model.transform(X)
    K = Z @ Z.T
    return K.toarray() if hasattr(K, "toarray") else K


# Some of scikit-learn's tests have rows without information, or are over after a step.
quietly = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:.*all weights are zero:UserWarning",
    "ignore:.*the kernel is zero:UserWarning",
    "ignore:invalid value encountered in cast:RuntimeWarning",
)


@quietly
@parametrize_with_checks(
    [
        SpectralKernelLearner(),
        NonParametricKernel(max_iter=20),
        SimpleNPKL(),
        GlobalDistanceMetric(),
        InformationTheoreticMetric(),
        MPCKMeans(),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@quietly
@parametrize_with_checks(
    [
        SpectralKernelLearner(3, delta=2.0),
        SimpleNPKL(5, loss="hinge", max_iter=5),
        GlobalDistanceMetric(diagonal=False, n_components=2),
        InformationTheoreticMetric(2, solver="projections", max_iter=3),
        MPCKMeans(3, weight=0.1),
    ]
)
def test_scikit_learn_contract_of_other_configurations(estimator, check):
    check(estimator)


def test_order_of_pairs_and_of_their_rows_does_not_matter(model):
    X, _, pairs, labels = problem()
    K = gram(model.fit(X, pairs=pairs, labels=labels), X)
    assert model.converged_
    order = np.random.default_rng(1).permutation(len(pairs))
    turned = np.where(np.arange(len(pairs))[:, None] % 2, pairs[:, ::-1], pairs)[order]
    other = gram(clone(model).fit(X, pairs=turned, labels=labels[order]), X)
    np.testing.assert_allclose(other, K, atol=3e-3 * np.abs(K).max())
    assert np.linalg.eigvalsh(K).min() > -1e-9 * np.abs(K).max()


def test_sparse_rows_and_frames_are_the_same(model):
    X, _, pairs, labels = problem()
    X = np.where(X < 0.5, 0.0, X)
    K = gram(model.fit(X, pairs=pairs, labels=labels), X)
    for form in (csr_array(X), pd.DataFrame(X, columns=list("abcde"))):
        other = gram(clone(model).fit(form, pairs=pairs, labels=labels), form)
        np.testing.assert_allclose(other, K, atol=3e-3 * np.abs(K).max())
    assert list(clone(model).fit(form, pairs=pairs, labels=labels).feature_names_in_) == [*"abcde"]


def test_pairs_from_classes_are_drawn_by_the_seed(model):
    X, y, *_ = problem()
    drawn = draw_pairs(y, len(y), 40, 3)
    model.set_params(n_pairs=40, random_state=3)
    K = gram(model.fit(X, y), X)
    np.testing.assert_array_equal(gram(clone(model).fit(X, y), X), K)
    given = gram(clone(model).fit(X, pairs=drawn[0], labels=drawn[1]), X)
    np.testing.assert_allclose(given, K, atol=1e-9 * np.abs(K).max())


def test_same_pairs_come_together(model):
    X, y, pairs, labels = problem(40, n_pairs=120)
    K = gram(model.fit(X, pairs=pairs, labels=labels), X)
    if hasattr(model, "embedding_"):
        assert K[y[:, None] == y].mean() > 2 * K[y[:, None] != y].mean()
        return
    square = np.diag(K)[:, None] + np.diag(K) - 2 * K
    same, off = y[:, None] == y, ~np.eye(len(y), dtype=bool)
    before = np.sum((X[:, None] - X) ** 2, axis=2)

    def ratio(d):
        return d[same & off].mean() / d[~same].mean()

    assert ratio(square) < ratio(before)


@pytest.mark.parametrize("model", [*ALL, MPCKMeans(3)], ids=name)
def test_bad_input_gets_one_sentence(model):
    X, y, pairs, labels = problem()
    model = clone(model)
    with pytest.raises(InputError, match="labels: must be \\+1 or -1 for every pair, got None"):
        model.fit(X, pairs=pairs)
    with pytest.raises(InputError, match="labels: belong to pairs"):
        model.fit(X, y, labels=labels)
    with pytest.raises(InputError, match="between 0 and 29"):
        model.fit(X, pairs=[[0, 30], [1, 2]], labels=[1, -1])
    with pytest.raises(InputError, match="no pair is labelled different"):
        model.fit(X, pairs=[[0, 3], [1, 2]], labels=[1, 1])
    with pytest.raises(InputError, match="two classes or more"):
        model.fit(X, np.ones(len(X)))
    with pytest.raises(InputError, match="NaN or infinity, first in row 0, column 0"):
        model.fit(np.full_like(X, np.nan), pairs=pairs, labels=labels)
    if not isinstance(model, MPCKMeans):
        with pytest.raises(InputError, match="both are None"):
            model.fit(X)
    for bad in ({"n_pairs": 1}, {"tol": -1.0}, {"max_iter": 0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            clone(model).set_params(**bad).fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        NonParametricKernel(max_iter=1),
        SimpleNPKL(loss="hinge", b=100.0, max_iter=1, tol=1e-9),
        GlobalDistanceMetric(max_iter=1, tol=1e-12),
        GlobalDistanceMetric(diagonal=False, max_iter=1, tol=1e-12),
        InformationTheoreticMetric(max_iter=1, tol=1e-12),
        InformationTheoreticMetric(solver="projections", max_iter=1, tol=1e-12),
        MPCKMeans(3, max_iter=1, random_state=0),
    ],
    ids=name,
)
def test_stopping_early_is_said(model):
    X, _, pairs, labels = problem()
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1 steps.*Hint: raise max_iter"):
        model.fit(X, pairs=pairs, labels=labels)
    assert not model.converged_


def test_fitted_attributes_are_documented():
    X, y, *_ = problem()
    for model in [*ALL, MPCKMeans(3)]:
        fitted = clone(model).set_params(n_pairs=60, random_state=0).fit(X, y)
        found = {key for key in vars(fitted) if key.endswith("_") and not key.startswith("_")}
        section = type(model).__doc__.partition("Attributes\n")[2]
        documented = {
            line.strip().split(" : ")[0] for line in section.splitlines() if "_ : " in line
        }
        assert found == documented - {"feature_names_in_"}


@pytest.mark.parametrize("kind", [GlobalDistanceMetric, InformationTheoreticMetric])
def test_directions_are_the_leading_ones(kind):
    X, pairs, labels, _ = metric_problem(m=8)
    options = {"diagonal": False} if kind is GlobalDistanceMetric else {"bounds": (1.0, 20.0)}
    model = kind(n_components=3, **options).fit(X, pairs=pairs, labels=labels)
    P = np.linalg.svd(X)[2][:3].T
    small = kind(**options).fit(X @ P, pairs=pairs, labels=labels)
    assert model.transform(X).shape == (len(X), 3)
    K, expected = (Z @ Z.T for Z in (model.transform(X), small.transform(X @ P)))
    np.testing.assert_allclose(K, expected, atol=1e-3 * np.abs(K).max())
