"""Dates as years; more of them in test_preparer.py."""

import datetime

import numpy as np
import pytest

from kernelweave.errors import InputError
from kernelweave.io.dates import read_dates


def test_days_and_moments():
    days = [datetime.date(2000, 1, 1), None, datetime.date(2001, 1, 1)]
    moments = [day and datetime.datetime(day.year, day.month, day.day) for day in days]
    years = read_dates("x", days, None)
    np.testing.assert_allclose(years, [2000.0, np.nan, 2001.0], atol=1.01 / 365)
    np.testing.assert_array_equal(years, read_dates("x", moments, None))


def test_values_that_are_no_dates():
    with pytest.raises(InputError, match=r"The column 'born' must hold dates, but has 1999\.5\."):
        read_dates("born", [1999.5], None)
