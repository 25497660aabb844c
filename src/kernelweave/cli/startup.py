"""Start the program without the modules that scikit-learn imports and a command may never use.

scikit-learn imports `scipy.stats` and pandas at once, for a few of its functions: more than half
of the time of its import. The program puts a placeholder in their place, which imports the module
when one of its names is first used. A Python session that imports kernelweave is not affected.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

# Modules, and those of their names that scikit-learn imports at once and uses in few functions.
SELDOM_USED = {"scipy.stats": ("chi2", "gmean", "rankdata", "spearmanr"), "pandas": ()}


class DeferredModule(ModuleType):
    """A module that is imported when one of its names is first used.

    ``from module import name`` imports nothing for some of the names.
    """

    def __init__(self, name: str, late: Collection[str] = ()) -> None:
        super().__init__(name)
        self._late = late

    def __getattr__(self, name: str) -> Any:
        if name in self._late:
            return DeferredName(self, name)
        if name == "__path__" and self._late and not _asks_importlib():
            raise AttributeError(name)  # "from module import name" looks for it first
        return getattr(_real(self), name)


class DeferredName:
    """A function or object of a deferred module."""

    def __init__(self, module: DeferredModule, name: str) -> None:
        self._module, self._name = module, name

    def __call__(self, *args: Any, **options: Any) -> Any:
        return getattr(_real(self._module), self._name)(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(_real(self._module), self._name), name)


def _real(deferred: DeferredModule) -> ModuleType:
    """Import the module that a deferred one stands for."""
    name = deferred.__name__
    if sys.modules.get(name) is deferred:
        del sys.modules[name]
    module = import_module(name)
    vars(deferred).update(vars(module))  # later uses cost nothing
    return module


def _asks_importlib() -> bool:
    """Tell whether the caller's attribute is looked up to import a part of a package."""
    asks = sys._getframe(2).f_globals.get("__name__")
    return asks in ("importlib._bootstrap", "_frozen_importlib")


def defer(names: Mapping[str, Collection[str]] = SELDOM_USED) -> None:
    """Defer the import of modules that are installed and not imported yet.

    The packages around them are imported at once. The values of ``names`` are those that may be
    imported from the module without importing it.
    """
    for name, late in names.items():
        if name not in sys.modules and find_spec(name) is not None:
            sys.modules[name] = DeferredModule(name, late)
