"""Pairwise constraints, kernel values at pairs, and the statistics of noisy pair labels."""

from .constraints import Constraints
from .constraints import check_pairs as check_pairs  # aliases: for estimators, not documented API
from .constraints import check_rows as check_rows
from .constraints import draw_pairs as draw_pairs
from .constraints import read_pairs as read_pairs
from .graphs import adjacency as adjacency
from .graphs import constraints_from_graph
from .statistic import Rates, Statistic, estimate_pair_rates
from .statistic import check_rates as check_rates
from .statistic import correct_statistic as correct_statistic
from .statistic import theory_constants as theory_constants
from .values import pair_features as pair_features
from .values import pair_values as pair_values
from .values import paired_rows as paired_rows

__all__ = ["Constraints", "Rates", "Statistic", "constraints_from_graph", "estimate_pair_rates"]
