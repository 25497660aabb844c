"""Outer loops of multiple kernel learning."""

from .bounds import Callback, Result, Step, WarmStart
from .cvar import solve_capped
from .fixed_weights import one_shot
from .kernel_parameters import ARDFamily, Family, MixtureFamily, WidthFamily, learn_family
from .lp_alternation import closed_form
from .mirror_prox import mirror_prox
from .newton_bundle import newton_bundle
from .published.gradient_play import gradient_play
from .radius.descent import RadiusResult, gradient_projection, judge_fixed, lbfgs
from .trimmed import trimmed

__all__ = [
    "ARDFamily",
    "Callback",
    "Family",
    "MixtureFamily",
    "RadiusResult",
    "Result",
    "Step",
    "WarmStart",
    "WidthFamily",
    "closed_form",
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
