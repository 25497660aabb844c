"""Learn kernels from data: which of many matter, with a certificate of optimality."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .banks import enclosing_ball
    from .candidates import ProductLattice
    from .estimators import (
        HierarchicalMKLClassifier,
        HierarchicalMKLRegressor,
        MKLClassifier,
        MKLRegressor,
        NoiseTolerantKernelClassifier,
        NoisyLabelMKLClassifier,
        RadiusKernelClassifier,
        RadiusMKLClassifier,
        RuleEnsembleClassifier,
        RuleEnsembleClassifierCV,
        RuleEnsembleRegressor,
        RuleEnsembleRegressorCV,
        SumProductMKLClassifier,
    )
    from .kernels import (
        ARD,
        RBF,
        Additive,
        FromCallable,
        Laplacian,
        Linear,
        Overlap,
        Polynomial,
        Precomputed,
        complete_ladder,
        group,
        polynomial_ladder,
        rbf_ladder,
        views,
    )
    from .noise import estimate_noise, estimate_rates, label_quality, suspects
    from .rules import Propositions

__all__ = [
    "ARD",
    "RBF",
    "Additive",
    "FromCallable",
    "HierarchicalMKLClassifier",
    "HierarchicalMKLRegressor",
    "Laplacian",
    "Linear",
    "MKLClassifier",
    "MKLRegressor",
    "NoiseTolerantKernelClassifier",
    "NoisyLabelMKLClassifier",
    "Overlap",
    "Polynomial",
    "Precomputed",
    "ProductLattice",
    "Propositions",
    "RadiusKernelClassifier",
    "RadiusMKLClassifier",
    "RuleEnsembleClassifier",
    "RuleEnsembleClassifierCV",
    "RuleEnsembleRegressor",
    "RuleEnsembleRegressorCV",
    "SumProductMKLClassifier",
    "__version__",
    "complete_ladder",
    "enclosing_ball",
    "estimate_noise",
    "estimate_rates",
    "group",
    "label_quality",
    "polynomial_ladder",
    "rbf_ladder",
    "suspects",
    "views",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `kernelweave --help` needs none of them."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("kernelweave")
    elif name in __all__:
        home = "kernels"
        if name.removesuffix("CV").endswith(("Classifier", "Regressor")):
            home = "estimators"
        elif name == "ProductLattice":
            home = "candidates"
        elif name == "Propositions":
            home = "rules"
        elif name == "enclosing_ball":
            home = "banks"
        elif name in ("estimate_noise", "estimate_rates", "label_quality", "suspects"):
            home = "noise"
        value = getattr(importlib.import_module(f"kernelweave.{home}"), name)
    else:
        raise AttributeError(f"module 'kernelweave' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
