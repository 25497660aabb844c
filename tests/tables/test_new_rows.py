"""New rows of a table: targets, weights, the columns of a model, and codes of classes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from kernelweave.errors import DataError, InputError
from kernelweave.tables.new_rows import (
    class_codes,
    class_codes_of,
    model_rows,
    predict_rows,
    take_rows,
    target_names,
    unwrap,
)

FRAME = pd.DataFrame(
    {
        "a": [0.0, 1.0, 2.0, 3.0, 4.0],
        "b": [1.0, 0.0, 1.0, 0.0, 1.0],
        "y": ["no", "no", None, "yes", "yes"],
        "w": [1.0, 2.0, 1.0, 0.0, 1.0],
    }
)
KNOWN = FRAME.dropna()
MODEL = LogisticRegression().fit(KNOWN[["b", "a"]], KNOWN["y"])


def test_rows_without_target_or_weight_are_left_out():
    rows = take_rows(MODEL, FRAME, "y", weight="w")
    np.testing.assert_array_equal(rows.numbers, [0, 1, 4])
    np.testing.assert_array_equal(rows.weight, [1.0, 2.0, 1.0])
    assert len(rows) == 3
    assert rows.others == ("y", "w")
    assert rows.notes == (
        "1 row(s) without a value of 'y' are left out",
        "1 row(s) of weight 0 are left out",
    )


def test_columns_are_those_of_the_fit():
    rows = take_rows(MODEL, FRAME, "y")
    assert list(model_rows(MODEL, rows)) == ["b", "a"]
    plain = LogisticRegression().fit(KNOWN[["a", "b"]].to_numpy(), KNOWN["y"])
    rows = take_rows(plain, FRAME.drop(columns="w"), "y", by="b")
    np.testing.assert_array_equal(model_rows(plain, rows)[:, 0], [0.0, 1.0, 3.0, 4.0])
    with pytest.raises(DataError, match="fitted to 2 columns of numbers without names, but the"):
        model_rows(plain, take_rows(plain, FRAME, "y"))


def test_predictions_beside_the_truth():
    rows = take_rows(MODEL, FRAME, "y")
    found = predict_rows(MODEL, rows)
    assert found.kind == "classes"
    np.testing.assert_array_equal(found.predicted.y, [0, 0, 1, 1])
    np.testing.assert_array_equal(found.predicted.proba, MODEL.predict_proba(KNOWN[["b", "a"]]))
    assert found.predicted.positive == 1
    assert predict_rows(MODEL, rows, positive="no").predicted.positive == 0
    assert found.outputs == (found.predicted,)
    with pytest.raises(InputError, match="--positive: must be a class of the model"):
        predict_rows(MODEL, rows, positive="maybe")


def test_several_targets():
    names = ["b", "w"]
    model = LinearRegression().fit(FRAME[["a"]], FRAME[names])
    found = predict_rows(model, take_rows(model, FRAME, names))
    assert found.kind == "targets"
    for k, part in enumerate(found.outputs):
        np.testing.assert_allclose(part.predicted, model.predict(FRAME[["a"]])[:, k])
    with pytest.raises(InputError, match="the model predicts 2 targets, but 1 column"):
        predict_rows(model, take_rows(model, FRAME, "b"))
    with pytest.raises(InputError, match="A StandardScaler predicts neither classes nor numbers"):
        predict_rows(StandardScaler().fit(FRAME[["a"]]), take_rows(model, FRAME, "b"))


def test_codes_of_classes():
    column = pd.Series([1, 2, 1], name="y")
    np.testing.assert_array_equal(class_codes(column, ("1", "2")), [0, 1, 0])  # numbers as text
    np.testing.assert_array_equal(class_codes(column, (2, 1)), [1, 0, 1])
    np.testing.assert_array_equal(class_codes_of(np.array(["b", "a"]), ("a", "b")), [1, 0])
    with pytest.raises(DataError, match=r"'y' has the value 1 in 2 row\(s\), which is no class"):
        class_codes(column, (2, 3))


def test_names_of_targets():
    assert target_names(MODEL, "y") == ("y",)
    assert target_names(MODEL, ["y", "z"]) == ("y", "z")
    for nothing in (None, []):
        with pytest.raises(InputError, match="--target: this model does not know the name"):
            target_names(MODEL, nothing)
    with pytest.raises(InputError, match="--target: 'a' is a column that the model predicts from"):
        target_names(MODEL, ["y", "a"])


@pytest.mark.parametrize("weight", [[-1.0] * 5, [0.0] * 5, [np.nan] * 5, list("abcde")])
def test_bad_weights(weight):
    with pytest.raises(DataError, match="--weight: 'w' must hold numbers that are not negative"):
        take_rows(MODEL, FRAME.assign(w=weight), "y", weight="w")


def test_a_search_is_its_best_model():
    search = GridSearchCV(LinearRegression(), {"fit_intercept": [True, False]}, cv=2)
    search.fit(FRAME[["a"]], FRAME["w"])
    assert unwrap(search) is search.best_estimator_
    assert unwrap(MODEL) is MODEL
