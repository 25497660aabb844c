"""Training rows with assessed labels, on which models with several caps and lam are fitted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.banks.protocol import Bank
from kernelweave.noise import LabelReport
from kernelweave.solvers import Result, WarmStart

from .base import RefinableBank
from .duplicates import MergedRows


@dataclass(frozen=True)
class AssessedRows:
    """Kernels over the training rows, their assessed labels, and the models fitted so far."""

    refinable: RefinableBank
    labels: LabelReport
    codes: Indices  # class of every given row
    fitted: list[tuple[Any, WarmStart]] = field(default_factory=list)

    @property
    def bank(self) -> Bank:
        """The kernels, refined where that was needed."""
        return self.refinable.bank

    def add(self, model: Any, result: Result) -> None:
        """Remember a solution in units that do not depend on lam."""
        self.fitted.append((model, WarmStart(result.weights, model.lam * result.dual_coef)))

    def nearest(self, model: Any) -> WarmStart | None:
        """Return the solution to start from: of the same cap if it binds, or of the same lam."""
        same_cap = [k for k in self.fitted if np.array_equal(k[0].cap_, model.cap_)]
        same_lam = [k for k in self.fitted if k[0].lam == model.lam]
        binding = [k for k in same_cap if np.min(k[0].gamma_) < 1.0]
        for _, start in (binding or same_lam or same_cap or self.fitted)[-1:]:
            return WarmStart(start.weights, start.dual_coef / model.lam)
        return None


def without_last(bank: Bank) -> Bank:
    """Return the bank without its last kernel, the constant of the intercept."""
    return bank.subset(np.arange(bank.n_kernels - 1))


def split_bias(bank: Bank, result: Result) -> tuple[Bank, Result]:
    """Return bank and result without the constant kernel, whose function is the intercept."""
    plain, function = without_last(bank), result.function
    intercept = float(result.weights[-1]) * bank.scales[-1] * result.dual_coef.sum(axis=0)
    if function is not None:
        last, split = np.array([bank.n_kernels - 1]), plain.n_features
        constant = bank.subset(last).predictor(last[:0], last, function[split:]).function
        assert constant is not None
        intercept, function = constant.coefs[0].sum(axis=0), function[:split]
    return plain, replace(
        result,
        weights=result.weights[:-1],
        quadratic_forms=result.quadratic_forms[:-1],
        intercept=intercept,
        function=function,
    )


def multiplied(result: Result, lam: float) -> Result:
    """Return a result of the problem divided by lam in units of the problem itself."""
    history = (replace(s, upper=lam * s.upper, lower=lam * s.lower) for s in result.history)
    return replace(
        result,
        objective=lam * result.objective,
        lower_bound=lam * result.lower_bound,
        size=lam * result.size,
        history=tuple(history),
    )


def class_codes(Y: Floats) -> Indices:
    """Return the class numbers of signed targets."""
    return Y.argmax(axis=1) if Y.shape[1] > 1 else (Y[:, 0] > 0).astype(np.intp)


def weight_sum(rows: MergedRows) -> float:
    """Return the number of rows, or the sum of their weights."""
    return float(row_weights(rows).sum())


def row_weights(rows: MergedRows) -> Floats:
    """Return the weight of every row."""
    return np.ones(len(rows.Y)) if rows.weight is None else rows.weight
