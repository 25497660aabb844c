"""What `make test` leaves to the slow run, so that it takes minutes; CI runs both."""

import pytest
from hypothesis import settings

is_quick = False  # whether this run leaves slow tests out; set by conftest.py


def every(n, cases):
    """Return cases for `parametrize`, all but every n-th of which are slow."""
    return [_slow(case) if k % n else case for k, case in enumerate(cases)]


def first(n, cases):
    """Return cases for `parametrize`, all but the first n of which are slow."""
    return [case if k < n else _slow(case) for k, case in enumerate(cases)]


def _slow(case):
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)


def examples(n, **options):
    """Return a decorator for properties: n examples, and a fifth of them in the quick run."""

    def decorate(test):
        chosen = settings(max_examples=n // 5 if is_quick else n, deadline=None, **options)
        test = chosen(test)
        test.quick_examples = True
        return test

    return decorate


def fewer_rows(test):
    """Mark a test that takes fewer rows where ``is_quick``, so that the slow run has it as well."""
    test.quick_examples = True
    return test
