"""Exports and explanations of rule ensembles."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import (
    RuleEnsembleClassifier,
    RuleEnsembleRegressor,
)
from kernelweave.errors import InputError
from rule_use_cases import (
    NEW,
    SCORE,
    THREE,
    TRAIN,
    TWO,
    N,
    run_python,
    run_sqlite,
)


@pytest.mark.parametrize("frame", [TRAIN, NEW], ids=["train", "new"])
@pytest.mark.parametrize("target", [TWO, THREE, SCORE > 0], ids=["two", "three", "bools"])
def test_exports_of_classifiers_agree_with_predict(frame, target):
    model = RuleEnsembleClassifier(1.5, C=30.0).fit(TRAIN, target)
    assert max(rule.length for rule in model.rules_) > 1
    labels, scores = model.predict(frame), model.decision_function(frame).reshape(len(frame), -1)
    found = run_sqlite(model.to_sql("sqlite"), frame)
    answers = found["prediction"].to_numpy()
    np.testing.assert_array_equal(answers.astype(labels.dtype), labels)
    columns = found.drop(columns="prediction").to_numpy()
    np.testing.assert_allclose(columns, scores, rtol=1e-12, atol=1e-12)
    found = run_python(model.to_python(), frame)
    assert [answer[0] for answer in found] == labels.tolist()
    given = np.array([answer[1] for answer in found]).reshape(len(frame), -1)
    np.testing.assert_allclose(given, scores, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("frame", [TRAIN, NEW], ids=["train", "new"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_exports_of_regressors_agree_with_predict(frame, outputs):
    target = SCORE if outputs == 1 else np.column_stack([SCORE, -(SCORE**2)])
    model = RuleEnsembleRegressor(1.5, C=30.0).fit(TRAIN, target)
    expected = model.predict(frame).reshape(len(frame), -1)
    found = run_sqlite(model.to_sql("sqlite"), frame).to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    found = np.array(run_python(model.to_python(), frame)).reshape(len(frame), -1)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_exports_of_labels_and_tasks():
    Y = np.column_stack([SCORE > 0, SCORE > 0.5]).astype(int)
    model = RuleEnsembleClassifier(C=10.0).fit(TRAIN, Y)
    found = run_sqlite(model.to_sql("sqlite", score="s"), NEW)
    assert list(found.columns) == ["s_0", "s_1", "prediction_0", "prediction_1"]
    scores = model.decision_function(NEW)
    np.testing.assert_allclose(found[["s_0", "s_1"]], scores, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found[["prediction_0", "prediction_1"]], model.predict(NEW))
    answers = run_python(model.to_python(), NEW)
    np.testing.assert_array_equal([answer[0] for answer in answers], model.predict(NEW))
    task = np.array(["a", "b"])[np.arange(N) % 2]
    model = RuleEnsembleClassifier(C=10.0).fit(TRAIN, TWO, task=task)
    found = run_sqlite(model.to_sql("sqlite"), NEW)
    answers = run_python(model.to_python(), NEW)
    for t, name in enumerate("ab"):
        scores, labels = model.decision_function(NEW, name), model.predict(NEW, name)
        np.testing.assert_allclose(found[f"score_{t}"], scores, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose([a[1][t] for a in answers], scores, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(found[f"prediction_{t}"], labels)
        np.testing.assert_array_equal([a[0][t] for a in answers], labels)


@pytest.mark.parametrize("target", ["two", "three", "labels"])
@pytest.mark.parametrize("method", ["sigmoid", "matrix", "vector", "temperature", "isotonic"])
def test_probabilities_in_exports(target, method):
    y = {"two": TWO, "three": THREE, "labels": np.column_stack([SCORE > 0, SCORE > 0.5]) * 1}
    model = RuleEnsembleClassifier(C=10.0, calibration=method).fit(TRAIN, y[target])
    expected = model.predict_proba(NEW)[:, 1:] if target == "two" else model.predict_proba(NEW)
    found = run_sqlite(model.to_sql("sqlite", probability="p"), NEW)
    columns = [name for name in found.columns if name[:1] == "p" and name[:4] != "pred"]
    np.testing.assert_allclose(found[columns], expected, rtol=1e-12, atol=1e-12)
    answers = run_python(model.to_python(probability=True), NEW)
    given = np.array([answer[2] for answer in answers]).reshape(N, -1)
    np.testing.assert_allclose(given, expected, rtol=1e-12, atol=1e-12)


def test_models_without_probabilities_say_so():
    model = RuleEnsembleClassifier(C=10.0).fit(TRAIN, TWO)
    with pytest.raises(InputError, match=r"probability: .*set calibration='auto'"):
        model.to_sql(probability="p")
    with pytest.raises(InputError, match="probability: a regression has no probabilities"):
        RuleEnsembleRegressor().fit(TRAIN, SCORE).to_python(probability=True)


def test_exports_take_other_names():
    model = RuleEnsembleClassifier(C=10.0).fit(TRAIN.to_numpy(dtype=object), TWO)
    names = {c.feature for rule in model.rules_ for c in rule.conditions}
    assert names <= {f"column {k}" for k in range(5)}
    rename = {name: TRAIN.columns[int(name[-1])] for name in names}
    found = run_sqlite(model.to_sql("sqlite", rename=rename, keep=["smoker"]), NEW)
    assert list(found.columns) == ["smoker", "score", "prediction"]
    np.testing.assert_array_equal(found["prediction"], model.predict(NEW.to_numpy(dtype=object)))


def test_exports_of_an_intercept_alone():
    with pytest.warns(UserWarning, match="no column of X gives a proposition"):
        model = RuleEnsembleClassifier().fit(np.zeros((5, 2)), [0, 1, 1, 1, 0])
    assert model.rules_ == []
    assert model.predict(np.zeros((3, 2))).tolist() == [1, 1, 1]
    frame = pd.DataFrame({"column 0": [0.0]})
    assert run_sqlite(model.to_sql("sqlite"), frame)["prediction"].tolist() == [1]
    assert run_python(model.to_python(), frame)[0][0] == 1
    assert "intercept" in str(model.explain(np.zeros((1, 2)))[0])
    assert len(model.to_frame()) == 0


@pytest.mark.parametrize("target", [TWO, THREE], ids=["two", "three"])
def test_explanations_add_up(target):
    model = RuleEnsembleClassifier(C=30.0).fit(TRAIN, target)
    scores = model.decision_function(NEW).reshape(N, -1)
    for i, why in enumerate(model.explain(NEW)):
        total = np.array(why.intercept) + sum((np.array(r.weights) for r in why.rules), 0.0)
        np.testing.assert_allclose(total, scores[i], atol=1e-12)
        np.testing.assert_allclose(why.scores, scores[i], atol=1e-12)
        row = NEW.iloc[[i]]
        assert all(rule.holds(row)[0] for rule in why.rules)
        sizes = [max(map(abs, rule.weights)) for rule in why.rules]
        assert sizes == sorted(sizes, reverse=True)
        assert str(why).endswith("score")


@pytest.mark.parametrize("target", [TWO, THREE, None], ids=["two", "three", "numbers"])
def test_exports_and_explanations_have_linear_terms(target):
    kind = RuleEnsembleRegressor if target is None else RuleEnsembleClassifier
    named = {} if target is None else {"loss": "logistic"}
    model = kind(1.0, C=30.0, linear_terms=True, n_cuts=2, **named)
    steep = SCORE + TRAIN["back`tick"] + 2.0 * TRAIN['a "quoted" name'].fillna(0.0)
    if target is not None:
        labels = np.unique(target)
        steep = labels[np.digitize(steep, np.quantile(steep, [0.4, 0.7][: len(labels) - 1]))]
    model.fit(TRAIN, steep)
    assert len(model.linear_terms_) == 2
    assert model.rules_
    for frame in (TRAIN, NEW):
        scores = model.predict if target is None else model.decision_function
        expected = np.asarray(scores(frame), dtype=float).reshape(len(frame), -1)
        found = run_sqlite(model.to_sql("sqlite"), frame)
        columns = found.drop(columns="prediction", errors="ignore") if target is not None else found
        np.testing.assert_array_equal(columns.to_numpy(), expected)
        found = run_python(model.to_python(), frame)
        found = found if target is None else [answer[1] for answer in found]
        np.testing.assert_array_equal(np.array(found).reshape(len(frame), -1), expected)
        explained = np.array([answer.scores for answer in model.explain(frame)])
        np.testing.assert_array_equal(explained, expected)
    table = model.to_frame()
    assert len(table) == len(model.rules_) + len(model.linear_terms_)
    assert table["coverage"].isna().sum() == len(model.linear_terms_)
    card = model.to_scorecard(TRAIN, points=1000)
    spread = 1.0 if target is not None else 2.0 * model.predict(TRAIN).std()
    assert card.changed <= 0.25 * spread
    bands = [rule for rule in card.rules if rule.coverage == 0.0]
    assert len(bands) > 10
    with pytest.raises(InputError, match="linear term, which needs the years as numbers"):
        model.to_sql(dates={model.linear_terms_[0].feature: None})
