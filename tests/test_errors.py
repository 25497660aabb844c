"""Errors are of one family."""

import pickle
import warnings

import pytest

from kernelweave.errors import (
    InputError,
    InputTypeError,
    KernelweaveError,
    MemoryBudgetError,
    RowError,
    numbering,
    silenced,
    warn,
)


def test_own_errors_are_of_one_family():
    for kind in (InputError, InputTypeError, MemoryBudgetError):
        assert issubclass(kind, KernelweaveError)
        assert issubclass(kind, ValueError | TypeError)


def test_rows_are_numbered_as_in_the_full_table():
    with pytest.raises(RowError, match="row 40 is infinite") as caught, numbering([30, 40]):
        raise RowError("row {row} is infinite", 1)
    assert pickle.loads(pickle.dumps(caught.value)).row == 40
    with pytest.raises(RowError, match="row 1 is"), numbering(None):
        raise RowError("row {row} is infinite", 1)


def test_warnings_point_at_the_caller_and_can_be_silenced():
    with pytest.warns(UserWarning, match="careful") as caught:
        warn("careful")
    assert caught[0].filename == __file__
    with silenced(), warnings.catch_warnings():
        warnings.simplefilter("error")
        warn("not said")
