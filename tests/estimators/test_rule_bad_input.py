"""Bad input to rule ensembles gets one sentence that names the argument."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold

from kernelweave import (
    RuleEnsembleClassifier,
    RuleEnsembleClassifierCV,
    RuleEnsembleRegressor,
    RuleEnsembleRegressorCV,
)
from kernelweave.errors import InputError, InputTypeError

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(20, 3))
P = X > 0
Y = P[:, 0].astype(int)
TARGET = X[:, 0]
LABELS = np.column_stack([P[:, 0], ~P[:, 0], P[:, 1]]).astype(int)
TASK = np.arange(20) % 2


def refused(message, call, *args, **kwargs):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call(*args, **kwargs)
    assert "\n" not in str(caught.value).strip()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rho": 0.9}, r"'rho' .* in the range \[1.0, 2.0\]. Got 0.9 instead"),
        ({"rho": 2.1}, r"'rho' .* in the range \[1.0, 2.0\]. Got 2.1 instead"),
        ({"rho": np.nan}, r"'rho' .* Got nan instead"),
        ({"rho": "low"}, r"'rho' .* Got 'low' instead"),
        ({"C": 0}, r"'C' .* in the range \(0.0, inf\). Got 0 instead"),
        ({"C": -1.0}, r"'C' .* Got -1.0 instead"),
        ({"C": np.inf}, r"'C' .* Got inf instead"),
        ({"C": [1.0]}, r"'C' .* Got \[1.0\] instead"),
        ({"base": 0.0}, r"'base' .* Got 0.0 instead"),
        ({"base": -2.0}, r"'base' .* Got -2.0 instead"),
        ({"base": 1e200}, r"'base' .* in the range \(0.0, 1000000.0\]"),
        ({"propositions": "none"}, r"'propositions' .* Got 'none' instead"),
        ({"n_cuts": 0}, r"'n_cuts' .* Got 0 instead"),
        ({"cut_strategy": "k-means"}, r"'cut_strategy' .* Got 'k-means' instead"),
        ({"categorical": ["age"]}, "categorical must list names .* got 'age'"),
        ({"categorical": [3]}, "positions from 0 to 2, got 3"),
        ({"max_length": 0}, r"'max_length' .* Got 0 instead"),
        ({"max_length": 1.5}, r"'max_length' .* Got 1.5 instead"),
        ({"threshold": 1.0}, r"'threshold' .* in the range \[0.0, 1.0\)"),
        ({"threshold": -0.1}, r"'threshold' .* Got -0.1 instead"),
        ({"tol": 0.0}, r"'tol' .* Got 0.0 instead"),
        ({"max_iter": 0}, r"'max_iter' .* Got 0 instead"),
        ({"max_nodes": 0}, r"'max_nodes' .* Got 0 instead"),
        ({"n_jobs": "all"}, r"'n_jobs' .* Got 'all' instead"),
    ],
)
@pytest.mark.parametrize("kind", [RuleEnsembleClassifier, RuleEnsembleRegressor])
def test_parameters(kind, options, message):
    refused(message, kind(**options).fit, X, Y)


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        (0, "task_correlation: a number must be finite and > 0, got 0"),
        (-1.0, "got -1.0"),
        (np.inf, "got inf"),
        (np.nan, "got nan"),
        (True, "must be a number > 0 or a matrix"),
        ("high", "must be a number > 0 or a matrix"),
        (np.eye(2), r"matrix of shape \(3, 3\) .* got shape \(2, 2\)"),
        ([[1, 2], [3]], "must be a number > 0 or a matrix"),
        (np.full((3, 3), np.nan), "of finite numbers"),
        ([[1, 0.5, 0], [0.2, 1, 0], [0, 0, 1]], "the matrix must be symmetric"),
        ([[1, 2, 0], [2, 1, 0], [0, 0, 1]], "positive semi-definite, but has the eigenvalue -1"),
        (np.diag([1.0, 1.0, 0.0]), "the diagonal of the matrix must be positive"),
    ],
)
def test_relations(relation, message):
    refused(message, RuleEnsembleClassifier(task_correlation=relation).fit, X, LABELS)
    three = np.column_stack([TARGET, -TARGET, TARGET])
    refused(message, RuleEnsembleRegressor(task_correlation=relation).fit, X, three)


def test_a_relation_for_one_output():
    model = RuleEnsembleClassifier(task_correlation=np.eye(2))
    refused(r"matrix of shape \(1, 1\)", model.fit, X, Y)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (X, "'column 0' must hold truth values or zeros and ones without gaps"),
        (np.where(P, 2, 0), "'column 0' must hold truth values"),
        (np.where(P, 1.0, np.nan), "without gaps where propositions='given'. Hint: use"),
        (np.where(P, True, None), "without gaps"),
        (np.where(P, "yes", "no"), "must hold truth values"),
        (pd.DataFrame({"a": P[:, 0], "b": X[:, 0]}), "X: 'b' must hold truth values"),
    ],
)
def test_propositions_as_given(wrong, message):
    refused(message, RuleEnsembleClassifier(propositions="given").fit, wrong, Y)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.where(X > 1, np.inf, X), "'column 0' is infinite in row 2. Hint: replace"),
        (X[:, 0], "expected a 2D array, got a 1D array"),
        (X[:, :0], r"0 feature\(s\)"),
        (pd.DataFrame({"a": pd.date_range("2020", periods=20)}), "'a' holds Datetime.* Hint"),
        (pd.DataFrame({"a": [[1]] * 20}), "'a' holds values that cannot be compared"),
        (sp.csr_array(X), r"sparse data cannot be used here; pass X.toarray\(\)"),
        (X[:19], r"inconsistent numbers of samples: \[19, 20\]"),
        (X[:1], "one sample only"),
        (X[:0], r"0 sample\(s\)"),
        (pd.DataFrame(X[:, [0, 0]], columns=["a", "a"]), "two columns of the same name"),
    ],
)
@pytest.mark.parametrize("kind", [RuleEnsembleClassifier, RuleEnsembleRegressor])
def test_tables(kind, wrong, message):
    refused(message, kind().fit, wrong, Y)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (np.zeros(20), "needs two classes or more in y, but got one class only: 0.0"),
        (X[:, 0], "Unknown label type: continuous"),
        (X[:, :2], r"y should be a 1d array, got an array of shape \(20, 2\)"),
        (np.where(P[:, 0], 1.0, np.inf), "y contains infinity"),
        (Y[:19], r"inconsistent numbers of samples: \[20, 19\]"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_labels(wrong, message):
    refused(message, RuleEnsembleClassifier().fit, X, wrong)


def test_one_class_among_the_rows_with_a_weight():
    message = "one class only: 1 among the rows of positive weight"
    refused(message, RuleEnsembleClassifier().fit, X, Y, sample_weight=Y)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "requires y to be passed"),
        (np.full(20, np.nan), "y contains NaN"),
        (np.full(20, np.inf), "y contains infinity"),
        (TARGET * 1e200, r"y: values up to 1e\+100 are possible, got .* Hint: divide"),
        (np.zeros((20, 2, 2)), "dim 3"),
        (np.array(["low"] * 20), "could not convert string to float"),
    ],
)
def test_targets(wrong, message):
    refused(message, RuleEnsembleRegressor().fit, X, wrong)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (TASK[:19], "task: needs one entry for each of the 20 rows, got 19"),
        (np.column_stack([TASK, TASK]), r"got an array of shape \(20, 2\)"),
        ("a", r"got an array of shape \(\)"),
        (np.where(TASK, 1.0, np.nan), "task: every row needs one, but 10 have nan"),
        (np.where(TASK, "a", None), "task: every row needs one, but 10 have None"),
        (["a", pd.NA] * 10, "task: every row needs one, but 10 have <NA>"),
        (["a", 1] * 10, "all entries must be text, or all must be numbers"),
    ],
)
@pytest.mark.parametrize("kind", [RuleEnsembleClassifier, RuleEnsembleRegressor])
def test_tasks(kind, task, message):
    refused(message, kind().fit, X, Y, task=task)


def test_tasks_of_several_outputs():
    message = "task: only two classes can be learned by task, but y has 3"
    refused(message, RuleEnsembleClassifier().fit, X, np.arange(20) % 3, task=TASK)
    refused(message, RuleEnsembleClassifier().fit, X, LABELS, task=TASK)
    message = "task: y must have one column where tasks are given"
    refused(message, RuleEnsembleRegressor().fit, X, X[:, :2], task=TASK)


@pytest.mark.parametrize("kind", [RuleEnsembleClassifier, RuleEnsembleRegressor])
def test_tasks_in_predict(kind):
    plain, tasks = kind().fit(X, Y), kind().fit(X, Y, task=TASK)
    refused("task: the model was fitted without tasks", plain.predict, X, 1)
    refused("so predict needs the task of the rows; pass one of", tasks.predict, X)
    refused(r"task: 7 was not among the tasks in fit, \[0, 1\]", tasks.predict, X, 7)
    refused("task: 'a' was not among the tasks", tasks.predict, X, "a")
    refused("task: needs one entry for each of the 20 rows, got 3", tasks.predict, X, TASK[:3])
    assert tasks.predict(X, TASK.tolist()).shape == (20,)


def test_rows_to_predict():
    model = RuleEnsembleClassifier(C=10.0).fit(X, Y)
    refused("X has 2 features, but .* is expecting 3", model.predict, X[:, :2])
    refused("'column 0' is infinite in row", model.predict, np.where(X > 0, np.inf, X))
    refused("'column 0' must hold numbers, as it did in fit", model.predict, X.astype(str))
    frame = pd.DataFrame(X, columns=list("abc"))
    named = RuleEnsembleClassifier(C=10.0).fit(frame, Y)
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="feature names should match"):
        named.explain(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(20), "Negative values"),
        (np.full(20, np.nan), "sample_weight contains NaN"),
        (np.zeros(20), "at least one weight must be positive"),
        (np.ones(3), r"sample_weight.shape == \(3,\), expected \(20,\)"),
    ],
)
def test_sample_weights(weight, message):
    refused(message, RuleEnsembleClassifier().fit, X, Y, sample_weight=weight)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ({0: -1.0, 1: 1.0}, "class_weight: weights must be finite numbers > 0"),
        ({0: 0.0, 1: 1.0}, "class_weight: weights must be finite numbers > 0"),
        ({7: 1.0}, "are not in class_weight"),
        ("heavy", r"'class_weight' .* Got 'heavy' instead"),
    ],
)
def test_class_weights(weight, message):
    refused(message, RuleEnsembleClassifier(class_weight=weight).fit, X, Y)


def test_class_weights_of_labels():
    message = "class_weight: must be None where y has several labels"
    refused(message, RuleEnsembleClassifier(class_weight="balanced").fit, X, LABELS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "log"}, r"'loss' .* Got 'log' instead"),
        ({"epsilon": -1.0}, r"'epsilon' .* Got -1.0 instead"),
        ({"loss": "huber", "epsilon": 0.0}, "Huber's threshold must be > 0, got 0"),
    ],
)
def test_losses(options, message):
    refused(message, RuleEnsembleRegressor(**options).fit, X, TARGET)


@pytest.mark.parametrize("Cs", [[], [-1.0], [0.0, 1.0], [np.nan], ["a"]])
def test_values_of_C(Cs):
    message = "Cs: must be one or more finite numbers > 0, got"
    refused(message, RuleEnsembleClassifier().fit_path, X, Y, Cs)
    refused(message, RuleEnsembleClassifierCV(Cs=Cs).fit, X, Y)
    refused(message, RuleEnsembleRegressor().fit_path, X, TARGET, Cs)
    refused(message, RuleEnsembleRegressorCV(Cs=Cs).fit, X, TARGET)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Cs": 0}, r"'Cs' .* Got 0 instead"),
        ({"cv": 1}, r"'cv' .* Got 1 instead"),
        ({"Cs": [1.0], "cv": 50}, "number of splits n_splits=50 greater than"),
        ({"scoring": "speed"}, "'speed' is not a valid scoring value"),
        ({"rho": 0.5}, r"'rho' .* Got 0.5 instead"),
        ({"selection": "first"}, r"'selection' .* Got 'first' instead"),
        ({"Cs": [1.0], "cv": [([0, 1], [2])]}, "needs two classes or more in y"),
    ],
)
def test_searches(options, message):
    y = np.sort(Y)
    refused(message, RuleEnsembleClassifierCV(**options).fit, X, y)


def test_exports():
    model = RuleEnsembleClassifier(C=10.0).fit(X, Y)
    refused("dialect must be one of standard, sqlite", model.to_sql, "oracle")
    refused("name must be a name that Python allows", model.to_python, "my model")
    refused("rename: no rule has the feature 'age'", model.to_sql, rename={"age": "x"})
    dates = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")[Y]
    refused("Unknown label type|classes", lambda: RuleEnsembleClassifier().fit(X, dates).to_sql())


@pytest.mark.parametrize("kind", [RuleEnsembleClassifier, RuleEnsembleRegressor])
@pytest.mark.parametrize("table", [np.ones((20, 2)), np.full((20, 2), np.nan)])
def test_columns_that_say_nothing(kind, table):
    with pytest.warns(UserWarning, match="no column of X gives a proposition.*an intercept alone"):
        model = kind().fit(table, Y)
    assert model.rules_ == []
    assert model.converged_
    expected = np.full(20, int(Y.mean() > 0.5)) if kind is RuleEnsembleClassifier else Y.mean()
    np.testing.assert_allclose(model.predict(table), expected)


def test_a_constant_target():
    model = RuleEnsembleRegressor().fit(X, np.full(20, 3.0))
    assert model.rules_ == []
    np.testing.assert_allclose(model.predict(X), 3.0)


@pytest.mark.parametrize(
    "options",
    [
        {"C": 1e12},
        {"C": 1e-12},
        {"rho": 1.0001},
        {"rho": 1.01, "C": 100.0},
        {"base": 1e6},
        {"base": 0.01, "max_length": 3},
        {"tol": 1e-7},
    ],
    ids=str,
)
def test_extremes_give_numbers(options):
    model = RuleEnsembleClassifier(**options).fit(X, Y)
    assert np.isfinite(model.decision_function(X)).all()
    assert 0 <= model.duality_gap_ < np.inf
    assert model.converged_


def test_the_kinds_of_errors():
    with pytest.raises(InputError):
        RuleEnsembleClassifier(task_correlation=-1).fit(X, LABELS)
    with pytest.raises(InputTypeError):
        RuleEnsembleClassifier().fit(sp.csr_array(X), Y)


def test_a_refused_fit_leaves_the_old_model():
    model = RuleEnsembleClassifier(C=10.0).fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(InputTypeError):
        model.fit(pd.DataFrame({"a": [[1]] * 20}), np.arange(20) % 3)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    with pytest.raises(InputError):
        model.fit(X, np.zeros(20))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_folds_without_weight():
    message = "sample_weight: all rows to learn from in fold 1 have weight zero. Hint: use fewer"
    weight = np.repeat([1.0, 0.0], 10)
    for model, y in [(RuleEnsembleClassifierCV, Y), (RuleEnsembleRegressorCV, TARGET)]:
        refused(message, model(cv=KFold(2)).fit, X, y, sample_weight=weight)
