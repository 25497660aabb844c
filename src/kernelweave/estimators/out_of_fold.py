"""Values of training rows from models that did not see them, on the kernels of the fit.

A fold is left out by giving its rows the cost zero: bank, scales and targets stay those of the fit.
Kernel weights are held where they are few beside the rows, which costs one inner solve for each
fold. Otherwise they have seen too much of the held-out labels, and are learned again for each fold
from the final ones.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from kernelweave._dask import is_parted
from kernelweave._progress import Counter
from kernelweave._types import Bools, Floats, Indices
from kernelweave._validation import pick_rows
from kernelweave.banks import Bank, KernelOperator
from kernelweave.errors import silenced
from kernelweave.inner import Solution, solve_inner, solve_multitask, unsolved
from kernelweave.inner.ridge_folds import RidgeInverse
from kernelweave.kernels import are_given
from kernelweave.losses import Loss
from kernelweave.losses.base import InnerSolver
from kernelweave.solvers import Result
from kernelweave.solvers.dag_active_set import DagWarmStart

from .duplicates import MergedRows
from .targets import Targets

_MAX_INVERSE = 3000  # rows up to which one inverse costs less than a linear system for each fold

# Fitted attributes of models with out-of-fold values, in model files; see `Declaration`.
SAVED = {
    "out_of_fold_": "partial[rows, outputs]",
    "coverage_guarantee_": "real",
    "_fold": "int[rows]",
    "_row_weight": "float[rows]",
    "_n_folds": "integer",
    "_n_functions": "integer",
    "calibrator_": "any",
    "_codes": "float[rows, marks]",
    "_residuals": "partial[rows, scores]",
}


@dataclass(frozen=True)
class HeldProblem:
    """The problem of a fit with its kernel weights held, to be solved without some rows."""

    kernel: KernelOperator  # the learned kernel
    loss: Loss
    # Y, cost (n_rows, n_outputs): targets and costs of all rows
    Y: Floats
    cost: Floats
    dual_coef: Floats  # (n_rows, n_outputs): the solution with all rows
    tol: float  # relative gap of the fit
    relation: Floats | None = None  # (n_outputs, n_outputs): how outputs are related
    # bank, function: of a Nystroem fit: its bank, and the solution as weights of its columns
    bank: Bank | None = None
    function: Floats | None = None
    shift: Floats | float = 0.0  # (n_outputs,): what was taken from the targets

    @property
    def is_linear(self) -> bool:
        """Whether models without some rows have a closed form: the square loss, equal costs."""
        square = self.loss.inner_solver is InnerSolver.LINEAR_SYSTEM
        alike = bool((self.cost == self.cost[:, :1]).all())
        return square and alike and self.relation is None and self.function is None

    @property
    def _is_separable(self) -> bool:
        """Whether further outputs are problems of their own, which cost less together."""
        pairs = self.loss.inner_solver is InnerSolver.SMO and self.loss.of_output(0) is self.loss
        return pairs and self.relation is None and self.function is None

    def inverse(self, *, exact: bool = False) -> RidgeInverse:
        """Return the closed form of the square loss, from the exact kernels where asked for."""
        bank, every = self.bank, np.arange(len(self.Y))
        if not exact:
            dense = self.kernel.dense()
        elif self.kernel.workspace is not None and bank is not None and not bank.leaves_out:
            dense = self.kernel.block(every, every)  # computed in double precision
        else:  # storage may be in single precision, or leave something out
            dense = self.kernel.exact_product(np.eye(len(self.Y)))
        return RidgeInverse(dense, self.Y, self.cost[:, 0], self.loss.fit_intercept)

    def solve(self, keep: Bools) -> HeldSolution:
        """Solve without the rows that are not kept."""
        cost = self.cost * keep[:, None]
        start = self.loss.repair(self.dual_coef * keep[:, None], self.Y, cost)
        tol = self.tol
        if self.function is None:
            found = solve_multitask(
                self.loss, self.kernel, self.Y, cost, self.relation, tol=tol, start=start
            )
        else:
            assert self.bank is not None
            begin = unsolved(start, self.bank.values(self.function))
            begin = replace(begin, function=self.function)
            found = solve_inner(self.loss, self.kernel, self.Y, cost, tol=tol, start=begin)
        return self._found(found)

    def _found(self, solution: Solution) -> HeldSolution:
        bias = solution.intercept + np.resize(self.shift, len(solution.intercept))
        return HeldSolution(solution.dual_coef, bias, solution.fitted + bias, solution.function)

    def _solve_together(self, fold: Indices, n_folds: int) -> HeldSolution:
        """Solve without each fold, as outputs of one problem that share rows of the kernel."""
        Y, dual_coef = np.tile(self.Y, n_folds), np.tile(self.dual_coef, n_folds)
        keep = np.repeat(fold[:, None] != np.arange(n_folds), self.Y.shape[1], axis=1)
        cost = np.tile(self.cost, n_folds) * keep
        start = self.loss.repair(dual_coef * keep, Y, cost)
        begin = unsolved(start, self.kernel @ start)
        return self._found(solve_inner(self.loss, self.kernel, Y, cost, tol=self.tol, start=begin))

    def without_folds(
        self, Y: Floats, fold: Indices, count: Callable[[], None]
    ) -> tuple[Floats, HeldSolution]:
        """Return values of all rows by models without their folds, and these models.

        ``Y`` are the targets before anything was taken from them.
        """
        groups = [np.flatnonzero(fold == k) for k in range(int(fold.max()) + 1)]
        if self.is_linear and len(fold) <= _MAX_INVERSE:
            found = self.inverse().without_folds(groups)
            joint = HeldSolution(
                found.dual_coef.reshape(len(fold), -1),
                (found.intercept + self.shift).ravel(),
                found.residual,
            )
            return Y - found.residual, joint
        if self._is_separable:
            joint = self._solve_together(fold, len(groups))
        else:
            parts = []
            for k in range(len(groups)):
                parts.append(self.solve(fold != k))
                count()
            joint = HeldSolution.stack(parts)
        by_fold = joint.values.reshape(len(fold), len(groups), -1)
        return by_fold[np.arange(len(fold)), fold], joint


@dataclass(frozen=True)
class HeldSolution:
    """A solution without some rows, with its values at all rows."""

    dual_coef: Floats
    intercept: Floats
    values: Floats
    function: Floats | None = None

    @classmethod
    def stack(cls, parts: Sequence[HeldSolution]) -> HeldSolution:
        """Join models as further outputs of one."""
        functions = [part.function for part in parts if part.function is not None]
        return cls(
            np.hstack([part.dual_coef for part in parts]),
            np.concatenate([part.intercept for part in parts]),
            np.hstack([part.values for part in parts]),
            np.hstack(functions) if functions else None,
        )


@dataclass(frozen=True)
class LeftOut:
    """Values of rows that were left out, and the models that did not see them."""

    values: Floats  # (n_rows, n_outputs): of the merged rows
    fold: Indices  # (n_rows,): the model that left each of them out
    # Estimators; together their outputs are those of all folds, one fold after the other.
    models: list[Any]
    n_folds: int


class OutOfFold:
    """Mixin of estimators that keep models without each fold.

    An estimator says how many weights it learns (`_n_learned`), what its problem is when they are
    held (`_hold`), and how models with other coefficients predict (`_place`).
    """

    calibration_cv: Any = None
    max_iter: int
    verbose: int
    out_of_fold_: Floats
    coverage_guarantee_: float
    _fold: Indices
    _row_weight: Floats
    _n_folds: int
    _folds: list[Any]  # models without each fold
    _n_functions: int  # models that this one holds as further outputs, where there are several

    _is_provisional: bool = False  # whether a fit needs no certificate

    _few_solves: ClassVar[int] = 4  # per fold, where weights are learned again for probabilities

    def _n_learned(self, shared: Any) -> float:
        """Return the number of weights that are learned, infinite where candidates are endless."""
        raise NotImplementedError

    def _hold(self, shared: Any, result: Result, rows: MergedRows) -> HeldProblem | None:
        """Return the problem with the weights held; None where it cannot be solved so."""
        return None

    def _place(self, shared: Any, rows: MergedRows, solution: HeldSolution) -> None:
        """Give a copy of this model the coefficients of other functions of the same kernel."""
        raise NotImplementedError

    def _fold_start(self, shared: Any, result: Result, rows: MergedRows) -> Any:
        """Return the start of a fit in which some rows have no cost."""
        return self._continue(result, 1.0)  # type: ignore[attr-defined]

    def _row_values(self, shared: Any, result: Result, rows: MergedRows, test: Indices) -> Floats:
        """Return the outputs of this model, just stored, at some of the merged rows.

        ``rows`` are those of its fit, where some have no cost.
        """
        X = rows.X.take(test) if is_parted(rows.X) else pick_rows(rows.X, test)
        return self._outputs(X)

    def _outputs(self, X: Any) -> Floats:
        """Return one column per output."""
        raise NotImplementedError

    def _ignores_rows(self) -> bool:
        """Whether kernels and their scales do not depend on the rows they are fitted to."""
        if getattr(self, "normalize", None) is not None:
            return False
        return are_given(getattr(self, "kernels", None), getattr(self, "kernels_", []))

    def _twin(self, **changes: Any) -> Self:
        """Return a copy that predicts alike and has no folds of its own."""
        twin = copy.copy(self)
        for name in (*SAVED, "_folds"):
            twin.__dict__.pop(name, None)
        own = {"calibration": None, "intervals": None, "calibration_cv": None}
        for name, value in {**own, "verbose": 0, "warm_start": False, **changes}.items():
            if name in vars(twin):
                setattr(twin, name, value)
        twin._last = None  # type: ignore[attr-defined]
        return twin

    def _leave_out_held(
        self,
        shared: Any,
        result: Result,
        problem: HeldProblem,
        rows: MergedRows,
        fold: Indices,
        n_folds: int,
    ) -> LeftOut:
        """Solve without each fold, with the weights of the fit."""
        values, joint = problem.without_folds(rows.Y, fold, Counter(self.verbose, n_folds, "folds"))
        twin = self._twin()
        twin._place(shared, rows, joint)
        twin._n_functions = n_folds
        return LeftOut(values, fold, [twin], n_folds)

    def _leave_out_learned(
        self,
        shared: Any,
        result: Result,
        rows: MergedRows,
        fold: Indices,
        n_folds: int,
        max_iter: int,
    ) -> LeftOut:
        """Fit without each fold on the same kernels, from the weights of the fit."""
        count = Counter(self.verbose, n_folds, "folds")
        values, models = np.empty_like(rows.Y), []
        for k in range(n_folds):
            test, keep = np.flatnonzero(fold == k), fold != k
            some = replace(rows, cost=rows.cost * keep[:, None])
            twin: Any = self._twin(max_iter=max_iter)
            twin._is_provisional = max_iter < self.max_iter
            with silenced():
                start = self._fold_start(shared, result, some)
                found = twin._learn(shared, some, start, None)
                twin._check_finite(found)
                twin._store(shared, found, some)
                values[test] = twin._row_values(shared, found, some, test)
            twin.max_iter = self.max_iter
            del twin._is_provisional
            models.append(twin)
            count()
        return LeftOut(values, fold, models, n_folds)

    def _keep_folds(self, left: LeftOut, rows: MergedRows, targets: Targets) -> None:
        """Store models and out-of-fold values, row by row as the rows were given."""
        n = len(rows.inverse)
        used = rows.inverse >= 0
        self.out_of_fold_ = np.where(used[:, None], left.values[rows.inverse], np.nan)
        self._fold = np.where(used, left.fold[rows.inverse], -1)
        weight = np.ones(n) if targets.weight is None else targets.weight
        self._row_weight = np.where(used, weight, 0.0)
        self._folds, self._n_folds = left.models, left.n_folds

    def _fold_outputs(self, X: Any) -> Floats:
        """Return outputs of the models without each fold, of shape (n_rows, n_folds, n_outputs)."""
        parts = [model._outputs(X) for model in self._folds]
        joint = np.hstack(parts)
        return joint.reshape(len(joint), self._n_folds, -1)


def fold_solves(result: Result, max_iter: int) -> int:
    """Return the inner solves of a fit without a fold, on a graph: a quarter of those of the fit.

    Alternating minimisation takes many cheap solves, where Newton's method takes a few.
    """
    return min(max_iter, max(4, -(-result.history[-1].solves // 4)))


def start_on_graph(
    graph: Any, loss: Loss, result: Result, rows: MergedRows, C: float
) -> DagWarmStart | None:
    """Return the start of a fit on a graph in which some rows have no cost.

    Nodes that were activated since the result have no function.
    """
    start = DagWarmStart.at(result)
    if start is None:
        return None
    norms = np.pad(start.norms, (0, len(graph.nodes) - len(start.norms)))
    return DagWarmStart(norms, loss.repair(result.dual_coef, rows.Y, C * rows.cost))
