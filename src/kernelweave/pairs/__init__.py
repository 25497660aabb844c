"""Pairwise constraints: where they come from, and estimates from them."""

from .drawing import draw_pairs, read_pairs
from .features import check_pairs, check_rows, kernel_features, pair_features
from .graphs import (
    Constraints,
    adjacency,
    constraints_from_graph,
    read_links,
    sample_unlinked,
    walk_pairs,
)
from .rates import estimate_pair_rates
from .statistic import Rates, Statistic, check_rates, correct_statistic, theory_constants
from .values import pair_values, paired_rows

__all__ = [
    "Constraints",
    "Rates",
    "Statistic",
    "adjacency",
    "check_pairs",
    "check_rates",
    "check_rows",
    "constraints_from_graph",
    "correct_statistic",
    "draw_pairs",
    "estimate_pair_rates",
    "kernel_features",
    "pair_features",
    "pair_values",
    "paired_rows",
    "read_links",
    "read_pairs",
    "sample_unlinked",
    "theory_constants",
    "walk_pairs",
]
