"""Plots of a fitted model: weights, structure, rules, labels, explanations, and convergence."""

from .attributions import plot_attributions, plot_importance
from .effects import plot_effects
from .history import plot_history
from .rows import plot_clusters, plot_noise
from .rules import plot_rule_path, plot_rules
from .structure import plot_structure
from .weights import plot_path, plot_weights

__all__ = [
    "plot_attributions",
    "plot_clusters",
    "plot_effects",
    "plot_history",
    "plot_importance",
    "plot_noise",
    "plot_path",
    "plot_rule_path",
    "plot_rules",
    "plot_structure",
    "plot_weights",
]
