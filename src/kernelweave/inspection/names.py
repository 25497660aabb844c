"""Names given by the caller: looked up, with the nearest one offered."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from kernelweave._summary import listed
from kernelweave.errors import InputError


def find_name(given: Any, names: Sequence[Any], argument: str) -> int:
    """Return the place of a name, compared as it is and as text, or refuse it with a hint."""
    for place, name in enumerate(names):
        if given is name or (type(given) is type(name) and given == name):
            return place
    texts = [str(name) for name in names]
    if str(given) in texts:
        return texts.index(str(given))
    near = difflib.get_close_matches(str(given), texts, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    known = listed((repr(text) for text in texts), last="or")
    raise InputError(f"{argument}: must be {known}, got {given!r}.{hint}")
