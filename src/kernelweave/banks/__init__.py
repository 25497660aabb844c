"""Banks: all kernels of a fit over the training rows."""

from kernelweave._memory import check_memory

from .ball import Ball, ball_with_centre, enclosing_ball, solve_ball
from .base import KernelBank, exact_bank
from .build import make_bank, squared_radii
from .cross import cross_block, cross_products
from .kernel_sum import GramKernel, KernelSum
from .protocol import (
    Bank,
    Features,
    KernelCollection,
    KernelFunction,
    KernelOperator,
    WeightedSum,
    Workspace,
)
from .views import Views

__all__ = [
    "Ball",
    "Bank",
    "Features",
    "GramKernel",
    "KernelBank",
    "KernelCollection",
    "KernelFunction",
    "KernelOperator",
    "KernelSum",
    "Views",
    "WeightedSum",
    "Workspace",
    "ball_with_centre",
    "check_memory",
    "cross_block",
    "cross_products",
    "enclosing_ball",
    "exact_bank",
    "make_bank",
    "solve_ball",
    "squared_radii",
]
