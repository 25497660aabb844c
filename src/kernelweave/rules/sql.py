"""Export of a rule model as an SQL query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelweave._types import Floats
from kernelweave.errors import InputError, InputTypeError

from .columns import Label
from .export import Model, check_model
from .proposition import Proposition
from .rule import Rule, essential
from .scores import blocks


@dataclass(frozen=True)
class Dialect:
    """How a database writes names, text and numbers."""

    quote: str = '"'  # around a name; doubled inside it
    # Format of a 64-bit float ({} is the number, "e" an exponent): decimal arithmetic would round
    # differently. `threshold` is the same where a column is compared with the number.
    double: str = "{}"
    threshold: str = "{}"
    has_nan: bool = False  # whether NaN is a value, and larger than all others
    escapes: str = ""  # text with a backslash: as it is, "E" (PostgreSQL) or "X" (as bytes)
    binary: bool = False  # compare text as bytes, where upper and lower case are equal otherwise

    def name(self, name: str) -> str:
        """Return a quoted name."""
        _refuse_nul(name, "a column or table name")
        if not name:
            raise InputError("A column or table name must not be empty in SQL; use rename.")
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"

    def text(self, value: str) -> str:
        """Return quoted text."""
        _refuse_nul(value, "a category")
        if "\\" in value and self.escapes == "X":
            return f"CONVERT(X'{value.encode().hex()}' USING utf8mb4)"
        quoted = "'" + value.replace("'", "''") + "'"
        if "\\" in value and self.escapes == "E":
            return "E" + quoted.replace("\\", "\\\\")
        return quoted

    def literal(self, value: Label) -> str:
        """Return a category or class."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        return repr(value) if isinstance(value, int) else self.number(value, self.threshold)

    def category(self, value: Label) -> str:
        """Return a category that a column is compared with."""
        literal = self.literal(value)
        return f"CAST({literal} AS BINARY)" if self.binary and isinstance(value, str) else literal

    def number(self, value: float, form: str) -> str:
        """Return a float that reads back as the same one."""
        digits = repr(float(value))
        if form == "e":
            return digits if "e" in digits else f"{digits}e0"
        return form.format(digits)

    def condition(self, condition: Proposition, names: Mapping[str, str]) -> str:
        """Return a condition; what is NULL (or NaN) does not satisfy it."""
        column = self.name(names[condition.feature])
        if condition.levels:
            return f"{column} IN ({', '.join(map(self.category, condition.allowed))})"
        if condition.is_numeric:
            value = self.number(float(condition.value), self.threshold)
        else:
            value = self.category(condition.value)
        operator = {"==": "=", "!=": "<>"}.get(condition.operator, condition.operator)
        test = f"{column} {operator} {value}"
        is_number = not isinstance(condition.value, str | bool)
        if self.has_nan and is_number and condition.operator in (">", "!="):
            test += f" AND {column} <> 'NaN'::float8"
        return test


DIALECTS = {
    "standard": Dialect(double="e", threshold="e"),
    # Names in double quotes that match no column would silently be text in SQLite.
    "sqlite": Dialect(quote="`"),
    "postgresql": Dialect(double="{}::float8", has_nan=True, escapes="E"),
    "duckdb": Dialect(double="e", threshold="e", has_nan=True),
    "mysql": Dialect(quote="`", double="e", threshold="e", escapes="X", binary=True),
}


def to_sql(
    rules: Sequence[Rule],
    intercept: float | Sequence[float] | Floats,
    *,
    classes: Sequence[Any] | None = None,
    dialect: str = "standard",
    table: str | Sequence[str] = "data",
    keep: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    score: str = "score",
    prediction: str = "prediction",
) -> str:
    """Write a model of rules as an SQL query over a table.

    The query returns the columns ``keep``, the score and the predicted class of every row. NULL
    satisfies no condition. Numbers are added as 64-bit floats in the order of `score_rules`.

    Parameters
    ----------
    rules : sequence of Rule
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
        Name of the predicted class; for regression, of the score.

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
      FROM `people`
    ) AS scored
    """
    if dialect not in DIALECTS:
        raise InputError(f"dialect must be one of {', '.join(DIALECTS)}, got {dialect!r}.")
    if isinstance(keep, str):
        raise InputTypeError(f"keep must be a list of columns, got {keep!r}; write [{keep!r}].")
    model, way = check_model(rules, intercept, classes, rename), DIALECTS[dialect]
    n_outputs, base = len(model.intercept), score if model.classes else prediction
    scores = [base] if n_outputs == 1 else [f"{base}_{t}" for t in range(n_outputs)]
    results = [*scores, prediction] if model.classes else scores
    kept = [way.name(column) for column in keep]
    _refuse_twice([*keep, *results])
    parts = table if isinstance(table, Sequence) and not isinstance(table, str) else [table]
    place = ".".join(map(way.name, parts))
    sums = [f"{_total(model, t, way)}\n    AS {way.name(s)}" for t, s in enumerate(scores)]
    inner = "SELECT\n    " + ",\n    ".join([*kept, *sums]) + f"\n  FROM {place}"
    if not model.classes:
        return inner
    outer = [*kept, *map(way.name, scores)]
    outer.append(f"{_choice(model, scores, way)} AS {way.name(prediction)}")
    return f"SELECT {', '.join(outer)}\nFROM (\n  {inner}\n) AS scored"


def _total(model: Model, output: int, way: Dialect) -> str:
    """Return the score of one output: the intercept, and the sum of each block of rules."""
    parts = [way.number(model.intercept[output], way.double)]
    zero = way.number(0.0, way.double)
    for block in blocks(model.rules):
        terms = []
        for rule in block:
            weight = way.number(rule.weights[output], way.double)
            tests = [way.condition(c, model.names) for c in essential(rule.conditions)]
            if tests and rule.weights[output]:
                weight = f"CASE WHEN {' AND '.join(tests)} THEN {weight} ELSE {zero} END"
            if rule.weights[output]:
                terms.append(weight)
        if terms:
            parts.append("(" + "\n     + ".join(terms) + ")")
    return "\n    + ".join(parts)


def _choice(model: Model, scores: list[str], way: Dialect) -> str:
    columns, classes = [way.name(s) for s in scores], [way.literal(c) for c in model.classes]
    if len(scores) == 1:
        return f"CASE WHEN {columns[0]} > 0 THEN {classes[1]} ELSE {classes[0]} END"
    # The first that is not below any later one is the first of the largest.
    tests = [
        " AND ".join(f"{columns[t]} >= {later}" for later in columns[t + 1 :])
        for t in range(len(columns) - 1)
    ]
    cases = " ".join(f"WHEN {test} THEN {c}" for test, c in zip(tests, classes, strict=False))
    return f"CASE {cases} ELSE {classes[-1]} END"


def _refuse_nul(text: Any, what: str) -> None:
    if not isinstance(text, str):
        raise InputTypeError(f"SQL: {what} must be text, got {text!r}.")
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InputError(
            f"SQL: {what} holds a character that SQL cannot, {text!r}; rename it first."
        )


def _refuse_twice(names: Sequence[str]) -> None:
    folded = [name.lower() for name in names]  # databases ignore case in names
    if len(set(folded)) < len(folded):
        twice = next(name for name in names if folded.count(name.lower()) > 1)
        raise InputError(
            f"The name {twice!r} would stand for two columns of the result; choose other names "
            "with score and prediction."
        )
