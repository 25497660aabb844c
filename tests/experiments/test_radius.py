"""The re-run of the radius table, on made-up data small enough for a test."""

import gzip
import json
from urllib.error import URLError

import numpy as np
import pytest
from sklearn.svm import SVC

from experiments import radius
from experiments.radius_protocol import METHODS, evaluate, fit_grid, make_grams, open_fold
from experiments.radius_published import COLUMNS, TITLES, read_table
from experiments.radius_report import summarise, to_markdown

pytestmark = pytest.mark.slow

N_ROWS = 60


@pytest.fixture(autouse=True)
def _data(tmp_path, monkeypatch):
    """A small table under the name of a real one, and no network."""

    def refuse(**_):
        raise URLError("no network in tests")

    random = np.random.default_rng(0)
    X = random.standard_normal((N_ROWS, 3))
    y = np.where(X[:, 0] + 0.5 * random.standard_normal(N_ROWS) > 0, "Mine", "Rock")
    lines = [
        ",".join([*map(repr, map(float, row)), label]) for row, label in zip(X, y, strict=True)
    ]
    text = "\n".join(["a,b,c,target", *lines])
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sonar.csv.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)
    open_fold.cache_clear()


def run(folder, *methods, data=("sonar",)):
    options = ["--quick", "--n-jobs", "1", "--output", str(folder)]
    return radius.main([*options, "--data", *data, "--methods", *methods])


def test_table_picture_and_results(tmp_path):
    assert run(tmp_path, "unif", "mkl-l1") == 0
    page = (tmp_path / "radius-quick.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    unif = next(row for row in rows if row[:2] == ["| Unif", "76.5 (1.8)"])
    kept = json.loads((tmp_path / "radius-quick.json").read_text())
    assert [(r["fold"], r["method"]) for r in kept["records"]] == [
        (fold, method) for fold in range(3) for method in ("mkl-l1", "unif")
    ]
    accuracy = [r["accuracy"] for r in kept["records"] if r["method"] == "unif"]
    assert unif[2] == f"{np.mean(accuracy):.1f} ({np.std(accuracy, ddof=1):.1f})"
    assert unif[4] == "20 / 20.0"
    assert all(len(r["shares"]) == 20 and r["n_unfinished"] == 0 for r in kept["records"])
    assert (tmp_path / "radius-quick.png").read_bytes().startswith(b"\x89PNG")


def test_a_second_run_computes_only_what_is_missing(tmp_path, monkeypatch):
    calls = []

    def counted(*task):
        calls.append(task[:3])
        return evaluate(*task)

    monkeypatch.setattr(radius, "evaluate", counted)
    run(tmp_path, "unif")
    first = (tmp_path / "radius-quick.md").read_text()
    assert len(calls) == 3
    run(tmp_path, "unif")
    assert len(calls) == 3
    assert (tmp_path / "radius-quick.md").read_text() == first
    run(tmp_path, "unif", "mkl-l2")
    assert calls[3:] == [("sonar", fold, "mkl-l2") for fold in range(3)]


def test_results_of_other_settings_are_not_mixed(tmp_path, capsys):
    run(tmp_path, "unif")
    options = ["--quick", "--output", str(tmp_path), "--seed", "1"]
    assert radius.main([*options, "--data", "sonar", "--methods", "unif"]) == 2
    assert "choose another folder with --output" in capsys.readouterr().err


def test_what_is_missing_or_fails_is_said_in_a_sentence(tmp_path, monkeypatch, capsys):
    assert run(tmp_path, "unif", data=("fourclass", "sonar")) == 0
    assert capsys.readouterr().err.startswith("Fourclass is left out. The data set 'fourclass'")

    def fail(*_):
        raise FloatingPointError("it overflowed")

    monkeypatch.setattr(radius, "evaluate", fail)
    assert run(tmp_path, "unif", "mkl-l1") == 1
    shown = capsys.readouterr().out
    assert shown.count("MKL L1: failed: it overflowed") == 3
    assert "The table is in" in shown  # with what there is


@pytest.mark.parametrize("C", [0.1, 100.0])
def test_cost_is_that_of_kernels_of_unit_trace(C):
    part = open_fold("sonar", 0, 0)
    [model] = fit_grid(METHODS["unif"], part, part.train, [C])
    block = [kernel.gram[np.ix_(part.train, part.train)] for kernel in part.kernels]
    mean = np.mean([K / np.trace(K) for K in block], axis=0)
    peer = SVC(C=C, kernel="precomputed", tol=1e-6).fit(mean, part.y[part.train])
    decision = model.decision_function(part.train[:, None])
    np.testing.assert_allclose(decision, peer.decision_function(mean), atol=0.02)


@pytest.mark.parametrize(("name", "factor"), [("klc-l1", 1), ("klc-l2-literal", 2)])
def test_ridge_is_that_of_kernels_of_unit_trace(name, factor):
    C = 10.0
    part = open_fold("sonar", 0, 0)
    [model] = fit_grid(METHODS[name], part, part.train, [C])
    block = [kernel.gram[np.ix_(part.train, part.train)] for kernel in part.kernels]
    K = sum(w * B / np.trace(B) for w, B in zip(model.weights_, block, strict=True))
    hard = K + np.eye(len(K)) / (factor * C)
    peer = SVC(C=1e6, kernel="precomputed", tol=1e-6).fit(hard, part.y[part.train])
    expected = K[:, peer.support_] @ peer.dual_coef_[0] + peer.intercept_
    decision = model.decision_function(part.train[:, None])
    np.testing.assert_allclose(decision, expected, atol=0.02)


def test_another_form_of_a_set_is_no_part_of_means_and_comparisons():
    grid = (0.1, 1.0)
    record = {"method": "unif", "fold": 0, "C": 1.0, "kernels": 20, "solves": 1, "n_fits": 7}
    record |= {"n_unfinished": 0, "seconds": 1.0}
    records = [
        record | {"data": "colon_cancer", "accuracy": 60.0},
        record | {"data": "colon_cancer_rows", "accuracy": 99.0},
    ]
    page = to_markdown(summarise(records, grid), grid, 0)
    assert "| mean, ours | 60.0 |" in page
    assert "0 of 1 differ" in page
    assert "| Coloncancer, rows standardised | 99.0 (0.0) |" in page


def test_grams_are_finite_where_powers_are_huge():
    X = 1e3 * np.random.default_rng(1).standard_normal((30, 5))
    train = np.arange(24)
    for K in make_grams(X, train):
        assert np.isfinite(K).all()
        assert np.array_equal(K, K.T)
        assert K.diagonal()[train].mean() == pytest.approx(1)


def test_published_numbers():
    table = read_table()
    assert len(table) == len(TITLES) * len(COLUMNS) == 88
    assert table["Sonar", "MKL L1"].accuracy == 82.3
    assert table["Coloncancer", "Unif"].deviation == 11
    assert {m.published for m in METHODS.values() if m.published} == set(COLUMNS)
