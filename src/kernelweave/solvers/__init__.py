"""Outer loops: how kernel weights are found."""

from .closed_form import closed_form
from .descend import RadiusResult, gradient_projection, judge_fixed, lbfgs
from .family import ARDFamily, Family, MixtureFamily, WidthFamily, learn_family
from .loo_ridge import RidgeAverage, average_ridges, default_ridges
from .newton_bundle import newton_bundle
from .one_shot import one_shot
from .result import Report, Result, Step, Warm

__all__ = [
    "ARDFamily",
    "Family",
    "MixtureFamily",
    "RadiusResult",
    "Report",
    "Result",
    "RidgeAverage",
    "Step",
    "Warm",
    "WidthFamily",
    "average_ridges",
    "closed_form",
    "default_ridges",
    "gradient_projection",
    "judge_fixed",
    "lbfgs",
    "learn_family",
    "newton_bundle",
    "one_shot",
]
