"""Data in which people made the mistakes, and three sets whose labels are flipped.

The files are those of the folder ``people`` below ``KERNELWEAVE_DATA``: answers of annotators with
gold labels. Columns of songs and images are standardised on the annotated rows; those of images
are reduced to 100 principal components, sentences to 200 components of tf-idf.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from kernelweave.datasets import load_dataset

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class People:
    """Rows with gold labels, answers of annotators (-1: not asked), and rows to test on."""

    X: Floats
    gold: Codes
    answers: NDArray[Any]
    X_test: Floats
    gold_test: Codes

    def take(self, rows: Codes, more: bool = True) -> People:
        """Return some of the annotated rows; the others are added to those to test on."""
        rest = np.setdiff1d(np.arange(len(self.X)), rows) if more else rows[:0]
        answers = self.answers[rows]
        return People(
            self.X[rows],
            self.gold[rows],
            answers[:, (answers >= 0).any(axis=0)],
            np.vstack([self.X_test, self.X[rest]]),
            np.concatenate([self.gold_test, self.gold[rest]]),
        )


def folder() -> Path:
    """Return the folder of the files."""
    return Path(os.environ.get("KERNELWEAVE_DATA", "../shared/data")) / "people"


@cache
def load_people(name: str) -> People:
    """Return music, labelme, sentiment or products."""
    return {
        "music": lambda: _arrays("music"),
        "labelme": lambda: _arrays("labelme", 100),
        "sentiment": _sentiment,
        "products": _products,
    }[name]()


def _arrays(name: str, n_components: int | None = None) -> People:
    with np.load(folder() / f"{name}.npz", allow_pickle=False) as file:
        X, test = file["X_train"].astype(float), file["X_test"].astype(float)
        gold, gold_test, answers = file["gold_train"], file["gold_test"], file["answers"]
    scaler = StandardScaler().fit(X)
    X, test = scaler.transform(X), scaler.transform(test)
    if n_components is not None:
        pca = PCA(n_components, random_state=0).fit(X)
        X, test = pca.transform(X), pca.transform(test)
    return People(X, gold.astype(np.intp), answers, test, gold_test.astype(np.intp))


def _table(frame: pd.DataFrame, n_rows: int) -> NDArray[Any]:
    """Return a table of answers from (row, annotator, answer)."""
    who = np.unique(frame["annotator"], return_inverse=True)[1]
    out = np.full((n_rows, int(who.max()) + 1), -1, dtype=np.int8)
    out[frame["row"], who] = frame["answer"]
    return out


def _sentiment() -> People:
    train = pd.read_csv(folder() / "sentiment_train.csv.gz")
    answers = pd.read_csv(folder() / "sentiment_answers.csv.gz")
    tfidf = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    X = TruncatedSVD(200, random_state=0).fit_transform(tfidf.fit_transform(train["text"]))
    X = StandardScaler().fit_transform(X)
    place = pd.Series(np.arange(len(train)), index=train["item"])
    answers = answers.assign(row=place.loc[answers["item"]].to_numpy())
    gold = train["gold"].to_numpy(np.intp)
    return People(X, gold, _table(answers, len(train)), X[:0], gold[:0])


def _products() -> People:
    pairs = pd.read_csv(folder() / "product_pairs.csv.gz")
    answers = pd.read_csv(folder() / "product_answers.csv.gz")
    items = pd.read_csv(folder() / "product_items.csv.gz").set_index("id")
    X = StandardScaler().fit_transform(pair_columns(items, pairs))
    place = pd.Series(np.arange(len(pairs)), index=pairs["pair"])
    answers = answers.assign(row=place.loc[answers["pair"]].to_numpy())
    gold = pairs["gold"].to_numpy(np.intp)
    return People(X, gold, _table(answers, len(pairs)), X[:0], gold[:0])


def pair_columns(items: pd.DataFrame, pairs: pd.DataFrame) -> Floats:
    """Return eight similarities of the two products of each pair."""
    names, both = items["name"].fillna(""), _names_and_descriptions(items)
    place = pd.Series(np.arange(len(items)), index=items.index)
    left, right = (place.loc[pairs[side]].to_numpy() for side in ("left", "right"))

    def cosine(texts: pd.Series, **options: Any) -> Floats:
        V = TfidfVectorizer(sublinear_tf=True, **options).fit_transform(texts.str.lower())
        return np.asarray(V[left].multiply(V[right]).sum(axis=1)).ravel()

    words = [set(re.findall(r"[a-z0-9]+", name.lower())) for name in names]
    models = [_models(name) for name in names]
    price = np.log(
        pd.to_numeric(items["price"].astype(str).str.replace(r"[$,]", "", regex=True), "coerce")
    )
    gap = np.abs(price.to_numpy()[left] - price.to_numpy()[right])
    first = [name.lower().split()[:1] for name in names]
    return np.column_stack(
        [
            cosine(names),
            cosine(names, analyzer="char_wb", ngram_range=(3, 4)),
            cosine(both),
            [_agree(models[i], models[j]) for i, j in zip(left, right, strict=True)],
            [_jaccard(words[i], words[j]) for i, j in zip(left, right, strict=True)],
            [first[i] == first[j] for i, j in zip(left, right, strict=True)],
            np.nan_to_num(gap),
            np.isnan(gap),
        ]
    ).astype(float)


def _names_and_descriptions(items: pd.DataFrame) -> pd.Series:
    return items["name"].fillna("") + " " + items["description"].fillna("")


def _jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


def _models(name: str) -> set[str]:
    """Return what looks like a model number: with a digit, of four letters or more, no hyphens."""
    joined = (re.sub(r"[^a-z0-9]", "", word) for word in re.split(r"[\s/]+", name.lower()))
    return {word for word in joined if re.search(r"\d", word) and len(word) > 3}


def _agree(one: set[str], other: set[str]) -> bool:
    """Return whether a model number of one product is part of one of the other."""
    return any(a in b or b in a for a in one for b in other)


def division(name: str, seed: int, answers: str = "all") -> People:
    """Return a division of answers of several: rows to learn from, and rows to test on.

    Of songs and images 80 % of the annotated rows; 800 sentences and 2000 to test on; 1200 pairs of
    products, and the others to test on. "two" keeps at most two answers of a row; "two-1" draws
    others, and so on. "noise-1" replaces the columns by random numbers. "copy" counts the annotator
    with most answers twice, "shift" turns the answers of this one into those of the next class.
    """
    data = load_people(name)
    n = len(data.X)
    if name == "sentiment":
        order = np.random.default_rng(100 + seed).permutation(n)
        some = data.take(order[:800], more=False)
        test = order[800:2800]
        some = People(some.X, some.gold, some.answers, data.X[test], data.gold[test])
    elif name == "products":
        some = data.take(np.random.default_rng(50 + seed).permutation(n)[:1200])
    else:
        some = data.take(np.random.default_rng(1000 + seed).permutation(n)[: int(0.8 * n)])
    how, _, draw = answers.partition("-")
    rng = np.random.default_rng([seed, int(draw)] if draw else seed)
    if how == "noise":
        X, X_test = (rng.normal(size=part.shape) for part in (some.X, some.X_test))
        return People(X, some.gold, some.answers, X_test, some.gold_test)
    table = some.answers.copy()
    most = int((table >= 0).sum(axis=0).argmax())
    own = table[:, most]
    if how == "two":
        for row in table:
            asked = np.flatnonzero(row >= 0)
            row[rng.permutation(asked)[2:]] = -1
    elif how == "copy":
        table = np.column_stack([table, own])
    elif how == "shift":
        table[:, most] = np.where(own < 0, own, (own + 1) % (int(table.max()) + 1))
    some = People(some.X, some.gold, table, some.X_test, some.gold_test)
    return some.take(np.arange(len(some.X)))  # without annotators who are left without answers


def one_label(name: str, seed: int, how: str = "one") -> tuple[People, Codes]:
    """Return rows and one label for each: one answer drawn at random, or the majority."""
    if name in ("sentiment", "products"):
        data = division(name, seed)
    else:
        data = load_people(name)
        data = data.take(np.flatnonzero((data.answers >= 0).any(axis=1)), more=False)
    rng = np.random.default_rng(seed)
    labels = np.empty(len(data.X), dtype=np.intp)
    for i, row in enumerate(data.answers):
        given = row[row >= 0]
        if how == "majority":
            counts = np.bincount(given)
            given = np.flatnonzero(counts == counts.max())
        labels[i] = rng.choice(given)
    return data, labels


FLIPPED = {"tumours": (0.4, 0.1), "digits": 0.35, "splice": (0.35, 0.15)}


def flipped(name: str, seed: int) -> tuple[People, Codes]:
    """Return a set with flipped labels: rates of both classes, or one of all classes."""
    rng = np.random.default_rng(seed)
    if name == "splice":
        table = load_dataset("splice_train")
        X = pd.get_dummies(table.X.astype(str)).to_numpy(float)
        y = np.unique(table.y, return_inverse=True)[1]
    else:
        X, y = (load_digits if name == "digits" else load_breast_cancer)(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=min(600, int(0.7 * len(y))), stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(X)
    n_classes, rates = int(y.max()) + 1, np.broadcast_to(FLIPPED[name], (int(y.max()) + 1,))
    wrong = rng.random(len(y)) < rates[y]
    other = (y + rng.integers(1, n_classes, len(y))) % n_classes
    answers = np.where(wrong, other, y)
    data = People(scaler.transform(X), y, answers[:, None], scaler.transform(X_test), y_test)
    return data, answers
