"""Errors and warnings of the library; each message is one sentence with a hint."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Self

_PACKAGE = str(Path(__file__).parent)
_silent: ContextVar[bool] = ContextVar("silent", default=False)


class KernelweaveError(Exception):
    """Base of all errors raised on purpose."""


class InputError(KernelweaveError, ValueError):
    """An argument has a value that cannot be used."""


class RowError(InputError):
    """A row has a value that cannot be used.

    Parameters
    ----------
    message : str
        With ``{row}`` where the number of the row belongs.
    row : int
        Its position among the rows that were checked.
    """

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message.replace("{row}", str(row)))
        self.message, self.row = message, row

    def __reduce__(self) -> tuple[type[Self], tuple[str, int]]:
        return type(self), (self.message, self.row)


@contextmanager
def numbering(index: Any) -> Iterator[None]:
    """Report row numbers of the full table in error messages.

    ``index`` holds the numbers of the rows that are checked; None stands for all rows.
    """
    try:
        yield
    except RowError as error:
        if index is None:
            raise
        raise RowError(error.message, int(index[error.row])) from None


class ConstantKernelsError(InputError):
    """All kernels are constant on the rows given."""

    def __init__(
        self,
        message: str = (
            "kernels: every kernel is constant on these rows, so there is nothing to learn from."
        ),
    ) -> None:
        super().__init__(message)


class InputTypeError(KernelweaveError, TypeError):
    """An argument has a type that cannot be used."""


class MemoryBudgetError(KernelweaveError, ValueError):
    """The kernels asked for do not fit in the memory allowed."""


class ModelFileError(KernelweaveError, ValueError):
    """A model file cannot be written or read."""


class DataError(KernelweaveError, ValueError):
    """A data set cannot be found or read."""


@contextmanager
def silenced() -> Iterator[None]:
    """Drop the library's own warnings in this block, in this thread."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn in one sentence with a hint, naming the line outside the library that called."""
    if _silent.get():
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_PACKAGE)
        or frame.f_globals.get("__name__") in ("sklearn.base", "contextlib")
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
