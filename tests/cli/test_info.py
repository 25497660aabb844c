"""``kernelweave info`` and ``predict`` with files of rule ensembles."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from kernelweave import RuleEnsembleClassifier, RuleEnsembleClassifierCV, RuleEnsembleRegressor
from kernelweave.cli import main
from kernelweave.io import save

N = 60
RANDOM = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": np.where(RANDOM.random(N) < 0.2, np.nan, RANDOM.integers(20, 70, N)),
        "code": RANDOM.choice(["01", "02", "7"], N),
        "smoker": RANDOM.random(N) < 0.5,
    }
)
SCORE = 1.0 * (TABLE["age"] > 40) + (TABLE["smoker"] & (TABLE["code"] == "02"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder with the table."""
    monkeypatch.chdir(tmp_path)
    TABLE[["smoker", "age", "code"]].assign(other=1).to_csv("table.csv", index=False)
    return tmp_path


def run(capsys, *argv):
    capsys.readouterr()
    code = main(list(argv))
    out, err = capsys.readouterr()
    return code, out, err


MODELS = {
    "two": (RuleEnsembleClassifier(C=10.0), SCORE > 0),
    "three": (RuleEnsembleClassifier(C=10.0), SCORE.astype(int).map(list("abc").__getitem__)),
    "labels": (RuleEnsembleClassifier(), np.column_stack([SCORE > 0, SCORE > 1]).astype(int)),
    "search": (RuleEnsembleClassifierCV(Cs=[0.1, 1.0], cv=2), SCORE > 0),
    "quantity": (RuleEnsembleRegressor(C=10.0), SCORE),
}


@pytest.mark.parametrize("name", MODELS)
def test_info_and_predict(folder, capsys, name):
    model, target = MODELS[name]
    save(model.fit(TABLE, target), "model.kw")
    code, out, err = run(capsys, "info", "model.kw")
    assert (code, err) == (0, "")
    assert f"{len(model.rules_)} rules" in out
    assert "certified within" in out
    about = json.loads(run(capsys, "info", "model.kw", "--json")[1])
    assert [rule["rule"] for rule in about["rules"]] == [rule.text for rule in model.rules_]
    assert about["intercept"] == model.intercept_.tolist()
    assert about["C"] == getattr(model, "C_", model.C)
    decision = [] if name == "quantity" else ["--decision"]
    code, out, err = run(capsys, "predict", "model.kw", "table.csv", *decision)
    assert (code, err) == (0, "")
    lines = pd.read_csv(io.StringIO(out))
    expected = model.predict(TABLE)
    np.testing.assert_array_equal(lines.iloc[:, : expected.ndim].squeeze(), expected.squeeze())
    if decision:
        scores = lines.filter(like="decision").to_numpy().squeeze()
        np.testing.assert_array_equal(scores, model.decision_function(TABLE))


def test_rules_are_shown_with_the_classes(folder, capsys):
    model, target = MODELS["three"]
    save(model.fit(TABLE, target), "model.kw")
    out = run(capsys, "info", "model.kw")[1]
    words = " ".join(out[: out.index("\n──")].splitlines()[-2:]).split()  # titles of two lines
    assert words.count("weight") == 3
    assert {"a", "b", "c"} < set(words)
    assert model.rules_[0].text in out
    assert "base score" in out


def test_tasks_need_python(folder, capsys):
    model = RuleEnsembleClassifier().fit(TABLE, SCORE > 0, task=np.arange(N) % 2)
    save(model, "model.kw")
    assert run(capsys, "info", "model.kw")[0] == 0
    code, out, err = run(capsys, "predict", "model.kw", "table.csv")
    assert (code, out) == (2, "")
    assert "fitted with tasks" in err


def test_arrays_without_names(folder, capsys):
    numbers = TABLE[["age", "smoker"]].to_numpy(dtype=float)
    model = RuleEnsembleRegressor().fit(numbers, SCORE)
    save(model, "model.kw")
    pd.DataFrame(numbers).to_csv("numbers.csv", index=False)
    code, out, _ = run(capsys, "predict", "model.kw", "numbers.csv")
    assert code == 0
    np.testing.assert_array_equal([float(x) for x in out.split()[1:]], model.predict(numbers))
    code, _, err = run(capsys, "predict", "model.kw", "table.csv")
    assert code == 2
    assert "2 columns of numbers without names" in err
