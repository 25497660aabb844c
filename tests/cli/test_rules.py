"""``kernelweave rules``."""

import json
import re
import sqlite3

import numpy as np

from command_table import GROUP, TABLE, fit, run
from kernelweave.io import load

LONG = ["a rather long name of a class, number one", "a rather long name of a class, number two"]


def test_rules(patients, capsys):
    table = TABLE.assign(ill=np.where(GROUP == 1, "yes", "no"))  # of a middle age: no line
    table.to_csv("t.csv", index=False)
    fit(capsys, "rules", "--ignore", "seen")
    ensemble = load("t.kw")[-1]
    out, err = run(capsys, "rules", "t.kw")
    assert err == ""
    assert "age <=" in out
    assert "base score" in out
    base = f"{len(ensemble.rules_)} rules. A score is the base score {ensemble.intercept_[0]:+.4g}"
    assert base in out
    assert "plus the weights of the rules that hold; above zero it favours yes, below no." in out
    assert "\nage  " in out.replace("age\n", "age  \n")
    top = json.loads(run(capsys, "rules", "t.kw", "--top", 1, "--json")[0])
    assert [rule["rule"] for rule in top["rules"]] == [ensemble.rules_[0].text]
    assert run(capsys, "rules", "t.kw", "--quiet")[0] == ""

    query, _ = run(capsys, "rules", "t.kw", "--sql", "--dialect", "sqlite", "--table", "cases")
    with sqlite3.connect(":memory:") as database:
        table.to_sql("cases", database)
        answers = database.execute(query).fetchall()
    names = {}
    exec(run(capsys, "rules", "t.kw", "--python")[0], names)
    expected = load("t.kw").predict(table).tolist()
    assert [answer[-1] for answer in answers] == expected
    rows = table.to_dict("records")
    assert [names["predict"](row)[0] for row in rows] == expected

    card, _ = run(capsys, "rules", "t.kw", "--scorecard", "text", "--data", "t.csv")
    assert card == f"{ensemble.to_scorecard(load('t.kw')[:-1].transform(table))}\n"
    assert f"of {len(table)} decisions." in card
    card, _ = run(capsys, "rules", "t.kw", "--scorecard", "csv")
    assert card == ensemble.to_scorecard().to_csv()
    assert run(capsys, "rules", "t.kw", "--scorecard", "html")[0].startswith("<table>")

    fit(capsys, "mkl")
    assert "MKLClassifier, which has no rules" in run(capsys, "rules", "t.kw", code=2)[1]


def test_linear_terms(patients, capsys):
    fit(capsys, "rules", "--ignore", "seen")
    model = load("t.kw")
    (term,) = model[-1].linear_terms_
    out, err = run(capsys, "rules", "t.kw")
    assert err == ""
    assert " 1 linear term. A score is the base score " in " " + out
    assert "its weight times the distance from the mean" in out
    assert f"age ({term.low:.4g} to {term.high:.4g}, mean {term.mean:.4g})" in out
    assert f"{term.weight:+.4g}" in out
    (found,) = json.loads(run(capsys, "rules", "t.kw", "--json")[0])["linear_terms"]
    assert found["column"] == "age"
    assert found["weights"] == [term.weight]
    assert " and 1 linear term" in run(capsys, "info", "t.kw")[0]
    query, _ = run(capsys, "rules", "t.kw", "--sql", "--dialect", "sqlite", "--table", "cases")
    with sqlite3.connect(":memory:") as database:
        TABLE.to_sql("cases", database)
        answers = database.execute(query).fetchall()
    names = {}
    exec(run(capsys, "rules", "t.kw", "--python")[0], names)
    expected = model.predict(TABLE).tolist()
    assert [answer[-1] for answer in answers] == expected
    assert [names["predict"](row)[0] for row in TABLE.to_dict("records")] == expected
    card, _ = run(capsys, "rules", "t.kw", "--scorecard", "text", "--data", "t.csv")
    assert card == f"{model[-1].to_scorecard(model[:-1].transform(TABLE))}\n"


def test_rules_about_dates(patients, capsys):
    """Dates are compared with dates, as the table has them."""
    table = TABLE.assign(ill=np.where(TABLE["seen"] > "2024-06", "yes", "no"))
    table.to_csv("t.csv", index=False)
    fit(capsys, "rules")
    model = load("t.kw")
    expected = model.predict(table).tolist()
    query, err = run(capsys, "rules", "t.kw", "--sql", "--dialect", "sqlite", "--proba")
    assert err == ""
    assert re.search("`seen` (>|<=) '2024-0", query)
    with sqlite3.connect(":memory:") as database:
        table.to_sql("data", database)
        answers = database.execute(query).fetchall()
    assert [answer[1] for answer in answers] == expected
    proba = model.predict_proba(table)[:, 1]
    np.testing.assert_allclose([answer[2] for answer in answers], proba, rtol=1e-12)
    code = run(capsys, "rules", "t.kw", "--python", "--proba")[0]
    names = {}
    exec(code, names)
    found = [names["predict"](row) for row in table.to_dict("records")]
    assert [answer[0] for answer in found] == expected
    np.testing.assert_allclose([answer[2] for answer in found], proba, rtol=1e-12)


def test_dates_that_a_database_cannot_read(patients, capsys):
    days = [None if day is None else f"{day[8:10]}.{day[5:7]}.{day[:4]}" for day in TABLE["seen"]]
    table = TABLE.assign(ill=np.where(TABLE["seen"] > "2024-06", "yes", "no"), seen=days)
    table.to_csv("t.csv", index=False)
    fit(capsys, "rules")
    err = run(capsys, "rules", "t.kw", "--sql", "--dialect", "sqlite")[1]
    assert "the table must hold 'seen' as dates or as text such as 2024-12-24" in err
    query, err = run(capsys, "rules", "t.kw", "--sql", "--dialect", "postgresql")
    assert err == ""
    assert "'DD.MM.YYYY'" in query


def test_long_names_leave_the_numbers_whole(patients, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = {g: f"{LONG[g % 2]}, {g}" for g in range(3)}
    TABLE.assign(ill=[names[g] for g in GROUP]).to_csv("t.csv", index=False)
    fit(capsys, "rules")
    out, _ = run(capsys, "rules", "t.kw", "--top", 2)
    for rule in load("t.kw")[-1].rules_[:2]:
        for weight in rule.weights:
            assert f"{weight:+.4g}" in out
        assert f"{rule.coverage:.1%}" in out
    monkeypatch.setenv("COLUMNS", "60")
    out, _ = run(capsys, "rules", "t.kw", "--top", 2)
    assert "Of every rule the class with the largest weight" in out
    fit(capsys, "noisy", "--max-rows", 90)
    out, _ = run(capsys, "suspects", "t.kw", "--top", 3)
    report = json.loads(run(capsys, "suspects", "t.kw", "--top", 3, "--json")[0])
    for suspect in report["suspects"]:
        assert f"{suspect['quality']:.3f}" in out
