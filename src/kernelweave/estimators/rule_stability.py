"""Stability of rules: how many half samples of the rows select each of them.

References
----------
N. Meinshausen, P. Buehlmann, "Stability selection", JRSS B 72, 2010.
C. Benard, G. Biau, S. Da Veiga, E. Scornet, "SIRUS: stable and interpretable rule set for
classification", Electronic Journal of Statistics 15, 2021.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelweave._types import Floats
from kernelweave.errors import silenced
from kernelweave.solvers import Result

from .duplicates import MergedRows
from .rule_search import RuleProblem, search_of
from .rule_selection import OPTIONS, Ensemble, Shortener, correlations

_SHARE = 0.5  # of the rows in a resample


@dataclass(frozen=True)
class Resampling:
    """Fits of one model to half samples of its rows."""

    model: Any  # the model; propositions are those of all rows
    # shared, result, rows: its problem, solution and rows
    shared: RuleProblem
    result: Result
    rows: MergedRows

    def assess(self, found: Ensemble, shortener: Shortener) -> Ensemble:
        """Return the rules with their stability; those below ``min_stability`` are dropped.

        The others then get new weights, as after any selection.
        """
        found = replace(found, stability=self.stability(found))
        assert found.stability is not None
        stable = found.stability >= self.model.min_stability
        return found if stable.all() else shortener.reweigh(found.kept(stable))

    def stability(self, found: Ensemble) -> Floats:
        """Return the share of half samples that select each rule or an equivalent one.

        Two rules are equivalent if their columns have an absolute correlation of 0.9 or more over
        the training rows; neighbouring cuts and mirror images are.
        """
        model, bank = self.model, self.shared.lattice.bank
        random = check_random_state(model.random_state)
        counts = np.zeros(len(found.conjunctions))
        for _ in range(model.n_resamples):
            rows = replace(self.rows, cost=self.rows.cost * self._draw(random)[:, None])
            twin = model._twin(n_resamples=0, min_stability=0.0)
            with silenced():
                # A graph of its own: nodes that it activates are not part of the model.
                lattice = self.shared.lattice
                if search_of(model).activates:
                    lattice = model._lattice(self.rows.X)
                shared = replace(self.shared, lattice=lattice)
                result = twin._learn(shared, rows, None, None)
                selected = twin._select(shared, result, rows).conjunctions
            alike = correlations(bank, found.conjunctions, selected) >= OPTIONS.alike
            counts += alike.any(axis=1)
        return np.asarray(counts / model.n_resamples)

    def _draw(self, random: np.random.RandomState) -> Floats:
        """Return the share of every merged row that is in a half sample."""
        weight = self.rows.weight
        if weight is None or (weight != np.round(weight)).any():
            return np.asarray(random.random_sample(len(self.rows.Y)) < _SHARE, dtype=np.float64)
        return np.asarray(random.binomial(weight.astype(np.int64), _SHARE) / weight)
