"""Scores on the page: which are asked for, and why there may be none."""

import numpy as np
from sklearn.metrics import make_scorer, mean_absolute_error

from kernelweave import MKLRegressor
from kernelweave.report import to_html
from report_pages import parse


def test_scores_by_name():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    scoring = {"mean error of mine": make_scorer(mean_absolute_error)}
    page = to_html(MKLRegressor().fit(X, y), X, y, cv=3, scoring=scoring)
    assert "mean error of mine" in parse(page).text()
