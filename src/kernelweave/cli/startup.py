"""Start the program quickly: without modules that a command may never use, and with less cleaning.

scikit-learn imports `scipy.stats` and pandas at once, for a few of their functions: more than half
of the time of its import. The program puts a placeholder in their place, which becomes the module
when it is first used. A Python session that imports kernelweave is not affected.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

# Modules, and what scikit-learn takes from them when it is imported.
SELDOM_USED = {
    "scipy.stats": ("chi2", "gmean", "rankdata", "spearmanr"),
    "scipy.integrate": ("trapezoid",),
    "scipy.interpolate": ("BSpline",),
    "pandas": (),
}
_THRESHOLDS = 100_000, 20, 1_000  # of objects and rounds between two collections; see `gc`


class DeferredModule(ModuleType):
    """A module that is executed when one of its names is first used.

    The names of ``held`` are used when something is done with them, not when they are imported.
    """

    def __init__(self, spec: ModuleSpec, held: tuple[str, ...] = ()) -> None:
        super().__init__(spec.name)
        self.__spec__ = spec
        self._held = held
        if held:  # ``from module import name`` asks whether there is a path, and does not read it
            self.__path__ = _DeferredPath(self)

    def __getattr__(self, name: str) -> Any:
        if name in vars(self).get("_held", ()):
            return _DeferredName(self, name)
        self.execute()
        return getattr(self, name)

    def execute(self) -> None:
        """Become the module."""
        if type(self) is ModuleType:
            return
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        self.__class__ = ModuleType  # type: ignore[assignment]
        vars(self).update(vars(module_from_spec(spec)))
        spec.loader.exec_module(self)


class _DeferredPath(list[str]):
    """Where submodules are; they are imported after the module."""

    def __init__(self, module: DeferredModule) -> None:
        self._module = module

    def __iter__(self) -> Iterator[str]:
        DeferredModule.execute(self._module)
        return iter(self._module.__path__)


class _DeferredName:
    """A function or object of a module that is executed when this is called or looked into."""

    def __init__(self, module: DeferredModule, name: str) -> None:
        self._module, self._name = module, name

    def _found(self) -> Any:
        DeferredModule.execute(self._module)
        return getattr(self._module, self._name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self._name == "gmean" and len(args) == 1 and options.keys() == {"axis"}:
            return _geometric_mean(args[0], options["axis"])
        return self._found()(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found(), name)


def _geometric_mean(values: Any, axis: Any) -> Any:
    """Return what gradient boosting of several classes needs `scipy.stats` for: a fifth second."""
    import numpy as np

    return np.exp(np.mean(np.log(values), axis=axis))


def defer(modules: Mapping[str, tuple[str, ...]] = SELDOM_USED) -> None:
    """Defer the import of modules that are installed and not imported yet.

    The packages around them are imported at once. BLAS gets one thread, as in all estimators: the
    others would wait for work and use processor time.
    """
    if "numpy" not in sys.modules:
        for library in ("OPENBLAS", "MKL"):
            os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    for name, held in modules.items():
        if name not in sys.modules and (spec := find_spec(name)) is not None:
            sys.modules[name] = DeferredModule(spec, held)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Look for garbage in cycles rarely: doing so again and again during imports takes long."""
    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
