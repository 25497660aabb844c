"""The kernel on columns of text."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from kernelweave import MKLClassifier, Words
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
