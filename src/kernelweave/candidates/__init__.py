"""Sources of further kernels."""

from .base import Candidates, Priced
from .listed import Listed

__all__ = ["Candidates", "Listed", "Priced"]
