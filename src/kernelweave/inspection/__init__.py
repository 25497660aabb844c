"""Why a model predicts what it predicts: Shapley values of columns, sources, kernels and rules."""

from .curves import Curve, Effects, PairEffect
from .effects import effects
from .explain import explain
from .result import Attributions

__all__ = ["Attributions", "Curve", "Effects", "PairEffect", "effects", "explain"]
