"""Scores on the page: which are asked for, and why there may be none."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import make_scorer, mean_absolute_error

from kernelweave import MKLRegressor
from kernelweave.errors import InputError, InputTypeError
from kernelweave.io import FitRecord, ScoredModel, describe, load, save
from kernelweave.report import to_html
from kernelweave.tables import evaluate_table, fit_table
from kernelweave.tables.recording import record_fit
from report_pages import parse, rows


def test_scores_by_name():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    scoring = {"mean error of mine": make_scorer(mean_absolute_error)}
    page = to_html(MKLRegressor().fit(X, y), X, y, cv=3, scoring=scoring)
    assert "mean error of mine" in parse(page).text()


def test_a_record_is_of_its_type():
    model = MKLRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    with pytest.raises(InputTypeError, match=r"record: must be a kernelweave.io.FitRecord, got"):
        to_html(model, record=0.9)


@pytest.fixture(scope="module")
def halves():
    """Return a model of one half of a table, and the other half."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(50, 10, 240), "town": rng.choice(["Ulm", "Bonn"], 240)})
    score = frame["age"] / 10 - 5 + (frame["town"] == "Ulm") + 0.5 * rng.normal(size=240)
    frame["mass"] = 20_000 * score
    frame["size"] = np.array(["l", "m", "s", "xs"])[np.digitize(score, [-1, 0, 1])]
    frame["ill"] = np.where(score > 0.5, "yes", "no")
    return frame[::2], frame[1::2]


def evaluated(halves, target, **options):
    """Return an evaluation of the other half, and the page about it."""
    X, new = halves
    columns = ["age", "town", target]
    fit = fit_table(X[columns], target, seconds=1.0)
    found = evaluate_table(fit.model, new[columns], target)
    page = to_html(fit.model, evaluation=found, data_name="new.csv", **options)
    return found, parse(page)


def test_an_evaluation_is_that_of_this_model_on_named_rows(halves):
    found, page = evaluated(halves, "ill")
    score = page.find("p", class_="score")[0].text()
    assert "AUC on the 120 rows of new.csv; it was not refitted (95% interval" in score
    lines = {line[0]: line[1:] for line in rows(page, "performance")[1:]}
    for one in found.scores:
        assert lines[one.title][0] == one.show(one.value)
        assert lines[one.title][2] == one.show(one.constant)
        sure = one.gain is not None and one.gain[0] > 0
        assert (lines[one.title][3] == "yes") == sure
    part = page.find("section", id="performance")[0]
    assert f"the area under the curve is {found.roc[0].area:.3f}" in part.text()
    charts = {one.find("h4")[0].text(): one for one in part.find("figure") if one.find("h4")}
    marks = charts["Are the probabilities right?"].find("circle", class_="dot")
    assert len(marks) == len(found.reliability.counts)
    counts = [
        int(one.text()) for one in charts["Confusion matrix"].find("text", class_="count light")
    ]
    assert max(counts) == found.confusion.max()


def test_warnings_of_the_fit_are_said_to_be_of_the_fit(halves):
    """Scores of the page are those of other rows, so that comparisons of the fit need a word."""
    kept = ("Better on rows left out: trees.", "AUC is low.")
    record = FitRecord((), "", warnings=kept)
    _, page = evaluated(halves, "ill", record=record)
    text = page.text()
    assert "When it was fitted: better on rows left out: trees." in text
    assert "When it was fitted: AUC is low." in text
    X, _ = halves
    fit = fit_table(X[["age", "town", "ill"]], "ill", seconds=1.0)
    assert "When it was fitted: " not in parse(to_html(fit.model, record=record)).text()


def test_confusions_of_several_classes(halves):
    found, page = evaluated(halves, "size")
    wrong = found.confusion * (1 - np.eye(4))
    tables = [rows(page, "performance", table=k) for k in range(4)]
    lines = next(one for one in tables if one[0][0] == "true")
    assert lines[0] == ["true", "predicted", "rows", "of the true class"]
    shown = [(line[0], line[1], int(line[2])) for line in lines[1:]]
    i, j = np.unravel_index(wrong.argmax(), wrong.shape)
    assert shown[0] == (found.classes[i], found.classes[j], wrong[i, j])
    assert sum(n for _, _, n in shown) == wrong.sum()
    recalls = {line[0]: line[2] for line in tables[-1][1:]}
    assert recalls == {one.label: f"{one.recall:.1%}" for one in found.class_scores}


def test_residuals_and_intervals_of_numbers(halves):
    found, page = evaluated(halves, "mass")
    part = page.find("section", id="performance")[0]
    charts = {one.find("h4")[0].text(): one for one in part.find("figure") if one.find("h4")}
    assert set(charts) == {"Predicted and true values", "Residuals"}
    heights = [float(c.attributes["cy"]) for c in charts["Residuals"].find("circle", class_="row")]
    errors = found.residuals.actual - found.residuals.predicted
    assert len(heights) == 120
    # Pixels are counted from the top, and tenths of them are written.
    np.testing.assert_array_less(np.diff(np.array(heights)[np.argsort(errors)]), 0.1001)
    if found.coverage:
        lines = rows(page, "performance", table=1)[1:]
        assert [line[1] for line in lines] == [f"{one.reached:.1%}" for one in found.coverage]


@pytest.mark.slow
def test_a_record_from_a_file_is_drawn_like_the_one_that_was_saved(halves, tmp_path):
    X, _ = halves
    for target in ("ill", "size", "mass"):
        fit = fit_table(X[["age", "town", target]], target, seconds=1.0)
        record = record_fit(fit, {"file": "x.csv"})
        path = save(fit.model, tmp_path / "m.kw", record=record)
        kept = describe(path)["record"]
        assert to_html(fit.model, record=kept) == to_html(fit.model, record=record)
        text = parse(to_html(load(path), record=kept)).find("section", id="performance")[0].text()
        assert f"Scores on {len(fit.choice.rows)} rows left out" in text
        shown = "Residuals" if target == "mass" else "Confusion matrix"
        assert shown in text


def test_a_damaged_evaluation_is_one_sentence():
    model = MKLRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    scored = (ScoredModel("this model", {"r2": 0.5}, 3),)
    for evaluation in ({}, {"roc": 3}, {"reliability": {"x": 1}, "roc": [], "residuals": None}):
        with pytest.raises(InputError, match="record: its evaluation is damaged"):
            to_html(model, record=FitRecord(scored, "on 3 rows", evaluation=evaluation))


def test_what_decides_is_on_the_first_screen(halves):
    X, _ = halves
    fit = fit_table(X[["age", "town", "mass"]], "mass", method="linear", seconds=1.0)
    page = parse(to_html(fit.model, X, cv=None))
    head = page.find("header")[0]
    assert "It looks most at age" in page.find("p", class_="lead")[0].text()
    names = [one.text() for one in head.find("ol", class_="bars")[0].find("span", class_="what")]
    assert names[0] == "age"
    assert [one.text() for one in head.find("h4")] == ["age", "town"]
    assert "they describe the model, not causes." in head.text()
    assert page.find("section", id="decides")
    alone = parse(to_html(fit.model))
    assert not alone.find("section", id="decides")
