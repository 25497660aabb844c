"""How much memory may be used."""

from __future__ import annotations

import os

from kernelweave.errors import InputError


def parse_bytes(limit: float | str | None) -> float:
    """Return a memory limit in bytes; None means half of what is free."""
    if limit is None:
        try:
            return 0.5 * os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError, AttributeError):  # not every system tells
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
