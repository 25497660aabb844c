"""The experiment on wrong labels, on made-up data small enough for a test."""

import gzip
import json
from itertools import combinations
from urllib.error import URLError

import numpy as np
import pytest

from experiments import noisy_labels
from experiments import noisy_labels_published as published
from experiments.noisy_labels_data import CLASS_NOISE, COMPARED, GROUPS, flip, random, read_problem
from experiments.noisy_labels_protocol import (
    METHODS,
    choose,
    compare,
    estimate,
    needs_cleanlab,
    open_case,
)
from experiments.noisy_labels_report import compare_cells, to_markdown

pytestmark = pytest.mark.slow

N_ROWS = 60


@pytest.fixture(autouse=True)
def _data(tmp_path, monkeypatch):
    """A small table under the names of real ones, and no network."""

    def refuse(**_):
        raise URLError("no network in tests")

    draw = np.random.default_rng(0)
    X = draw.standard_normal((N_ROWS, 3))
    y = np.where(X[:, 0] + 0.3 * draw.standard_normal(N_ROWS) > 0, "L", "R")
    (tmp_path / "data").mkdir()
    for name in ("sonar", "balance_scale"):
        rows = [",".join([*map(repr, map(float, x)), k]) for x, k in zip(X, y, strict=True)]
        if name == "balance_scale":
            rows += ["0.0,0.0,0.0,B"] * 3  # a class that the problem leaves out
        text = "\n".join(["a,b,c,target", *rows])
        (tmp_path / "data" / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)
    monkeypatch.setattr(published, "WIDTHS", (0.5, 2.0))
    open_case.cache_clear()
    published.open_part.cache_clear()


def run(folder, part, *more, data=("sonar",)):
    options = ["--quick", "--n-jobs", "1", "--output", str(folder), "--parts", part]
    return noisy_labels.main([*options, "--data", *data, *more])


def kept(folder):
    return json.loads((folder / "noisy-labels-quick.json").read_text())["records"]


def test_comparison_writes_results_page_and_picture(tmp_path):
    assert run(tmp_path, "comparison", "--methods", "auto", "uniform") == 0
    records = kept(tmp_path)
    assert len(records) == 2 * len(noisy_labels.QUICK_CONDITIONS)
    page = (tmp_path / "noisy-labels-quick.md").read_text()
    accuracy = {r["condition"]: r["accuracy"] for r in records if r["method"] == "auto"}
    noisy = np.mean([accuracy[c] for c in ("0.2", "0.4", CLASS_NOISE)])
    row = next(line for line in page.splitlines() if line.startswith("| tolerant, auto |"))
    assert row.split(" | ")[1] == f"{accuracy['0']:.1f}"
    assert row.endswith(f"| {noisy:.1f} |")
    assert "tolerant, auto - uniform SVM" in page
    picture = tmp_path / "noisy-labels-quick-comparison.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_second_run_computes_only_what_is_missing(tmp_path, monkeypatch):
    calls = []

    def counted(*task):
        calls.append(task[3])
        return compare(*task)

    monkeypatch.setattr(noisy_labels, "compare", counted)
    run(tmp_path, "comparison", "--methods", "auto")
    assert calls == ["auto"] * 4
    run(tmp_path, "comparison", "--methods", "auto", "rbf")
    assert calls[4:] == ["rbf"] * 4


def test_estimates_are_near_the_truth_on_easy_data(tmp_path):
    assert run(tmp_path, "estimates") == 0
    page = (tmp_path / "noisy-labels-quick.md").read_text()
    assert "means at 0.2 and more lie within 0.05 of the truth" in page
    assert len(kept(tmp_path)) == 5 * 2
    found = estimate("sonar", 0, "0", 0)
    assert found["truth"] == 0
    assert found["range"] < 0.2


def test_figure_and_gap(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "GAP_RHO", 30.0)
    assert run(tmp_path, "figure") == 0
    page = (tmp_path / "noisy-labels-quick.md").read_text()
    assert "(i) StPMKL is hurt less by wrong labels" in page
    tuned = [r["columns"]["tuned"] for r in kept(tmp_path) if "tuned" in r["columns"]]
    assert all(cell["agreement"] in (None, 1.0) or cell["agreement"] > 0.9 for cell in tuned)
    fast = published.run_gap("sonar", "fast", 0, steps=50)
    slow = published.run_gap("sonar", "paper", 0, steps=50, seconds=0.2)
    assert fast["reached"]
    assert not slow["reached"] or slow["seconds"] > 0
    for found in (fast, slow):
        assert all(upper >= lower - 1e-9 for _, _, upper, lower in found["curve"])
    records = [
        {"part": "gap", "data": "sonar", "split": 0, "condition": "0", "method": name} | found
        for name, found in (("fast", fast), ("paper", slow))
    ]
    page = to_markdown(records, 0)
    assert "Time to a certified relative gap of 0.001" in page


def test_at_no_noise_the_capped_method_is_the_plain_one():
    found = published.run_figure("sonar", 0, "0", "mkl", 0)["columns"]
    assert found["capped"] == found["plain"]


def test_what_is_missing_or_fails_is_said_in_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(noisy_labels, "has_cleanlab", lambda: False)
    assert (
        run(
            tmp_path,
            "comparison",
            "--methods",
            "auto",
            "cleanlab",
            "cleanlab_svc",
            data=("sonar", "fourclass"),
        )
        == 0
    )
    shown = capsys.readouterr()
    assert "cleanlab is not installed" in shown.out
    assert shown.err.startswith("Fourclass is left out. The data set 'fourclass'")
    assert {record["method"] for record in kept(tmp_path)} == {"auto"}

    def fail(*_):
        raise FloatingPointError("it overflowed")

    monkeypatch.setattr(noisy_labels, "compare", fail)
    assert run(tmp_path, "comparison", "--methods", "uniform") == 1
    assert capsys.readouterr().out.count("failed: it overflowed") == 4


def test_results_of_other_settings_are_not_mixed(tmp_path, capsys):
    run(tmp_path, "comparison", "--methods", "auto")
    assert run(tmp_path, "comparison", "--methods", "auto", "--seed", "1") == 2
    assert "choose another folder with --output" in capsys.readouterr().err


def test_classes_are_joined_and_left_out():
    X, y = read_problem("balance_scale")
    assert len(X) == N_ROWS
    assert set(y) == {0, 1}


def test_wrong_labels_have_the_rates_asked_for():
    y = np.arange(20000) % 2
    for condition, split, rates in (("0.3", 0, (0.3, 0.3)), (CLASS_NOISE, 0, (0.4, 0.1))):
        noisy = flip(y, condition, split, random(0, condition))
        for label in (0, 1):
            assert np.mean(noisy[y == label] != label) == pytest.approx(rates[label], abs=0.02)
    assert not np.array_equal(
        flip(y, CLASS_NOISE, 0, random(0)) != y, flip(y, CLASS_NOISE, 1, random(0)) != y
    )


def test_test_labels_stay_right_and_groups_are_apart():
    clean, noisy = (open_case("sonar", 0, condition, 0) for condition in ("0", "0.4"))
    assert np.array_equal(clean.y_test, noisy.y_test)
    assert np.array_equal(clean.X, noisy.X)
    assert not clean.wrong.any()
    assert np.array_equal(noisy.wrong, noisy.y != clean.y)
    for one, other in combinations(COMPARED, 2):
        assert not GROUPS[one].keys() & GROUPS[other].keys()


def test_the_best_setting_on_folds_is_chosen():
    case = open_case("sonar", 0, "0", 0)

    class Constant:
        def __init__(self, label):
            self.label = label

        def predict(self, X):
            return np.full(len(X), self.label)

    larger = int(case.y.mean() > 0.5)
    assert choose(lambda X, y: [Constant(1 - larger), Constant(larger)], case, 3) == 1


@pytest.mark.parametrize("name", [m for m in METHODS if not needs_cleanlab(m)])
def test_every_method_answers(name):
    found = compare("sonar", 0, "0.2", name, 0)
    assert 0 <= found["balanced"] <= 100
    assert 40 < found["ranking"] <= 100


def test_differences_are_averaged_over_units_first():
    one = {("a", 0, "0.1"): 3.0, ("a", 1, "0.1"): 5.0, ("b", 0, "0.1"): 10.0, ("b", 0, "0"): 99.0}
    other = dict.fromkeys(one, 2.0)
    found = compare_cells(one, other, ["0.1"])
    assert found.mean == pytest.approx((2.0 + 8.0) / 2)
    assert found.error == pytest.approx(3.0)
    assert (found.wins, found.losses) == (3, 0)
    assert compare_cells(one, {}, ["0.1"]) is None
