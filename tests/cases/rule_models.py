"""Random rule models, and what exported code says about rows."""

import sqlite3

import pandas as pd
from hypothesis import HealthCheck
from hypothesis import strategies as st

from kernelweave.rules import LinearTerm, Proposition, Rule
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
    """Draw rules over four columns (number, text, truth, order), and rows to try them on.

    There are linear terms of the number among the rules.
    """
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
    rule = st.builds(Rule, st.lists(proposition, max_size=3).map(tuple), weights, st.just(0.5))
    ends = st.lists(finite, min_size=3, max_size=3, unique=True).map(sorted)
    linear = st.builds(
        lambda ends, weight: LinearTerm(number, 0, ends[0], ends[2], ends[1], weight), ends, weights
    )
    rules = draw(st.lists(st.one_of(rule, rule, linear), max_size=5))
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


def run_python(code, X, name="predict"):
    scope = {}
    exec(code, scope)
    return [scope[name](dict(zip(X.columns, row, strict=True))) for row in X.to_numpy().tolist()]


many = examples(150, suppress_health_check=[HealthCheck.too_slow])
