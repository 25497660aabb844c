"""Exports and explanations of rule ensembles."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import (
    RuleEnsembleClassifier,
    RuleEnsembleRegressor,
)
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


def test_exports_of_labels_and_tasks_give_scores():
    Y = np.column_stack([SCORE > 0, SCORE > 0.5]).astype(int)
    model = RuleEnsembleClassifier(C=10.0).fit(TRAIN, Y)
    found = run_sqlite(model.to_sql("sqlite"), NEW).to_numpy()
    np.testing.assert_allclose(found, model.decision_function(NEW), rtol=1e-12, atol=1e-12)
    task = np.array(["a", "b"])[np.arange(N) % 2]
    model = RuleEnsembleClassifier(C=10.0).fit(TRAIN, TWO, task=task)
    found = np.array(run_python(model.to_python(), NEW))
    np.testing.assert_allclose(found[:, 1], model.decision_function(NEW, "b"), rtol=1e-12)


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
