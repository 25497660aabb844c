"""Dates as numbers: years with decimals."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Floats
from kernelweave.errors import InputError
from kernelweave.rules.dates import year_of

FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d-%b-%Y",
    "%b %d, %Y",
)


def find_format(values: Iterable[str]) -> str | None:
    """Return the first format of ``datetime.strptime`` that all texts have; None without one.

    Ambiguous dates are read with the day before the month.

    Examples
    --------
    >>> find_format(["24.12.2024", "01.02.2025"])
    '%d.%m.%Y'
    >>> find_format(["12/24/2024", "01/02/2025"])
    '%m/%d/%Y'
    """
    texts = [value.strip() for value in values]
    if not texts or not all(text[:1].isalnum() and any(map(str.isdigit, text)) for text in texts):
        return None
    return next((form for form in FORMATS if all(_fits(text, form) for text in texts)), None)


def read_dates(name: str, values: Iterable[Any], form: str | None) -> Floats:
    """Return dates, or texts in the format ``form``, as years; missing values become NaN.

    The year 2024.5 is the beginning of July 2024, to about a day. Messages name the column.

    Examples
    --------
    >>> read_dates("born", ["1999-12-31", None], "%Y-%m-%d").round(1)
    array([2000.,   nan])
    """

    @cache
    def year(value: Any) -> float:
        return year_of(_time(name, value, form))

    return np.array([np.nan if v is None or v != v else year(v) for v in values], dtype=np.float64)


def read_times(name: str, values: Iterable[Any], form: str | None) -> NDArray[np.datetime64]:
    """Return dates, or texts in the format ``form``, as times; missing values become NaT.

    Examples
    --------
    >>> read_times("born", ["1999-12-31", None], "%Y-%m-%d").astype(str).tolist()
    ['1999-12-31T00:00:00.000000', 'NaT']
    """

    @cache
    def time(value: Any) -> np.datetime64:
        found = _time(name, value, form)
        if found.tzinfo is not None:
            found = found.astimezone(datetime.UTC).replace(tzinfo=None)
        return np.datetime64(found, "us")

    gap = np.datetime64("NaT", "us")
    return np.array([gap if v is None or v != v else time(v) for v in values], "datetime64[us]")


def _time(name: str, value: Any, form: str | None) -> datetime.datetime:
    if isinstance(value, str):
        try:
            value = datetime.datetime.strptime(value.strip(), form or FORMATS[0])
        except ValueError:
            raise InputError(
                f"The column {name!r} must hold dates such as "
                f"{datetime.date(2024, 12, 24).strftime(form or FORMATS[0])!r}, but has {value!r}."
            ) from None
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime.datetime):
        raise InputError(f"The column {name!r} must hold dates, but has {value!r}.")
    return value


def _fits(text: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(text, form)
    except ValueError:
        return False
    return True
