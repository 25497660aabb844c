"""Kernels, their sums and products, and ready-made families."""

from .base import Columns, Kernel, n_rows, take
from .complete import complete_ladder
from .constant import Constant
from .cosine import Cosine
from .expression import Group, Product, Scaled, Sum, group
from .ladders import (
    KernelFamily,
    KernelsLike,
    expand_kernels,
    polynomial_ladder,
    rbf_ladder,
    views,
)
from .precomputed import Precomputed
from .vector import ARD, RBF, Additive, FromCallable, Laplacian, Linear, Overlap, Polynomial
from .words import Words

__all__ = [
    "ARD",
    "RBF",
    "Additive",
    "Columns",
    "Constant",
    "Cosine",
    "FromCallable",
    "Group",
    "Kernel",
    "KernelFamily",
    "KernelsLike",
    "Laplacian",
    "Linear",
    "Overlap",
    "Polynomial",
    "Precomputed",
    "Product",
    "Scaled",
    "Sum",
    "Words",
    "complete_ladder",
    "expand_kernels",
    "group",
    "n_rows",
    "polynomial_ladder",
    "rbf_ladder",
    "take",
    "views",
]
