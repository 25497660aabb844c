"""SLIPPER: conjunctions by confidence-rated boosting."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import StratifiedKFold

from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval
from kernelweave.estimators.shared_docs import shared_attributes

from .classifier_base import Rule, RuleVotes, covered

_GROW = 2 / 3  # share of the weight that a rule is grown on, as published
_TIE = 1e-300  # default score where no rule votes: smaller than any confidence


@shared_attributes()
@dataclass(eq=False, repr=False)
class SlipperClassifier(RuleVotes):
    """SLIPPER: conjunctions of propositions by confidence-rated boosting.

    A round splits the weighted rows, grows a conjunction on two thirds of the weight by the
    condition that maximises ``sqrt(W+) - sqrt(W-)``, prunes the last conditions by its error on
    the rest, and keeps the conjunction or the default rule, whichever has the smaller
    ``Z = 1 - (sqrt(W+) - sqrt(W-))^2``. Its confidence is ``1/2 ln((W+ + e) / (W- + e))`` with
    ``e = 1 / (2 n)``. ``W+`` and ``W-`` are the weights of the covered rows of the positive and of
    the negative class. The number of rounds is that with the fewest errors in cross-validation.

    Rules vote for the positive class only: of two classes the one with fewer rows, the second
    where they are equal; of more classes each against the rest. Rows that no rule covers go to the
    other class where the default rule does not decide.

    Parameters
    ----------
    max_rules : int
        Maximum number of rounds for every class.
    cv : int
        Stratified folds to choose the rounds; fewer where the smaller class has fewer rows. A class
        of one row gets ``max_rules`` rounds.
    random_state : int, RandomState or None
        Seed of the splits.

    Attributes
    ----------
    rules_ : list of tuple of int
        The columns that must be true, for every rule.
    weights_ : ndarray of shape (n_rules,)
        Confidences, positive; summed where rounds found the same rule.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The default rule, as part of the decision values.
    rounds_ : ndarray of shape (1,) or (n_classes,)
        Rounds chosen; some may have chosen the default rule.

    References
    ----------
    Cohen and Singer (1999), A simple, fast, and effective rule learner, AAAI 16.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import SlipperClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, size=(200, 6))
    >>> y = X[:, 1] & X[:, 4]
    >>> SlipperClassifier(random_state=0).fit(X, y).rules_
    [(1, 4)]
    """

    max_rules: int = 100
    _: KW_ONLY
    cv: int = 5
    threshold: float | None = None
    random_state: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **RuleVotes._parameter_constraints,
        "max_rules": [Interval(Integral, 1, None, closed="left")],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def _learn(self, X: Floats, codes: Indices, random: Any) -> None:
        counts = np.bincount(codes)
        positives = range(len(counts)) if len(counts) > 2 else [0 if counts[0] < counts[1] else 1]
        rules: list[Rule] = []
        weights: list[float] = []
        votes: list[int] = []
        intercept = np.zeros(len(positives))
        self.rounds_: Indices = np.zeros(len(positives), dtype=np.intp)
        for k, positive in enumerate(positives):
            signs = np.where(codes == positive, 1.0, -1.0)
            self.rounds_[k] = self._choose_rounds(X, signs, random)
            total: dict[Rule, float] = {(): -_TIE * float(np.mean(signs < 0))}
            for step in _boost(X, signs, int(self.rounds_[k]), random):
                total[step.rule] = total.get(step.rule, 0.0) + step.confidence
            intercept[k] = total.pop(())
            rules += total
            weights += total.values()
            votes += [positive] * len(total)
        if len(counts) == 2 and positives[0] == 0:
            intercept = -intercept
        self._keep(rules, weights, np.array(votes, dtype=np.intp), intercept)

    def _choose_rounds(self, X: Floats, signs: Floats, random: Any) -> int:
        fewest = int(min(np.sum(signs > 0), np.sum(signs < 0)))
        if fewest < 2:
            return self.max_rules
        folds = StratifiedKFold(min(self.cv, fewest), shuffle=True, random_state=random)
        errors = np.zeros(self.max_rules)
        for train, test in folds.split(X, signs):
            steps = _boost(X[train], signs[train], self.max_rules, random)
            votes = covered(X[test], [step.rule for step in steps])
            scores = np.cumsum(votes * [step.confidence for step in steps], axis=1)
            errors += np.sum((scores > 0) != (signs[test] > 0)[:, None], axis=0)
        return int(errors.argmin()) + 1


@dataclass(frozen=True)
class _Step:
    """Result of a round; the default rule has no conditions."""

    rule: Rule
    confidence: float
    Z: float


def _boost(X: Floats, signs: Floats, n_rounds: int, random: Any) -> list[_Step]:
    n = len(signs)
    D = np.full(n, 1 / n)
    steps = []
    for _ in range(n_rounds):
        step = _round(X, signs, D, random)
        D = D * np.exp(-signs * step.confidence * covered(X, [step.rule])[:, 0])
        D /= D.sum()
        steps.append(step)
    return steps


def _round(X: Floats, signs: Floats, D: Floats, random: Any) -> _Step:
    both = np.stack([D * (signs > 0), D * (signs < 0)])
    order = random.permutation(len(signs))
    grows = np.zeros(len(signs))
    grows[order[np.cumsum(D[order]) <= _GROW]] = 1.0
    rule = _prune(X, both, grows, _grow(X, both * grows))
    default = _step((), both.sum(axis=1), len(signs))
    if not rule:
        return default
    kept = _step(rule, both @ covered(X, [rule])[:, 0], len(signs))
    return kept if kept.confidence > 0 and kept.Z <= default.Z else default


def _grow(X: Floats, both: Floats) -> Rule:
    """Add the condition of the best score until none improves it or no negative row is left."""
    rule: list[int] = []
    best = _scores(both.sum(axis=1))
    while both[1].any():
        scores = _scores(both @ X)
        c = int(scores.argmax())
        if scores[c] <= best + 1e-12:
            break
        best = scores[c]
        rule.append(c)
        both = both * X[:, c]
    return tuple(rule)


def _prune(X: Floats, both: Floats, grows: Floats, rule: Rule) -> Rule:
    """Drop the last conditions by the loss of the other rows; the first condition stays."""
    if len(rule) < 2:
        return rule
    covers = np.cumprod(X[:, list(rule)], axis=1)
    confidence = _confidence((both * grows) @ covers, X.shape[0])
    right, wrong = (both * (1 - grows)) @ covers
    loss = (1 - right - wrong) + right * np.exp(-confidence) + wrong * np.exp(confidence)
    shortest = int(np.flatnonzero(loss <= loss.min() + 1e-12)[0])
    return tuple(sorted(rule[: shortest + 1]))


def _step(rule: Rule, W: Floats, n: int) -> _Step:
    return _Step(tuple(sorted(rule)), float(_confidence(W, n)), float(1 - (_scores(W)) ** 2))


def _scores(W: Floats) -> Any:
    """Return ``sqrt(W+) - sqrt(W-)``."""
    return np.sqrt(W[0]) - np.sqrt(W[1])


def _confidence(W: Floats, n: int) -> Any:
    return 0.5 * np.log((W[0] + 0.5 / n) / (W[1] + 0.5 / n))
