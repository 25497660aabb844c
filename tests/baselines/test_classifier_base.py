"""What both rule ensembles of the baselines have in common."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave.baselines import EnderClassifier, SlipperClassifier
from kernelweave.errors import InputError
from rule_tables import covers, noisy, table

BOTH = [SlipperClassifier(30, random_state=0), EnderClassifier(60, random_state=0)]


@pytest.fixture(params=BOTH, ids=lambda model: type(model).__name__)
def model(request):
    return clone(request.param)


# scikit-learn's data are measurements, so these are cut at a threshold; without one they are
# refused, see below.
# scikit-learn's test of the type of y casts an infinite label to a whole number.
quietly = pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")


@quietly
@parametrize_with_checks([SlipperClassifier(10, threshold=0.0), EnderClassifier(20, threshold=0.0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@quietly
@parametrize_with_checks(
    [
        SlipperClassifier(5, cv=2, threshold=1, random_state=3),
        EnderClassifier(5, shrinkage=1.0, subsample=1.0, threshold=1, random_state=3),
    ]
)
def test_scikit_learn_contract_of_other_configurations(estimator, check):
    check(estimator)


def test_a_known_conjunction_is_found(model):
    X, new = table(), table(500, seed=1)
    for flip in (False, True):  # the rarer class may be the first or the second
        y, true = ((Z[:, 0] * Z[:, 2] > 0) ^ flip for Z in (X, new))
        model.fit(X, y)
        assert (0, 2) in model.rules_
        assert model.score(new, true) == 1.0
    if isinstance(model, SlipperClassifier):
        assert model.rules_ == [(0, 2)]
        assert not model.rule_classes_[0]


def test_three_classes(model):
    X, new = (np.hstack([Z, 1 - Z]) for Z in (table(300), table(500, seed=1)))
    y, true = (np.array(["a", "b", "c"])[(Z[:, 0] + Z[:, 2]).astype(int)] for Z in (X, new))
    model.fit(X, y)
    assert model.decision_function(new).shape == (500, 3)
    assert model.score(new, true) > 0.95
    found = set(zip(model.rules_, model.rule_classes_, strict=True))
    assert found >= {((6, 8), "a"), ((0, 8), "b"), ((2, 6), "b"), ((0, 2), "c")}


def test_decisions_are_sums_of_votes(model):
    X, new = table(), table(50, seed=1)
    for y in (noisy(X), noisy(X) + (X[:, 1] > 0)):
        model.fit(X, y)
        classes = model.classes_
        total = np.zeros((50, len(classes)))
        rows = zip(model.rules_, model.weights_, model.rule_classes_, strict=True)
        for rule, weight, label in rows:
            assert weight > 0
            assert list(rule) == sorted(set(rule))
            total[:, classes == label] += weight * covers(new, rule)[:, None]
        if len(classes) == 2:
            total = total[:, 1] - total[:, 0]
        np.testing.assert_allclose(model.decision_function(new), total + model.intercept_)
        assert model.n_rules_ == len(model.rules_)
        assert model.mean_length_ == np.mean([len(rule) for rule in model.rules_])


def test_the_random_state_decides(model):
    X, y = table(seed=4), noisy(table(seed=4), rate=0.3)
    found = []
    for seed in (0, 0, 1, 2, 3, 4):
        model.set_params(random_state=seed).fit(X, y)
        found.append((model.rules_, model.weights_.tolist(), model.intercept_.tolist()))
    assert found[0] == found[1]
    assert any(other != found[0] for other in found[2:])


def test_tables_of_any_kind(model):
    X, y = table(), noisy(table())
    model.fit(X, y)
    rules, weights = model.rules_, model.weights_
    frame = pd.DataFrame(X > 0, columns=list("abcdef"))
    for other in (X.astype(bool), X.astype(int), X.tolist(), frame):
        model.fit(other, y)
        assert model.rules_ == rules
        np.testing.assert_array_equal(model.weights_, weights)
    assert list(model.feature_names_in_) == list("abcdef")


def test_bad_input_gets_one_sentence(model):
    X, y = table(), noisy(table())
    name = type(model).__name__
    wrong = X.copy()
    wrong[3, 1] = 0.5
    with pytest.raises(InputError, match=rf"{name} needs propositions.*row 3, column 1 holds 0.5"):
        model.fit(wrong, y)
    model.fit(X, y)
    with pytest.raises(InputError, match="set threshold"):
        model.predict(wrong)
    with pytest.raises(InputError, match="got text or objects"):
        model.fit(pd.DataFrame(X).replace({0: "no", 1: "yes"}), y)
    with pytest.raises(InputError, match="needs propositions"):
        model.fit(pd.DataFrame(X).replace({0: None}), y)
    with pytest.raises(InputError, match="two classes or more"):
        model.fit(X, np.ones(len(X)))


def test_columns_that_say_nothing(model):
    """Rows that no rule covers go to the larger class, whichever it is."""
    X = np.zeros((30, 3))
    for common in (0, 1, 2):
        y = np.r_[np.full(16, common), np.arange(14) % 3]
        assert set(model.fit(X, y).predict(X)) == {common}
        assert model.rules_ == []
        assert model.mean_length_ == 0.0
    for common in (0, 1):
        y = np.r_[np.full(20, common), np.full(10, 1 - common)]
        assert set(model.fit(X, y).predict(X)) == {common}


# SLIPPER


# ENDER
