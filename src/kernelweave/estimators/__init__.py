"""Estimators with scikit-learn's interface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "AnnotatorKernelClassifier": "annotators",
    "CombinedClassifier": "combined",
    "CombinedRegressor": "combined",
    "HierarchicalMKLClassifier": "hierarchical",
    "HierarchicalMKLRegressor": "hierarchical_regressor",
    "KernelSpectralClustering": "spectral",
    "MKLClassifier": "mkl",
    "MKLClassifierCV": "mkl_cv",
    "MKLRegressor": "mkl",
    "MKLRegressorCV": "mkl_cv",
    "MetricKernelClassifier": "metric_kernel",
    "MetricKernelRegressor": "metric_kernel",
    "NoiseTolerantKernelClassifier": "noise_tolerant",
    "NoisyLabelMKLClassifier": "noisy_labels",
    "PairwiseKernelLearner": "pairwise",
    "RadiusKernelClassifier": "radius_kernel",
    "RadiusMKLClassifier": "radius",
    "RuleEnsembleClassifier": "rule_ensemble",
    "RuleEnsembleClassifierCV": "rule_ensemble_cv",
    "RuleEnsembleRegressor": "rule_regressor",
    "RuleEnsembleRegressorCV": "rule_ensemble_cv",
    "SumProductMKLClassifier": "sum_product",
}


def __getattr__(name: str) -> Any:
    """Import an estimator when it is first used: a prediction needs one of them."""
    if name not in _HOMES:
        raise AttributeError(f"module 'kernelweave.estimators' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
