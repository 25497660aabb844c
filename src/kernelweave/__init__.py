"""Learn kernels from data: which of many matter, with a certificate of optimality."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimators import MKLClassifier, MKLRegressor
    from .kernels import (
        RBF,
        FromCallable,
        Laplacian,
        Linear,
        Overlap,
        Polynomial,
        Precomputed,
        polynomial_ladder,
        rbf_ladder,
        views,
    )

__all__ = [
    "RBF",
    "FromCallable",
    "Laplacian",
    "Linear",
    "MKLClassifier",
    "MKLRegressor",
    "Overlap",
    "Polynomial",
    "Precomputed",
    "__version__",
    "polynomial_ladder",
    "rbf_ladder",
    "views",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `kernelweave --help` needs none of them."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("kernelweave")
    elif name in __all__:
        home = "estimators" if name.startswith("MKL") else "kernels"
        value = getattr(importlib.import_module(f"kernelweave.{home}"), name)
    else:
        raise AttributeError(f"module 'kernelweave' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
