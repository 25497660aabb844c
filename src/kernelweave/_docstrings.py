"""Docstrings that take entries of their sections from elsewhere."""

from __future__ import annotations

import inspect
import re


def entries(doc: str, title: str) -> dict[str, str]:
    """Return the entries of a section by their names."""
    section = inspect.cleandoc(doc).partition(_heading(title))[2].partition("\n\n")[0]
    entries = re.findall(r"^\w.*(?:\n    .*)*", section, flags=re.M)
    return {entry.split()[0]: entry for entry in entries}


def with_section(doc: str, title: str, entries: list[str]) -> str:
    """Return a docstring with a section in place of its own, or before those that follow."""
    blocks = inspect.cleandoc(doc).split("\n\n")
    heading = _heading(title)
    places = [k for k, block in enumerate(blocks) if f"{block}\n".startswith(heading)]
    if places:
        del blocks[places[0]]
    else:
        later = [k for k, block in enumerate(blocks) if block.startswith(_LATER[title])]
        places = [*later, len(blocks)]
    blocks.insert(places[0], heading + "\n".join(entries))
    return "\n\n".join(blocks)


def _heading(title: str) -> str:
    return f"{title}\n{'-' * len(title)}\n"


# Headings of sections before which another stands.
_AFTER = tuple(map(_heading, ("See Also", "References", "Examples")))
_LATER = {"Parameters": (_heading("Attributes"), *_AFTER), "Attributes": _AFTER}


def inherit_parameters(cls: type) -> None:
    """Complete the section Parameters of a class, if it has one.

    Parameters of the classes that it inherits from come last, in their order, as in its signature.
    """
    own = entries(cls.__doc__ or "", "Parameters")
    inherited: dict[str, str] = {}
    for owner in reversed(cls.__mro__[1:]):
        inherited |= entries(owner.__doc__ or "", "Parameters")
    if own:
        first = {name: entry for name, entry in own.items() if name not in inherited}
        found = first | inherited | own
        cls.__doc__ = with_section(cls.__doc__ or "", "Parameters", [*found.values()])
