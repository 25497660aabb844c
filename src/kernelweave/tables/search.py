"""Choose C by the comparison that chooses among models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._summary import TITLES
from kernelweave._types import Floats

from .candidates import method_candidate
from .choosing import Announce, Entry, Race, encode_target, silent
from .methods import METHODS, Settings
from .planning import can_be_compared, make_folds, make_plan, sample_rows
from .problem import Problem
from .scoring import choose_scoring

_ROWS = 2000  # rows on which C is chosen, unless others are asked for


@dataclass(frozen=True)
class Search:
    """Values of C that were tried, and the one chosen.

    Attributes
    ----------
    C : float
        The value with the smallest loss, of those whose labels are not clearly more often wrong.
    values : tuple of float
        All values tried, in ascending order.
    losses : ndarray of shape (n_values,)
        Mean losses of rows that were left out.
    scoring : str
        The score that these losses belong to, such as "AUC": its loss is one minus the area.
    n_rows : int
        Rows that were used.
    """

    C: float
    values: tuple[float, ...]
    losses: Floats
    scoring: str
    n_rows: int

    @classmethod
    def of(cls, entry: Entry, race: Race) -> Search | None:
        """Return what a race has found; None where there was one value."""
        if len(entry.tried) < 2 or "C" not in entry.settings[0][0]:
            return None
        costs = {entry.settings[s][0]["C"]: loss for s, loss in entry.tried.items()}
        values = sorted(costs)
        losses = np.array([costs[C] for C in values])
        (kept,) = entry.values
        title = TITLES[race.scoring.chooses]
        best = entry.settings[kept][0]["C"]
        return cls(best, tuple(values), losses, title, len(race.problem.y))

    def to_dict(self) -> dict[str, Any]:
        """Return the search in plain values."""
        return {
            "C": self.C,
            "rows": self.n_rows,
            "scoring": self.scoring,
            "values": list(self.values),
            "losses": self.losses.tolist(),
        }


def search_cost(
    problem: Problem,
    method: str,
    settings: Settings | None = None,
    *,
    max_rows: int = _ROWS,
    announce: Announce = silent,
) -> Search | None:
    """Choose C on rows that are left out, as `fit_table` does.

    0.1, 1 and 10 are tried first, and further values while the best is at an end.

    Parameters
    ----------
    problem : Problem
        The columns and the target.
    method : str
        A key of ``METHODS``.
    settings : Settings, optional
        Options of the method.
    max_rows : int
        Maximum number of rows, drawn by class.
    announce : callable
        Called with the current step and the share of it that is done.

    Returns
    -------
    search : Search or None
        None where the method has no C or chooses it itself, or the rows are too few.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from kernelweave.tables import make_problem
    >>> x = np.linspace(-3, 3, 90)
    >>> frame = pd.DataFrame({"x": x, "y": np.where(np.abs(x) > 1, "out", "in")})
    >>> search_cost(make_problem(frame, "y"), "mkl").scoring
    'AUC'
    """
    settings = settings or Settings()
    problem = problem.take(sample_rows(problem, max_rows, settings.seed))
    if METHODS[method].cost != "C" or not can_be_compared(problem):
        return None
    candidate = method_candidate(method)
    scoring = choose_scoring(encode_target(problem), problem.regression, "auto", False)
    plan = make_plan(problem, None, candidate, alone=True)
    folds = make_folds(problem, plan.n_folds, settings.seed)
    race = Race(problem, [candidate], scoring, settings, folds, announce, candidate.name)
    race.run()
    return Search.of(race.entries[0], race)
