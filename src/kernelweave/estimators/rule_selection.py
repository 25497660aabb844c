"""Fewer rules: equal columns merged, the strongest kept and refitted, and how well they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from kernelweave._types import Bools, Floats, Indices
from kernelweave.banks.kernel_sum import GramKernel
from kernelweave.banks.protocol import KernelOperator
from kernelweave.banks.rules import Conjunction, RuleBank, RuleKernel, pack_mask
from kernelweave.errors import silenced
from kernelweave.inner import solve_multitask
from kernelweave.solvers.sparse_lattice import ColumnKeys

from .duplicates import MergedRows
from .targets import task_matrix


@dataclass(frozen=True)
class SelectionOptions:
    """Constants of the selection of rules; see the page on the experiments for how they do."""

    cost: float = 0.1  # of errors in the second fit, beside half the sum of squared weights
    tol: float = 1e-6  # relative gap of the second fit
    alike: float = 0.9  # correlation of two columns from which on rules are equivalent


OPTIONS = SelectionOptions()


@dataclass(frozen=True)
class Ensemble:
    """Selected conjunctions and their values."""

    conjunctions: list[Conjunction]
    values: Floats  # what each adds to the scores, (n_rules, n_outputs)
    norms: Floats  # in the objective
    intercept: Floats
    scores: Floats  # of the rows, (n_rows, n_outputs)
    gap: float = np.nan  # relative, of the second fit; NaN without one
    stability: Floats | None = None  # share of the resamples that select each, where asked for

    def kept(self, which: Sequence[int] | Indices | Bools) -> Ensemble:
        """Return some of the conjunctions with their values; scores are not updated."""
        index = np.arange(len(self.conjunctions))[which]
        return replace(
            self,
            conjunctions=[self.conjunctions[k] for k in index],
            values=self.values[index],
            norms=self.norms[index],
            stability=None if self.stability is None else self.stability[index],
        )


@dataclass(frozen=True)
class Shortener:
    """Selection among the rules of one fit.

    Parameters
    ----------
    model : BaseRuleEnsemble
        Its parameters say how many rules are kept, and whether weights are fitted again.
    bank : RuleBank
        Propositions over the training rows.
    rows : MergedRows
        Targets and costs.
    signs : ndarray of int8 or None
        Of every proposition, where columns are monotone.
    """

    model: Any
    bank: RuleBank
    rows: MergedRows
    signs: Any = None

    def shorten(self, found: Ensemble, dual_coef: Floats) -> Ensemble:
        """Merge equal columns, keep the strongest rules, and fit their weights again.

        ``dual_coef`` price the propositions of required columns that no rule has.
        """
        model = self.model
        if model.refit and self.signs is None:
            found = self.merge(found)
        if model.max_rules is not None and len(found.conjunctions) > model.max_rules:
            order = np.argsort(-self.importance(found), kind="stable")[: model.max_rules]
            found = found.kept(np.sort(order))
        if model.required is not None:
            found = self._require(found, dual_coef)
        return self.reweigh(found)

    def reweigh(self, found: Ensemble) -> Ensemble:
        """Fit the weights again, or only the intercept; rules of a wrong sign are dropped."""
        while True:
            again = self._fit_weights(found) if self.model.refit else self._fit_bias(found)
            wrong = self._wrong_signs(again)
            if not wrong.any():
                return again
            found = found.kept(~wrong)

    def merge(self, found: Ensemble) -> Ensemble:
        """Join conjunctions with the same rows or, with an intercept, with complementary ones.

        The shortest of each group stays, the one with the largest norm among those.
        """
        bits = self.bank.columns_of(found.conjunctions)
        used = np.asarray((self.rows.cost > 0).any(axis=1))
        keys = ColumnKeys(self.bank, used, mirrored=self.model.fit_intercept).keys(
            bits, found.conjunctions
        )
        groups: dict[bytes, list[int]] = {}
        for k, key in enumerate(keys):
            groups.setdefault(key, []).append(k)
        values, norms, chosen = found.values.copy(), found.norms.copy(), []
        for members in groups.values():
            first = min(members, key=lambda k: (len(found.conjunctions[k]), -found.norms[k]))
            for k in members:
                if k != first:
                    differs = bool(((bits[k] ^ bits[first]) & pack_mask(used)).any())
                    values[first] += -found.values[k] if differs else found.values[k]
                    norms[first] += found.norms[k]
            chosen.append(first)
        return replace(found, values=values, norms=norms).kept(sorted(chosen))

    def importance(self, found: Ensemble) -> Floats:
        """Return the standard deviation of what each rule adds, over the training rows."""
        counts = np.ones(len(self.rows.Y)) if self.rows.weight is None else self.rows.weight
        counts = counts * (self.rows.cost > 0).any(axis=1)
        sizes = np.sqrt((found.values**2).sum(axis=1))
        return np.asarray(sizes * self.bank.features(found.conjunctions).deviations(counts))

    def _require(self, found: Ensemble, dual_coef: Floats) -> Ensemble:
        """Add the proposition of the largest price for every required column without a rule."""
        statements = self.model._statements
        for position in sorted(self.model._positions("required")):
            nodes = found.conjunctions
            if any(statements[c].position == position for node in nodes for c in node):
                continue
            own = [(c,) for c, s in enumerate(statements) if s.position == position]
            if not own:
                continue
            sums = self.bank.features(own).sums(dual_coef)
            if self.signs is not None:
                sums = np.maximum(sums * self.signs[[c for (c,) in own], None], 0.0)
            best = int(np.argmax((sums**2).sum(axis=1)))
            most = self.model.max_rules
            if most is not None and len(nodes) >= most:
                others = np.argsort(-self.importance(found), kind="stable")[: most - 1]
                found = found.kept(np.sort(others))
            found = replace(
                found,
                conjunctions=[*found.conjunctions, own[best]],
                values=np.vstack([found.values, np.zeros((1, found.values.shape[1]))]),
                norms=np.append(found.norms, 0.0),
            )
        return found

    def _fit_weights(self, found: Ensemble) -> Ensemble:
        """Minimise half the squared weights and the loss over the given conjunctions alone."""
        loss, rows = self.model._make_loss(), self.rows
        cost = OPTIONS.cost * rows.cost
        relation = task_matrix(self.model.task_correlation, rows.Y.shape[1])
        features = self.bank.features(found.conjunctions)
        if not found.conjunctions:
            return replace(self._fit_bias(found), gap=0.0)  # the best intercept is all there is
        kernel: KernelOperator = RuleKernel(features)
        if features.n_features >= features.n_samples:
            kernel = GramKernel(np.asarray(kernel.dense(), dtype=np.float64))
        with silenced():
            solution = solve_multitask(loss, kernel, rows.Y, cost, relation, tol=OPTIONS.tol)
        own = solution.function
        if own is None:
            own = features.sums(solution.dual_coef)
        values = own if relation is None else own @ relation
        fitted = features.times(np.ascontiguousarray(values))
        value, intercept = loss.value(fitted, rows.Y, cost)
        primal = 0.5 * float(np.vdot(own, values)) + value
        gap = max(primal - solution.dual, 0.0) / max(abs(primal), 1e-300)
        norms = np.sqrt((values**2).sum(axis=1))
        return replace(
            found,
            values=values,
            norms=norms,
            intercept=intercept,
            scores=fitted + intercept,
            gap=gap,
        )

    def _fit_bias(self, found: Ensemble) -> Ensemble:
        fitted = self.bank.features(found.conjunctions).times(np.ascontiguousarray(found.values))
        intercept = found.intercept
        if self.model.fit_intercept:
            cost = self.model.C * self.rows.cost
            intercept = self.model._make_loss().value(fitted, self.rows.Y, cost)[1]
        return replace(found, intercept=intercept, scores=fitted + intercept)

    def _wrong_signs(self, found: Ensemble) -> Bools:
        if self.signs is None:
            return np.zeros(len(found.conjunctions), dtype=bool)
        nodes = found.conjunctions
        signs = np.array([np.sign(self.signs[list(node)].sum()) for node in nodes])
        return np.asarray((signs[:, None] * found.values < 0.0).any(axis=1))


def correlations(
    bank: RuleBank, first: Sequence[Conjunction], second: Sequence[Conjunction]
) -> Floats:
    """Return the absolute correlations of the columns of two lists of conjunctions."""
    if not first or not second:
        return np.zeros((len(first), len(second)))
    rows = np.arange(bank.n_samples)
    return column_correlations(*(bank.features(c).rows(rows) for c in (first, second)))


def column_correlations(first: Floats, second: Floats) -> Floats:
    """Return the absolute correlations between columns; those of constant ones are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.estimators.rule_selection import column_correlations
    >>> column_correlations(np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]]))
    array([[1.]])
    """
    parts = []
    for Z in (first, second):
        centred = Z - Z.mean(axis=0)
        norms = np.sqrt((centred**2).sum(axis=0))
        parts.append(np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 1e-9))
    return np.asarray(np.minimum(np.abs(parts[0].T @ parts[1]), 1.0))


def dice_index(first: Floats, second: Floats) -> float:
    """Return the share of columns of two sets that have an equivalent one in the other set.

    It is one for sets that are the same, and zero for sets without equivalent columns (Dice 1945,
    with columns of an absolute correlation of 0.9 or more taken for the same).
    """
    if not first.shape[1] + second.shape[1]:
        return 1.0
    if not first.shape[1] or not second.shape[1]:
        return 0.0
    alike = column_correlations(first, second) >= OPTIONS.alike
    shared = int(alike.any(axis=1).sum()) + int(alike.any(axis=0).sum())
    return float(shared / (first.shape[1] + second.shape[1]))


def default_score(model: Any, X: Any, y: Any) -> float:
    """Return the score by which C is chosen where the caller names none.

    Minus the log-loss of models with probabilities; of others the area under the ROC curve for two
    classes, and the balanced accuracy for more. Accuracy alone would favour the larger class.

    Parameters
    ----------
    model : fitted classifier
        A rule ensemble.
    X, y
        Held-out rows and their labels.
    """
    has_probabilities = model._is_native or hasattr(model, "calibrator_")
    if model._multilabel:
        Y = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
        if has_probabilities:
            log_p = np.asarray(model.predict_log_proba(X))
            p = np.where(Y > 0, log_p, np.log1p(-np.minimum(np.exp(log_p), 1 - 1e-12)))
            return float(p.mean())
        return float(
            np.mean(
                [
                    balanced_accuracy_score(*pair)
                    for pair in zip(Y.T, model.predict(X).T, strict=True)
                ]
            )
        )
    y = np.asarray(y).ravel()  # labels may come as one column
    if has_probabilities:
        log_p = np.asarray(model.predict_log_proba(X))
        place = np.searchsorted(model.classes_, y)
        place = np.clip(place, 0, len(model.classes_) - 1)
        known = model.classes_[place] == y
        own = log_p[np.arange(len(log_p)), place]
        return float(np.where(known, own, np.log(1e-12)).mean())
    if len(model.classes_) == 2 and len(np.unique(y)) == 2:
        return float(roc_auc_score(y == model.classes_[1], model.decision_function(X)))
    return float(balanced_accuracy_score(y, model.predict(X)))
