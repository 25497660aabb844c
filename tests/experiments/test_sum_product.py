"""The comparison of structures, on made-up data small enough for a test."""

import gzip
import json
from dataclasses import replace
from itertools import chain
from urllib.error import URLError

import numpy as np
import pytest

from experiments import sum_product, sum_product_data
from experiments.sum_product_data import make, scores, terms
from experiments.sum_product_protocol import (
    METHODS,
    evaluate,
    fit_grid,
    make_kernels,
    open_split,
    term_shares,
    with_products,
    with_shared,
)
from experiments.sum_product_report import compare, summarise, to_markdown
from kernelweave.kernels.network import Network

pytestmark = pytest.mark.slow

N_ROWS = 60


@pytest.fixture(autouse=True)
def _data(tmp_path, monkeypatch):
    """A small table under the name of a real one, and no network."""

    def refuse(**_):
        raise URLError("no network in tests")

    random = np.random.default_rng(0)
    X = random.standard_normal((N_ROWS, 60))
    y = np.where(X[:, 0] * X[:, 59] > 0, "Mine", "Rock")
    lines = [
        ",".join([*map(repr, map(float, row)), label]) for row, label in zip(X, y, strict=True)
    ]
    text = "\n".join([",".join([*(f"x{j}" for j in range(60)), "target"]), *lines])
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sonar.csv.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)
    open_split.cache_clear()


def run(folder, *methods, data=("sonar",)):
    options = ["--quick", "--n-jobs", "1", "--output", str(folder)]
    return sum_product.main([*options, "--data", *data, "--methods", *methods])


def test_table_picture_and_results(tmp_path):
    assert run(tmp_path, "l1-base", "structure") == 0
    page = (tmp_path / "structures-quick.md").read_text()
    kept = json.loads((tmp_path / "structures-quick.json").read_text())["records"]
    assert [(r["split"], r["method"]) for r in kept] == [
        (split, method) for split in range(2) for method in ("l1-base", "structure")
    ]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    accuracy = {name: [r["accuracy"] for r in kept if r["method"] == name] for name in METHODS}
    flat, ours = accuracy["l1-base"], accuracy["structure"]
    assert ["structure p=1", f"{np.mean(ours):.1f} ({np.std(ours, ddof=1):.1f})"] in rows
    gain = np.subtract(ours, flat)
    error = gain.std(ddof=1) * np.sqrt(1 / 2 + 1)
    assert ["flat L1, base", f"{gain.mean():+.1f} ({error:.1f})"] in rows
    assert [r["n_paths"] for r in kept] == [9, 36] * 2  # 3 x 3, and 3 x 9 more
    totals = {round(sum(r["terms"].values()), 4) for r in kept}
    assert 1.0 in totals
    assert totals <= {0.0, 1.0}  # a function that is zero has no terms
    assert (tmp_path / "structures-quick.png").read_bytes().startswith(b"\x89PNG")


def test_a_second_run_computes_only_what_is_missing(tmp_path, monkeypatch):
    calls = []

    def counted(*task):
        calls.append(task[:3])
        return evaluate(*task)

    monkeypatch.setattr(sum_product, "evaluate", counted)
    run(tmp_path, "equal-base")
    first = (tmp_path / "structures-quick.md").read_text()
    assert len(calls) == 2
    run(tmp_path, "equal-base")
    assert len(calls) == 2
    assert (tmp_path / "structures-quick.md").read_text() == first
    run(tmp_path, "equal-base", "equal-together")
    assert calls[2:] == [("sonar", split, "equal-together") for split in range(2)]


def test_only_made_up_problems_have_methods_that_are_told(tmp_path, capsys, monkeypatch):
    def fail(*_):
        raise FloatingPointError("not needed")

    monkeypatch.setattr(sum_product, "evaluate", fail)
    run(tmp_path, "equal-told", data=("mixed", "sonar"))
    shown = capsys.readouterr().out
    assert "2 results are wanted" in shown
    assert "sonar" not in shown
    assert open_split("mixed", 0, 0).truth == [("a", "b"), ("c",)]


def test_results_of_other_settings_are_not_mixed(tmp_path, capsys):
    run(tmp_path, "equal-base")
    options = ["--quick", "--output", str(tmp_path), "--seed", "1"]
    assert sum_product.main([*options, "--data", "sonar", "--methods", "equal-base"]) == 2
    assert "choose another folder with --output" in capsys.readouterr().err


def test_what_is_missing_or_fails_is_said_in_a_sentence(tmp_path, monkeypatch, capsys):
    assert run(tmp_path, "equal-base", data=("german", "sonar")) == 0
    assert capsys.readouterr().err.startswith("German is left out. The data set 'german_numer'")

    def fail(*_):
        raise FloatingPointError("it overflowed")

    monkeypatch.setattr(sum_product, "evaluate", fail)
    assert run(tmp_path, "equal-base", "l1-base") == 1
    shown = capsys.readouterr().out
    assert shown.count("flat L1, base: failed: it overflowed") == 2
    assert "The table is in" in shown  # with what there is


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_learns_from_its_kernels(name):
    part = replace(open_split("sonar", 0, 0), truth=[("low", "high")])
    [model] = fit_grid(METHODS[name], part, part.train, [1.0])
    assert model.converged_
    shares = term_shares(model)
    names = {" * ".join(sorted(term)) for term in terms(part.kernels)}
    if name == "equal-together":
        assert set(shares) == {"all"}
    elif name.endswith("base") or name == "groups":
        assert set(shares) == set(part.kernels)
    elif METHODS[name].told:
        assert set(shares) == {"high * low"}
    else:
        assert set(shares) == names


def test_paths_are_those_of_the_structure():
    part = open_split("sonar", 0, 0)
    flat = {str(kernel): np.asarray(kernel.gram) for kernel in part.paths}
    for state in (with_products, with_shared):
        network = Network.of(state(part))
        paths = network.paths(1000)
        assert {network.describe(path) for path in paths} == set(flat)
        for path in paths:
            grams = [np.asarray(network.nodes[i].kernel.gram) for i in path.leaves]
            assert np.array_equal(np.prod(grams, axis=0), flat[network.describe(path)])


def test_terms_have_weights_of_their_own_or_shared_ones():
    part = open_split("sonar", 0, 0)
    own, shared = (Network.of(state(part)) for state in (with_products, with_shared))
    assert len(own.products) == 3 * (1 + 3) + 3 * (1 + 6)
    assert len(shared.products) == 3 * (1 + 3) + 3


def test_base_kernels_have_unit_diagonals_and_are_valid():
    X = np.random.default_rng(1).standard_normal((30, 5))
    kernels = make_kernels(X, np.arange(15), "some")
    assert [str(kernel) for kernel in kernels] == [
        "some: linear",
        "some: rbf 0.7",
        "some: rbf 1.4",
    ]
    for kernel in kernels:
        K = np.asarray(kernel.gram)
        assert np.allclose(K.diagonal(), 1)
        assert np.linalg.eigvalsh(K)[0] > -1e-8


def test_no_group_alone_says_anything_about_a_product():
    problem = make(0, lambda s: s["a"] * s["b"], n_rows=100_000)
    y = np.where(problem.y == "yes", 1, -1)
    for score in scores(problem.X).values():
        assert abs(np.median(score)) < 0.02
        for side in (score > 0, score < -0.3, np.abs(score) < 0.2):
            assert abs(y[side].mean()) < 0.03
    a, b = (np.sign(scores(problem.X)[name]) for name in "ab")
    assert np.mean(a * b == y) == pytest.approx(0.95, abs=0.005)
    assert np.mean((a + b - 1 < 0) == (y < 0)) < 0.725 + 0.01  # as good as a sum can be


@pytest.mark.parametrize(
    ("cut", "shape", "n_columns"),
    [("bands", 60, 60), ("shape", 166, 166), ("credit", 24, 24), ("windows", 60, 240)],
)
def test_groups_of_real_tables_hold_every_column_once(cut, shape, n_columns):
    X = np.random.default_rng(0).integers(1, 5, size=(10, shape)).astype(float)
    X, groups, _ = getattr(sum_product_data, f"_{cut}")(X)
    assert X.shape == (10, n_columns)
    assert sorted(chain.from_iterable(groups.values())) == [*range(n_columns)]


def test_windows_keep_the_four_bases_of_a_position_together():
    X = np.ones((1, 60))
    X[0, 31] = 3
    bases, groups, _ = sum_product_data._windows(X)
    assert bases.sum() == 60
    assert bases[:, groups["right"]].sum() == 15
    assert [int(j) for j in np.flatnonzero(bases[0]) if j >= 60] == [2 * 60 + 31]


def test_standard_errors_know_about_shared_rows():
    gains = [1.0, 2.0, 3.0, 2.0, 2.0]
    fresh, shared = compare(gains, fresh=True), compare(gains, fresh=False)
    assert fresh.mean == shared.mean == 2.0
    assert fresh.error == pytest.approx(np.std(gains, ddof=1) / np.sqrt(5))
    assert shared.error == pytest.approx(fresh.error * np.sqrt(6))
    assert (fresh.notable, shared.notable) == (True, False)
    assert compare([1.0], fresh=True) is None


def test_share_of_the_truth():
    record = {"data": "product", "split": 0, "C": 1.0, "accuracy": 80.0, "n_paths": 2, "n_used": 2}
    record |= {"solves": 1, "n_fits": 1, "n_unfinished": 0, "seconds": 1.0, "seconds_fit": 0.1}
    records = [
        record | {"method": "structure", "terms": {"a * b": 0.75, "c": 0.25}},
        record | {"method": "l1-base", "terms": {"a": 0.5, "b": 0.5}},
    ]
    cells = summarise(records, (0.1, 1.0))
    assert cells["product", "structure"].truth == 0.75
    assert cells["product", "l1-base"].truth is None
    assert "| structure p=1 | 75 |" in to_markdown(cells, (0.1, 1.0), 0)
