"""Limits of memory: read from a parameter, and checked before memory is used."""

from __future__ import annotations

import math
import os

from kernelweave.errors import InputError, MemoryBudgetError


def parse_bytes(limit: float | str | None) -> float:
    """Return a memory limit in bytes; None means half of the free memory."""
    if limit is None:
        try:
            return 0.5 * os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError, AttributeError):  # unknown on this system
            return 4e9
    text = str(limit).strip().upper().removesuffix("B")
    factor = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1:], None)
    try:
        value = float(text[:-1] if factor else text) * (factor or 1.0)
    except ValueError:
        value = float("nan")
    if not value > 0:
        raise InputError(
            f"memory_limit={limit!r}: must be a positive number of bytes or text such as '8GB'."
        )
    return value


def check_memory(
    what: str, pieces: dict[str, float], memory_limit: float | str | None, hint: str
) -> None:
    """Raise an error if pieces of memory exceed the limit.

    Parameters
    ----------
    what : str
        Begins the sentence, up to "need".
    pieces : dict
        Bytes by name.
    memory_limit : number of bytes, str such as "8GB", or None
        None: half of the free memory.
    hint : str
        What else could be done.
    """
    need, limit = sum(pieces.values()), parse_bytes(memory_limit)
    if need > limit:
        listed = ", ".join(f"{name}: {_size(size)}" for name, size in pieces.items())
        digits = next(d for d in range(1, 20) if _size(need, d) != _size(limit, d))
        raise MemoryBudgetError(
            f"{what} {_size(need, digits)} ({listed}), and the limit is {_size(limit, digits)}. "
            f"Hint: {hint}, or memory_limit='{_rounded_up(need)}'."
        )


def _rounded_up(n_bytes: float) -> str:
    """Return a limit that allows a number of bytes."""
    unit, size = ("GB", 1e9) if n_bytes >= 1e9 else ("MB", 1e6)
    tenths = math.ceil(10 * n_bytes / size)
    while parse_bytes(f"{tenths / 10}{unit}") < n_bytes:  # by rounding of the quotient
        tenths += 1
    return f"{tenths / 10}{unit}"


def _size(n_bytes: float, digits: int = 1) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= size:
            return f"{n_bytes / size:.{digits}f} {unit}"
    return f"{n_bytes / 1e3:.{digits}f} kB"
