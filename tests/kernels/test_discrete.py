"""Kernels on categories and on text."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from kernelweave import MKLClassifier, Overlap, Words
from kernelweave.errors import InputError
from kernelweave.testing import check_kernel

TEXTS = ["mild fever and cough", "cough, cough", "all is well", "", "Fever!"]


def test_it_is_the_cosine_of_counts():
    expected = cosine_similarity(CountVectorizer().fit_transform(TEXTS))
    K = Words()(np.array(TEXTS, dtype=object)[:, None])
    np.testing.assert_allclose(K, expected, atol=1e-12)
    np.testing.assert_array_equal(K, K.T)
    assert K[3, 3] == 0  # no words, similar to none


def test_columns_are_joined():
    two = pd.DataFrame({"a": ["mild fever", "x y"], "n": [1, 2], "b": ["and cough", "x y"]})
    one = pd.DataFrame({"text": ["mild fever and cough", "x y x y"]})
    np.testing.assert_allclose(Words(columns=["a", "b"])(two), Words()(one))


def test_contract():
    check_kernel(Words(), np.array(TEXTS[:3] + TEXTS[4:], dtype=object)[:, None])


def test_missing_text_is_refused():
    with pytest.raises(InputError, match="missing"):
        Words()(pd.DataFrame({"note": ["a", None]}))


def test_it_learns_from_text():
    random = np.random.default_rng(0)
    words = np.array("alpha beta gamma delta epsilon".split())
    texts = [" ".join(random.choice(words, 4)) for _ in range(60)]
    y = np.array(["beta" in text for text in texts])
    frame = pd.DataFrame({"note": texts})
    model = MKLClassifier([Words(columns="note")], C=10.0).fit(frame[:40], y[:40])
    assert model.score(frame[40:], y[40:]) > 0.9


MIXED = {
    "city": ["Rome", "Oslo", "Rome", "Bonn"],
    "size": [1, 2, 1, 2],
    "flag": [True, True, False, False],
    "day": [datetime.date(2020, 1, day) for day in (1, 1, 1, 2)],
}
SHARES = np.array([[4, 2, 3, 0], [2, 4, 1, 1], [3, 1, 4, 1], [0, 1, 1, 4]]) / 4


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame(MIXED),
        pd.DataFrame(MIXED).astype({"city": "category", "size": "Int64", "flag": "boolean"}),
        pl.DataFrame(MIXED),
        pl.DataFrame(MIXED).cast({"city": pl.Categorical}),
        np.array(list(zip(*MIXED.values(), strict=True)), dtype=object),
        [list(row) for row in zip(*MIXED.values(), strict=True)],
        np.array(list(zip(*MIXED.values(), strict=True))).astype(str),
    ],
)
def test_overlap_of_any_types(X):
    np.testing.assert_array_equal(Overlap()(X), SHARES)
    np.testing.assert_array_equal(Overlap().diag(X), np.ones(4))
    rows = Overlap().prepare(X)
    assert rows.shape == (4, 4)
    np.testing.assert_array_equal(Overlap().block(rows[[2, 0]], rows), SHARES[[2, 0]])


def test_overlap_between_tables_and_types():
    K = Overlap(columns="size")(pd.DataFrame({"size": [1, 2]}), pl.DataFrame({"size": [2.0, 3.0]}))
    np.testing.assert_array_equal(K, [[0, 0], [1, 0]])
    with pytest.raises(InputError, match=r"overlap: the two sides must have the same columns"):
        Overlap()([["a", "b"]], [["a"]])


@pytest.mark.parametrize(
    ("X", "row"),
    [
        (pd.DataFrame({"a": ["x", None, "y"]}), 1),
        (pd.DataFrame({"a": ["x", np.nan]}, dtype=object), 1),
        (pd.DataFrame({"a": pd.array(["x", "y", pd.NA], dtype="string")}), 2),
        (pd.DataFrame({"a": pd.to_datetime([None, "2020-01-01"])}), 0),
        (pd.DataFrame({"a": pd.Categorical(["x", None])}), 1),
        (pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), 1),
        (pl.DataFrame({"a": ["x", None]}), 1),
        (pl.DataFrame({"a": [1.0, float("nan")]}), 1),
        (np.array([["x"], [None]], dtype=object), 1),
        (np.array([["x"], [pd.NA]], dtype=object), 1),
        (np.array([[1.0], [np.nan]]), 1),
        (np.array([["2020-01-01"], ["NaT"]], dtype="datetime64[D]"), 1),
    ],
)
def test_overlap_refuses_missing_values(X, row):
    with pytest.raises(
        InputError, match=rf"overlap: column ('a'|0) has a missing value in row {row};"
    ):
        Overlap()(X)


def test_overlap_refuses_values_without_equality():
    X = np.empty((1, 1), dtype=object)
    X[0, 0] = ["a list"]
    with pytest.raises(InputError, match=r"overlap: column 0 holds values that cannot be compared"):
        Overlap()(X)


def test_words_of_other_kernels_are_refused():
    words = Words().prepare([["late"], ["fine"]])
    with pytest.raises(InputError, match="the two sides were not prepared by this kernel"):
        Words().block(words, words[:, :10])
