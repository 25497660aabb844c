"""Exported models say what the rules say, whatever stands in names and categories."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from kernelweave.errors import InputError, InputTypeError
from kernelweave.rules import Proposition, Rule, cover_rules, score_rules, to_python, to_sql
from rule_models import (
    many,
    models,
    predicted,
    run_python,
    run_sqlite,
)


@many
@given(models())
def test_python_agrees_to_the_last_bit(model):
    rules, intercept, X, classes = model
    scores = score_rules(rules, intercept, X)
    found = run_python(to_python(rules, intercept, classes=classes), X)
    assert [label for label, _ in found] == predicted(scores, classes)
    np.testing.assert_array_equal([score for _, score in found], scores)
    numbers = run_python(to_python(rules, intercept, name="f"), X, "f")
    np.testing.assert_array_equal(numbers, scores)


@many
@given(models(n_outputs=1))
def test_scores_are_what_the_formula_says(model):
    rules, intercept, X, _ = model
    plain = [rule for rule in rules if isinstance(rule, Rule)]
    terms = [term.weight * term.amounts(X[term.feature]) for term in rules if term not in plain]
    added = [rule.weight * rule.holds(X) for rule in plain] + terms
    direct = intercept + sum(added, start=np.zeros(len(X)))
    size = abs(intercept) + sum(map(np.abs, added), start=np.zeros(len(X)))
    error = np.abs(score_rules(rules, intercept, X) - direct)
    assert (error <= 1e-9 + 1e-12 * size).all()
    if plain:
        held = np.column_stack([rule.holds(X) for rule in plain])
        np.testing.assert_array_equal(cover_rules(plain, X), held)


def test_ties_go_to_the_first_class():
    rules = [Rule((), (1.0, 2.0, 2.0), 1.0)]
    X = pd.DataFrame({"x": [1.0]})
    classes = ["a", "b", "c"]
    for start in itertools.product([0.0, 1.0, 2.0], repeat=3):
        (label,) = predicted(score_rules(rules, start, X), classes)
        assert run_python(to_python(rules, start, classes=classes), X)[0][0] == label
        query = to_sql(rules, start, classes=classes, dialect="sqlite")
        assert run_sqlite(query, X)[0][-1] == label
    query = to_sql([], 0.0, classes=["no", "yes"], dialect="sqlite")
    assert run_sqlite(query, X) == [(0.0, "no")]


def test_rename():
    rules = [Rule((Proposition("column 0", 0, "<=", 3),), 1.0, 0.5)]
    X = pd.DataFrame({"age": [1.0, 5.0]})
    rename = {"column 0": "age"}
    assert run_python(to_python(rules, 0.0, rename=rename), X) == [1.0, 0.0]
    query = to_sql(rules, 0.0, rename=rename, dialect="sqlite", keep=["the key"])
    assert run_sqlite(query, X) == [(0, 1.0), (1, 0.0)]


def test_missing_values_of_pandas_and_numpy_in_python():
    rules = [
        Rule((Proposition("n", 0, ">", 0.1),), 1.0, 0.5),
        Rule((Proposition("t", 1, "!=", "a"),), 10.0, 0.5),
    ]
    scope = {}
    exec(to_python(rules, 0.0), scope)
    for nothing in (None, np.nan, np.float32("nan"), pd.NA, pd.NaT):
        assert scope["predict"]({"n": nothing, "t": nothing}) == 0
    assert scope["predict"]({"n": np.float32(0.1), "t": np.str_("b")}) == 11
    assert scope["predict"]({"n": "0.2", "t": "a"}) == 1
    with pytest.raises(KeyError, match="'t'"):
        scope["predict"]({"n": 1})


def test_columns_called_like_what_the_code_calls_its_own():
    features = [
        "odd name",
        "x0",
        "x2",
        "score0",
        "part0",
        "row",
        "label",
        "number",
        "best",
        "float",
    ]
    rules = [
        Rule((Proposition(feature, i, "<=", i),), 2.0**i, 0.5) for i, feature in enumerate(features)
    ]
    X = pd.DataFrame([[i + 0.5 * (i % 2) for i in range(len(features))]], columns=features)
    assert run_python(to_python(rules, 0.0), X) == score_rules(rules, 0.0, X).tolist()


def test_python_code_reads_well():
    rules = [
        Rule((Proposition("age", 0, ">", 20.5), Proposition("colour", 1, "==", "red")), 0.5, 0.5),
        Rule((Proposition("hair colour", 2, "!=", "red"),), 0.25, 0.5),
    ]
    code = to_python(rules, -1.0, classes=[0, 1])
    assert "    if age > 20.5 and colour == 'red':\n        part0 += 0.5\n" in code
    assert "    x2 = label(row['hair colour'])\n" in code
    assert code.endswith("    return 1 if score0 > 0 else 0, score0\n")


@pytest.mark.parametrize("export", [to_sql, to_python])
@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"rules": ["x"]}, InputTypeError, "rules must hold rules, but item 0 is 'x'"),
        ({"classes": ["a"]}, InputError, r"name 2 classes where .* 1 output\(s\), got 1"),
        ({"classes": ["a", "b", "c"]}, InputError, "name 2 classes .* got 3"),
        ({"classes": ["a", None]}, InputTypeError, "classes must be text, numbers .* got None"),
        ({"intercept": [0.0, 1.0]}, InputError, "as many weights .* 2, but rule 0 has 1"),
        ({"rename": {"y": "z"}}, InputError, "no rule has the feature 'y'; the features are 'x'"),
        ({"rename": {"x": 3}}, InputTypeError, "rename: 'x' must become text, got 3"),
    ],
)
def test_bad_models(export, arguments, error, match):
    rules = [Rule((Proposition("x", 0, "<=", 1),), 1.0, 0.5)]
    given = {"rules": rules, "intercept": 0.0, **arguments}
    with pytest.raises(error, match=match):
        export(given.pop("rules"), given.pop("intercept"), **given)


@pytest.mark.parametrize("name", ["", "1a", "def", "f(x): pass\ndef g", None, "a b"])
def test_bad_function_names(name):
    with pytest.raises(InputError, match="name must be a name that Python allows"):
        to_python([], 0.0, name=name)
