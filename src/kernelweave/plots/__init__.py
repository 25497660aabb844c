"""Plots of a fitted model: weights, structure, rules, labels, clusters, and convergence."""

from .clusters import plot_clusters
from .history import plot_history
from .noise import plot_noise
from .path import plot_path
from .rules import plot_rules
from .structure import plot_structure
from .weights import plot_weights

__all__ = [
    "plot_clusters",
    "plot_history",
    "plot_noise",
    "plot_path",
    "plot_rules",
    "plot_structure",
    "plot_weights",
]
