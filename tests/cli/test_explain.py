"""``kernelweave explain``."""

import json

import numpy as np
import pandas as pd
import pytest

from command_table import TABLE, fit, run
from kernelweave import KernelSpectralClustering
from kernelweave.inspection import explain
from kernelweave.io import load, save
from kernelweave.tables import read_for


@pytest.mark.parametrize("method", ["mkl", "noisy", "rules", "structure"])
def test_the_same_numbers_as_in_python(patients, capsys, method):
    fit(capsys, method)
    out, _ = run(capsys, "explain", "t.kw", "t.csv", "--rows", "0,5,7", "--json")
    report = json.loads(out)
    assert report["outputs"] == ["yes"]
    assert report["background_rows"] == 100
    model = load("t.kw")
    table = read_for(model, "t.csv").frame
    expected = explain(model, table.iloc[[0, 5, 7]], background=table)
    assert [line["row"] for line in report["values"]] == [0, 5, 7]
    for line, values in zip(report["values"], expected.values, strict=True):
        found = [line[name] for name in expected.feature_names]
        assert np.allclose(found, values, rtol=0, atol=1e-12)
        assert line["base"] + sum(found) == pytest.approx(line["prediction"])
    decisions = model.decision_function(table.iloc[[0, 5, 7]])
    assert np.allclose([line["prediction"] for line in report["values"]], decisions)


def test_the_model_that_fit_chooses_by_itself(patients, capsys):
    run(capsys, "fit", "t.csv", "--target", "ill", "--test-share", 0.3, "--quiet", "--no-report")
    model, values = (
        load("t.kw"),
        json.loads(run(capsys, "explain", "t.kw", "t.csv", "--rows", "0,5", "--json")[0])["values"],
    )
    decisions = model.decision_function(read_for(model, "t.csv").frame.iloc[[0, 5]])
    assert np.allclose([line["prediction"] for line in values], decisions)
    assert "Importance: mean change of the decision" in run(capsys, "explain", "t.kw", "t.csv")[0]


def test_tables_of_importance(patients, capsys):
    fit(capsys, "mkl")
    out, err = run(capsys, "explain", "t.kw", "t.csv", "--top", 2)
    lines = out.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("\u2500")) + 1
    assert lines[first].startswith(("age ", "seen "))  # both tell the group
    assert "decision for yes over 100 rows" in out
    assert "they describe" not in out
    assert "values describe the model, not causes" in out
    assert "note: " in err
    assert run(capsys, "explain", "t.kw", "t.csv", "--quiet") == ("", "")
    report = json.loads(run(capsys, "explain", "t.kw", "t.csv", "--json")[0])
    names = [line["name"] for line in report["importance"]]
    assert set(names[:2]) == {"age", "seen"}
    assert report["importance"][0]["error"] > 0
    by_kernel = run(capsys, "explain", "t.kw", "t.csv", "--by", "kernel", "--json")[0]
    assert json.loads(by_kernel)["by"] == "kernel"


def test_single_rows_are_text(patients, capsys):
    fit(capsys, "rules")
    out, _ = run(capsys, "explain", "t.kw", "t.csv", "--rows", "3", "--top", 1)
    assert out.startswith("row 3: yes: decision ")
    assert "average of 100 rows" in out
    assert "others" in out or "other" in out
    out, _ = run(capsys, "explain", "t.kw", "t.csv", "--rows", "3", "--by", "rule")
    assert " <= " in out or " > " in out or " == " in out


def test_all_rows_are_written(patients, capsys):
    fit(capsys, "mkl")
    run(capsys, "explain", "t.kw", "t.csv", "--out", "v.csv", "--quiet")
    values = pd.read_csv("v.csv")
    assert values["row"].tolist() == list(range(100))
    model = load("t.kw")
    decisions = model.decision_function(read_for(model, "t.csv").frame)
    assert np.allclose(values["prediction"], decisions)
    players = values.drop(columns=["row", "prediction", "base"])
    assert np.allclose(values["base"] + players.sum(axis=1), decisions)
    run(capsys, "explain", "t.kw", "t.csv", "--rows", "9,2", "--out", "v.csv", "--quiet")
    assert pd.read_csv("v.csv")["row"].tolist() == [9, 2]


def test_several_classes_show_the_predicted_one(patients, capsys):
    table = TABLE.drop(columns="ill").assign(kind=[f"kind {i % 3}" for i in range(100)])
    table.to_csv("k.csv", index=False)
    options = ("--target", "kind", "--method", "mkl", "--C", 1, "--test-share", 0)
    options += ("--quiet", "--no-report")
    run(capsys, "fit", "k.csv", *options, "--out", "k.kw")
    out, _ = run(capsys, "explain", "k.kw", "k.csv", "--rows", "0,1,2")
    predicted = load("k.kw").predict(table)[:3]
    for row, label in enumerate(predicted):
        assert f"row {row}: {label}: decision" in out
    assert "of each class over 100 rows" in run(capsys, "explain", "k.kw", "k.csv")[0]


def test_a_few_rows_need_a_background(patients, capsys):
    fit(capsys, "mkl")
    pd.read_csv("t.csv", sep=";", encoding="latin-1").head(3).to_csv("few.csv", index=False)
    _, err = run(capsys, "explain", "t.kw", "few.csv", code=2)
    assert "3 rows, too few to be compared with each other" in err
    assert "--background" in err
    out, _ = run(
        capsys, "explain", "t.kw", "few.csv", "--background", "t.csv", "--rows", "2", "--json"
    )
    whole = run(capsys, "explain", "t.kw", "t.csv", "--rows", "2", "--json")[0]
    assert json.loads(out)["values"][0]["age"] == pytest.approx(
        json.loads(whole)["values"][0]["age"]
    )


def test_the_target_is_ignored(patients, capsys):
    fit(capsys, "mkl")
    whole = run(capsys, "explain", "t.kw", "t.csv", "--json", "--quiet")[0]
    table = pd.read_csv("t.csv", sep=";", encoding="latin-1").drop(columns="ill")
    table.to_csv("new.csv", index=False)
    assert run(capsys, "explain", "t.kw", "new.csv", "--json", "--quiet")[0] == whole


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "0,500"], "--rows: the table has the rows 0 to 99"),
        (["--rows", "one"], "must be row numbers such as 0,5,7, got 'one'"),
        (["--rows", ""], "must be row numbers such as 0,5,7"),
        (["--by", "rule"], "--by: 'rule' needs a model that consists of rules"),
        (["--by", "colum"], "is not one of 'column', 'source', 'kernel', 'rule'"),
        (["--top", "0"], "must be a whole number > 0"),
        (["--background", "absent.csv"], "absent.csv"),
        (["--background", "narrow.csv"], "--background: lacks "),
    ],
)
def test_bad_input_gets_one_sentence(patients, capsys, options, message):
    fit(capsys, "mkl")
    TABLE[["age"]].to_csv("narrow.csv", index=False)
    out, err = run(capsys, "explain", "t.kw", "t.csv", *options, code=2)
    assert out == ""
    assert message in err
    assert len([line for line in err.splitlines() if "error: " in line]) == 1
    _, err = run(capsys, "explain", "t.kw", "narrow.csv", code=2)
    assert "error: The table lacks " in err


def test_models_that_predict_no_rows_are_refused(patients, capsys):
    table = TABLE[["age", "dose"]].fillna(40.0)
    save(KernelSpectralClustering(2, random_state=0).fit(table), "c.kw")
    _, err = run(capsys, "explain", "c.kw", "t.csv", code=2)
    assert "KernelSpectralClustering has no decision or prediction to explain" in err
