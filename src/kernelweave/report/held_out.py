"""A score on held-out rows that was measured before the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .tables import percent


@dataclass(frozen=True)
class HeldOut:
    """The score of a model on held-out rows, for its report.

    Parameters
    ----------
    measure : str
        Name of the score, such as "accuracy".
    score : float
        Its value.
    n_rows : int
        Rows held out.
    interval : tuple of two floats, optional
        Ends of its 95% interval.
    beside : dict, optional
        The same score of other models, such as an SVM baseline, by their name.
    remark : str
        A sentence about the score.

    Examples
    --------
    >>> from kernelweave.report import HeldOut
    >>> HeldOut("accuracy", 0.93, 200, (0.886, 0.958)).spoken
    '93.0% (95% interval 88.6% to 95.8%)'
    """

    measure: str
    score: float
    n_rows: int
    interval: tuple[float, float] | None = None
    beside: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""

    @property
    def spoken(self) -> str:
        """The score and its interval."""
        return f"{self.show(self.score)}{f' ({self.ends})' if self.ends else ''}"

    @property
    def ends(self) -> str:
        """The interval in words; empty where it is unknown."""
        if self.interval is None:
            return ""
        return f"95% interval {self.show(self.interval[0])} to {self.show(self.interval[1])}"

    def show(self, value: float) -> str:
        """Return a value of this score as text."""
        return percent(value) if self.measure == "accuracy" else f"{value:.3f}"
