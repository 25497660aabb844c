"""Outer loops: how kernel weights are found."""

from .closed_form import closed_form
from .descend import RadiusResult, gradient_projection, judge_fixed, lbfgs
from .newton_bundle import newton_bundle
from .one_shot import one_shot
from .result import Report, Result, Step, Warm

__all__ = [
    "RadiusResult",
    "Report",
    "Result",
    "Step",
    "Warm",
    "closed_form",
    "gradient_projection",
    "judge_fixed",
    "lbfgs",
    "newton_bundle",
    "one_shot",
]
