"""Estimators with scikit-learn's interface."""

from .mkl import MKLClassifier, MKLRegressor
from .noise_tolerant import NoiseTolerantKernelClassifier
from .radius import RadiusMKLClassifier
from .radius_kernel import RadiusKernelClassifier

__all__ = [
    "MKLClassifier",
    "MKLRegressor",
    "NoiseTolerantKernelClassifier",
    "RadiusKernelClassifier",
    "RadiusMKLClassifier",
]
