"""Comparison methods that no maintained package provides, as scikit-learn estimators.

Equal weights of all columns, the simplest baseline for methods that learn from pairs, are
`KernelSpectralClustering` on the rows themselves.
"""

from .balanced_svm import BalancedKernelSVM
from .dawid_skene import DawidSkene
from .ender import EnderClassifier
from .global_metric import GlobalDistanceMetric
from .information_metric import InformationTheoreticMetric
from .mpck_means import MPCKMeans
from .nonparametric import NonParametricKernel
from .rulefit import RuleFitClassifier, RuleFitRegressor
from .simple_npkl import SimpleNPKL
from .slipper import SlipperClassifier
from .spectral_kernel import SpectralKernelLearner
from .two_stage import HKLTwoStageClassifier

__all__ = [
    "BalancedKernelSVM",
    "DawidSkene",
    "EnderClassifier",
    "GlobalDistanceMetric",
    "HKLTwoStageClassifier",
    "InformationTheoreticMetric",
    "MPCKMeans",
    "NonParametricKernel",
    "RuleFitClassifier",
    "RuleFitRegressor",
    "SimpleNPKL",
    "SlipperClassifier",
    "SpectralKernelLearner",
]
