"""Outer loops of multiple kernel learning."""

from .bounds import Callback, Result, Step
from .cvar import cvar_by_rescaling, cvar_by_root_search
from .fixed_weights import solve_fixed_weights
from .learn import learn_weights
from .lp_alternation import lp_alternation
from .mirror_prox import mirror_prox
from .newton_bundle import newton_bundle
from .problem import Limits, Problem, WarmStart
from .published.gradient_play import gradient_play
from .smoothing import solve_by_smoothing
from .trimmed import trimmed

__all__ = [
    "Callback",
    "Limits",
    "Problem",
    "Result",
    "Step",
    "WarmStart",
    "cvar_by_rescaling",
    "cvar_by_root_search",
    "gradient_play",
    "learn_weights",
    "lp_alternation",
    "mirror_prox",
    "newton_bundle",
    "solve_by_smoothing",
    "solve_fixed_weights",
    "trimmed",
]
