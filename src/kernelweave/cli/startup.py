"""Start the program without the modules that scikit-learn imports and a command may never use.

scikit-learn imports `scipy.stats` and pandas at once, for a few of its functions: more than half
of the time of its import. The program puts a placeholder in their place, which imports the module
when one of its names is first used. A Python session that imports kernelweave is not affected.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

SELDOM_USED = ("scipy.stats", "pandas")


class DeferredModule(ModuleType):
    """A module that is imported when one of its names is first used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        module = import_module(self.__name__)
        vars(self).update(vars(module))  # later uses cost nothing
        return getattr(module, name)


def defer(names: Iterable[str] = SELDOM_USED) -> None:
    """Defer the import of modules that are installed and not imported yet.

    The packages around them are imported at once.
    """
    for name in names:
        if name not in sys.modules and find_spec(name) is not None:
            sys.modules[name] = DeferredModule(name)
