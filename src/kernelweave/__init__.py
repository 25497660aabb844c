"""Learn kernels from data: which of many matter, with a certificate of optimality."""

from typing import TYPE_CHECKING, Any

from ._lazy import attach

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

# Imported when first used: `kernelweave --help` needs none of them.
_find, __dir__ = attach(
    __name__,
    {
        "banks": "enclosing_ball",
        "candidates": "ProductLattice",
        "estimators": """
            AnnotatorKernelClassifier CombinedClassifier CombinedRegressor
            HierarchicalMKLClassifier HierarchicalMKLRegressor
            KernelSpectralClustering MetricKernelClassifier MetricKernelRegressor
            MKLClassifier MKLClassifierCV MKLRegressor MKLRegressorCV
            NoiseTolerantKernelClassifier NoisyLabelMKLClassifier
            PairwiseKernelLearner RadiusKernelClassifier RadiusMKLClassifier
            RuleEnsembleClassifier RuleEnsembleClassifierCV RuleEnsembleRegressor
            RuleEnsembleRegressorCV SumProductMKLClassifier
        """,
        "kernels": """
            ARD RBF Additive FromCallable Laplacian Linear Overlap Polynomial
            Precomputed Words complete_ladder group mixed_ladder polynomial_ladder
            rbf_ladder views
        """,
        "noise": """
            answers_from_triples apply_decisions estimate_noise estimate_rates
            label_quality suspects
        """,
        "pairs": "constraints_from_graph estimate_pair_rates",
        "ridge": "learned_metric",
        "rules": "Propositions",
    },
)


def __getattr__(name: str) -> Any:
    if name != "__version__":
        return _find(name)
    from importlib.metadata import version

    return version("kernelweave")
