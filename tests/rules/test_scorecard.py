"""Scorecards: whole points, and what rounding changes."""

import csv
import io

import numpy as np
import pytest

from kernelweave import RuleEnsembleClassifier, RuleEnsembleRegressor
from kernelweave.errors import InputError
from kernelweave.rules import LinearTerm, Proposition, Rule, score_rules
from kernelweave.rules.export import check_model
from kernelweave.rules.scorecard import FEW_CHANGES, LARGEST, group_by_columns, make_scorecard
from rule_use_cases import NEW, SCORE, THREE, TRAIN, TWO

RANDOM = np.random.default_rng(0).normal(size=len(SCORE))
NOISY = np.where(SCORE + RANDOM > 0.2, "yes", "no")  # rows near the border


def fitted(target):
    model = RuleEnsembleRegressor if target.dtype.kind == "f" else RuleEnsembleClassifier
    return model(C=10.0).fit(TRAIN, target)


@pytest.mark.parametrize("target", [NOISY, THREE], ids=["two", "three"])
def test_points_are_rounded_weights_and_changes_are_counted(target):
    model = fitted(target)
    card = model.to_scorecard(TRAIN, points=7)
    heaviest = max(abs(w) for rule in model.rules_ for w in rule.weights)
    assert card.scale == 7 / heaviest
    given = {rule.text: rule.weights for rule in model.rules_}
    for rule, points in zip(card.rules, card.points, strict=True):
        assert points == tuple(round(w * card.scale) for w in given[rule.text])
    assert len(card.rules) + card.n_dropped == len(model.rules_)
    totals = np.array(card.base, dtype=float) + np.zeros((len(NEW), 1))
    for rule, points in zip(card.rules, card.points, strict=True):
        totals += rule.holds(NEW)[:, None] * np.array(points)
    np.testing.assert_array_equal(card.totals(NEW), totals)
    totals = card.totals(TRAIN)
    codes = (totals[:, 0] > 0).astype(int) if totals.shape[1] == 1 else totals.argmax(axis=1)
    changed = np.mean(model.classes_[codes] != model.predict(TRAIN))
    assert card.changed == changed
    assert model.to_scorecard(TRAIN, points=1).changed > 0
    assert f"Rounding changes {changed:.2%} of {len(TRAIN)} decisions." in card.text


def test_points_are_chosen_by_the_rows():
    model = fitted(NOISY)
    card = model.to_scorecard(TRAIN)
    largest = max(abs(p) for points in card.points for p in points)
    assert largest in LARGEST[1:]
    assert card.changed <= FEW_CHANGES
    smaller = [p for p in LARGEST if p < largest]
    assert all(model.to_scorecard(TRAIN, points=p).changed > FEW_CHANGES for p in smaller)
    blind = model.to_scorecard()
    assert max(abs(p) for points in blind.points for p in points) == 100
    assert "not measured" in blind.text


def test_regression():
    model = fitted(SCORE)
    card = model.to_scorecard(TRAIN, points=50)
    found = card.totals(TRAIN)[:, 0] / card.scale
    assert card.changed == np.abs(found - model.predict(TRAIN)).max()
    assert f"divided by {card.scale:.6g}" in str(card)
    assert "Rounding changes a prediction by" in str(card)


def test_labels():
    Y = np.column_stack([SCORE > 0, SCORE > 0.5]).astype(int)
    model = RuleEnsembleClassifier(C=10.0).fit(TRAIN, Y)
    card = model.to_scorecard(TRAIN, points=1000)
    np.testing.assert_allclose(
        card.totals(TRAIN) / card.scale, model.decision_function(TRAIN), atol=0.1
    )
    assert "A sum of a column above 0 predicts 1" in card.text


def test_forms_hold_the_same_lines():
    model = fitted(TWO)
    card = model.to_scorecard(TRAIN)
    frame = card.to_frame()
    assert frame["rule"][0] == "base"
    assert list(csv.reader(io.StringIO(card.to_csv())))[1:] == frame.astype(str).to_numpy().tolist()
    page = card.to_html()
    assert page.count("<td>") == 2 * len(frame)
    assert 'a "quoted" name' not in page
    assert "a &quot;quoted&quot; name" in page
    for about in dict.fromkeys(frame["about"][1:]):
        assert about in card.text.splitlines()


def test_groups():
    rules = [
        Rule((Proposition("b", 1, "<=", 1),), 1.0, 0.5),
        Rule((Proposition("a", 0, "<=", 1),), 1.0, 0.5),
        Rule((Proposition("b", 1, ">", 3), Proposition("b", 1, "<=", 9)), 1.0, 0.5),
        Rule((Proposition("b", 1, ">", 3), Proposition("a", 0, "<=", 9)), 1.0, 0.5),
        Rule((), 1.0, 1.0),
    ]
    found = group_by_columns(zip(rules, range(5), strict=True))
    assert [(about, [k for _, k in group]) for about, group in found] == [
        ("b", [0, 2]),
        ("a", [1]),
        ("b and a", [3]),
        ("all rows", [4]),
    ]


@pytest.mark.parametrize("points", [0, -3, 2.5])
def test_bad_points(points):
    with pytest.raises(InputError, match="points: must be a positive whole number"):
        fitted(TWO).to_scorecard(points=points)


def test_linear_terms_have_points_for_bands():
    term = LinearTerm("age", 0, 20.0, 60.0, 35.0, 0.1)
    model = check_model([term], 0.5, ["no", "yes"], None)
    ages = np.linspace(0.0, 80.0, 161)[:, None]
    exact = score_rules([term], [0.5], ages)[:, 0]
    card = make_scorecard(model, ["points"], points=50)
    assert card.scale == 50 / (0.1 * 25.0)  # points of what the term adds at its upper end
    assert len(card.rules) == 10
    assert card.rules[0].text == "age <= 24"
    assert card.rules[4].text == "36 < age <= 40"
    half = 0.1 * 4.0 / 2  # of a band
    assert np.abs(card.totals(ages)[:, 0] / card.scale - exact).max() <= half + 0.5 / card.scale
    assert card.totals([[np.nan]]).tolist() == [[round(0.5 * card.scale)]]
    few = make_scorecard(model, ["points"], points=2)
    assert len(few.rules) + few.n_dropped == 3  # 3.2 points from end to end
    tiny = make_scorecard(
        check_model([term, Rule((), 99.0, 1.0)], 0.5, None, None), ["y"], points=1
    )
    assert [rule.text for rule in tiny.rules] == ["always"]
