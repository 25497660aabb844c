"""A table of 10 000 hard rows, and models of rules about it."""

import datetime
from functools import cache

import numpy as np
import pandas as pd

import quick
from kernelweave.rules import LinearTerm, Link, Proposition, Rule, score_rules
from kernelweave.rules.dates import year_of

N = 2_500 if quick.is_quick else 10_000
BIG = 2**53
AGES = (0.1, 0.30000000000000004, 41.5, -7.25, 1e-300, 123456789.125)
LATIN = ["Köln", "KÖLN", "köln", "Koln", "Ulm", "Ulm ", " Ulm", "ulm", "O'Hara", 'say "hi"', "Zoë"]
LATIN += ["back\\slash", "\\'; DROP TABLE data; --", "100%", "a;b", "`tick`", "1", "NULL", "é", "è"]
WIDE = ["naïve ☃ 你好", "\U0001f600", "\U0001f601", "Ōsaka", "Osaka", "Łódź", "ﬁ", "fi", "ß", "ss"]
SIZES = ("S", "M", "it's L", "XL")
START = datetime.datetime(2024, 2, 28, 22, 0, 0)
CLASSES = ["no", "it's é", "\U0001f600"]


@cache
def hard_table(wide=True, seed=0):
    """Return the rows; some are missing, and some have categories that no rule knows."""
    rng = np.random.default_rng(seed)
    cuts = np.array(AGES)
    near = np.concatenate([cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf)])
    towns = [*LATIN, *(WIDE if wide else ()), "unseen", "Bünde"]
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(N) < 0.5, rng.choice(near, N), rng.normal(0, 50, N)),
            "big": rng.integers(BIG - 3, BIG + 6, N),
            "code": rng.integers(BIG - 2, BIG + 3, N),
            "town": rng.choice(np.array(towns, dtype=object), N),
            "smoker": rng.random(N) < 0.5,
            "size": rng.choice(np.array([*SIZES, "unseen"], dtype=object), N),
            "seen": [START + datetime.timedelta(hours=int(h)) for h in rng.integers(0, 100, N)],
        }
    ).astype(object)
    missing = rng.random(frame.shape) < 0.08
    return frame.mask(missing, None).where(frame.notna(), None)


def hard_rules(n_outputs=1, wide=True, seed=1, n_rules=150):
    """Return rules about all columns, with random weights."""
    rng = np.random.default_rng(seed)
    towns = [*LATIN, *(WIDE if wide else ())]
    moments = [year_of(START + datetime.timedelta(hours=h, minutes=30)) for h in (3, 11, 50)]
    moments += [year_of(START + datetime.timedelta(hours=h)) for h in (7, 26)]
    known = [Proposition("age", 0, o, v) for o in ("<=", ">") for v in AGES]
    known += [Proposition("big", 1, o, BIG + d) for o in ("<=", ">") for d in (-1.0, 0.0, 2.0)]
    known += [Proposition("code", 2, o, BIG + d) for o in ("==", "!=") for d in (-1, 0, 1, 2)]
    known += [Proposition("town", 3, o, town) for o in ("==", "!=") for town in towns]
    known += [Proposition("smoker", 4, "==", value) for value in (True, False)]
    known += [Proposition("size", 5, o, s, SIZES) for o in ("<=", ">") for s in SIZES[:-1]]
    known += [Proposition("seen", 6, o, year) for o in ("<=", ">") for year in moments]
    rules = [Rule((c,), tuple(rng.normal(size=n_outputs)), 0.5) for c in known]
    while len(rules) < n_rules:
        pair = rng.choice(len(known), 2, replace=False)
        rules.append(Rule(tuple(known[k] for k in pair), tuple(rng.normal(size=n_outputs)), 0.5))
    for ends in (("age", 0, AGES[0], AGES[0] + 20.5), ("big", 1, BIG - 1.0, BIG + 2.0)):
        name, position, low, high = ends
        weights = tuple(rng.normal(size=n_outputs))
        rules.append(LinearTerm(name, position, low, high, low + 0.25 * (high - low), weights))
    return rules


def expected_scores(rules, intercept, frame):
    """Return scores of the table with dates as years."""
    years = [None if pd.isna(t) else year_of(t) for t in frame["seen"]]
    numbers = frame.assign(
        age=frame["age"].astype(float),
        big=frame["big"].astype("Int64"),
        code=frame["code"].astype("Int64"),
        seen=pd.Series(years, dtype=float),
    )
    return np.asarray(score_rules(rules, intercept, numbers))


def expected_classes(scores):
    return [CLASSES[int(k)] for k in scores.argmax(axis=1)]


def softmax_link(n_outputs):
    return Link(tuple(0.3 + 0.1 * t for t in range(n_outputs)), (0.1,) * n_outputs, softmax=True)


def softmax(scores, link):
    values = np.array(link.slopes) * scores + np.array(link.biases)
    shares = np.exp(values - values.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def records(frame):
    """Return the rows with a number before each, as Python's own values."""
    return [(i, *row) for i, row in enumerate(frame.itertuples(index=False, name=None))]


def check_answers(found, rules, intercept, frame, link=None):
    """Compare rows (id, scores..., class, probabilities...) with the rules themselves."""
    scores = expected_scores(rules, intercept, frame)
    n_outputs = scores.shape[1]
    found = sorted(found, key=lambda row: int(row[0]))
    assert [int(row[0]) for row in found] == list(range(len(frame)))
    given = np.array([[float(v) for v in row[1 : 1 + n_outputs]] for row in found])
    np.testing.assert_allclose(given, scores, rtol=0, atol=1e-12)
    wrong = sum(
        row[1 + n_outputs] != c for row, c in zip(found, expected_classes(scores), strict=True)
    )
    assert wrong == 0
    if link is not None:
        shares = np.array([[float(v) for v in row[2 + n_outputs :]] for row in found])
        np.testing.assert_allclose(shares, softmax(scores, link), rtol=1e-12, atol=1e-12)
