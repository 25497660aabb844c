"""Estimators with scikit-learn's interface."""

from .mkl import MKLClassifier, MKLRegressor

__all__ = ["MKLClassifier", "MKLRegressor"]
