"""Estimators with scikit-learn's interface."""

from .combined import CombinedClassifier, CombinedRegressor
from .hierarchical import HierarchicalMKLClassifier, HierarchicalMKLRegressor
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
