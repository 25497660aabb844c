"""Make text from data safe to show: on a terminal, on a page, in a plot, in a message."""

from __future__ import annotations

import re
from typing import Any

# Control characters (C0, DEL, C1) steer terminals; marks of writing direction and separators of
# lines make text look like other text; halves of surrogate pairs cannot be written as UTF-8.
_UNSEEN = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_ALL, _IN_LINES = re.compile(f"[{_UNSEEN}]"), re.compile(f"(?![\n\t])[{_UNSEEN}]")


def visible(text: Any, *, lines: bool = False) -> str:
    r"""Return text with control characters escaped, such as ``\x1b``; ``lines`` keeps \n and \t."""
    unseen = _IN_LINES if lines else _ALL
    return unseen.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def clip(text: Any, most: int = 120) -> str:
    """Return text, without its middle where it is longer than ``most`` letters."""
    whole, tail = str(text), (most - 1) // 2
    if len(whole) <= most:
        return whole
    return f"{whole[: most - 1 - tail].rstrip()}\u2026{whole[len(whole) - tail :].lstrip()}"
