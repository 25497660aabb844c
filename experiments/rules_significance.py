"""Paired t-tests of the best system against its nearest competitor, as below Table 2 of the paper.

The paper marks the best score of a data set with a star if it is a significant improvement over its
"nearest competitor" by a paired t-test at 99 %. It does not say whether another value of rho is a
competitor, so both are tested: the next best system of all, and the next best of another kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from .page import make_table
from .rules_cells import OURS, Cell, Cells, sets
from .rules_data import SOURCES
from .rules_protocol import METHODS

LEVEL = 0.01  # of the two-sided test
_TIE = 1e-12  # differences that rounding makes


@dataclass(frozen=True)
class PairedTest:
    """Paired t-test of one system against another on the divisions of a data set."""

    one: str
    other: str
    gain: float  # mean difference of the scores
    p_value: float  # two-sided

    @property
    def is_significant(self) -> bool:
        """Whether the first system is better at 99 %."""
        return self.gain > 0 and self.p_value < LEVEL


def paired_test(one: Cell, other: Cell) -> PairedTest | None:
    """Return the test on the divisions that both have; None for fewer than two."""
    both = sorted(set(one.scores) & set(other.scores))
    if len(both) < 2:
        return None
    gains = np.array([one.scores[split] - other.scores[split] for split in both])
    mean, error = gains.mean(), gains.std(ddof=1) / np.sqrt(len(gains))
    if error <= _TIE:  # the same difference in all divisions
        p_value = 1.0 if abs(mean) <= _TIE else 0.0
    else:
        p_value = 2.0 * float(student.sf(abs(mean) / error, len(gains) - 1))
    return PairedTest(one.method, other.method, float(mean), p_value)


def nearest_tests(
    cells: Cells, data: str, systems: Sequence[str]
) -> tuple[PairedTest | None, PairedTest | None]:
    """Return the tests of the best system against the next best, and against one of another kind.

    The values of rho are one kind. Where the best is of another kind, all others compete in both.
    """
    there = [cells[data, name] for name in systems if (data, name) in cells]
    if len(there) < 2:
        return None, None
    best, *others = sorted(there, key=lambda cell: -cell.score)
    kinds = [c for c in others if not (best.method in OURS and c.method in OURS)]
    return paired_test(best, others[0]), paired_test(best, kinds[0]) if kinds else None


def significance(cells: Cells, systems: Sequence[str]) -> str:
    """Return the section with the tests of all data sets; empty where nothing can be tested."""
    rows = []
    stars = [0, 0]
    for data in sets(cells):
        found = nearest_tests(cells, data, systems)
        if all(test is None for test in found):
            continue
        first = next(test for test in found if test is not None)
        row = [SOURCES[data].title, METHODS[first.one].label]
        for k, test in enumerate(found):
            row.append("" if test is None else _show(test))
            stars[k] += test is not None and test.is_significant and not SOURCES[data].variant
        rows.append(row)
    if not rows:
        return ""
    n = max(len(cell.scores) for cell in cells.values())
    return (
        "### Is the best significantly better?\n\n"
        f"Paired t-tests at 99 % over {n} divisions, as in the paper: the best system against the "
        "next best, and against the next best that is not another value of rho (the paper does "
        "not say which of the two its stars mean). Difference, p value, and a star where it is "
        f"significant: {stars[0]} and {stars[1]} data sets, without variants. The divisions share "
        "rows, so these tests find more than there is.\n\n"
        + make_table(["data", "best", "next best", "next best of another kind"], rows)
    )


def _show(test: PairedTest) -> str:
    star = " *" if test.is_significant else ""
    return f"{METHODS[test.other].label}: {test.gain:+.3f}, p = {test.p_value:.3f}{star}"
