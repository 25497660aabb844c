"""Players: single columns, groups that the caller names, and sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelweave._summary import listed
from kernelweave.errors import InputError, InputTypeError

from .game import Link, Players, listed_names
from .names import find_name


def grouped(groups: Mapping[Any, Any], names: Sequence[str]) -> Players:
    """Return the groups as players, and the columns in no group as players of their own."""
    owner: dict[int, str] = {}
    found: dict[str, list[int]] = {}
    for key, columns in groups.items():
        group = str(key)
        places = found.setdefault(group, [])
        for column in _columns(group, columns):
            place = _place(column, names, group)
            if place in owner:
                raise InputError(
                    f"by: column {names[place]!r} is in the groups {owner[place]!r} and {group!r}; "
                    "it may be in one only."
                )
            owner[place] = group
            places.append(place)
    rest = [j for j in range(len(names)) if j not in owner]
    if clash := [names[j] for j in rest if names[j] in found]:
        raise InputError(
            f"by: {listed(map(repr, clash))} is the name of a group and of a column in no group."
        )
    return Players(
        (*found, *(names[j] for j in rest)),
        (*(tuple(places) for places in found.values()), *((j,) for j in rest)),
    )


def _columns(group: str, columns: Any) -> list[Any]:
    if isinstance(columns, str | int | np.integer):
        return [columns]
    if not isinstance(columns, Sequence | np.ndarray):
        raise InputTypeError(
            f"by: group {group!r} must be a list of columns, got {type(columns).__name__}."
        )
    if not len(columns):
        raise InputError(f"by: group {group!r} has no columns.")
    return list(columns)


def _place(column: Any, names: Sequence[str], group: str) -> int:
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        if -len(names) <= column < len(names):
            return int(column) % len(names)
        raise InputError(
            f"by: group {group!r} has column {column}, but there are {len(names)} columns."
        )
    return find_name(column, names, f"by: a column of group {group!r}")


def sources(players: Players, links: list[Link]) -> Players:
    """Return the sources: players that have a common name in `views`, or that kernels connect."""
    used = sorted({player for _, linked in links for player in linked})
    by_name: dict[str, set[int]] = {}
    for name, linked in links:
        by_name.setdefault(name or "", set()).update(linked)
    named = "" not in by_name and len(used) == sum(map(len, by_name.values()))
    if named and len(by_name) > 1:
        groups = {name: sorted(linked) for name, linked in by_name.items()}
    else:
        parts = _components(used, [linked for _, linked in links])
        if len(parts) < 2:
            raise InputError(
                "by: 'source' finds one source only, because kernels connect all columns. Hint: "
                "in Python groups can be named, as in by={'blood': ['iron', 'sugar']}."
            )
        views = {frozenset(own): name for name, own in by_name.items() if name}
        named_parts = ((views.get(frozenset(part)), part) for part in parts)
        groups = {
            name or listed_names([players.names[p] for p in part]): part
            for name, part in named_parts
        }
    rest = [p for p in range(len(players)) if p not in used]
    names = [*groups, *(players.names[p] for p in rest)]
    members = [*groups.values(), *([p] for p in rest)]
    columns = [tuple(c for p in part for c in players.columns[p]) for part in members]
    return Players(tuple(names), tuple(columns))


def _components(items: list[int], links: list[frozenset[int]]) -> list[list[int]]:
    """Return the connected components of items that links join, in order."""
    parent = {item: item for item in items}

    def root(item: int) -> int:
        while parent[item] != item:
            item = parent[item]
        return item

    for linked in links:
        roots = sorted({root(item) for item in linked})
        for other in roots[1:]:
            parent[other] = roots[0]
    parts: dict[int, list[int]] = {}
    for item in items:
        parts.setdefault(root(item), []).append(item)
    return list(parts.values())
