"""What a fitted model adds up, as `kernelweave.inspection` reads it.

The method ``_terms()`` of an estimator returns one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelweave._types import Floats
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import Rows

if TYPE_CHECKING:
    from kernelweave.rules.linear import Term


@dataclass(frozen=True)
class KernelTerm:
    """``sum_i coef_i prod_j k_j(x_i, x)``: one kernel, or a product of several, over its rows."""

    name: str  # how the model names it
    # The kernels multiplied, each with the rows that prediction compares with.
    factors: tuple[tuple[Kernel, Rows], ...]
    coef: Floats  # (n_rows, n_outputs): coefficients of the kernels as written


@dataclass(frozen=True)
class KernelTerms:
    """``f(x) = intercept + sum of terms``: a kernel model."""

    terms: tuple[KernelTerm, ...]
    intercept: Floats  # (n_outputs,): added to every output
    check: Callable[[Any], Any]  # returns a table as the kernels read it, or refuses it


@dataclass(frozen=True)
class RuleTerms:
    """``f(x) = intercept + sum of the weights of the rules that hold`` and linear terms."""

    rules: tuple[Term, ...]  # rules and linear terms, each with a weight for every output
    intercept: Floats  # (n_outputs,): added to every output
    check: Callable[[Any], Any]  # checks the columns of a table, or refuses it


@dataclass(frozen=True)
class MemberTerms:
    """A weighted sum of other models, where it is one."""

    # Fitted models; ``slopes``, of shape (n_outputs, n_outputs of the model), multiply what each
    # decides or predicts.
    members: tuple[tuple[Any, Floats], ...]
    intercept: Floats  # (n_outputs,): added to every output


@dataclass(frozen=True)
class FunctionTerms:
    """A function that is no sum of known terms; its values are sampled."""

    # Returns the outputs of the rows of a table, of shape (n_rows, n_outputs).
    function: Callable[[Any], Floats]
    reason: str  # why it is no sum, as the beginning of a sentence
