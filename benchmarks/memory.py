"""How much memory this process holds, and held at most."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def settle() -> int:
    """Give free memory back, forget the peak so far, and return the resident bytes."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        pass  # not glibc: freed memory stays in the base
    try:
        _CLEAR.write_text("5")
    except OSError:
        return peak()  # the high-water mark cannot be lowered, so it is the base
    return _status("VmRSS")


def peak() -> int:
    """Return the most bytes that were resident since the last `settle`."""
    try:
        return _status("VmHWM")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{_STATUS} has no line {name}")
