"""Methods to compare with that no well-kept package carries."""

from .balanced_svm import BalancedKernelSVM

__all__ = ["BalancedKernelSVM"]
