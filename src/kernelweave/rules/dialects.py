"""How databases write names, text and numbers, and how they read columns of a table."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelweave.errors import InputError, InputTypeError

from .columns import Label
from .export import Read
from .proposition import Proposition

_ISO = "%Y-%m-%d"  # formats with this beginning are read directly
_CLOCK = 19  # characters of a time to the second; a time zone comes after it
_EXACT = 2**63  # whole numbers below it are written without an exponent


@dataclass(frozen=True)
class Dialect:
    """One database.

    ``reads`` holds an expression for each way to read a column, with {0} for its name. A value that
    cannot be read becomes NULL or stops the query; it is never another value.
    """

    quote: str = '"'  # around a name; doubled inside it
    # Format of a 64-bit float ({} is the number, "e" an exponent): decimal arithmetic would round
    # differently.
    double: str = "{}"
    escapes: str = ""  # text: as it is, "E" (PostgreSQL: escapes), "X" (MySQL: bytes)
    reads: Mapping[str, str] = field(default_factory=dict)
    date_text: str = ""  # dates in another format than ISO; {1} is the format, "" if there is none
    date_codes: Mapping[str, str] = field(default_factory=dict)  # strptime codes that differ
    time: str = "TIMESTAMP '{}'"
    clamp: str = "LEAST(GREATEST({}, {}), {})"

    def name(self, name: str) -> str:
        """Return a quoted name."""
        _refuse_nul(name, "a column or table name")
        if not name:
            raise InputError("A column or table name must not be empty in SQL; use rename.")
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"

    def text(self, value: str) -> str:
        """Return quoted text; with "E" and "X" in ASCII, so that no connection recodes it."""
        _refuse_nul(value, "a category")
        quoted = "'" + value.replace("'", "''") + "'"
        plain = value.isascii() and "\\" not in value
        if self.escapes == "X":
            return (
                f"_utf8mb4{quoted}"
                if plain
                else f"CONVERT(X'{value.encode().hex()}' USING utf8mb4)"
            )
        if self.escapes == "E" and not plain:
            return "E" + "".join(map(_escaped, quoted))
        return quoted

    def literal(self, value: Label) -> str:
        """Return a category or class."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        # As an integer, since a float makes some databases round the integers of a column.
        if isinstance(value, int) or (value.is_integer() and abs(value) < _EXACT):
            return repr(int(value))
        return self.number(value)

    def number(self, value: float) -> str:
        """Return a float that reads back as the same one."""
        digits = repr(float(value))
        if self.double == "e":
            return digits if "e" in digits else f"{digits}e0"
        return self.double.format(digits)

    def moment(self, value: datetime.datetime) -> str:
        """Return a point in time."""
        return self.time.format(value.isoformat(" ", "microseconds"))

    def column(self, name: str, read: Read) -> str:
        """Return an expression for a column as values of one kind."""
        column, form = self.name(name), read.form
        if form is None or form.startswith(_ISO):
            # The clock counts, not the time zone.
            kind = "zoned" if form is not None and form.endswith("%z") else read.kind
            return self.reads.get(kind, "{0}").format(column)
        if not self.date_text:
            raise InputError(
                f"dates: {name!r} is written as {form!r}, which this dialect cannot read. Hint: "
                f"hold it as dates, or text such as 2024-12-24, and set dates={{{name!r}: None}}."
            )
        for code, own in self.date_codes.items():
            form = form.replace(code, own)
        return self.date_text.format(column, self.text(form))

    def condition(self, condition: Proposition, read: Read, name: str) -> str:
        """Return a condition on a column that was read; NULL does not satisfy it."""
        column = self.name(name)
        if condition.levels:
            return f"{column} IN ({', '.join(map(self.literal, condition.allowed))})"
        operator = {"==": "=", "!=": "<>"}.get(condition.operator, condition.operator)
        if read.kind == "time":
            return f"{column} {operator} {self.moment(read.cut(condition))}"
        numeric = condition.is_numeric
        value = self.number(float(condition.value)) if numeric else self.literal(condition.value)
        return f"{column} {operator} {value}"


def _escaped(letter: str) -> str:
    if letter == "\\":
        return "\\\\"
    code = ord(letter)
    return letter if code < 128 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def _refuse_nul(text: Any, what: str) -> None:
    if not isinstance(text, str):
        raise InputTypeError(f"SQL: {what} must be text, got {text!r}.")
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InputError(
            f"SQL: {what} holds a character that SQL cannot, {text!r}; rename it first."
        )


_TRUE, _FALSE = "('true', 't', '1', '1.0')", "('false', 'f', '0', '0.0')"

# Columns of text (such as those that SQLite imports) are read as numbers; text without a digit,
# such as "" or "NA", is missing. Numbers become 64-bit floats, as in `predict`, also integers above
# 2^53 and decimals; categories that are integers are compared exactly.
_SQLITE = {
    "number": "CASE WHEN typeof({0}) <> 'text' OR {0} GLOB '*[0-9]*' THEN CAST({0} AS REAL) END",
    "code": "CASE WHEN typeof({0}) <> 'text' THEN {0} WHEN {0} GLOB '*[0-9]*' "
    "THEN CAST({0} AS NUMERIC) END",
    "text": "{0} COLLATE BINARY",
    "truth": f"CASE WHEN lower({{0}}) IN {_TRUE} THEN 1 WHEN lower({{0}}) IN {_FALSE} THEN 0 END",
    # Dates are text in SQLite; times of different precision are in the order of their text.
    "time": "CASE WHEN {0} GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' "
    "THEN rtrim(replace(trim({0}), 'T', ' '), 'Z') END",
}
_SQLITE["zoned"] = _SQLITE["time"].replace("trim({0})", f"substr(trim({{0}}), 1, {_CLOCK})")
_POSTGRESQL = {
    "number": "NULLIF({0}::float8, 'NaN'::float8)",
    "code": "CASE WHEN {0}::float8 <> 'NaN'::float8 THEN {0} END",
    "text": '{0}::text COLLATE "C"',
    "truth": f"CASE WHEN lower({{0}}::text) IN {_TRUE} THEN TRUE "
    f"WHEN lower({{0}}::text) IN {_FALSE} THEN FALSE END",
    "time": "{0}::timestamp",
    "zoned": f"left({{0}}::text, {_CLOCK})::timestamp",
}
_DUCKDB = {
    "number": "NULLIF(CAST({0} AS DOUBLE), 'NaN'::DOUBLE)",
    "code": "CASE WHEN NOT isnan(CAST({0} AS DOUBLE)) THEN {0} END",
    "text": 'CAST({0} AS VARCHAR) COLLATE "C"',
    "truth": "CAST({0} AS BOOLEAN)",
    "time": "CAST({0} AS TIMESTAMP)",
    "zoned": f"CAST(left(CAST({{0}} AS VARCHAR), {_CLOCK}) AS TIMESTAMP)",
}
_MYSQL = {
    "number": "CASE WHEN {0} REGEXP '[0-9]' THEN {0} + 0e0 END",
    "code": "CASE WHEN {0} REGEXP '[0-9]' THEN {0} + 0 END",
    # As bytes: other comparisons ignore case, accents or spaces at the end.
    "text": "CAST(CONVERT({0} USING utf8mb4) AS BINARY)",
    # HEX of a number is not that of its text; BIT columns are numbers.
    "truth": f"CASE WHEN HEX({{0}}) = '1' OR CONVERT({{0}} USING utf8mb4) IN {_TRUE} THEN TRUE "
    f"WHEN HEX({{0}}) = '0' OR CONVERT({{0}} USING utf8mb4) IN {_FALSE} THEN FALSE END",
    "time": "CAST({0} AS DATETIME(6))",
    "zoned": f"CAST(LEFT({{0}}, {_CLOCK}) AS DATETIME)",
}

DIALECTS = {
    "standard": Dialect(
        double="e",
        reads={"number": "CAST({0} AS DOUBLE PRECISION)", "time": "CAST({0} AS TIMESTAMP)"},
        clamp="CASE WHEN {0} < {1} THEN {1} WHEN {0} > {2} THEN {2} ELSE {0} END",
    ),
    # Names in double quotes that match no column would silently be text in SQLite.
    "sqlite": Dialect(quote="`", reads=_SQLITE, time="'{}'", clamp="min(max({}, {}), {})"),
    "postgresql": Dialect(
        double="{}::float8",
        escapes="E",
        reads=_POSTGRESQL,
        date_text="CASE WHEN {0}::text ~ '^[0-9]{{4}}-' THEN {0}::text::timestamp "
        "ELSE to_timestamp({0}::text, {1})::timestamp END",
        date_codes={
            "%Y": "YYYY",
            "%y": "YY",
            "%m": "MM",
            "%b": "Mon",
            "%d": "DD",
            "%H": "HH24",
            "%M": "MI",
            "%S": "SS",
        },
    ),
    "duckdb": Dialect(
        double="e",
        reads=_DUCKDB,
        date_text="COALESCE(TRY_CAST(CAST({0} AS VARCHAR) AS TIMESTAMP), "
        "strptime(trim(CAST({0} AS VARCHAR)), {1}))",
    ),
    "mysql": Dialect(
        quote="`",
        double="e",
        escapes="X",
        reads=_MYSQL,
        date_text="CASE WHEN {0} REGEXP '^[0-9]{{4}}-' THEN CAST({0} AS DATETIME(6)) "
        "ELSE STR_TO_DATE(TRIM({0}), {1}) END",
        date_codes={"%M": "%i"},
    ),
}
