"""Estimators with scikit-learn's interface."""

from .mkl import MKLClassifier, MKLRegressor
from .radius import RadiusMKLClassifier
from .radius_kernel import RadiusKernelClassifier

__all__ = [
    "MKLClassifier",
    "MKLRegressor",
    "RadiusKernelClassifier",
    "RadiusMKLClassifier",
]
