"""SQL queries say what the rules say, whatever stands in names and categories."""

import re
import sqlite3

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelweave.errors import InputError, InputTypeError
from kernelweave.rules import Proposition, Rule, score_rules, to_python, to_sql
from kernelweave.rules.dialects import DIALECTS
from rule_models import (
    many,
    models,
    names,
    predicted,
    run_python,
    run_sqlite,
)


def run_duckdb(query, X):
    database = pytest.importorskip("duckdb").connect()
    types = ["DOUBLE", "VARCHAR", "BOOLEAN", "VARCHAR", "INTEGER"]
    quoted = ['"' + name.replace('"', '""') + '"' for name in [*X.columns, "the key"]]
    columns = [f"{n} {t}" for n, t in zip(quoted, types, strict=True)]
    database.execute(f"CREATE TABLE data ({', '.join(columns)})")
    rows = [(*row, i) for i, row in enumerate(X.itertuples(index=False, name=None))]
    database.executemany(f"INSERT INTO data VALUES ({', '.join('?' * len(quoted))})", rows)
    return sorted(database.execute(query).fetchall())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(models())
def test_duckdb_agrees_to_the_last_bit(model):
    rules, intercept, X, classes = model
    parameters = {"score": "a score", "prediction": "a class", "keep": ["the key"]}
    query = to_sql(rules, intercept, classes=classes, dialect="duckdb", **parameters)
    found, scores = run_duckdb(query, X), score_rules(rules, intercept, X)
    np.testing.assert_array_equal(
        [row[1:-1] for row in found], scores[:, None] if scores.ndim == 1 else scores
    )
    assert [row[-1] for row in found] == predicted(scores, classes)


@many
@given(models(), names)
def test_sqlite_agrees_to_the_last_bit(model, table):
    rules, intercept, X, classes = model
    if "the key" in {name.casefold() for name in X.columns}:
        return
    query = to_sql(
        rules,
        intercept,
        classes=classes,
        dialect="sqlite",
        table=table,
        keep=["the key"],
        score="a score",
        prediction="a class",
    )
    if table.casefold().startswith("sqlite_"):
        return  # such names are the database's own
    scores = score_rules(rules, intercept, X)
    found = run_sqlite(query, X, table)
    assert [row[0] for row in found] == list(range(len(X)))
    np.testing.assert_array_equal(
        [row[1:-1] for row in found], scores[:, None] if scores.ndim == 1 else scores
    )
    assert [row[-1] for row in found] == predicted(scores, classes)


# All that may stand outside of quotes; X, e and E begin a literal.
WORDS = set(
    "SELECT FROM AS CASE WHEN THEN ELSE END AND OR IN NOT NULLIF CAST CONVERT USING".split()
)
WORDS |= set("IS NULL GREATEST LEAST min max".split())
WORDS |= set("COLLATE BINARY REAL NUMERIC DOUBLE PRECISION VARCHAR BOOLEAN TRUE FALSE".split())
WORDS |= set(
    "GLOB REGEXP HEX X E e utf _utf mb typeof lower isnan float text scored columns_read".split()
)


def check_quoted(query, opening, closing):
    """Strip quoted parts of a query: no odd character may be left."""
    rest, i = [], 0
    while i < len(query):
        if query[i] in opening:
            quote = closing[opening.index(query[i])]
            i += 1
            while True:
                if query[i] == quote and query[i + 1 : i + 2] == quote:
                    i += 2
                elif query[i] == quote:
                    break
                else:
                    i += 1
        else:
            rest.append(query[i])
        i += 1
    return "".join(rest)


@many
@given(models(), st.sampled_from(sorted(DIALECTS)))
def test_no_name_and_no_category_leaves_its_quotes(model, dialect):
    rules, intercept, _, classes = model
    query = to_sql(rules, intercept, classes=classes, dialect=dialect, score="a", prediction="b")
    if dialect == "postgresql":  # text with a backslash is E'...', where two stand for one
        query = query.replace("\\\\", "")
    quotes = "`'" if dialect in ("mysql", "sqlite") else "\"'"
    left = check_quoted(query, quotes, quotes)
    assert set(re.findall("[A-Za-z_]+", left)) <= WORDS
    assert set(re.sub("[A-Za-z_0-9]", "", left)) <= set(" \n()<>=+-*.,:")


@pytest.mark.parametrize("name", ["FALSE", "true"])
def test_columns_with_the_name_of_a_value(name):
    rules = [Rule((Proposition(name, 0, ">", 1.5),), 1.0, 0.5)]
    X = pd.DataFrame({name: [1.0, 2.0]})
    query = to_sql(rules, 0.0, dialect="sqlite", keep=["the key"])
    assert run_sqlite(query, X) == [(0, 0.0), (1, 1.0)]


def test_every_dialect():
    conditions = (
        Proposition("age", 0, ">", 0.1),
        Proposition("colour", 1, "!=", "it's"),
        Proposition("old", 2, "==", True),
        Proposition("legs", 3, "!=", 4),
        Proposition("size", 4, "<=", "S", ("S", "M")),
    )
    rules = [Rule(conditions, 0.3, 0.5)]
    found = {
        name: to_sql(rules, -0.5, dialect=name, table=("my", "rows")).split("\n")
        for name in DIALECTS
    }
    assert found["standard"] == [
        "SELECT",
        "    -0.5e0",
        '    + (CASE WHEN "age" > 0.1e0 AND "colour" <> \'it\'\'s\' AND "old" = TRUE '
        'AND "legs" <> 4 AND "size" IN (\'S\') THEN 0.3e0 ELSE 0.0e0 END)',
        '    AS "prediction"',
        "  FROM (",
        "    SELECT",
        '      CAST("age" AS DOUBLE PRECISION)',
        '      AS "age",',
        '      "colour"',
        '      AS "colour",',
        '      "old"',
        '      AS "old",',
        '      "legs"',
        '      AS "legs",',
        '      "size"',
        '      AS "size"',
        '    FROM "my"."rows"',
        "  ) AS columns_read",
    ]
    assert found["sqlite"][2] == (
        "    + (CASE WHEN `age` > 0.1 AND `colour` <> 'it''s' AND `old` = TRUE "
        "AND `legs` <> 4 AND `size` IN ('S') THEN 0.3 ELSE 0.0 END)"
    )
    assert found["postgresql"][1:3] == [
        "    -0.5::float8",
        '    + (CASE WHEN "age" > 0.1::float8 AND "colour" <> \'it\'\'s\' AND "old" = TRUE '
        'AND "legs" <> 4 AND "size" IN (\'S\') THEN 0.3::float8 ELSE 0.0::float8 END)',
    ]
    assert found["duckdb"][2] == found["standard"][2]
    assert found["mysql"][2] == (
        "    + (CASE WHEN `age` > 0.1e0 AND `colour` <> _utf8mb4'it''s' "
        "AND `old` = TRUE AND `legs` <> 4 AND `size` IN (_utf8mb4'S') "
        "THEN 0.3e0 ELSE 0.0e0 END)"
    )


def test_backslashes():
    rules = [Rule((Proposition("a\\", 0, "==", "\\'"),), 0.5, 0.5)]
    query = {name: to_sql(rules, 0.0, dialect=name) for name in DIALECTS}
    assert "\"a\\\" = '\\'''" in query["standard"]
    assert "\"a\\\" = E'\\\\'''" in query["postgresql"]
    assert "`a\\` = CONVERT(X'5c27' USING utf8mb4)" in query["mysql"]


def test_thousands_of_rules():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=10)})
    rules = [
        Rule((Proposition("x", 0, "<=", cut),), (w, -w), 0.5)
        for cut, w in rng.normal(size=(3000, 2))
    ]
    scores = score_rules(rules, [0.0, 0.5], X)
    query = to_sql(rules, [0.0, 0.5], classes=["a", "b"], dialect="sqlite", keep=["the key"])
    found = run_sqlite(query, X)
    np.testing.assert_array_equal([row[1:3] for row in found], scores)
    assert [row[3] for row in found] == predicted(scores, ["a", "b"])
    code = to_python(rules, [0.0, 0.5], classes=["a", "b"])
    np.testing.assert_array_equal([row[1] for row in run_python(code, X)], scores)


def test_a_column_that_is_not_there_is_an_error_in_sqlite():
    query = to_sql([Rule((Proposition("agee", 0, "<=", 3),), 1.0, 0.5)], 0.0, dialect="sqlite")
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        run_sqlite(query, pd.DataFrame({"age": [1]}))


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"dialect": "oracle"}, InputError, "dialect must be one of standard, .* got 'oracle'"),
        ({"keep": "id"}, InputTypeError, r"keep must be a list of columns, got 'id'; write \['id'"),
        ({"keep": ["Score"], "classes": [0, 1]}, InputError, "'Score' would stand for two"),
        ({"keep": ["a", "a"]}, InputError, "'a' would stand for two columns"),
        ({"table": ""}, InputError, "must not be empty in SQL"),
        ({"table": "a\0b"}, InputError, "a column or table name holds a character that SQL cannot"),
        ({"table": 3}, InputTypeError, "a column or table name must be text, got 3"),
        ({"keep": [3]}, InputTypeError, "a column or table name must be text, got 3"),
        ({"classes": ["a\0", "b"]}, InputError, "a category holds a character that SQL cannot"),
        ({"classes": ["\ud800", "b"]}, InputError, "a category holds a character"),
    ],
)
def test_bad_queries(arguments, error, match):
    with pytest.raises(error, match=match):
        to_sql([], 0.0, **arguments)


def test_labels_and_tasks_have_scores_and_predictions():
    rules = [Rule((Proposition("x", 0, "<=", 1),), (1.0, -1.0), 0.5)]
    X = pd.DataFrame({"x": [0.0, 2.0]})
    query = to_sql(rules, [-0.5, 0.5], classes=[0, 1], separate=True, dialect="sqlite", score="s")
    found = run_sqlite(query, X)
    assert found == [(-0.5, 0.5, 0, 1), (0.5, -0.5, 1, 0)]
    for name in ("s_0", "s_1", "prediction_0", "prediction_1"):
        assert f"`{name}`" in query
    code = to_python(rules, [-0.5, 0.5], classes=[0, 1], separate=True)
    assert run_python(code, X) == [((1, 0), (0.5, -0.5)), ((0, 1), (-0.5, 0.5))]


def test_a_kept_column_is_that_of_the_table():
    """Also where conditions read it in another form."""
    rules = [Rule((Proposition("x", 0, "<=", 1),), 1.0, 0.5)]
    rules.append(Rule((Proposition("x", 0, "==", "2"),), 5.0, 0.5))
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE data (x TEXT, column_0 TEXT)")
    database.executemany("INSERT INTO data VALUES (?, 'own')", [("0.5",), ("2",), ("",)])
    query = to_sql(rules, 0.0, dialect="sqlite", keep=["x", "column_0"], prediction="p")
    found = database.execute(query).fetchall()
    assert found == [("0.5", "own", 1.0), ("2", "own", 5.0), ("", "own", 0.0)]
