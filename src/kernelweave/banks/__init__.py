"""Banks: all kernels of a fit over the training rows."""

from .ball import Ball, enclosing_ball, judge_ball, solve_ball
from .base import KernelBank
from .build import check_memory, make_bank, squared_radii
from .cross import cross_block, cross_products
from .kernel_sum import CombinedKernel, GramKernel, KernelSum
from .protocol import Bank, Features, KernelFunction, KernelOperator, WeightedSum
from .views import Views

__all__ = [
    "Ball",
    "Bank",
    "CombinedKernel",
    "Features",
    "GramKernel",
    "KernelBank",
    "KernelFunction",
    "KernelOperator",
    "KernelSum",
    "Views",
    "WeightedSum",
    "check_memory",
    "cross_block",
    "cross_products",
    "enclosing_ball",
    "judge_ball",
    "make_bank",
    "solve_ball",
    "squared_radii",
]
