"""Kernels as plain data, which JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from kernelweave.errors import InputError, InputTypeError

from .base import Kernel
from .discrete import Constant, Overlap, Words
from .expression import Cosine, Group, Product, Scaled, Sum
from .gaps import Known
from .gaussian import ARD, RBF, Additive, Laplacian
from .vector import Linear, Polynomial

_OF_COLUMNS = (ARD, Additive, Known, Laplacian, Linear, Overlap, Polynomial, RBF, Words)
_TYPES: dict[str, type[Kernel]] = {
    kind.__name__: kind for kind in (*_OF_COLUMNS, Constant, Cosine, Group, Product, Scaled, Sum)
}


def to_plain(kernel: Kernel) -> dict[str, Any]:
    """Return a kernel as a dict of its type and its parameters.

    Parameters
    ----------
    kernel : Kernel
        Any but one that holds a matrix or a function.

    Examples
    --------
    >>> from kernelweave import RBF
    >>> to_plain(RBF(2.0, columns=[0, 1]))
    {'type': 'RBF', 'columns': [0, 1], 'width': 2.0}
    """
    kind = type(kernel).__name__
    if _TYPES.get(kind) is not type(kernel):
        raise InputError(
            f"{kernel}: a {kind} cannot be written as JSON. Hint: to_dict(encode=str) writes names "
            "in place of kernels."
        )
    given = {f.name: getattr(kernel, f.name) for f in fields(kernel)}
    if kernel.missing == "refuse":
        del given["missing"]
    out = {name: _to_value(value, kernel) for name, value in given.items() if value is not None}
    return {"type": kind} | out


def _to_value(value: Any, kernel: Kernel) -> Any:
    if isinstance(value, Kernel):
        return to_plain(value)
    if isinstance(value, tuple):
        return [_to_value(item, kernel) for item in value]
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if not isinstance(value, str | int | float):
        raise InputError(
            f"{kernel}: columns picked by a function or selector cannot be written as JSON. "
            "Hint: a fitted model has them by name or position."
        )
    return value


def from_plain(data: Mapping[str, Any], who: str) -> Kernel:
    """Return the kernel that `to_plain` wrote; ``who`` begins the sentence of an error."""
    kind = data.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        known = ", ".join(sorted(_TYPES))
        raise InputError(f"{who}: a kernel needs a type out of {known}, got {kind!r}.")
    given = {key: _from_value(value, who) for key, value in data.items() if key != "type"}
    allowed = [f.name for f in fields(_TYPES[kind])]
    if unknown := [key for key in given if key not in allowed]:
        raise InputError(
            f"{who}: {kind} has no parameter {unknown[0]!r}, only {', '.join(allowed)}."
        )
    try:
        return _TYPES[kind](**given)
    except (InputError, InputTypeError) as error:
        raise InputError(f"{who}: {error}") from None
    except TypeError as error:
        raise InputError(f"{who}: {kind} cannot be made: {error}") from None


def _from_value(value: Any, who: str) -> Any:
    match value:
        case {"type": _}:
            return from_plain(value, who)
        case {"slice": [start, stop, step]}:
            return slice(start, stop, step)
        case list():
            return tuple(_from_value(item, who) for item in value)
    return value
