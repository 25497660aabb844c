"""Sources of further kernels."""

from .base import Candidates, Growing, Grown, Priced
from .listed import Listed
from .product import ProductLattice

__all__ = ["Candidates", "Growing", "Grown", "Listed", "Priced", "ProductLattice"]
