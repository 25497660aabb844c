"""Training rows with assessed labels, on which models with several caps and lam are fitted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelweave._progress import Counter
from kernelweave._types import Floats, Indices
from kernelweave.banks.protocol import Bank
from kernelweave.errors import silenced
from kernelweave.noise import LabelReport
from kernelweave.solvers import Result, WarmStart

from .duplicates import MergedRows
from .fit import RefinableBank
from .out_of_fold import HeldProblem, LeftOut, OutOfFold


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


class NoisyFolds(OutOfFold):
    """Mixin of `NoisyLabelMKLClassifier`: models without each fold, stored one by one.

    Every row keeps its own cost, so that a fold without some rows is regularised as the fit is. The
    intercept is a kernel, and outputs are scaled by their multipliers, so that no two models can be
    held as outputs of one.
    """

    def _hold(self, shared: AssessedRows, result: Result, rows: MergedRows) -> HeldProblem | None:
        model: Any = self
        if model.robust == "best" or model._make_loss().free > 0.0:
            return None  # these problems have solvers of their own, which learn weights too
        kernel, cost = shared.bank.combine(result.weights), model._box(rows) / model.lam
        return HeldProblem(
            kernel,
            model._make_loss(),
            rows.Y,
            cost,
            result.dual_coef,
            model.tol,
            bank=shared.bank,
            function=result.function,
        )

    def _leave_out_held(
        self,
        shared: AssessedRows,
        result: Result,
        problem: HeldProblem,
        rows: MergedRows,
        fold: Indices,
        n_folds: int,
    ) -> LeftOut:
        count = Counter(self.verbose, n_folds, "folds")
        values, models = np.empty_like(rows.Y), []
        # No bound is known, so that the function is not compared with zero.
        unknown = replace(result, objective=0.0, lower_bound=-np.inf, converged=False)
        for k in range(n_folds):
            test, keep = np.flatnonzero(fold == k), fold != k
            part = problem.solve(keep)
            found = replace(unknown, dual_coef=part.dual_coef, function=part.function)
            twin: Any = self._twin()
            with silenced():
                some = replace(rows, cost=rows.cost * keep[:, None])
                twin._store(shared, found, some)
                values[test] = twin._row_values(shared, result, some, test)
            models.append(twin)
            count()
        return LeftOut(values, fold, models, n_folds)

    def _fold_limit(self, shared: AssessedRows, result: Result) -> int:
        model: Any = self
        warm = model.solver == "fast" and model.robust == "worst" and not model._make_loss().free
        return min(self._few_solves, self.max_iter) if warm else self.max_iter

    def _row_values(self, shared: Any, result: Result, rows: MergedRows, test: Indices) -> Floats:
        return OutOfFold._row_values(self, shared, result, rows, test)


def caps_by_class(noise_level: float, rows: MergedRows) -> Floats:
    """Return the share of the rows that count for each output.

    Of several classes, a label that is wrong with probability q, and then any other, changes
    membership of class c with probability ``q (share_c + (1 - share_c) / (n_classes - 1))``.
    """
    if rows.Y.shape[1] == 1:
        return np.array([1.0 - noise_level])
    weight = row_weights(rows)
    share = weight @ (rows.Y > 0) / weight.sum()
    changed = noise_level * (share + (1.0 - share) / (rows.Y.shape[1] - 1))
    return np.asarray(1.0 - np.minimum(changed, 0.49))


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
