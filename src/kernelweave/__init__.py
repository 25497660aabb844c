"""Learn kernels from data: which of many matter, with a certificate of optimality."""

from importlib.metadata import version

from .estimators import MKLClassifier, MKLRegressor
from .kernels import (
    RBF,
    FromCallable,
    Laplacian,
    Linear,
    Overlap,
    Polynomial,
    Precomputed,
    polynomial_ladder,
    rbf_ladder,
    views,
)

__version__ = version("kernelweave")

__all__ = [
    "RBF",
    "FromCallable",
    "Laplacian",
    "Linear",
    "MKLClassifier",
    "MKLRegressor",
    "Overlap",
    "Polynomial",
    "Precomputed",
    "polynomial_ladder",
    "rbf_ladder",
    "views",
]
