"""Methods to compare with that no well-kept package carries."""

from .balanced_svm import BalancedKernelSVM
from .ender import EnderClassifier
from .slipper import SlipperClassifier

__all__ = ["BalancedKernelSVM", "EnderClassifier", "SlipperClassifier"]
