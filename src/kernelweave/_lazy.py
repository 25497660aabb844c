"""Packages that import their public names when these are first used."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def attach(
    package: str, homes: dict[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Its name.
    homes : dict of str to str
        For each of its modules the names that it offers, separated by white space.
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        names = vars(sys.modules[package])
        return sorted({*names, *names["__all__"]})

    return __getattr__, __dir__
