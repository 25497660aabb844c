"""Rivals in comparisons: scikit-learn's models, and those of packages that are installed."""

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from kernelweave.tables import make_problem
from kernelweave.tables.reference_models import TypedColumns, installed_rivals, reference_models

RANDOM = np.random.default_rng(4)
N = 160
X = RANDOM.normal(size=(N, 2))
TABLE = pd.DataFrame(
    {
        "a": np.where(RANDOM.random(N) < 0.1, np.nan, X[:, 0]),
        "b": X[:, 1],
        "town": np.where(RANDOM.random(N) < 0.1, None, RANDOM.choice(["Ulm", "Bonn"], N)),
        "seen": pd.date_range("2024-01-01", periods=N, freq="D").strftime("%Y-%m-%d"),
        "note": RANDOM.choice(["very late and damaged", "all went quite well"], N),
    }
)
TABLE["note"] += [f" (row {i})" for i in range(N)]
SCORE = 2 * X[:, 1] + (TABLE["note"].str.contains("late")) - 0.5
TARGETS = {
    "number": SCORE,
    "two": np.where(SCORE > 0, "yes", "no"),
    "three": np.array(["low", "middle", "high"])[np.digitize(SCORE, [-1.0, 1.0])],
}


def problem_of(target):
    return make_problem(TABLE.assign(y=TARGETS[target]), "y")


def check(model, problem, least):
    train, test = problem.take(range(0, N, 2)), problem.take(range(1, N, 2))
    model.fit(train.X, train.y)
    predicted = np.ravel(model.predict(test.X))
    if problem.regression:
        assert not hasattr(model, "predict_proba")
        assert np.corrcoef(predicted.astype(float), test.y)[0, 1] > least
        return
    assert (predicted == test.y).mean() > least
    shares = np.asarray(model.predict_proba(test.X))
    assert shares.shape == (len(test.y), problem.y.nunique())
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("name", "package"), [("LightGBM", "lightgbm"), ("CatBoost", "catboost"), ("xRFM", "xrfm")]
)
@pytest.mark.filterwarnings("ignore")
def test_rivals_that_are_installed(name, package, target):
    """They read gaps, categories, dates and text, and predict better than a constant."""
    pytest.importorskip(package)
    problem = problem_of(target)
    check(installed_rivals(problem)[name], problem, 0.55)


def test_rivals_of_scikit_learn():
    problem = problem_of("number")
    for name in ("SVM", "gradient boosting", "linear model"):
        with threadpool_limits(1):  # as in comparisons
            check(reference_models(problem, 3)[name], problem, 0.55)


FRAME = pd.DataFrame(
    {
        "x": np.linspace(0.0, 1.0, 60),
        "c": ["u", "v"] * 30,
        "day": pd.date_range("2000-01-01", periods=60),
    }
)
FRAME.loc[3, ["x", "c"]] = np.nan


def test_columns_are_numbers_and_categories():
    texts = FRAME.assign(said=[f"word{i % 2} once" for i in range(60)])
    found = TypedColumns(texts=("said",)).fit(texts).transform(texts)
    assert found["day"].tolist()[:2] == [0.0, 1.0]
    assert found["c"].cat.categories.tolist() == ["u", "v"]
    words = found.filter(like="said ").to_numpy()
    assert (words[0] == words[2]).all()
    assert (words[0] != words[1]).any()
    as_text = TypedColumns(as_text=True).fit(FRAME).transform(FRAME)
    assert as_text["c"][3] == "(missing)"
