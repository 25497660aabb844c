"""Export of a rule model as an SQL query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelweave._types import Floats
from kernelweave.errors import InputError, InputTypeError

from .dialects import DIALECTS, Dialect
from .export import Model, Read, check_model
from .linear import Term, is_linear
from .link import Link, Syntax
from .rule import essential
from .scores import blocks

Reads = dict[tuple[str, Read], str]  # names of the columns as they were read


def to_sql(
    rules: Sequence[Term],
    intercept: float | Sequence[float] | Floats,
    *,
    classes: Sequence[Any] | None = None,
    dialect: str = "standard",
    table: str | Sequence[str] = "data",
    keep: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    score: str = "score",
    prediction: str = "prediction",
    probability: str = "probability",
    dates: Mapping[str, str | None] | None = None,
    separate: bool = False,
    link: Link | None = None,
) -> str:
    """Write a model of rules as an SQL query over a table.

    The query returns the columns ``keep``, the score and the predicted class of every row. NULL
    satisfies no condition. Columns are read as the model read them: numbers as 64-bit floats, also
    where they are stored as text, truth values also from 0 and 1 or "true" and "false", text
    letter by letter in any character set. Numbers are added in the order of `score_rules`.

    Parameters
    ----------
    rules : sequence of Rule or LinearTerm
        Each with as many weights as there are outputs.
    intercept : float or sequence of float
        One for each output.
    classes : sequence, default=None
        None for regression. One output: two classes, the second where the score is positive.
        Several outputs: one class for each, and the first with the largest score is predicted.
    dialect : {"standard", "sqlite", "postgresql", "duckdb", "mysql"}, default="standard"
        The database that will run the query; names and text are quoted by its rules, so a query
        for one must not be given to another.
    table : str or sequence of str, default="data"
        The table; a sequence such as ``("schema", "table")`` has its parts quoted one by one.
    keep : sequence of str, default=()
        Columns to return beside the prediction, such as the key of the table.
    rename : mapping of str to str, default=None
        Columns of the table for features, such as ``{"column 3": "age"}``.
    score : str, default="score"
        Name of the score in the result; several outputs add ``_0``, ``_1`` and so on.
    prediction : str, default="prediction"
        Name of the predicted class; for regression, of the score. Several outputs that are
        separate, or targets of a regression, add ``_0``, ``_1`` and so on.
    probability : str, default="probability"
        Name of the probability where there is a ``link``; several outputs add ``_0``, ``_1`` ...
    dates : mapping of str to str or None, default=None
        Features whose thresholds are years with decimals, but whose columns hold dates or text such
        as 2024-12-24; or text in a format of ``datetime.strptime``, such as
        ``{"born": "%d.%m.%Y"}``, for the dialects that can read it.
    separate : bool, default=False
        Whether each output chooses between the two classes, as labels and tasks do.
    link : Link, default=None
        Adds the probability of the second class; with several outputs, of each of them.

    Returns
    -------
    query : str
        Without a semicolon at its end, so that it can stand in a view.

    Examples
    --------
    >>> from kernelweave.rules import Proposition, Rule, to_sql
    >>> young = Rule((Proposition("age", 0, "<=", 30),), 1.0, 0.5)
    >>> print(to_sql([young], -0.25, classes=["no", "yes"], dialect="sqlite", table="people"))
    SELECT `score`, CASE WHEN `score` > 0 THEN 'yes' ELSE 'no' END AS `prediction`
    FROM (
      SELECT
        -0.25
        + (CASE WHEN `age` <= 30.0 THEN 1.0 ELSE 0.0 END)
        AS `score`
      FROM (
        SELECT
          CASE WHEN typeof(`age`) <> 'text' OR `age` GLOB '*[0-9]*' THEN CAST(`age` AS REAL) END
          AS `age`
        FROM `people`
      ) AS columns_read
    ) AS scored
    """
    if dialect not in DIALECTS:
        raise InputError(f"dialect must be one of {', '.join(DIALECTS)}, got {dialect!r}.")
    if isinstance(keep, str):
        raise InputTypeError(f"keep must be a list of columns, got {keep!r}; write [{keep!r}].")
    model = check_model(
        rules, intercept, classes, rename, dates=dates, separate=separate, link=link
    )
    way, n_outputs = DIALECTS[dialect], len(model.intercept)
    kept_names = [way.name(column) for column in keep]

    def numbered(name: str) -> list[str]:
        return [name] if n_outputs == 1 else [f"{name}_{t}" for t in range(n_outputs)]

    scores = numbered(score if model.classes else prediction)
    chosen = numbered(prediction) if separate else [prediction]
    shares = numbered(probability) if link else []
    _refuse_twice([*keep, *scores, *(chosen if model.classes else ()), *shares])
    parts = table if isinstance(table, Sequence) and not isinstance(table, str) else [table]
    place = ".".join(map(way.name, parts))
    source, read, kept = _read_columns(model, keep, place, way)
    sums = [f"{_total(model, t, way, read)}\n    AS {way.name(s)}" for t, s in enumerate(scores)]
    inner = "SELECT\n    " + ",\n    ".join([*kept, *sums]) + f"\n  FROM {source}"
    if not model.classes:
        return inner
    columns = [way.name(s) for s in scores]
    results = zip(_choices(model, columns, way), chosen, strict=True)
    outer = [*kept_names, *columns, *(f"{c} AS {way.name(n)}" for c, n in results)]
    if link is not None:
        written = zip(link.write(columns, _syntax(way)), shares, strict=True)
        outer += [f"{p} AS {way.name(n)}" for p, n in written]
    return f"SELECT {', '.join(outer)}\nFROM (\n  {inner}\n) AS scored"


def _read_columns(
    model: Model, keep: Sequence[str], place: str, way: Dialect
) -> tuple[str, Reads, list[str]]:
    """Return a subquery that reads the columns, their names in it, and the kept columns of it."""
    if not model.reads:
        return place, {}, [way.name(column) for column in keep]
    taken = {"true", "false"}  # SQLite takes these for values where they come from a subquery

    def free(name: str) -> str:
        """Return the name of a column, or a new one where it is taken; case does not count."""
        if name.lower() in taken:
            others = {other.lower() for other in (*model.names.values(), *keep)} | taken
            name = next(n for k in range(len(others) + 1) if (n := f"column_{k}") not in others)
        taken.add(name.lower())
        return name

    names: Reads = {}
    lines, kept = [], []
    for key, column in model.reads.items():
        names[key] = free(column)
        lines.append(f"{way.column(column, key[1])}\n      AS {way.name(names[key])}")
    for column in keep:
        own, inside = way.name(column), way.name(free(column))
        lines.append(own if own == inside else f"{own} AS {inside}")
        kept.append(own if own == inside else f"{inside} AS {own}")
    listed = ",\n      ".join(lines)
    return f"(\n    SELECT\n      {listed}\n    FROM {place}\n  ) AS columns_read", names, kept


def _total(model: Model, output: int, way: Dialect, names: Reads) -> str:
    """Return the score of one output: the intercept, and the sum of each block of rules."""
    parts = [way.number(model.intercept[output])]
    zero = way.number(0.0)
    for block in blocks(model.rules):
        terms = []
        for rule in block:
            if not rule.weights[output]:
                continue
            weight = way.number(rule.weights[output])
            if is_linear(rule):
                column = way.name(names[rule.feature, model.read(rule)])
                clipped = way.clamp.format(column, way.number(rule.low), way.number(rule.high))
                added = f"{weight} * ({clipped} - {way.number(rule.mean)})"
                terms.append(f"CASE WHEN {column} IS NULL THEN {zero} ELSE {added} END")
                continue
            tests = []
            for c in essential(rule.conditions):
                read = model.read(c)
                tests.append(way.condition(c, read, names[c.feature, read]))
            if tests:
                weight = f"CASE WHEN {' AND '.join(tests)} THEN {weight} ELSE {zero} END"
            terms.append(weight)
        if terms:
            parts.append("(" + "\n     + ".join(terms) + ")")
    return "\n    + ".join(parts)


def _choices(model: Model, columns: list[str], way: Dialect) -> list[str]:
    classes = [way.literal(c) for c in model.classes]
    if len(columns) == 1 or model.separate:
        return [
            f"CASE WHEN {score} > 0 THEN {classes[1]} ELSE {classes[0]} END" for score in columns
        ]
    # The first that is not below any later one is the first of the largest.
    tests = [
        " AND ".join(f"{columns[t]} >= {later}" for later in columns[t + 1 :])
        for t in range(len(columns) - 1)
    ]
    cases = zip(tests, classes, strict=False)
    return [_case(list(cases), classes[-1])]


def _case(cases: Sequence[tuple[str, str]], otherwise: str) -> str:
    whens = " ".join(f"WHEN {test} THEN {value}" for test, value in cases)
    return f"CASE {whens} ELSE {otherwise} END"


def _syntax(way: Dialect) -> Syntax:
    return Syntax(way.number, way.clamp, "EXP({})", _case)


def _refuse_twice(names: Sequence[str]) -> None:
    folded = [name.lower() for name in names]  # databases ignore case in names
    if len(set(folded)) < len(folded):
        twice = next(name for name in names if folded.count(name.lower()) > 1)
        raise InputError(
            f"The name {twice!r} would stand for two columns of the result; choose other names "
            "with score and prediction."
        )
