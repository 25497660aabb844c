"""Queries in real databases: 10 000 hard rows, no wrong label, scores to 1e-12.

A quarter of the rows in the quick run.
"""

import datetime
import sqlite3
from functools import cache

import numpy as np
import pandas as pd
import pytest

from database_cases import (
    CLASSES,
    N,
    check_answers,
    expected_scores,
    hard_rules,
    hard_table,
    records,
    softmax_link,
)
from database_servers import as_csv, mariadb, postgresql
from kernelweave import RuleEnsembleClassifier
from kernelweave.errors import InputError
from kernelweave.rules import Proposition, Rule, to_sql
from kernelweave.rules.dialects import DIALECTS
from quick import fewer_rows

INTERCEPT = (0.25, -0.125, 0.5)
LINK = softmax_link(3)
EPOCH = {"seen": None}


def query_for(dialect, wide=True, link=LINK, dates=EPOCH):
    return to_sql(
        hard_rules(3, wide),
        INTERCEPT,
        classes=CLASSES,
        dialect=dialect,
        keep=["id", "age"],
        link=link,
        dates=dates,
    )


def without_age(rows):
    """Drop the kept column that the query also reads."""
    return [(row[0], *row[2:]) for row in rows]


def check(rows, wide=True, link=LINK):
    check_answers(without_age(rows), hard_rules(3, wide), INTERCEPT, hard_table(wide), link)


def plain(value):
    return value.isoformat(" ") if isinstance(value, datetime.datetime) else value


def text(value):
    """Return a value as a file of text would hold it; a missing one is empty."""
    return "" if value is None else str(plain(value))


SQLITE = {
    "typed": ("REAL", "INTEGER", "INTEGER", "TEXT COLLATE NOCASE", "BOOLEAN", "TEXT", "TEXT"),
    "bare": ("",) * 7,
}


def run_sqlite(rows, types, query):
    names = ("age", "big", "code", "town", "smoker", "size", "seen")
    columns = [f"{n} {t}" for n, t in zip(names, types, strict=True)]
    with sqlite3.connect(":memory:") as database:
        database.execute(f"CREATE TABLE data (id INTEGER, {', '.join(columns)})")
        database.executemany(f"INSERT INTO data VALUES ({', '.join('?' * 8)})", rows)
        return database.execute(query).fetchall()


@fewer_rows
@pytest.mark.parametrize("types", SQLITE.values(), ids=SQLITE)
def test_sqlite(types):
    rows = [tuple(map(plain, row)) for row in records(hard_table())]
    check(run_sqlite(rows, types, query_for("sqlite")))


@fewer_rows
def test_sqlite_after_import_of_text():
    """The shell's import makes text of everything, and of gaps the empty text."""
    rows = []
    for i, *row in records(hard_table()):
        town = row[3]
        given = [text(value) for value in row]
        given[3] = town  # an empty text would be a category
        rows.append((i, *given))
    check(run_sqlite(rows, ("TEXT",) * 7, query_for("sqlite")))


@fewer_rows
@pytest.mark.parametrize("truth", ["BOOLEAN", "INTEGER", "VARCHAR"])
def test_duckdb(truth):
    duckdb = pytest.importorskip("duckdb")
    frame = hard_table()
    typed = frame.assign(
        age=frame["age"].astype(float), seen=pd.to_datetime(frame["seen"]).astype("datetime64[us]")
    )
    for name, kind in (("big", "Int64"), ("code", "Int64"), ("smoker", "boolean")):
        typed[name] = frame[name].astype(kind)
    typed.insert(0, "id", range(len(frame)))
    database = duckdb.connect()
    database.register("given", typed)
    database.execute(
        "CREATE TABLE data (id INTEGER, age DOUBLE, big BIGINT, code BIGINT, "
        f"town VARCHAR COLLATE NOCASE, smoker {truth}, size VARCHAR, seen TIMESTAMP)"
    )
    database.execute("INSERT INTO data SELECT * FROM given")
    database.execute("UPDATE data SET age = 'NaN'::DOUBLE WHERE age IS NULL AND id % 2 = 0")
    check(database.execute(query_for("duckdb")).fetchall())


@pytest.fixture(scope="module")
def postgres():
    with postgresql() as query:
        yield query


def load_postgres(query, database, truth, wide=True):
    # Numbers of truth values, since COPY reads the column's own type.
    rows = []
    for row in records(hard_table(wide)):
        row = [plain(value) for value in row]
        row[5] = (
            None
            if row[5] is None
            else {"bool": row[5], "text": str(row[5])}.get(truth, int(row[5]))
        )
        rows.append(row)
    kind = "timestamp" if truth == "bool" else "text"
    query(
        database,
        "CREATE TABLE data (id int, age float8, big bigint, code bigint, town text, "
        f"smoker {truth}, size text, seen {kind});\n\\copy data FROM pstdin WITH (FORMAT csv)",
        given=as_csv(rows),
    )
    query(database, "UPDATE data SET age = 'NaN' WHERE age IS NULL AND id % 2 = 0")


@pytest.mark.databases
@pytest.mark.parametrize("encoding", ["UTF8", "LATIN1", "SQL_ASCII"])
@pytest.mark.parametrize("truth", ["bool", "smallint", "text"])
def test_postgresql(postgres, truth, encoding):
    """The query is ASCII: the encoding of the connection does not matter."""
    postgres("postgres", "DROP TABLE IF EXISTS data")
    load_postgres(postgres, "postgres", truth)
    query = query_for("postgresql")
    assert query.isascii()
    # The classes come back in UTF-8 whatever the query was read as.
    copy = f"COPY ({query}) TO STDOUT WITH (FORMAT csv, ENCODING 'UTF8')"
    check(postgres("postgres", copy, encoding))


@pytest.mark.databases
def test_postgresql_with_a_database_in_latin1(postgres):
    postgres("postgres", "CREATE DATABASE old ENCODING 'LATIN1' TEMPLATE template0")
    load_postgres(postgres, "old", "bool", wide=False)
    rules, classes = hard_rules(3, wide=False), ["no", "it's é", "ÿ"]
    query = to_sql(
        rules, INTERCEPT, classes=classes, dialect="postgresql", keep=["id", "age"], dates=EPOCH
    )
    copy = f"COPY ({query}) TO STDOUT WITH (FORMAT csv, ENCODING 'UTF8')"
    found = postgres("old", copy, "LATIN1")
    named = dict(zip(classes, CLASSES, strict=True))
    check([(*row[:-1], named[row[-1]]) for row in found], wide=False, link=None)


@pytest.fixture(scope="module")
def maria():
    with mariadb() as query:
        yield query


def hexed(value):
    """Return a value as MariaDB reads it, text as bytes."""
    value = plain(value)
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f"CONVERT(X'{value.encode().hex()}' USING utf8mb4)" if value else "''"
    return str(int(value)) if isinstance(value, bool) else repr(value)


@pytest.mark.databases
@pytest.mark.parametrize("connection", ["utf8mb4", "latin1"])
@pytest.mark.parametrize(
    ("charset", "truth"),
    [("utf8mb4", "BOOLEAN"), ("latin1", "BIT(1)"), ("utf16", "TEXT"), ("utf8mb4", "INT")],
)
def test_mariadb(maria, charset, truth, connection):
    wide = charset != "latin1"
    rows = []
    for row in records(hard_table(wide)):
        row = list(row)
        if truth == "TEXT" and row[5] is not None:
            row[5] = str(row[5])
        rows.append(f"({', '.join(map(hexed, row))})")
    seen = "DATETIME(6)" if truth == "BOOLEAN" else "VARCHAR(40)"
    statements = [
        "DROP DATABASE IF EXISTS t; CREATE DATABASE t; USE t;",
        "CREATE TABLE data (id INT, age DOUBLE, big BIGINT, code BIGINT, town VARCHAR(60), "
        f"smoker {truth}, size VARCHAR(20), seen {seen}) CHARACTER SET {charset};",
        *(
            f"INSERT INTO data VALUES {', '.join(rows[i : i + 500])};"
            for i in range(0, len(rows), 500)
        ),
    ]
    maria("\n".join(statements))
    query = query_for("mysql", wide)
    assert query.isascii()
    # Bytes of the class, since a connection in Latin-1 has no letter for some.
    shares = ", ".join(f"probability_{t}" for t in range(3))
    outer = (
        "SELECT id, age, score_0, score_1, score_2, HEX(CONVERT(prediction USING utf8mb4)), "
        f"{shares} FROM ({query}) AS answers;"
    )
    found = maria(f"USE t;\n{outer}", connection)
    check([(*r[:5], bytes.fromhex(r[5]).decode(), *r[6:]) for r in found], wide)


@cache
def fitted_terms():
    """Return a fitted model with linear terms, and rows at and beside the ends of their ranges."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "amount": rng.normal(0, 50, N),
            "income": rng.integers(-(10**6), 10**6, N) / 1000,
            "kind": rng.choice(np.array(["car", "é", "it's"], dtype=object), N),
        }
    )
    line = frame["amount"] / 25 + frame["income"] / 500 + (frame["kind"] == "é")
    y = np.where(line + rng.logistic(size=N) > 0, "yes", "no")
    model = RuleEnsembleClassifier(1.0, loss="logistic", C=10, linear_terms=True, refit=True)
    model.fit(frame[:600], y[:600])
    terms = {term.feature: term for term in model.linear_terms_}
    assert set(terms) == {"amount", "income"}
    assert model.rules_
    ends = np.array([terms["amount"].low, terms["amount"].mean, terms["amount"].high])
    hard = [ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf), [1e300, -1e300, 1e-300]]
    some = rng.random(N) < 0.5
    frame.loc[some, "amount"] = rng.choice(np.concatenate(hard), some.sum())
    return model, frame.mask(rng.random(frame.shape) < 0.08)


def term_query(dialect):
    return fitted_terms()[0].to_sql(dialect, table="terms", keep=["id"], probability="p")


def term_rows():
    """Return the rows with amounts as text and incomes as decimals with three places."""
    rows = fitted_terms()[1].itertuples(index=False, name=None)
    return [
        (
            i,
            *(
                None if pd.isna(value) else form(value)
                for form, value in zip((repr, "{:.3f}".format, str), row, strict=True)
            ),
        )
        for i, row in enumerate(rows)
    ]


def check_terms(found):
    model, frame = fitted_terms()
    found = sorted(found, key=lambda row: int(row[0]))
    assert [int(row[0]) for row in found] == list(range(N))
    scores = [float(row[1]) for row in found]
    np.testing.assert_allclose(scores, model.decision_function(frame), rtol=0, atol=1e-12)
    assert [row[2] for row in found] == model.predict(frame).tolist()
    shares = [float(row[3]) for row in found]
    np.testing.assert_allclose(shares, model.predict_proba(frame)[:, 1], rtol=0, atol=1e-12)


@fewer_rows
def test_fitted_linear_terms_in_sqlite():
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE terms (id INTEGER, amount TEXT, income NUMERIC, kind TEXT)")
        database.executemany("INSERT INTO terms VALUES (?, ?, ?, ?)", term_rows())
        check_terms(database.execute(term_query("sqlite")).fetchall())


@fewer_rows
def test_fitted_linear_terms_in_duckdb():
    database = pytest.importorskip("duckdb").connect()
    given = pd.DataFrame(term_rows(), columns=["id", "amount", "income", "kind"])
    database.register("given", given)
    database.execute(
        "CREATE TABLE terms AS SELECT id, amount, CAST(income AS DECIMAL(18, 3)) AS income, kind "
        "FROM given"
    )
    check_terms(database.execute(term_query("duckdb")).fetchall())


@pytest.mark.databases
def test_fitted_linear_terms_in_postgresql(postgres):
    postgres(
        "postgres",
        "DROP TABLE IF EXISTS terms; CREATE TABLE terms (id int, amount text, income numeric, "
        "kind text);\n\\copy terms FROM pstdin WITH (FORMAT csv)",
        given=as_csv(term_rows()),
    )
    query = term_query("postgresql")
    check_terms(postgres("postgres", f"COPY ({query}) TO STDOUT WITH (FORMAT csv)"))


@pytest.mark.databases
def test_fitted_linear_terms_in_mariadb(maria):
    rows = [f"({', '.join(map(hexed, row))})" for row in term_rows()]
    inserts = (
        f"INSERT INTO terms VALUES {', '.join(rows[i : i + 500])};" for i in range(0, N, 500)
    )
    maria(
        "CREATE DATABASE IF NOT EXISTS d; USE d; CREATE OR REPLACE TABLE terms (id INT, "
        "amount VARCHAR(40), income DECIMAL(18, 3), kind VARCHAR(20) CHARACTER SET latin1);"
        + "\n".join(inserts)
    )
    check_terms(maria(f"USE d; {term_query('mysql')};"))


FORMS = {"%d.%m.%Y %H:%M": "{:%d.%m.%Y %H:%M}", "%Y-%m-%dT%H:%M:%S%z": "{:%Y-%m-%dT%H:%M:%S+02:00}"}


def written(form):
    """Return the table with dates as text in a format."""
    frame = hard_table()
    dates = [None if pd.isna(t) else FORMS[form].format(t) for t in frame["seen"]]
    return frame.assign(seen=pd.Series(dates, dtype=object))


@pytest.mark.parametrize("form", FORMS)
def test_dates_as_text_in_duckdb(form):
    duckdb = pytest.importorskip("duckdb")
    rows = written(form)["seen"].to_frame().reset_index(names="id")
    database = duckdb.connect()
    database.register("data", rows)
    check_dates(database.execute(date_query("duckdb", form)).fetchall())


@pytest.mark.databases
@pytest.mark.parametrize("form", FORMS)
def test_dates_as_text_in_servers(postgres, maria, form):
    rows = list(enumerate(written(form)["seen"]))
    postgres("postgres", "DROP TABLE IF EXISTS days; CREATE TABLE days (id int, seen text);")
    postgres("postgres", "\\copy days FROM pstdin WITH (FORMAT csv)", given=as_csv(rows))
    query = date_query("postgresql", form, "days")
    check_dates(postgres("postgres", f"COPY ({query}) TO STDOUT WITH (FORMAT csv)"))
    values = ", ".join(f"({i}, {hexed(day)})" for i, day in rows)
    table = "CREATE DATABASE IF NOT EXISTS d; USE d; CREATE OR REPLACE TABLE days "
    maria(f"{table} (id INT, seen VARCHAR(40)); INSERT INTO days VALUES {values};")
    check_dates(maria(f"USE d; {date_query('mysql', form, 'days')};"))


def test_dates_as_text_in_sqlite():
    form = "%Y-%m-%dT%H:%M:%S%z"
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE data (id INTEGER, seen TEXT)")
        database.executemany(
            "INSERT INTO data VALUES (?, ?)", list(enumerate(written(form)["seen"]))
        )
        check_dates(database.execute(date_query("sqlite", form)).fetchall())


def date_rules():
    return [rule for rule in hard_rules(1) if {c.feature for c in rule.conditions} == {"seen"}]


def date_query(dialect, form, table="data"):
    dates = {"seen": form}
    return to_sql(date_rules(), 0.5, dialect=dialect, table=table, keep=["id"], dates=dates)


def check_dates(found):
    expected = expected_scores(date_rules(), [0.5], hard_table())[:, 0]
    given = {int(i): float(score) for i, score in found}
    assert max(abs(given[i] - value) for i, value in enumerate(expected)) < 1e-12


def test_dates_that_a_dialect_cannot_read():
    rule = Rule((Proposition("seen", 0, "<=", 2024.5),), 1.0, 0.5)
    for dialect in ("sqlite", "standard"):
        with pytest.raises(InputError, match=r"'seen' is written as '%d.%m.%Y'.*2024-12-24"):
            to_sql([rule], 0.0, dialect=dialect, dates={"seen": "%d.%m.%Y"})
    query = to_sql([rule], 0.0, dialect="standard", dates={"seen": None})
    assert 'CAST("seen" AS TIMESTAMP)' in query
    assert "\"seen\" <= TIMESTAMP '2024-07-01 10:35:24.000003'" in query


def test_literals():
    assert DIALECTS["mysql"].text("it's") == "_utf8mb4'it''s'"
    assert DIALECTS["mysql"].text("é\\") == "CONVERT(X'c3a95c' USING utf8mb4)"
    assert DIALECTS["postgresql"].text("é\\'\U0001f600") == "E'\\u00e9\\\\''\\U0001f600'"
    assert DIALECTS["duckdb"].text("é") == "'é'"
    assert DIALECTS["mysql"].literal(float(2**53)) == "9007199254740992"
    assert DIALECTS["mysql"].literal(1e300) == "1e+300"
    assert DIALECTS["postgresql"].literal(0.5) == "0.5::float8"
