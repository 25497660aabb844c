"""Scores by cross-validation are those of scikit-learn, or there is a reason why not."""

import numpy as np
import pytest
from scipy import stats
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score

from kernelweave import (
    Linear,
    MKLClassifier,
    NoiseTolerantKernelClassifier,
    RuleEnsembleClassifier,
    report,
)
from kernelweave.errors import InputError
from kernelweave.report.cross_validation import Score, _score
from report_models import MODELS, NOISY, TWO, UNMEASURED, X, fitted, page
from report_pages import parse, rows


def test_intervals_widen_with_the_share_of_test_rows():
    folds = np.array([0.7, 0.8, 0.75])
    plain, wide = (_score("R\u00b2", folds, ratio) for ratio in (0.0, 0.5))
    assert plain.mean - plain.low == pytest.approx(stats.t.ppf(0.975, 2) * stats.sem(folds))
    assert wide.mean - wide.low == pytest.approx((plain.mean - plain.low) * np.sqrt(2.5))
    assert _score("mean absolute error", -folds, 0.0).mean == pytest.approx(0.75)


def test_scores_are_written_as_their_kind():
    assert Score("accuracy", np.ones(2), np.nan, np.nan).show(0.5) == "50.0%"
    assert Score("mine", np.ones(2), np.nan, np.nan).show(1234.5) == "1234"
    assert Score("mine", np.ones(2), np.nan, np.nan).show(np.nan) == "\u2013"


def test_performance_is_that_of_cross_validation():
    model = fitted("mkl")[0]
    splitter = StratifiedKFold(4, shuffle=True, random_state=0)
    scores = cross_val_score(model, X, TWO, cv=splitter)
    shown = parse(report.to_html(model, X, TWO, cv=4))
    half = stats.t.ppf(0.975, 3) * scores.std(ddof=1) * np.sqrt(1 / 4 + 1 / 3)
    low, high = scores.mean() - half, min(1.0, scores.mean() + half)
    expected = [f"{100 * v:.1f}%" for v in (scores.mean(), low, high, *scores)]
    assert rows(shown, "performance")[1] == ["accuracy", *expected]
    words = shown.find("section", id="performance")[0].text()
    assert f"accuracy {expected[0]} (95% interval {expected[1]} to {expected[2]})" in words
    assert "This is a score of the method" in words
    first = shown.find("header")[0]
    assert first.find("p", class_="score")[0].find("strong")[0].text() == expected[0]
    most = max(np.mean(TWO == "high"), np.mean(TWO == "low"))
    assert f"constant prediction ({100 * most:.1f}%)" in first.text()
    assert "The model was fitted again for every fold" in first.text()


def test_intervals_end_where_scores_end():
    lines = {line[0]: line[1:4] for line in rows(parse(page("regression")), "performance")[1:]}
    assert float(lines["R\u00b2"][2]) == 1.0  # two folds have a wide interval
    assert float(lines["mean absolute error"][1]) == 0.0


def test_equal_folds_have_no_interval():
    apart = np.where(TWO == "high", 9.0, -9.0)[:, None] + X
    model = MKLClassifier([Linear()]).fit(apart, TWO)
    shown = parse(report.to_html(model, apart, TWO, cv=3))
    assert rows(shown, "performance")[1][:4] == ["accuracy", "100.0%", "\u2013", "\u2013"]
    part = shown.find("section", id="performance")[0]
    assert "100.0% (the same in all 3 folds)" in part.text()
    assert not part.find("line", class_="interval")
    ticks = [one.text() for one in part.find("text", class_="tick")]
    assert ticks[-1] == "100%"


def test_axes_of_scores_are_in_per_cent_and_exact():
    part = parse(page("radius")).find("section", id="performance")[0]
    ticks = [one.text() for one in part.find("text", class_="tick")]
    assert all(tick.endswith("%") for tick in ticks)
    steps = np.diff([float(tick.rstrip("%")) for tick in ticks])
    np.testing.assert_allclose(steps, steps[0])


def test_scores_and_folds_of_the_user_are_used():
    model, groups = fitted("mkl")[0], np.arange(len(X)) % 3
    splits = list(GroupKFold(3).split(X, TWO, groups))
    shown = rows(parse(report.to_html(model, X, TWO, cv=splits, scoring="roc_auc")), "performance")
    expected = cross_val_score(model, X, TWO, cv=splits, scoring="roc_auc")
    assert shown[1][0] == "roc_auc"
    assert shown[1][4:] == [f"{v:.4g}" for v in expected]


@pytest.mark.slow
def test_measures_fit_the_task():
    measured = {
        name: [line[0] for line in rows(parse(page(name)), "performance")[1:]]
        for name in MODELS
        if name not in UNMEASURED
    }
    assert measured["mkl"] == ["accuracy", "balanced accuracy", "area under the ROC curve"]
    assert measured["mkl of three classes"] == ["accuracy", "balanced accuracy"]
    assert measured["regression"] == ["R\u00b2", "mean absolute error"]
    assert measured["pairs"] == ["area under the ROC curve of pairs"]
    error = rows(parse(page("regression")), "performance")[2]
    assert float(error[1]) > 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "no data were given with the model"),
        ({"X": X}, "no target was given"),
        ({"X": X, "y": TWO, "cv": None}, "cross-validation was left out"),
        (
            {"X": X, "y": np.where(np.arange(60) == 3, "rare", TWO)},
            "the class rare has one row only",
        ),
    ],
)
def test_what_is_not_measured_has_a_reason(arguments, reason):
    shown = parse(report.to_html(fitted("mkl")[0], **arguments))
    words = shown.find("section", id="performance")[0].text()
    assert f"Not measured: {reason}" in words


def test_models_with_tasks_are_not_measured():
    task = np.arange(60) % 2
    model = RuleEnsembleClassifier(C=10).fit(X, TWO, task=task)
    shown = parse(report.to_html(model, X, TWO))
    assert "fitted with tasks" in shown.find("section", id="performance")[0].text()
    assert "in 2 tasks" in shown.find("p", class_="lead")[0].text()


def test_bad_folds_are_refused():
    with pytest.raises(InputError, match="cv: must be 2 folds or more"):
        report.to_html(fitted("mkl")[0], X, TWO, cv=1)


def test_what_folds_warn_of_is_written():
    y = np.random.default_rng(0).permutation(NOISY)
    with pytest.warns(UserWarning, match="no better than chance"):
        model = NoiseTolerantKernelClassifier([Linear()]).fit(X, y)
    shown = parse(report.to_html(model, X, y, cv=2))
    assert "A fold warned: NoiseTolerant" in shown.find("section", id="performance")[0].text()
