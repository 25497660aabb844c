"""What is measured. Only the processes of `benchmarks.worker` import these modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _nothing(result: Any) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Task:
    """Work on prepared data.

    Parameters
    ----------
    work : callable
        What is timed.
    tell : callable
        Given what `work` returned, plain facts about it; not timed.
    """

    work: Callable[[], Any]
    tell: Callable[[Any], dict[str, Any]] = _nothing
