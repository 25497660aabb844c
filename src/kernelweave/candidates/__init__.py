"""Sources of further kernels."""

from .base import Candidates, Growing, Grown, Priced
from .listed import Listed

__all__ = ["Candidates", "Growing", "Grown", "Listed", "Priced"]
