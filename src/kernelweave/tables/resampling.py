"""Intervals of scores: resamples of the rows, and exact ones of shares.

References
----------
C. Clopper and E. Pearson (1934), The use of confidence or fiducial limits, Biometrika 26.
B. Efron and R. Tibshirani (1993), An introduction to the bootstrap, chapter 13 (percentiles).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv

from kernelweave._types import Floats, Indices

from .measures import MEASURES, Evaluator, Measure, Predicted, mean_known

LEVEL = 0.95
_RESAMPLES, _LEAST_RESAMPLES = 1000, 100
_WORK = 4e7  # rows times outputs of all resamples, some seconds
_BLOCK = 2e6  # counts held at a time
_LEAST = 0.5  # share of the resamples that must have a score, such as the AUC with both classes


def exact_interval(hits: float, n: float) -> tuple[float, float]:
    """Return the 95% interval of a share by Clopper and Pearson; counts may be effective ones."""
    tail = 0.5 - 0.5 * LEVEL
    low = betaincinv(hits, n - hits + 1, tail) if hits > 0 else 0.0
    high = betaincinv(hits + 1, n - hits, 1 - tail) if hits < n else 1.0
    return float(low), float(high)


def share_interval(hits: Any, weight: Floats) -> tuple[float, tuple[float, float]]:
    """Return the share of rows that are hits, and its interval.

    Rows of different weights count as many as their effective number ``(sum w)^2 / sum w^2`` (Kish
    1965), which is that of the rows where weights are equal.
    """
    total = float(weight.sum())
    share, n = float(weight[hits].sum()) / total, total**2 / float(weight @ weight)
    whole = round(share * n)
    near = abs(share * n - whole) < 1e-9 * n  # counts stay whole
    return share, exact_interval(whole if near else share * n, round(n) if near else n)


def percentiles(values: Floats, *, equal: bool = False) -> tuple[float, float] | None:
    """Return the ends of the middle 95% of resamples.

    None where most resamples have no value, or (unless ``equal``) all have the same one: then the
    rows are too few to tell how it varies.
    """
    known = values[np.isfinite(values)]
    if len(known) < max(_LEAST * len(values), 2):
        return None
    low, high = np.quantile(known, [0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL])
    return None if low == high and not equal else (float(low), float(high))


def resamples(n: int, n_outputs: int, strata: Indices | None, seed: int) -> Iterator[Floats]:
    """Yield blocks of counts of rows drawn with replacement, within strata where they are given."""
    random = np.random.default_rng(seed)
    left = int(np.clip(_WORK / (n * n_outputs), _LEAST_RESAMPLES, _RESAMPLES))
    size = max(1, int(_BLOCK / n))
    strata = np.zeros(n, dtype=np.intp) if strata is None else strata
    order = np.argsort(strata, kind="stable")
    _, starts, sizes = np.unique(strata[order], return_index=True, return_counts=True)
    first, many = np.repeat(starts, sizes), np.repeat(sizes, sizes)
    while left > 0:
        block = min(size, left)
        left -= block
        drawn = first + (random.random((block, n)) * many).astype(np.intp)
        flat = order[drawn] + n * np.arange(block)[:, None]
        yield np.bincount(flat.ravel(), minlength=block * n).reshape(block, n).astype(np.float64)


@dataclass(frozen=True)
class Several:
    """Predictions of several targets, labels or quantiles, whose scores are averaged."""

    # One for each; scores that only some have, such as those of the median, are averaged over
    # these.
    outputs: tuple[Predicted, ...]

    def __len__(self) -> int:
        return len(self.outputs[0])

    @property
    def main(self) -> str:
        """The score to quote."""
        return self.outputs[0].main

    @property
    def n_ranked(self) -> int:
        """How often rows are ranked."""
        return sum(output.n_ranked for output in self.outputs)

    def title(self, name: str) -> str:
        """Return a score in words: what it is a mean of."""
        having = [output for output in self.outputs if name in output.evaluators()]
        title = MEASURES[name].title
        return title if len(having) == 1 else f"{title}, mean of {len(having)} {having[0].plural}"

    @property
    def strata(self) -> Indices | None:
        """Combinations of labels."""
        if any(output.strata is None for output in self.outputs):
            return None
        table = np.column_stack([output.y for output in self.outputs])
        return np.unique(table, axis=0, return_inverse=True)[1].ravel()

    def take(self, rows: Any) -> Several:
        """Return some of the rows."""
        return Several(tuple(output.take(rows) for output in self.outputs))

    def constant(self, weight: Floats) -> dict[str, Any]:
        """Return the best constant prediction of every output, by score."""
        known: list[dict[str, Any]] = [output.constant(weight) for output in self.outputs]
        return {
            name: Several(tuple(constants[name] for constants in known if name in constants))
            for name in self.evaluators()
        }

    def evaluators(self) -> dict[str, Evaluator]:
        """Return the means of the scores that these predictions have."""
        parts: dict[str, list[Evaluator]] = {}
        for output in self.outputs:
            for name, evaluator in output.evaluators().items():
                parts.setdefault(name, []).append(evaluator)

        def mean_of(several: list[Evaluator]) -> Evaluator:
            return lambda weights: mean_known([one(weights) for one in several])

        return {name: mean_of(several) for name, several in parts.items()}


@dataclass(frozen=True)
class Draws:
    """A score and its values on resamples of the rows."""

    value: float
    resampled: Floats


def draw(
    evaluators: dict[Any, tuple[Measure, Evaluator]],
    n_outputs: int,
    strata: Indices | None,
    weight: Floats,
    seed: int,
) -> dict[Any, Draws]:
    """Evaluate scores on the rows, and all of them on the same resamples.

    Scores that are defined within classes keep the sizes of the classes; the others depend on the
    shares of the classes, so that these vary too.
    """
    n, out = len(weight), {}
    for by_class in (False, True):
        wanted = {key: item for key, item in evaluators.items() if item[0].by_class == by_class}
        values: dict[Any, list[Floats]] = {key: [] for key in wanted}
        if wanted and n > 1:
            for counts in resamples(n, n_outputs, strata if by_class else None, seed):
                counts *= weight
                for key, (_, evaluate) in wanted.items():
                    values[key].append(evaluate(counts))
        for key, (_, evaluate) in wanted.items():
            resampled = np.concatenate(values[key]) if values[key] else np.empty(0)
            out[key] = Draws(float(evaluate(weight[None])[0]), resampled)
    return out
