"""Dates as numbers, years with decimals, and back: cuts of such numbers as points in time."""

from __future__ import annotations

import datetime
import math

YEAR = 365.2425 * 86400.0  # seconds
_START = datetime.datetime(2000, 1, 1)
_STEP = datetime.timedelta(microseconds=1)


def year_of(time: datetime.datetime) -> float:
    """Return a time as years; 2024.5 is the beginning of July 2024, to about a day.

    The time zone does not count: it is the time on the clock.

    Examples
    --------
    >>> import datetime
    >>> from kernelweave.rules.dates import year_of
    >>> round(year_of(datetime.datetime(2024, 7, 1)), 2)
    2024.5
    """
    seconds: float = (time - _START.replace(tzinfo=time.tzinfo)).total_seconds()
    return 2000.0 + seconds / YEAR


def last_time(year: float) -> datetime.datetime:
    """Return the last microsecond whose `year_of` is not above a cut.

    ``year_of(t) <= year`` is then the same as ``t <= last_time(year)``, so that exported models
    compare dates with dates.

    Examples
    --------
    >>> from kernelweave.rules.dates import last_time
    >>> last_time(2000.0)
    datetime.datetime(2000, 1, 1, 0, 0, 0, 3)
    """
    if year <= year_of(datetime.datetime.min):
        return datetime.datetime.min
    if year >= year_of(datetime.datetime.max):
        return datetime.datetime.max
    low, high = _micros(datetime.datetime.min), _micros(datetime.datetime.max)
    near = math.floor((year - 2000.0) * YEAR * 1e6)
    # Years are rounded to 2e-13, that is 7 microseconds, or a few milliseconds near the year 9999.
    low, high = max(low, near - 10**6), min(high, near + 10**6)
    while high - low > 1:
        middle = (low + high) // 2
        if year_of(_START + middle * _STEP) <= year:
            low = middle
        else:
            high = middle
    return _START + low * _STEP


def _micros(time: datetime.datetime) -> int:
    return (time - _START) // _STEP
