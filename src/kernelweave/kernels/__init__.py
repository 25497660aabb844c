"""Kernels, their sums and products, and ready-made families."""

from .base import Kernel, KernelFamily, n_rows, take
from .complete import complete_ladder
from .completed import Completed, Completion
from .discrete import Constant, Overlap, Words
from .expected import Expected
from .expression import Cosine, Group, Product, Scaled, Sum, group
from .gaps import Known
from .gaussian import ARD, RBF, Additive, Laplacian
from .given import encodes_gaps, takes_sparse
from .ladders import (
    KernelsLike,
    are_given,
    expand_kernels,
    polynomial_ladder,
    rbf_ladder,
    views,
)
from .metric import MetricLaplacian
from .mixed import mixed_ladder
from .precomputed import Precomputed
from .table import Columns
from .vector import FromCallable, Linear, Polynomial

__all__ = [
    "ARD",
    "RBF",
    "Additive",
    "Columns",
    "Completed",
    "Completion",
    "Constant",
    "Cosine",
    "Expected",
    "FromCallable",
    "Group",
    "Kernel",
    "KernelFamily",
    "KernelsLike",
    "Known",
    "Laplacian",
    "Linear",
    "MetricLaplacian",
    "Overlap",
    "Polynomial",
    "Precomputed",
    "Product",
    "Scaled",
    "Sum",
    "Words",
    "are_given",
    "complete_ladder",
    "encodes_gaps",
    "expand_kernels",
    "group",
    "mixed_ladder",
    "n_rows",
    "polynomial_ladder",
    "rbf_ladder",
    "take",
    "takes_sparse",
    "views",
]
