"""Estimates of wrong labels: how many there are, and which."""

from .annotators import Answers, answers_from_triples
from .chance import chance_slack, expected_loss_bound, noise_cap
from .decisions import Decided, apply_decisions, read_decisions
from .estimate import NoiseEstimate, RateEstimate, estimate_noise, estimate_rates
from .ranking import Suspects, label_quality, suspects
from .ranking import rank_suspects as rank_suspects  # aliases: for estimators, not documented API
from .report import LabelReport, assess_labels
from .report import assess_rows as assess_rows

__all__ = [
    "Answers",
    "Decided",
    "LabelReport",
    "NoiseEstimate",
    "RateEstimate",
    "Suspects",
    "answers_from_triples",
    "apply_decisions",
    "assess_labels",
    "chance_slack",
    "estimate_noise",
    "estimate_rates",
    "expected_loss_bound",
    "label_quality",
    "noise_cap",
    "read_decisions",
    "suspects",
]
