"""Weights that sum to one."""

from __future__ import annotations

from dataclasses import dataclass

from .lp import LpBall


@dataclass(frozen=True)
class Simplex(LpBall):
    """Non-negative weights that sum to one: few kernels are kept (SimpleMKL's problem)."""

    p: float = 1.0  # always 1
    is_sparse = True

    def __post_init__(self) -> None:
        assert self.p == 1.0, "the simplex has p = 1"
