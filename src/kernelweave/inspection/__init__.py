"""Why a model predicts what it predicts: Shapley values of columns, sources, kernels and rules."""

from .explain import explain
from .result import Attributions

__all__ = ["Attributions", "explain"]
