"""Estimators with scikit-learn's interface."""

from typing import TYPE_CHECKING

from kernelweave._lazy import attach

if TYPE_CHECKING:
    from .annotators import AnnotatorKernelClassifier
    from .combined import CombinedClassifier, CombinedRegressor
    from .hierarchical import HierarchicalMKLClassifier
    from .hierarchical_regressor import HierarchicalMKLRegressor
    from .metric_kernel import MetricKernelClassifier, MetricKernelRegressor
    from .mkl import MKLClassifier, MKLRegressor
    from .mkl_cv import MKLClassifierCV, MKLRegressorCV
    from .noise_tolerant import NoiseTolerantKernelClassifier
    from .noisy_labels import NoisyLabelMKLClassifier
    from .pairwise import PairwiseKernelLearner
    from .radius import RadiusMKLClassifier
    from .radius_kernel import RadiusKernelClassifier
    from .rule_ensemble import RuleEnsembleClassifier
    from .rule_ensemble_cv import RuleEnsembleClassifierCV, RuleEnsembleRegressorCV
    from .rule_regressor import RuleEnsembleRegressor
    from .spectral import KernelSpectralClustering
    from .sum_product import SumProductMKLClassifier

__all__ = [
    "AnnotatorKernelClassifier",
    "CombinedClassifier",
    "CombinedRegressor",
    "HierarchicalMKLClassifier",
    "HierarchicalMKLRegressor",
    "KernelSpectralClustering",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLRegressor",
    "MKLRegressorCV",
    "MetricKernelClassifier",
    "MetricKernelRegressor",
    "NoiseTolerantKernelClassifier",
    "NoisyLabelMKLClassifier",
    "PairwiseKernelLearner",
    "RadiusKernelClassifier",
    "RadiusMKLClassifier",
    "RuleEnsembleClassifier",
    "RuleEnsembleClassifierCV",
    "RuleEnsembleRegressor",
    "RuleEnsembleRegressorCV",
    "SumProductMKLClassifier",
]

# Imported when first used: a prediction needs one of them.
__getattr__, __dir__ = attach(
    __name__,
    {
        "annotators": "AnnotatorKernelClassifier",
        "combined": "CombinedClassifier CombinedRegressor",
        "hierarchical": "HierarchicalMKLClassifier",
        "hierarchical_regressor": "HierarchicalMKLRegressor",
        "metric_kernel": "MetricKernelClassifier MetricKernelRegressor",
        "mkl": "MKLClassifier MKLRegressor",
        "mkl_cv": "MKLClassifierCV MKLRegressorCV",
        "noise_tolerant": "NoiseTolerantKernelClassifier",
        "noisy_labels": "NoisyLabelMKLClassifier",
        "pairwise": "PairwiseKernelLearner",
        "radius": "RadiusMKLClassifier",
        "radius_kernel": "RadiusKernelClassifier",
        "rule_ensemble": "RuleEnsembleClassifier",
        "rule_ensemble_cv": "RuleEnsembleClassifierCV RuleEnsembleRegressorCV",
        "rule_regressor": "RuleEnsembleRegressor",
        "spectral": "KernelSpectralClustering",
        "sum_product": "SumProductMKLClassifier",
    },
)
