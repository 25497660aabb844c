"""The re-run of the tables of rule ensembles, on data that need no file and are soon done."""

import gzip
import json
from urllib.error import URLError

import numpy as np
import pytest
from scipy.stats import ttest_rel

from experiments import rules
from experiments.rules_cells import compare, summarise
from experiments.rules_data import N_FEWEST, SOURCES, divide, n_splits, open_division, read_source
from experiments.rules_protocol import BOUNDS, GRID, METHODS, evaluate
from experiments.rules_published import BINARY, CLASSES, TITLES, read_shapes, read_tables
from experiments.rules_significance import nearest_tests, paired_test, significance

pytestmark = pytest.mark.slow

QUICK = (1.0, 100.0)


@pytest.fixture(autouse=True)
def _data(tmp_path, monkeypatch):
    """A small table under the name of a real one, and no network."""

    def refuse(**_):
        raise URLError("no network in tests")

    random = np.random.default_rng(0)
    X = random.integers(0, 9, size=(600, 3))
    y = np.where((X[:, 0] > 4) & (X[:, 2] > 2), 2, 1)
    lines = [",".join(map(str, row)) for row in np.column_stack([X, y])]
    header = "age_of_patient,patients_year_of_operation,nodes,target"
    (tmp_path / "data").mkdir()
    text = "\n".join([header, *lines])
    (tmp_path / "data" / "haberman.csv.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)
    read_source.cache_clear()
    yield
    read_source.cache_clear()


def run(folder, *methods, data=("haberman",)):
    options = ["--quick", "--n-jobs", "1", "--output", str(folder)]
    return rules.main([*options, "--data", *data, "--methods", *methods])


def test_tables_pictures_and_results(tmp_path):
    assert run(tmp_path, "ghkl-2", "ghkl-1.1", "majority", data=("haberman", "iris")) == 0
    page = (tmp_path / "rules-quick.md").read_text()
    kept = json.loads((tmp_path / "rules-quick.json").read_text())["records"]
    assert len(kept) == 2 * 2 * 3
    scores = [r["score"] for r in kept if (r["data"], r["method"]) == ("haberman", "ghkl-1.1")]
    mean, spread = np.mean(scores), np.std(scores, ddof=1)
    assert f"{mean:.3f} ± {spread:.3f} / 0.521 ({mean - 0.521:+.3f})" in page
    assert "8 of 8 final fits have a certified relative gap of at most 0.01" in page
    assert "IRIS 32, published 50" in page
    spent = sum(record["seconds"] for record in kept) / 60
    assert "- Command: `make rules`." in page
    assert "2 divisions by seeds 0 to 1" in page
    assert f"together: {spent:.1f} minutes." in page
    assert f"numpy {np.__version__}" in page
    assert "Is the best significantly better?" in page
    for name in ("scores", "counts"):
        assert (tmp_path / f"rules-quick-{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_second_run_computes_only_what_is_missing(tmp_path, monkeypatch):
    calls = []

    def counted(*task):
        calls.append((*task[:3], task[-1]))
        return evaluate(*task)

    monkeypatch.setattr(rules, "evaluate", counted)
    run(tmp_path, "ghkl-1.1")
    assert [call[:3] for call in calls] == [("haberman", s, "ghkl-1.1") for s in range(2)]
    run(tmp_path, "ghkl-1.1", "ender")  # which must know two numbers of rules
    assert [call[2] for call in calls[2:]] == ["ghkl-1.5", "ender"] * 2
    kept = json.loads((tmp_path / "rules-quick.json").read_text())["records"]
    for split, call in enumerate(calls[3::2]):
        counts = [r["rules"] for r in kept if r["split"] == split and r["method"] in BOUNDS]
        assert call[-1] == max(counts)


def test_results_of_other_settings_are_not_mixed(tmp_path, capsys):
    run(tmp_path, "majority")
    options = ["--quick", "--output", str(tmp_path), "--seed", "1"]
    assert rules.main([*options, "--data", "haberman", "--methods", "majority"]) == 2
    assert "choose another folder with --output" in capsys.readouterr().err


def test_what_is_missing_or_fails_is_said_in_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rules, "has_imodels", lambda: False)
    assert run(tmp_path, "majority", "rulefit-imodels", data=("vote", "haberman")) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("VTE is left out. The data set 'vote'")
    assert "imodels is not installed, so its RuleFit is left out" in shown.out

    def fail(*_):
        raise FloatingPointError("it overflowed")

    monkeypatch.setattr(rules, "evaluate", fail)
    assert run(tmp_path, "tree", "majority") == 1
    assert capsys.readouterr().out.count("decision tree: failed: it overflowed") == 2


@pytest.mark.parametrize("name", [name for name in METHODS if name != "rulefit-imodels"])
def test_every_system_learns_the_conjunction(name):
    record = evaluate("haberman", 0, name, QUICK, n_rules=30)
    assert 0 <= record["score"] <= 1
    if name == "majority":
        assert record["auc"] == 0.5
    else:
        assert record["auc"] > 0.6
    if "ghkl" in name:
        assert record["gap"] <= 0.0101
        assert record["n_unfinished"] == 0
        assert record["rules"] > 0
    if name == "ghkl-1.1-single":
        assert record["length"] == 1


def test_rulefit_of_imodels():
    pytest.importorskip("imodels")
    record = evaluate("haberman", 0, "rulefit-imodels", QUICK)
    assert record["auc"] > 0.6
    assert record["rules"] > 0


def test_several_classes_are_measured_by_accuracy():
    record = evaluate("iris", 0, "ghkl-1.5", QUICK)
    assert record["score"] == record["accuracy"] > 0.6
    assert "auc" not in record


def test_every_class_has_three_training_rows():
    y = np.repeat(["a", "b", "c"], [90, 40, 4])
    for seed in range(3):
        train, test = divide(y, seed)
        assert np.array_equal(np.sort(np.append(train, test)), np.arange(len(y)))
        counts = np.unique(y[train], return_counts=True)[1]
        assert counts.tolist() == [9, 4, N_FEWEST]
    assert not np.array_equal(np.sort(divide(y, 0)[0]), np.sort(divide(y, 1)[0]))


def test_drawn_robots_are_like_the_historical_ones():
    part = open_division("monks3-drawn", 3)
    assert part.P.shape == (122, 30)
    assert part.P_test.shape == (432, 30)
    assert (n_splits("monks3"), n_splits("monks3-drawn")) == (1, 10)


def test_propositions_of_tables_that_need_no_file():
    shapes = read_shapes()
    for data in ("tic_tac_toe", "balance_scale"):
        X, P, _ = read_source(data)
        shape = shapes[TITLES[data]]
        assert (len(X), P.shape[1]) == (shape.n_rows, shape.n_propositions)
    assert read_source("iris-six")[1].shape[1] == 48


def test_published_numbers():
    tables, shapes = read_tables(), read_shapes()
    assert len(tables) == 12 * 7 + 10 * 5
    assert set(shapes) == set(TITLES.values()) == {title for title, _ in tables}
    assert tables["TIC", "rho=1.1"].score == 0.905
    assert tables["TIC", "rho=1.1"].auc == 0.975
    assert tables["CAR", "rho=2"].rules == 9571.2
    small = [tables[TITLES[data], "rho=1.1"] for data in BINARY]
    assert np.mean([cell.score for cell in small]) == pytest.approx(0.745, abs=5e-4)
    assert np.mean([cell.rules for cell in small]) == pytest.approx(38.5, abs=0.05)
    assert all(tables[TITLES[data], "ENDER"].auc is None for data in CLASSES)
    columns = {m.published for m in METHODS.values() if m.published}
    assert columns == {column for _, column in tables}
    assert len(GRID) == 7


def test_other_forms_are_left_out_of_means_and_differences_are_paired():
    record = {"rules": 10, "length": 1.0, "n_unfinished": 0, "seconds": 1.0, "n_propositions": 32}
    records = [
        record | {"data": data, "split": split, "method": method, "score": score + 0.1 * split}
        for data in ("iris", "iris-six")
        for method, score in (("ghkl-2", 0.5), ("ghkl-1.1", 0.7 if data == "iris" else 0.1))
        for split in range(2)
    ]
    cells = summarise(records, GRID)
    gain, error = compare(cells["iris", "ghkl-1.1"], cells["iris", "ghkl-2"])
    assert (gain, error) == pytest.approx((0.2, 0.0))
    page = rules.to_markdown(cells, GRID, 0)
    assert "| mean | 0.550 / 0.913 (-0.363) | 0.750 / 0.893 (-0.143) |" in page
    assert "| IRIS, six cuts |" in page
    assert SOURCES["iris-six"].variant


def make_cells(scores):
    record = {"rules": 10, "length": 1.0, "n_unfinished": 0, "seconds": 1.0, "n_propositions": 32}
    records = [
        record | {"data": "haberman", "split": split, "method": method, "score": score}
        for method, values in scores.items()
        for split, score in enumerate(values)
    ]
    return summarise(records, GRID)


def test_the_best_is_tested_against_its_nearest_competitors():
    random = np.random.default_rng(0)
    base = random.normal(0.6, 0.05, 10)
    scores = {
        "ghkl-1.1": base + 0.05 + random.normal(0, 0.02, 10),
        "ghkl-2": base + 0.049 + random.normal(0, 0.02, 10),
        "ender": base,
        "slipper": base - 0.1,
    }
    cells = make_cells(scores)
    near, far = nearest_tests(cells, "haberman", tuple(scores))
    best = max(("ghkl-1.1", "ghkl-2"), key=lambda name: scores[name].mean())
    other = "ghkl-2" if best == "ghkl-1.1" else "ghkl-1.1"
    assert (near.one, near.other, far.other) == (best, other, "ender")
    for test in (near, far):
        oracle = ttest_rel(scores[test.one], scores[test.other])
        assert test.p_value == pytest.approx(oracle.pvalue, rel=1e-10)
        assert test.gain == pytest.approx((scores[test.one] - scores[test.other]).mean())
    assert not near.is_significant
    assert far.is_significant
    page = rules.to_markdown(cells, GRID, 0)
    assert f"| HAB | {METHODS[best].label} |" in page
    assert f"ENDER: {far.gain:+.3f}, p = {far.p_value:.3f} * |" in page
    assert "significant: 0 and 1 data sets" in page


def test_equal_scores_are_no_improvement_and_one_division_is_no_test():
    cells = make_cells({"ghkl-2": [0.5, 0.6], "ender": [0.5, 0.6], "slipper": [0.4, 0.5]})
    one, other, third = (cells["haberman", m] for m in ("ghkl-2", "ender", "slipper"))
    assert paired_test(one, other).p_value == 1.0
    assert paired_test(one, third).p_value == 0.0
    assert not paired_test(third, one).is_significant
    alone = make_cells({"ghkl-2": [0.5], "ender": [0.6]})
    assert significance(alone, ("ghkl-2", "ender")) == ""
