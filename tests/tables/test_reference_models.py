"""Models that users know, on mixed tables with gaps."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.tables import make_problem
from kernelweave.tables.reference_models import TypedColumns, svm_baseline

RANDOM = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(
    {
        "x": RANDOM.normal(size=N),
        "c": RANDOM.choice(["u", "v"], N),
        "day": pd.date_range("2000-01-01", periods=N),
    }
)
FRAME.loc[3, ["x", "c"]] = np.nan


def test_columns_are_numbers_and_categories():
    texts = FRAME.assign(said=[f"word{i % 2} once" for i in range(N)])
    found = TypedColumns(texts=("said",)).fit(texts).transform(texts)
    assert found["day"].tolist()[:2] == [0.0, 1.0]
    assert found["c"].cat.categories.tolist() == ["u", "v"]
    words = found.filter(like="said ").to_numpy()
    assert (words[0] == words[2]).all()
    assert (words[0] != words[1]).any()
    as_text = TypedColumns(as_text=True).fit(FRAME).transform(FRAME)
    assert as_text["c"][3] == "(missing)"


@pytest.mark.parametrize("regression", [False, True])
def test_the_svm_baseline_learns_and_is_in_units_of_the_target(regression):
    x = FRAME["x"].fillna(0.0)
    y = 100.0 * x if regression else np.where(x > 0, "a", "b")
    problem = make_problem(FRAME.assign(y=y), "y")
    model = svm_baseline(problem, 2.0).fit(problem.X, problem.y)
    assert model[-1].C == pytest.approx(2.0 * problem.y.std() if regression else 2.0)
    assert model.score(problem.X, problem.y) > 0.8
