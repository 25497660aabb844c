"""Outer loops: how kernel weights are found."""

from .capped import solve_capped
from .closed_form import closed_form
from .descend import RadiusResult, gradient_projection, judge_fixed, lbfgs
from .family import ARDFamily, Family, MixtureFamily, WidthFamily, learn_family
from .gradient_play import gradient_play
from .loo_ridge import RidgeAverage, average_ridges, default_ridges
from .mirror_prox import mirror_prox
from .newton_bundle import newton_bundle
from .one_shot import one_shot
from .result import Report, Result, Step, Warm
from .trimmed import trimmed

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
    "gradient_play",
    "gradient_projection",
    "judge_fixed",
    "lbfgs",
    "learn_family",
    "mirror_prox",
    "newton_bundle",
    "one_shot",
    "solve_capped",
    "trimmed",
]
