"""Kernels that are not active, and their price."""

from .base import Candidates, KernelDag, Priced
from .listed import Listed
from .product import ProductLattice

__all__ = ["Candidates", "KernelDag", "Listed", "Priced", "ProductLattice"]
