"""Methods to compare with that no well-kept package carries."""

from .balanced_svm import BalancedKernelSVM
from .ender import EnderClassifier
from .slipper import SlipperClassifier
from .two_stage import HKLTwoStageClassifier

__all__ = [
    "BalancedKernelSVM",
    "EnderClassifier",
    "HKLTwoStageClassifier",
    "SlipperClassifier",
]
