"""Learn kernels from data: which of many matter, with a certificate of optimality."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .banks import enclosing_ball
    from .candidates import ProductLattice
    from .estimators import (
        AnnotatorKernelClassifier,
        CombinedClassifier,
        CombinedRegressor,
        HierarchicalMKLClassifier,
        HierarchicalMKLRegressor,
        KernelSpectralClustering,
        MetricKernelClassifier,
        MetricKernelRegressor,
        MKLClassifier,
        MKLClassifierCV,
        MKLRegressor,
        MKLRegressorCV,
        NoiseTolerantKernelClassifier,
        NoisyLabelMKLClassifier,
        PairwiseKernelLearner,
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
        Words,
        complete_ladder,
        group,
        mixed_ladder,
        polynomial_ladder,
        rbf_ladder,
        views,
    )
    from .noise import (
        answers_from_triples,
        apply_decisions,
        estimate_noise,
        estimate_rates,
        label_quality,
        suspects,
    )
    from .pairs import constraints_from_graph, estimate_pair_rates
    from .ridge import learned_metric
    from .rules import Propositions

__all__ = [
    "ARD",
    "RBF",
    "Additive",
    "AnnotatorKernelClassifier",
    "CombinedClassifier",
    "CombinedRegressor",
    "FromCallable",
    "HierarchicalMKLClassifier",
    "HierarchicalMKLRegressor",
    "KernelSpectralClustering",
    "Laplacian",
    "Linear",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLRegressor",
    "MKLRegressorCV",
    "MetricKernelClassifier",
    "MetricKernelRegressor",
    "NoiseTolerantKernelClassifier",
    "NoisyLabelMKLClassifier",
    "Overlap",
    "PairwiseKernelLearner",
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
    "Words",
    "__version__",
    "answers_from_triples",
    "apply_decisions",
    "complete_ladder",
    "constraints_from_graph",
    "enclosing_ball",
    "estimate_noise",
    "estimate_pair_rates",
    "estimate_rates",
    "group",
    "label_quality",
    "learned_metric",
    "mixed_ladder",
    "polynomial_ladder",
    "rbf_ladder",
    "suspects",
    "views",
]

_HOMES = {
    "ProductLattice": "candidates",
    "Propositions": "rules",
    "answers_from_triples": "noise",
    "apply_decisions": "noise",
    "constraints_from_graph": "pairs",
    "enclosing_ball": "banks",
    "estimate_noise": "noise",
    "estimate_pair_rates": "pairs",
    "estimate_rates": "noise",
    "label_quality": "noise",
    "learned_metric": "ridge",
    "suspects": "noise",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `kernelweave --help` needs none of them."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("kernelweave")
    elif name in __all__:
        home = _HOMES.get(name, "kernels")
        if name.removesuffix("CV").endswith(("Classifier", "Regressor", "Learner", "Clustering")):
            home = "estimators"
        value = getattr(importlib.import_module(f"kernelweave.{home}"), name)
    else:
        raise AttributeError(f"module 'kernelweave' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
