"""The made-up problems carry the signal they promise, and only there."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from kernelweave.datasets import make_additive, make_views
from kernelweave.errors import InputError, InputTypeError


def test_views_shapes():
    problem = make_views(50, n_views=4, n_informative=2, random_state=0)
    assert problem.X.shape == (50, 20)
    assert set(problem.y.tolist()) == {-1, 1}
    assert list(problem.views) == ["view0", "view1", "view2", "view3"]
    assert problem.X[:, problem.views["view3"]].shape == (50, 5)
    assert [s.start for s in problem.views.values()] == [0, 5, 10, 15]


def test_only_the_informative_view_predicts():
    problem = make_views(300, noise=0.0, random_state=0)
    scores = [
        cross_val_score(SVC(), problem.X[:, view], problem.y).mean()
        for view in problem.views.values()
    ]
    linear = cross_val_score(SVC(kernel="linear"), problem.X[:, :5], problem.y).mean()
    assert scores[0] > 0.9
    assert max(*scores[1:], linear) < 0.65


def test_views_are_balanced_without_noise():
    assert abs(make_views(101, noise=0.0, random_state=3).y.sum()) <= 1


def test_same_seed_same_views():
    first, second, other = (make_views(random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.y, second.y)
    assert not np.array_equal(first.X, other.X)


def test_same_seed_same_additive_data():
    (X, y), (X2, y2), (X3, _) = (make_additive(80, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(X, X2)
    np.testing.assert_array_equal(y, y2)
    assert not np.array_equal(X, X3)


def test_additive_follows_its_formula():
    X, y = make_additive(500, 7, noise=0.0, regression=True, random_state=0)
    f = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.8 * X[:, 2] * X[:, 3] + 0.5 * abs(X[:, 4])
    np.testing.assert_allclose(y, f - np.median(f), rtol=1e-12, atol=1e-12)
    X2, labels = make_additive(500, 7, noise=0.0, random_state=0)
    np.testing.assert_array_equal(X, X2)
    np.testing.assert_array_equal(labels, np.where(y > 0, 1, -1))
    assert labels.sum() == 0


def test_noise_is_added_on_the_signal():
    _, clean = make_additive(4000, noise=0.0, regression=True, random_state=5)
    _, noisy = make_additive(4000, noise=0.5, regression=True, random_state=5)
    assert np.std(noisy - clean) == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    ("make", "arguments", "match"),
    [
        (make_views, {"n_samples": 1}, "n_samples must be at least 2"),
        (make_views, {"n_views": 0}, "n_views must be at least 1"),
        (make_views, {"n_informative": 4}, "n_informative must be from 1 to 3"),
        (make_views, {"noise": -0.1}, "noise must be finite and not negative"),
        (make_additive, {"n_features": 4}, "n_features must be at least 5"),
        (make_additive, {"noise": float("nan")}, "noise must be finite"),
    ],
)
def test_bad_values_get_a_sentence(make, arguments, match):
    with pytest.raises(InputError, match=match):
        make(**arguments)


def test_bad_types_get_a_sentence():
    with pytest.raises(InputTypeError, match="n_samples must be a whole number"):
        make_views(10.5)
    with pytest.raises(InputTypeError, match="noise must be a number"):
        make_additive(noise="much")
