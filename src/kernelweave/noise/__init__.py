"""Wrong labels: how many there are, and which."""

from .estimate import NoiseEstimate, RateEstimate, estimate_noise, estimate_rates
from .ranking import Suspects, label_quality, rank_suspects, suspects
from .report import LabelReport, judge_labels, judge_rows

__all__ = [
    "LabelReport",
    "NoiseEstimate",
    "RateEstimate",
    "Suspects",
    "estimate_noise",
    "estimate_rates",
    "judge_labels",
    "judge_rows",
    "label_quality",
    "rank_suspects",
    "suspects",
]
