"""Exported models say what the rules say, whatever stands in names and categories."""

import itertools
import sqlite3

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelweave.errors import InputError, InputTypeError
from kernelweave.rules import Proposition, Rule, cover_rules, score_rules, to_python, to_sql
from kernelweave.rules.sql import DIALECTS
from quick import examples

LEVELS = ("small", "it's", "big\\")
ODD = [
    "red",
    "",
    " ",
    "it's",
    'say "hi"',
    "back\\slash",
    "\\'; DROP TABLE data; --",
    "'; DROP TABLE data; --",
    "new\nline\r",
    "tab\t",
    "%s {} {0} $1 ?",
    "naïve ☃ 你好 \U0001f600",
    "`tick`",
    "[bracket]",
    "/* comment */ -- x",
    "NULL",
    "1",
    "Red",
    "red ",
]
names = st.one_of(
    st.sampled_from(["age", "Age2", "score", "part0", "x1", "row", "class", "float", *ODD[2:]]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
)
words = st.one_of(
    st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
)
finite = st.floats(-1e6, 1e6).map(lambda value: 0.0 if abs(value) < 1e-12 else value)
nothing = st.sampled_from([None, float("nan")])


@st.composite
def models(draw, n_outputs=None):
    """Draw rules over four columns (number, text, truth, order), and rows to try them on."""
    features = draw(st.lists(names, min_size=4, max_size=4, unique_by=lambda n: n.casefold()))
    number, text, truth, order = features
    numbers = draw(st.lists(finite, min_size=1, max_size=4))
    categories = draw(st.lists(words, min_size=1, max_size=4))
    proposition = st.one_of(
        st.builds(
            Proposition,
            st.just(number),
            st.just(0),
            st.sampled_from(["<=", ">"]),
            st.sampled_from(numbers),
        ),
        st.builds(
            Proposition,
            st.just(text),
            st.just(1),
            st.sampled_from(["==", "!="]),
            st.sampled_from(categories),
        ),
        st.builds(Proposition, st.just(truth), st.just(2), st.just("=="), st.booleans()),
        st.builds(
            Proposition,
            st.just(order),
            st.just(3),
            st.sampled_from(["<=", ">"]),
            st.sampled_from(LEVELS[:-1]),
            st.just(LEVELS),
        ),
    )
    outputs = draw(st.integers(1, 3)) if n_outputs is None else n_outputs
    weights = finite if outputs == 1 else st.tuples(*[finite] * outputs)
    rules = draw(
        st.lists(
            st.builds(Rule, st.lists(proposition, max_size=3).map(tuple), weights, st.just(0.5)),
            max_size=5,
        )
    )
    intercept = draw(weights)
    rows = draw(
        st.lists(
            st.tuples(
                st.one_of(nothing, finite, st.sampled_from(numbers)),
                st.one_of(st.none(), words, st.sampled_from(categories)),
                st.one_of(st.none(), st.booleans()),
                st.one_of(st.none(), st.sampled_from([*LEVELS, "unseen"])),
            ),
            min_size=1,
            max_size=8,
        )
    )
    X = pd.DataFrame(rows, columns=features, dtype=object)
    classes = draw(st.lists(words, min_size=3, max_size=3, unique=True))
    return rules, intercept, X, classes[: max(2, outputs)] if outputs < 3 else classes


def predicted(scores, classes):
    if scores.ndim == 1:
        return [classes[int(score > 0)] for score in scores]
    return [classes[i] for i in scores.argmax(axis=1)]


def run_sqlite(query, X, table="data"):
    """Run a query over rows in their order; the truth of a rule of SQLite's own is not needed."""
    database = sqlite3.connect(":memory:")
    types = ["REAL", "TEXT", "BOOLEAN", "TEXT"]
    quoted = ['"' + name.replace('"', '""') + '"' for name in [*X.columns, "the key"]]
    columns = [f"{n} {t}" for n, t in zip(quoted, [*types[: X.shape[1]], "INTEGER"], strict=True)]
    place = '"' + table.replace('"', '""') + '"'
    database.execute(f"CREATE TABLE {place} ({', '.join(columns)})")
    rows = [(*row, i) for i, row in enumerate(X.itertuples(index=False, name=None))]
    marks = ", ".join("?" * len(quoted))
    database.executemany(f"INSERT INTO {place} VALUES ({marks})", rows)
    found = database.execute(query).fetchall()
    (left,) = database.execute(f"SELECT COUNT(*) FROM {place}").fetchone()
    assert left == len(X), "the table is still there"
    return sorted(found)


def run_duckdb(query, X):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    database = duckdb.connect()
    types = ["DOUBLE", "VARCHAR", "BOOLEAN", "VARCHAR", "INTEGER"]
    quoted = ['"' + name.replace('"', '""') + '"' for name in [*X.columns, "the key"]]
    columns = [f"{n} {t}" for n, t in zip(quoted, types, strict=True)]
    database.execute(f"CREATE TABLE data ({', '.join(columns)})")
    rows = [(*row, i) for i, row in enumerate(X.itertuples(index=False, name=None))]
    database.executemany(f"INSERT INTO data VALUES ({', '.join('?' * len(quoted))})", rows)
    return sorted(database.execute(query).fetchall())


def run_python(code, X, name="predict"):
    scope = {}
    exec(code, scope)
    return [scope[name](dict(zip(X.columns, row, strict=True))) for row in X.to_numpy().tolist()]


many = examples(150, suppress_health_check=[HealthCheck.too_slow])


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


@many
@given(models())
def test_python_agrees_to_the_last_bit(model):
    rules, intercept, X, classes = model
    scores = score_rules(rules, intercept, X)
    found = run_python(to_python(rules, intercept, classes=classes), X)
    assert [label for label, _ in found] == predicted(scores, classes)
    np.testing.assert_array_equal([score for _, score in found], scores)
    numbers = run_python(to_python(rules, intercept, name="f"), X, "f")
    np.testing.assert_array_equal(numbers, scores)


@many
@given(models(n_outputs=1))
def test_scores_are_what_the_formula_says(model):
    rules, intercept, X, _ = model
    direct = intercept + sum(
        (rule.weight * rule.holds(X) for rule in rules), start=np.zeros(len(X))
    )
    np.testing.assert_allclose(score_rules(rules, intercept, X), direct, rtol=1e-12, atol=1e-9)
    if rules:
        held = np.column_stack([rule.holds(X) for rule in rules])
        np.testing.assert_array_equal(cover_rules(rules, X), held)


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
    allowed = set("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 \n()<>=+-.,_:e") | set("scoredfloat")
    assert set(left) <= allowed | set("utfmb")


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
        '  FROM "my"."rows"',
    ]
    assert found["sqlite"][2] == (
        "    + (CASE WHEN `age` > 0.1 AND `colour` <> 'it''s' AND `old` = TRUE "
        "AND `legs` <> 4 AND `size` IN ('S') THEN 0.3 ELSE 0.0 END)"
    )
    assert found["postgresql"][1:3] == [
        "    -0.5::float8",
        "    + (CASE WHEN \"age\" > 0.1 AND \"age\" <> 'NaN'::float8 AND \"colour\" <> 'it''s' "
        'AND "old" = TRUE AND "legs" <> 4 AND "legs" <> \'NaN\'::float8 '
        "AND \"size\" IN ('S') THEN 0.3::float8 ELSE 0.0::float8 END)",
    ]
    assert found["duckdb"][2] == (
        "    + (CASE WHEN \"age\" > 0.1e0 AND \"age\" <> 'NaN'::float8 AND \"colour\" <> 'it''s' "
        'AND "old" = TRUE AND "legs" <> 4 AND "legs" <> \'NaN\'::float8 '
        "AND \"size\" IN ('S') THEN 0.3e0 ELSE 0.0e0 END)"
    )
    assert found["mysql"][2] == (
        "    + (CASE WHEN `age` > 0.1e0 AND `colour` <> CAST('it''s' AS BINARY) "
        "AND `old` = TRUE AND `legs` <> 4 AND `size` IN (CAST('S' AS BINARY)) "
        "THEN 0.3e0 ELSE 0.0e0 END)"
    )


def test_backslashes():
    rules = [Rule((Proposition("a\\", 0, "==", "\\'"),), 0.5, 0.5)]
    query = {name: to_sql(rules, 0.0, dialect=name) for name in DIALECTS}
    assert "\"a\\\" = '\\'''" in query["standard"]
    assert "\"a\\\" = E'\\\\'''" in query["postgresql"]
    assert "`a\\` = CAST(CONVERT(X'5c27' USING utf8mb4) AS BINARY)" in query["mysql"]


def test_ties_go_to_the_first_class():
    rules = [Rule((), (1.0, 2.0, 2.0), 1.0)]
    X = pd.DataFrame({"x": [1.0]})
    classes = ["a", "b", "c"]
    for start in itertools.product([0.0, 1.0, 2.0], repeat=3):
        (label,) = predicted(score_rules(rules, start, X), classes)
        assert run_python(to_python(rules, start, classes=classes), X)[0][0] == label
        query = to_sql(rules, start, classes=classes, dialect="sqlite")
        assert run_sqlite(query, X)[0][-1] == label
    query = to_sql([], 0.0, classes=["no", "yes"], dialect="sqlite")
    assert run_sqlite(query, X) == [(0.0, "no")]


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


def test_rename():
    rules = [Rule((Proposition("column 0", 0, "<=", 3),), 1.0, 0.5)]
    X = pd.DataFrame({"age": [1.0, 5.0]})
    rename = {"column 0": "age"}
    assert run_python(to_python(rules, 0.0, rename=rename), X) == [1.0, 0.0]
    query = to_sql(rules, 0.0, rename=rename, dialect="sqlite", keep=["the key"])
    assert run_sqlite(query, X) == [(0, 1.0), (1, 0.0)]


def test_missing_values_of_pandas_and_numpy_in_python():
    rules = [
        Rule((Proposition("n", 0, ">", 0.1),), 1.0, 0.5),
        Rule((Proposition("t", 1, "!=", "a"),), 10.0, 0.5),
    ]
    scope = {}
    exec(to_python(rules, 0.0), scope)
    for nothing in (None, np.nan, np.float32("nan"), pd.NA, pd.NaT):
        assert scope["predict"]({"n": nothing, "t": nothing}) == 0
    assert scope["predict"]({"n": np.float32(0.1), "t": np.str_("b")}) == 11
    assert scope["predict"]({"n": "0.2", "t": "a"}) == 1
    with pytest.raises(KeyError, match="'t'"):
        scope["predict"]({"n": 1})


def test_columns_called_like_what_the_code_calls_its_own():
    features = [
        "odd name",
        "x0",
        "x2",
        "score0",
        "part0",
        "row",
        "label",
        "number",
        "best",
        "float",
    ]
    rules = [
        Rule((Proposition(feature, i, "<=", i),), 2.0**i, 0.5) for i, feature in enumerate(features)
    ]
    X = pd.DataFrame([[i + 0.5 * (i % 2) for i in range(len(features))]], columns=features)
    assert run_python(to_python(rules, 0.0), X) == score_rules(rules, 0.0, X).tolist()


def test_python_code_reads_well():
    rules = [
        Rule((Proposition("age", 0, ">", 20.5), Proposition("colour", 1, "==", "red")), 0.5, 0.5),
        Rule((Proposition("hair colour", 2, "!=", "red"),), 0.25, 0.5),
    ]
    code = to_python(rules, -1.0, classes=[0, 1])
    assert "    if age > 20.5 and colour == 'red':\n        part0 += 0.5\n" in code
    assert "    x2 = label(row['hair colour'])\n" in code
    assert code.endswith("    return 1 if score0 > 0 else 0, score0\n")


@pytest.mark.parametrize("export", [to_sql, to_python])
@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"rules": ["x"]}, InputTypeError, "rules must hold rules, but item 0 is 'x'"),
        ({"classes": ["a"]}, InputError, r"name 2 classes where .* 1 output\(s\), got 1"),
        ({"classes": ["a", "b", "c"]}, InputError, "name 2 classes .* got 3"),
        ({"classes": ["a", None]}, InputTypeError, "classes must be text, numbers .* got None"),
        ({"intercept": [0.0, 1.0]}, InputError, "as many weights .* 2, but rule 0 has 1"),
        ({"rename": {"y": "z"}}, InputError, "no rule has the feature 'y'; the features are 'x'"),
        ({"rename": {"x": 3}}, InputTypeError, "rename: 'x' must become text, got 3"),
    ],
)
def test_bad_models(export, arguments, error, match):
    rules = [Rule((Proposition("x", 0, "<=", 1),), 1.0, 0.5)]
    given = {"rules": rules, "intercept": 0.0, **arguments}
    with pytest.raises(error, match=match):
        export(given.pop("rules"), given.pop("intercept"), **given)


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


@pytest.mark.parametrize("name", ["", "1a", "def", "f(x): pass\ndef g", None, "a b"])
def test_bad_function_names(name):
    with pytest.raises(InputError, match="name must be a name that Python allows"):
        to_python([], 0.0, name=name)
