"""Scores on the page: which are asked for, and why there may be none."""

import numpy as np
import pytest
from sklearn.metrics import make_scorer, mean_absolute_error

from kernelweave import MKLRegressor
from kernelweave.errors import InputTypeError
from kernelweave.report import to_html
from report_pages import parse


def test_scores_by_name():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    scoring = {"mean error of mine": make_scorer(mean_absolute_error)}
    page = to_html(MKLRegressor().fit(X, y), X, y, cv=3, scoring=scoring)
    assert "mean error of mine" in parse(page).text()


def test_a_known_score_is_of_its_type():
    model = MKLRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    with pytest.raises(InputTypeError, match=r"must be a kernelweave.report.HeldOut, got float"):
        to_html(model, held_out=0.9)
