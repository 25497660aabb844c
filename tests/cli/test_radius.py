"""``kernelweave fit --method radius``, and what ``info`` says of models by margin and radius."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from kernelweave import RadiusKernelClassifier, RadiusMKLClassifier, rbf_ladder
from kernelweave.cli import main
from kernelweave.io import load

N = 100
RANDOM = np.random.default_rng(0)
NUMBERS = RANDOM.normal(size=(N, 2)) * [1.0, 100.0] + [5.0, -300.0]
SCORE = NUMBERS[:, 0] - 5 + np.sin(NUMBERS[:, 1] / 50)
TABLE = pd.DataFrame(
    {
        "age": NUMBERS[:, 0],
        "income": NUMBERS[:, 1],
        "town": RANDOM.choice(["Ulm", "Köln"], N),
        "two": np.where(SCORE > 0, "yes", "no"),
        "grade": np.digitize(SCORE, [-0.5, 0.5]),
        "count": np.arange(N) % 30,
        "amount": 1e4 * SCORE,
    }
)
TARGETS = ["two", "grade", "count", "amount"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder with the table."""
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("table.csv", index=False)
    return tmp_path


def run(capsys, *argv):
    """Return exit code, standard output and standard error."""
    capsys.readouterr()
    code = main([str(arg) for arg in argv])
    out, err = capsys.readouterr()
    return code, out, err


def fit(target, *options):
    others = [arg for name in TARGETS if name != target for arg in ("--ignore", name)]
    return ("fit", "table.csv", "--target", target, *others, "--method", "radius", *options)


def fails(capsys, message, *argv):
    """Check for one line on standard error."""
    code, out, err = run(capsys, *argv)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("kernelweave: error: ")
    assert message in err


@pytest.mark.parametrize("target", ["two", "grade"])
def test_fit_then_predict(folder, capsys, target):
    code, out, err = run(capsys, *fit(target, "--C", 1))
    assert (code, err) == (0, "")
    for text in (
        "on rows left out",
        "SVM baseline",
        "certified within",
        "lower bound",
        "squared radius",
    ):
        assert text in out
    model = load("table.kw")
    assert type(model[-1]) is RadiusMKLClassifier
    assert model[-1].verbose == 0
    assert model[-1].converged_
    assert model.score(TABLE, TABLE[target]) > 0.8

    code, out, err = run(capsys, "predict", "table.kw", "table.csv", "--decision")
    assert (code, err) == (0, "")
    found = [row[target] for row in csv.DictReader(io.StringIO(out))]
    assert found == [str(label) for label in model.predict(TABLE).tolist()]


def test_options_reach_the_estimator(folder, capsys):
    options = "--norm 2 --C 3 --tol 0.01 --max-iter 50 --no-per-feature --quiet".split()
    options += ("--test-share", 0, "--no-report")
    assert run(capsys, *fit("two", *options)) == (0, "", "")
    model = load("table.kw")[-1]
    assert (model.norm, model.C, model.tol, model.max_iter) == (2.0, 3.0, 0.01, 50)
    assert len(model.kernels_) == 4 + 3 + 1
    assert np.linalg.norm(model.weights_) == pytest.approx(1)


def test_norms_1_and_2_give_one_function(folder, capsys):
    decisions = []
    for norm in (1, 2):
        run(capsys, *fit("two", "--norm", norm, "--C", 1, "--quiet", "--test-share", 0))
        decisions.append(load("table.kw").decision_function(TABLE))
    np.testing.assert_allclose(*decisions)


def test_equal_weights_at_unit_radius(folder, capsys):
    options = "--norm uniform --C 1 --no-per-feature --test-share 0.3".split()
    _, out, _ = run(capsys, *fit("two", *options))
    assert "no function on these weights can do better" in out
    model = load("table.kw")[-1]
    np.testing.assert_allclose(model.weights_, 1 / 8)
    assert "norm uniform" in run(capsys, "info", "table.kw")[1]


def test_report_as_json(folder, capsys):
    code, out, err = run(capsys, *fit("two", "--json", "--test-share", 0))
    assert (code, err) == (0, "")
    report, model = json.loads(out), load("table.kw")[-1]
    assert report["estimator"] == "RadiusMKLClassifier"
    assert report["squared_radius"] == model.squared_radius_
    assert report["lower_bound"] == pytest.approx(model.lower_bound_)
    assert report["lower_bound"] <= report["objective"]
    assert sum(kernel["weight"] for kernel in report["kernels"]) == pytest.approx(1)
    about = json.loads(run(capsys, "info", "table.kw", "--json")[1])
    shared = set(about) & set(report) - {"model"}
    assert {key: about[key] for key in shared} == {key: report[key] for key in shared}


def test_other_methods_have_no_radius(folder, capsys):
    options = ("--method", "mkl", "--C", 1, "--quiet", "--test-share", 0)
    run(capsys, "fit", "table.csv", "--target", "two", *options)
    about = json.loads(run(capsys, "info", "table.kw", "--json")[1])
    assert about["squared_radius"] is None
    assert about["lower_bound"] <= about["objective"]
    assert "squared radius" not in run(capsys, "info", "table.kw")[1]


@pytest.mark.parametrize(
    ("message", "argv"),
    [
        (
            "method radius: it is for classification, but the target 'amount' has numbers with "
            "decimals, or more than 20 different ones; use the method mkl or rules, or",
            fit("amount"),
        ),
        (
            "the target 'count' has numbers",
            fit("count"),
        ),
        (
            "norm: must be 1, 2 or 'uniform' with the method radius, got 1.5",
            fit("two", "--norm", 1.5),
        ),
        ("must be a number >= 1 or 'uniform', got '0.5'", fit("two", "--norm", 0.5)),
        ("must be a number > 0 or 'auto', got '0'", fit("two", "--C", 0)),
        ("The 'tol' parameter", fit("two", "--tol", 1e-20)),
    ],
)
def test_mistakes(folder, capsys, message, argv):
    fails(capsys, message, *argv)
    assert not list(folder.glob("*.kw"))


def test_no_convergence(folder, capsys):
    argv = fit("two", "--quiet", "--max-iter", 1, "--tol", 1e-6, "--C", 1, "--test-share", 0)
    code, out, err = run(capsys, *argv)
    assert (code, out) == (0, "")
    assert err.startswith(
        "kernelweave: warning: stopped after 1 inner solves at a relative gap of "
    )
    assert run(capsys, *argv, "--strict")[0] == 1
    assert "not reached" in run(capsys, "info", "table.kw")[1]


@pytest.mark.parametrize(
    "model",
    [
        RadiusKernelClassifier("width"),
        RadiusKernelClassifier("mixture"),
        RadiusMKLClassifier([rbf_ladder([1.0, 2.0])], criterion="chapelle"),
        RadiusMKLClassifier([rbf_ladder([1.0, 2.0])]),
    ],
    ids=["width", "mixture", "chapelle", "radius"],
)
def test_info_of_models_from_python(folder, capsys, monkeypatch, model):
    """Where there is no norm or no bound, the page goes without, and JSON stays JSON."""
    model.fit((NUMBERS - [5.0, -300.0]) / [1.0, 100.0], TABLE["two"])
    monkeypatch.setattr("kernelweave.io.load", lambda path: model)
    monkeypatch.setattr("kernelweave.io.describe", lambda path: {"made_by": {}, "bytes": 0})
    code, out, err = run(capsys, "info", "model.kw")
    assert (code, err) == (0, "")
    assert f"{type(model).__name__} (C 1)" in out
    assert "squared radius" in out
    known = bool(np.isfinite(model.duality_gap_))
    assert ("no bound is known (stationary to tol 0.001)" in out) is not known
    assert ("lower bound" in out) is known

    def refuse(constant):
        raise AssertionError(constant)

    about = json.loads(run(capsys, "info", "model.kw", "--json")[1], parse_constant=refuse)
    assert (about["relative_gap"] is not None) is known
    assert about["squared_radius"] == model.squared_radius_


def test_help_teaches_the_method(capsys):
    _, out, _ = run(capsys, "fit", "--help")
    assert "--method radius --C 10" in out
    assert "classes by margin and radius" in out
