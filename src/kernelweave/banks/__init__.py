"""Kernels over rows, computed on demand."""

from .base import KernelBank
from .build import make_bank
from .combined import CombinedKernel
from .cross import cross_block
from .views import Views

__all__ = ["CombinedKernel", "KernelBank", "Views", "cross_block", "make_bank"]
