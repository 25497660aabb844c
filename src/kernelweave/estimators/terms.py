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
    from kernelweave.rules import Rule


@dataclass(frozen=True)
class KernelTerm:
    """``sum_i coef_i prod_j k_j(x_i, x)``: one kernel, or a product of several, over its rows.

    Parameters
    ----------
    name : str
        How the model names it.
    factors : tuple of (Kernel, prepared rows)
        The kernels multiplied, each with the rows that prediction compares with.
    coef : ndarray of shape (n_rows, n_outputs)
        Coefficients of the kernels as written.
    """

    name: str
    factors: tuple[tuple[Kernel, Rows], ...]
    coef: Floats


@dataclass(frozen=True)
class KernelTerms:
    """``f(x) = intercept + sum of terms``: a kernel model.

    Parameters
    ----------
    terms : tuple of KernelTerm
        All of them.
    intercept : ndarray of shape (n_outputs,)
        Added to every output.
    check : callable
        Returns a table as the kernels read it, or refuses it.
    """

    terms: tuple[KernelTerm, ...]
    intercept: Floats
    check: Callable[[Any], Any]


@dataclass(frozen=True)
class RuleTerms:
    """``f(x) = intercept + sum of the weights of the rules that hold``.

    Parameters
    ----------
    rules : tuple of Rule
        Each with a weight for every output.
    intercept : ndarray of shape (n_outputs,)
        Added to every output.
    check : callable
        Checks the columns of a table, or refuses it.
    """

    rules: tuple[Rule, ...]
    intercept: Floats
    check: Callable[[Any], Any]


@dataclass(frozen=True)
class MemberTerms:
    """A weighted sum of other models, where it is one.

    Parameters
    ----------
    members : tuple of (model, slopes)
        Fitted models; ``slopes``, of shape (n_outputs, n_outputs of the model), multiply what each
        decides or predicts.
    intercept : ndarray of shape (n_outputs,)
        Added to every output.
    """

    members: tuple[tuple[Any, Floats], ...]
    intercept: Floats


@dataclass(frozen=True)
class FunctionTerms:
    """A function that is no sum of known terms; its values are sampled.

    Parameters
    ----------
    function : callable
        Returns the outputs of the rows of a table, of shape (n_rows, n_outputs).
    reason : str
        Why it is no sum, as the beginning of a sentence.
    """

    function: Callable[[Any], Floats]
    reason: str
