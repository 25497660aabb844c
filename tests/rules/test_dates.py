"""Cuts of years as points in time."""

import datetime

from hypothesis import given
from hypothesis import strategies as st

from kernelweave.rules.dates import last_time, year_of
from quick import examples

STEP = datetime.timedelta(microseconds=1)


@examples(200)
@given(st.one_of(st.floats(2, 9998), st.datetimes(datetime.datetime(2, 1, 1)).map(year_of)))
def test_a_cut_is_the_last_time_that_is_not_above_it(year):
    found = last_time(year)
    assert year_of(found) <= year
    if found < datetime.datetime.max:
        assert year_of(found + STEP) > year


def test_beyond_the_calendar():
    assert last_time(-5.0) == datetime.datetime.min
    assert last_time(1e6) == datetime.datetime.max


def test_the_clock_counts_and_not_the_zone():
    noon = datetime.datetime(2024, 5, 3, 12)
    east = noon.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    assert year_of(noon) == year_of(east)
