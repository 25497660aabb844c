"""ENDER with the logistic loss: a rule ensemble by maximum likelihood."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_softmax

from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval
from kernelweave.estimators.shared_docs import shared_attributes

from .classifier_base import Rule, RuleVotes, covered

_TRIES = 20  # subsamples without a rule after which learning stops; chosen by hand


@shared_attributes()
@dataclass(eq=False, repr=False)
class EnderClassifier(RuleVotes):
    """ENDER with the logistic loss (MLRules): rules that vote for one class each.

    Rules are added one by one to a default rule that minimises the loss alone. For every class a
    conjunction is grown on a subsample by the condition that maximises ``sum g / sqrt(sum h)`` over
    covered rows, until none improves it; g and h are minus the first and the second derivative of
    the loss in the score of the class. The best conjunction gets the Newton step on all rows,
    ``sum g / sum h``, times ``shrinkage``, halved while the loss would rise.

    Parameters
    ----------
    n_rules : int
        Maximum number of rules.
    shrinkage : float
        Share of the Newton step.
    subsample : float
        Share of the rows, drawn without replacement, that a rule is grown on.
    random_state : int, RandomState or None
        Seed of the subsamples.

    Attributes
    ----------
    rules_ : list of tuple of int
        The columns that must be true, for every rule in the order of learning; a rule may occur
        several times.
    weights_ : ndarray of shape (n_rules,)
        Increase of the score of the class, positive.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The default rule.
    train_loss_ : ndarray of shape (n_rules + 1,)
        Mean loss of the training rows after the default rule and after each rule.

    References
    ----------
    Dembczynski, Kotlowski and Slowinski (2008), Maximum likelihood rule ensembles, ICML 25; (2010),
    ENDER: a statistical framework for boosting decision rules, Data Mining and Knowledge Discovery
    21.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import EnderClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, size=(200, 6))
    >>> y = X[:, 1] & X[:, 4]
    >>> model = EnderClassifier(20, random_state=0).fit(X, y)
    >>> (1, 4) in model.rules_, model.score(X, y)
    (True, 1.0)
    """

    n_rules: int = 100
    _: KW_ONLY
    shrinkage: float = 0.1
    subsample: float = 0.5
    threshold: float | None = None
    random_state: Any = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **RuleVotes._parameter_constraints,
        "n_rules": [Interval(Integral, 1, None, closed="left")],
        "shrinkage": [Interval(Real, 0, 1, closed="right")],
        "subsample": [Interval(Real, 0, 1, closed="right")],
    }

    def _learn(self, X: Floats, codes: Indices, random: Any) -> None:
        shares = np.bincount(codes) / len(codes)
        prior = np.log(shares) if len(shares) > 2 else np.log(shares[1:] / shares[:1])
        likelihood = _Likelihood(codes, prior)
        rules: list[Rule] = []
        weights, votes, losses = [], [], [likelihood.loss()]
        while len(rules) < self.n_rules:
            found = self._find(X, likelihood, random)
            if found is None:
                break
            rule, k, cover = found
            weights.append(likelihood.move(k, cover, self.shrinkage))
            losses.append(likelihood.loss())
            rules.append(rule)
            votes.append(k)
        self.train_loss_: Floats = np.array(losses)
        self._keep(rules, weights, np.array(votes, dtype=np.intp), prior)

    def _find(
        self, X: Floats, likelihood: _Likelihood, random: Any
    ) -> tuple[Rule, int, Floats] | None:
        """Return a rule, its class and the rows it covers; on all rows it must favour the class."""
        n = len(X)
        G, H = likelihood.derivatives()
        for _ in range(_TRIES):
            part = np.zeros(n)
            part[random.permutation(n)[: max(1, round(self.subsample * n))]] = 1.0
            rule, k = _grow(X, G * part, H * part)
            cover = covered(X, [rule])[:, 0]
            if rule and G[k] @ cover > 0:
                return rule, k, cover
        return None


class _Likelihood:
    """Logistic loss of the scores of the training rows; two classes have one score."""

    def __init__(self, codes: Indices, prior: Floats) -> None:
        self.codes, self.binary = codes, len(prior) == 1
        self.F = np.tile(prior, (len(codes), 1))
        self.own = codes[:, None] == np.arange(2 if self.binary else len(prior))

    def losses(self, F: Floats) -> Floats:
        if self.binary:
            return np.logaddexp(0.0, np.where(self.codes == 1, -F[:, 0], F[:, 0]))
        return np.asarray(-log_softmax(F, axis=1)[self.own])

    def loss(self) -> float:
        return float(self.losses(self.F).mean())

    def derivatives(self) -> tuple[Floats, Floats]:
        """Return g and h, (n_classes, n_samples) each."""
        if self.binary:
            P = expit(self.F * [-1.0, 1.0])
        else:
            P = np.exp(log_softmax(self.F, axis=1))
        return (self.own - P).T, (P * (1 - P)).T

    def move(self, k: int, cover: Floats, shrinkage: float) -> float:
        """Add to the score of class ``k`` where ``cover`` is one; return how much."""
        G, H = self.derivatives()
        step = shrinkage * float(G[k] @ cover) / max(float(H[k] @ cover), 1e-12)
        direction = np.zeros_like(self.F)
        direction[:, 0 if self.binary else k] = -cover if self.binary and k == 0 else cover
        before = self.losses(self.F).sum()
        while self.losses(self.F + step * direction).sum() > before and step > 1e-12:
            step /= 2
        self.F = self.F + step * direction
        return step


def _grow(X: Floats, G: Floats, H: Floats) -> tuple[Rule, int]:
    """Grow a rule for every class at once; return the best and its class."""
    n_classes = len(G)
    rules: list[list[int]] = [[] for _ in range(n_classes)]
    best = _scores(G.sum(axis=1), H.sum(axis=1))
    growing = np.arange(n_classes)
    while len(growing):
        scores = _scores(G[growing] @ X, H[growing] @ X)
        conditions = scores.argmax(axis=1)
        reached = scores[np.arange(len(growing)), conditions]
        improved = reached > best[growing] + 1e-12
        growing, conditions = growing[improved], conditions[improved]
        best[growing] = reached[improved]
        for k, c in zip(growing, conditions, strict=True):
            rules[k].append(int(c))
        kept = X[:, conditions].T
        G, H = G.copy(), H.copy()
        G[growing] *= kept
        H[growing] *= kept
    best[[not rule for rule in rules]] = -np.inf
    k = int(best.argmax())
    return tuple(sorted(rules[k])), k


def _scores(g: Floats, h: Floats) -> Floats:
    """Return ``g / sqrt(h)``, and zero where no row is covered."""
    return np.divide(g, np.sqrt(h), out=np.zeros_like(g), where=h > 1e-12)
