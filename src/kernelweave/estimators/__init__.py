"""Estimators with scikit-learn's interface."""

from .mkl import MKLClassifier, MKLRegressor
from .radius import RadiusMKLClassifier

__all__ = ["MKLClassifier", "MKLRegressor", "RadiusMKLClassifier"]
