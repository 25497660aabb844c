"""Linear terms: clipped columns beside rules, and how they are made."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.errors import InputError, InputTypeError
from kernelweave.rules import LinearTerm, Proposition, Rule, explain_rows, score_rules
from kernelweave.rules.linear import linear_columns
from kernelweave.rules.summary import summarise

AGE = LinearTerm("age", 0, 20.125, 61.0, 40.0, 0.03125)


def test_text_and_amounts():
    assert AGE.text == str(AGE) == "0.0312 * age (20.12 to 61)"
    assert LinearTerm("age", 0, 0, 1, 0.5, (1, -2)).text == "(1, -2) * age (0 to 1)"
    found = AGE.amounts([30.0, -5.0, 99.0, None, np.nan])
    np.testing.assert_array_equal(found, [-10.0, -19.875, 21.0, 0.0, 0.0])
    assert AGE.weights == (0.03125,)
    assert (AGE.columns, AGE.length) == (("age",), 1)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"feature": 3}, InputError),
        ({"position": -1}, InputError),
        ({"low": 61.0}, InputError),
        ({"high": np.inf}, InputError),
        ({"mean": None}, InputTypeError),
        ({"weight": "1"}, InputTypeError),
        ({"weight": (1.0, np.nan)}, InputError),
    ],
)
def test_bad_terms(changes, error):
    parts = {"feature": "age", "position": 0, "low": 0, "high": 61.0, "mean": 1.0, "weight": 1.0}
    with pytest.raises(error):
        LinearTerm(**{**parts, **changes})


def test_scores_and_explanations_add_up():
    rules = [Rule((Proposition("age", 0, "<=", 30),), 1.5, 0.5), AGE]
    X = pd.DataFrame({"age": [25.0, 70.0, np.nan]})
    scores = score_rules(rules, -0.25, X)
    np.testing.assert_array_equal(scores, [1.25 - 15 * 0.03125, -0.25 + 21 * 0.03125, -0.25])
    for explained, score in zip(explain_rows(rules, -0.25, X), scores, strict=True):
        assert explained.scores == (score,)
        parts = [rule.weight for rule in explained.rules] + [a for _, (a,) in explained.linear]
        assert sum(parts, -0.25) == pytest.approx(score, abs=1e-15)
    assert "age (20.12 to 61)" in explained.text


def test_columns_are_clipped_and_scaled_like_a_typical_rule():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.exponential(size=400),
            "two": rng.integers(0, 2, 400),
            "gaps": np.where(rng.random(400) < 0.3, np.nan, 1e6 + rng.normal(size=400)),
            "text": rng.choice(["u", "v"], 400),
            "code": rng.integers(0, 5, 400),
            "rare": np.r_[np.arange(4.0), np.zeros(396)],  # clipped to a constant
        }
    )
    found = linear_columns(summarise(X), {4})
    assert [(term.feature, term.position) for term in found] == [("a", 0), ("gaps", 2)]
    for term in found:
        values = X[term.feature].to_numpy()
        known = np.sort(values[~np.isnan(values)])
        assert np.mean(known < term.low) <= 0.025 <= np.mean(known <= term.low)
        assert np.mean(known < term.high) <= 0.975 <= np.mean(known <= term.high)
        clipped = np.clip(known, term.low, term.high)
        assert term.mean == pytest.approx(clipped.mean(), rel=1e-12)
        assert term.weight * clipped.std() == pytest.approx(0.8, rel=1e-6)
        assert term.amounts(values)[np.isnan(values)].tolist() == [0.0] * np.isnan(values).sum()


def test_weights_count_rows():
    X = np.random.default_rng(0).normal(size=(60, 2))
    weight = np.arange(60) % 3.0
    repeated = np.repeat(X, weight.astype(int), axis=0)
    assert linear_columns(summarise(X, weight)) == linear_columns(summarise(repeated))


def test_columns_beyond_the_largest_square():
    X = np.array([[1e300], [-1e300], [5e299], [0.0]] * 5)
    (term,) = linear_columns(summarise(X))
    assert np.std(term.weight * term.amounts(X[:, 0])) == pytest.approx(0.8)
