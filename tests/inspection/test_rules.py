"""Values of rule ensembles equal those over all coalitions of columns."""

import numpy as np
import pandas as pd
import pytest

from coalition_oracles import grid_of, interaction_indices, joint_game, shapley
from kernelweave import RuleEnsembleClassifier, RuleEnsembleRegressor
from kernelweave.errors import InputError
from kernelweave.inspection import effects, explain
from kernelweave.inspection.rules import explain_each_rule, explain_rules
from kernelweave.rules import LinearTerm, Proposition, Rule, score_rules


def mixed_table(n: int, seed: int) -> pd.DataFrame:
    """Return numbers with gaps, categories and truth values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 12, n),
            "dose": rng.exponential(2.0, n),
            "colour": rng.choice(["red", "blue", "green"], n),
            "smoker": rng.random(n) < 0.4,
            "weight": rng.normal(70, 9, n),
        }
    )
    frame.loc[rng.random(n) < 0.2, "age"] = np.nan
    frame.loc[rng.random(n) < 0.2, "colour"] = None
    return frame


def score(X: pd.DataFrame) -> np.ndarray:
    old = (X["age"] > 45).to_numpy()
    return 2.0 * (old & (X["colour"] == "red")) - 1.5 * (X["smoker"] & (X["dose"] > 1.5)) + old


def made_up(n_rules: int, n_columns: int, longest: int, seed: int) -> list[Rule | LinearTerm]:
    """Return rules of ranges on several columns and linear terms, with two outputs.

    One rule has no condition.
    """
    rng = np.random.default_rng(seed)
    rules = [Rule((), (0.5, -1.0), 1.0)]
    for _ in range(n_rules):
        columns = rng.choice(n_columns, rng.integers(1, longest + 1), replace=False).tolist()
        conditions = []
        for c in columns:
            low = float(rng.normal(-0.8, 0.5))
            conditions.append(Proposition(f"column {c}", c, ">", low))
            if rng.random() < 0.5:
                conditions.append(Proposition(f"column {c}", c, "<=", low + 1.5))
        rules.append(Rule(tuple(conditions), tuple(rng.normal(size=2).tolist()), 0.5))
    for c in (0, 1):
        weight = tuple(rng.normal(size=2).tolist())
        rules.append(LinearTerm(f"column {c}", c, -1.0, 0.5 + c, 0.1, weight))
    return rules


def check(rules, intercept, predict, X, Z, groups, **options):
    """Compare values, interactions and base with brute force; return the values."""
    player = {name: k for k, group in enumerate(groups) for name in group}
    found = explain_rules(
        rules,
        intercept,
        X,
        Z,
        np.full(len(Z), 1.0 / len(Z)),
        lambda condition: player[condition.feature],
        len(groups),
        interactions=True,
        **options,
    )
    behind = grid_of(Z, groups) if options.get("value") == "independent" else Z
    for i in range(len(X)):
        game = joint_game(predict, X.iloc[[i]], behind, groups)
        size = max(1.0, np.abs(game[max(game, key=len)]).max())
        assert np.abs(found.values[i] - shapley(game)).max() <= 1e-12 * size
        assert np.abs(found.interactions[i] - interaction_indices(game)).max() <= 1e-12 * size
        assert np.abs(found.base - game[()]).max() <= 1e-12 * size
    outputs = np.asarray(predict(X)).reshape(len(X), -1)
    assert np.abs(found.base + found.values.sum(axis=1) - outputs).max() <= 1e-12
    return found


MODELS = {
    "two classes": lambda X: RuleEnsembleClassifier(C=10).fit(X, score(X) > 0.5),
    "three classes": lambda X: RuleEnsembleClassifier(C=10).fit(
        X, np.digitize(score(X), [-0.5, 0.9])
    ),
    "regression": lambda X: RuleEnsembleRegressor(C=10).fit(X, score(X)),
    "linear terms": lambda X: RuleEnsembleRegressor(1.0, C=10, linear_terms=True).fit(
        X, score(X) + np.nan_to_num(X["age"]) / 10
    ),
    "two targets": lambda X: RuleEnsembleRegressor(C=10).fit(
        X, np.column_stack([score(X), np.nan_to_num(X["age"])])
    ),
}


@pytest.mark.parametrize("value", ["joint", "independent"])
@pytest.mark.parametrize("name", MODELS)
def test_fitted_models_with_gaps_and_categories(name, value):
    X = mixed_table(200, 0)
    model = MODELS[name](X)
    assert len(model.rules_) > 3
    predict = model.decision_function if hasattr(model, "classes_") else model.predict
    groups = [[column] for column in X.columns]
    behind = mixed_table(25 if value == "joint" else 2, 1)
    assert bool(model.linear_terms_) == (name == "linear terms")
    check(model._added, model.intercept_, predict, X[:4], behind, groups, value=value)


def test_tasks_have_values_each():
    X = mixed_table(200, 0)
    task = np.arange(200) % 2
    y = score(X) + task * X["smoker"]
    model = RuleEnsembleRegressor(C=10).fit(X, y, task=task)

    def predict(rows):
        return np.column_stack([model.predict(rows, task=t) for t in model.tasks_])

    groups = [[column] for column in X.columns]
    found = check(model.rules_, model.intercept_, predict, X[:3], mixed_table(20, 1), groups)
    assert found.values.shape == (3, 5, 2)


@pytest.mark.parametrize("value", ["joint", "independent"])
@pytest.mark.parametrize("longest", [4, 6])
def test_made_up_rules(longest, value):
    rng = np.random.default_rng(longest)
    names = [f"column {c}" for c in range(6)]
    X, Z = (pd.DataFrame(rng.normal(size=(n, 6)), columns=names) for n in (4, 30))
    rules = made_up(40, 6, longest, longest)
    behind = Z if value == "joint" else Z[:2]
    groups = [[name] for name in names]
    intercept = np.array([0.25, 1.0])
    check(
        rules, intercept, lambda A: score_rules(rules, intercept, A), X, behind, groups, value=value
    )


def test_groups_of_columns_are_one_player():
    X, Z = mixed_table(4, 2), mixed_table(20, 3)
    fitted = mixed_table(200, 0)
    model = RuleEnsembleRegressor(C=10).fit(fitted, score(fitted))
    groups = [["age", "colour"], ["dose"], ["smoker", "weight"]]
    check(model.rules_, model.intercept_, model.predict, X, Z, groups)


def test_long_rules_use_the_patterns_that_occur():
    rng = np.random.default_rng(0)
    names = [f"column {c}" for c in range(9)]
    X, Z = (pd.DataFrame(rng.normal(size=(n, 9)), columns=names) for n in (1, 12))
    conditions = [Proposition(name, c, ">", -0.7) for c, name in enumerate(names)]
    rules = [Rule(tuple(conditions), 1.0, 0.1), Rule(tuple(conditions[:8]), -2.0, 0.1)]
    groups = [[name] for name in names]
    for value in ("joint", "independent"):
        behind = Z if value == "joint" else Z[:1]
        check(
            rules,
            np.zeros(1),
            lambda A: score_rules(rules, [0.0], A),
            X,
            behind,
            groups,
            value=value,
        )


def test_functional_game_counts_absent_players_as_true():
    conditions = tuple(Proposition(f"column {c}", c, ">", 0.0) for c in range(3))
    rules = [Rule(conditions, 6.0, 0.1)]
    X = [[1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]
    found = explain_rules(
        rules, np.zeros(1), X, X, np.full(2, 0.5), lambda c: c.position, 3, value="functional"
    )
    # The empty coalition has all conditions true; each of two false ones takes half.
    assert found.base.tolist() == [6.0]
    assert np.allclose(found.values[:, :, 0], [[0.0, -3.0, -3.0], [0.0, 0.0, 0.0]], atol=1e-15)


def check_spread(found, one_by_one):
    """Compare with the values against each background row."""
    assert np.allclose(found.spread.variances, np.var(one_by_one, axis=0), atol=1e-13)
    changes = (one_by_one - found.values) * np.sign(found.values)
    assert np.allclose(found.spread.changes, np.sum(changes, axis=1), atol=1e-12)


def test_variances_are_those_over_single_background_rows():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(5, 6)), rng.normal(size=(30, 6))
    rules, intercept = made_up(20, 6, 4, 1), np.zeros(2)

    def values(background, shares):
        return explain_rules(rules, intercept, X, background, shares, lambda c: c.position, 6)

    every = values(Z, np.full(30, 1 / 30))
    one_by_one = np.array([values(Z[[t]], np.ones(1)).values for t in range(30)])
    assert np.allclose(every.values, one_by_one.mean(axis=0), atol=1e-13)
    check_spread(every, one_by_one)


def test_weights_of_the_background_stand_for_repeated_rows():
    rng = np.random.default_rng(2)
    X, Z = rng.normal(size=(5, 6)), rng.normal(size=(3, 6))
    rules, intercept = made_up(20, 6, 4, 2), np.zeros(2)
    counts = np.array([1, 2, 4])
    results = [
        explain_rules(rules, intercept, X, rows, shares, lambda c: c.position, 6)
        for rows, shares in ((Z, counts / 7), (np.repeat(Z, counts, axis=0), np.full(7, 1 / 7)))
    ]
    for first, second in (
        [found.values for found in results],
        [found.base for found in results],
        [found.spread.variances for found in results],
        [np.tensordot(found.spread.weights, found.spread.changes**2, 1) for found in results],
    ):
        assert np.allclose(first, second, atol=1e-13)


def test_many_background_rows_give_variances_from_some():
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(600, 6)), rng.normal(size=(4000, 6))
    rules, shares = made_up(30, 6, 4, 3), np.full(4000, 1 / 4000)
    found = explain_rules(rules, np.zeros(2), X, Z, shares, lambda c: c.position, 6)
    few = explain_rules(rules, np.zeros(2), X[:2], Z, shares, lambda c: c.position, 6)
    assert np.array_equal(found.values[:2], few.values)  # values are never estimated
    ratio = np.sqrt(found.spread.variances[:2] / few.spread.variances)[few.spread.variances > 1e-3]
    assert 0.7 < ratio.min() < ratio.max() < 1.4
    assert not np.array_equal(ratio, np.ones_like(ratio))


def test_each_rule_as_a_player():
    fitted, X, Z = mixed_table(200, 0), mixed_table(6, 4), mixed_table(30, 5)
    model = RuleEnsembleRegressor(C=10).fit(fitted, score(fitted))
    shares = np.full(30, 1 / 30)
    found = explain_each_rule(model.rules_, model.intercept_, X, Z, shares)
    assert np.allclose(found.base + found.values.sum(axis=1)[:, 0], model.predict(X), atol=1e-13)
    assert np.allclose(found.base, model.predict(Z).mean(), atol=1e-13)
    player = {name: k for k, name in enumerate(X.columns)}
    columns = explain_rules(
        model.rules_, model.intercept_, X, Z, shares, lambda c: player[c.feature], 5
    )
    assert np.allclose(columns.values.sum(axis=1), found.values.sum(axis=1), atol=1e-13)
    one_by_one = [
        explain_each_rule(model.rules_, model.intercept_, X, Z.iloc[[t]], np.ones(1)).values
        for t in range(30)
    ]
    check_spread(found, one_by_one)


def test_a_column_without_conditions_gets_exactly_zero():
    X, Z = np.random.default_rng(6).normal(size=(2, 8, 4))
    conditions = tuple(Proposition(f"column {c}", c, ">", 0.0) for c in (0, 2))
    rules = [Rule(conditions, 1.0, 0.5)]
    found = explain_rules(rules, np.zeros(1), X, Z, np.full(8, 0.125), lambda c: c.position, 4)
    assert not found.values[:, [1, 3]].any()
    assert found.values[:, [0, 2]].any()
    own = explain_rules(rules, np.zeros(1), X[:1], X[:1], np.ones(1), lambda c: c.position, 4)
    assert not own.values.any()  # a row compared with itself


@pytest.mark.parametrize("name", MODELS)
def test_explain_takes_rule_ensembles(name):
    fitted, X, Z = mixed_table(200, 0), mixed_table(5, 4), mixed_table(30, 5)
    model = MODELS[name](fitted)
    predict = model.decision_function if hasattr(model, "classes_") else model.predict
    for by in ("column", "rule", {"body": ["age", "weight"]}):
        found = explain(model, X, background=Z, by=by)
        assert np.allclose(found.predictions, predict(X), atol=1e-12)
        assert np.allclose(found.base_values[0], np.mean(predict(Z), axis=0), atol=1e-12)
        assert found.errors.shape == found.values.shape
    assert found.feature_names == ("body", "dose", "colour", "smoker")
    by_rule = explain(model, X, background=Z, by="rule")
    assert by_rule.feature_names == tuple(term.name for term in model._added)
    pairs = explain(model, X, background=Z, interactions=True)
    assert np.allclose(pairs.interaction_values.sum(axis=2), pairs.values, atol=1e-12)


def test_tasks_are_the_outputs_of_explain_and_effects():
    X = mixed_table(200, 0)
    task = np.where(np.arange(200) % 2, "north", "south")
    model = RuleEnsembleRegressor(C=10).fit(X, score(X) + (task == "north"), task=task)
    found = explain(model, X[:5], background=X)
    assert found.output_names == ("north", "south")
    assert np.allclose(found[..., "north"].predictions, model.predict(X[:5], task="north"))
    curves = effects(model, X)
    assert curves.output_names == ("north", "south")
    assert np.allclose(curves.base, [model.predict(X, task=t).mean() for t in model.tasks_])


def test_standard_errors_of_explain_are_those_of_the_mean():
    fitted, X, Z = mixed_table(200, 0), mixed_table(5, 4), mixed_table(30, 5)
    model = MODELS["regression"](fitted)
    found = explain(model, X, background=Z)
    one_by_one = [explain(model, X, background=Z.iloc[[t]]).values for t in range(30)]
    assert np.allclose(found.errors, np.std(one_by_one, axis=0, ddof=1) / np.sqrt(30), atol=1e-13)
    assert np.isnan(explain(model, X, background=Z[:1]).errors).all()


def test_a_model_of_rules_has_no_kernels():
    fitted = mixed_table(200, 0)
    model = MODELS["regression"](fitted)
    with pytest.raises(InputError, match="by: 'kernel' needs a model with kernels"):
        explain(model, fitted, by="kernel")
