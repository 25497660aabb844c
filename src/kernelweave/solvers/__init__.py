"""Outer loops: how kernel weights are found."""

from .closed_form import closed_form
from .newton_bundle import newton_bundle
from .one_shot import one_shot
from .result import Report, Result, Step, Warm

__all__ = ["Report", "Result", "Step", "Warm", "closed_form", "newton_bundle", "one_shot"]
