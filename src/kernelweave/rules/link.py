"""Probabilities from the scores of a rule model, as expressions of exported programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

_LARGEST = 700.0  # exp of more overflows; of less than -700 some databases refuse to compute


@dataclass(frozen=True)
class Link:
    """How scores become probabilities.

    Parameters
    ----------
    slopes, biases : tuple of float
        ``v_t = slopes_t * score_t + biases_t`` for each output t.
    softmax : bool
        Whether probabilities are ``exp(v_t) / sum_s exp(v_s)``; otherwise they are
        ``p_t = 1 / (1 + exp(-v_t))``.
    shares : bool
        Whether the ``p_t`` are divided by their sum.
    steps : tuple of (scores, probabilities)
        Each output's piecewise linear function, in place of slopes and biases; may be empty.
    mixing : tuple of tuple of float
        What each score (row) adds to each ``v_t``, in place of slopes; may be empty.
    """

    slopes: tuple[float, ...]
    biases: tuple[float, ...]
    softmax: bool = False
    shares: bool = False
    steps: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...] = ()
    mixing: tuple[tuple[float, ...], ...] = ()

    def write(self, scores: Sequence[str], way: Syntax) -> list[str]:
        """Return an expression for the probability of each output.

        Parameters
        ----------
        scores : sequence of str
            Expressions of the scores, one for each output.
        way : Syntax
            How the language writes numbers and functions.
        """
        if self.softmax:
            return self._write_softmax(self._values(scores, way), way)
        if self.steps:
            ones = [
                _interpolate(f, *steps, way) for f, steps in zip(scores, self.steps, strict=True)
            ]
        else:
            one = way.number(1.0)
            exps = [way.exp(f"-({v})") for v in self._values(scores, way)]
            ones = [f"({one} / ({one} + {e}))" for e in exps]
        if not self.shares:
            return ones
        total = " + ".join(ones)
        return [f"{p} / ({total})" for p in ones]

    def _values(self, scores: Sequence[str], way: Syntax) -> list[str]:
        if self.mixing:
            columns = zip(zip(*self.mixing, strict=True), self.biases, strict=True)
            return [
                " + ".join(
                    [f"{way.number(a)} * {f}" for a, f in zip(column, scores, strict=True)]
                    + [way.number(b)]
                )
                for column, b in columns
            ]
        lines = zip(scores, self.slopes, self.biases, strict=True)
        return [f"{way.number(a)} * {f} + {way.number(b)}" for f, a, b in lines]

    def _write_softmax(self, values: list[str], way: Syntax) -> list[str]:
        """Write ``1 / sum_s exp(v_s - v_t)``, which cannot overflow."""
        found = []
        for t, own in enumerate(values):
            others = [way.exp(f"{v} - ({own})") for s, v in enumerate(values) if s != t]
            found.append(f"{way.number(1.0)} / ({' + '.join([way.number(1.0), *others])})")
        return found


@dataclass(frozen=True)
class Syntax:
    """How a language writes numbers and functions."""

    number: Callable[[float], str]
    clamp: str  # of {0} to the range from {1} to {2}
    exponential: str  # of {}
    case: Callable[[Sequence[tuple[str, str]], str], str]  # (condition, value) pairs, otherwise

    def exp(self, value: str) -> str:
        """Return the exponential of an expression, kept from overflow."""
        low, high = self.number(-_LARGEST), self.number(_LARGEST)
        return self.exponential.format(self.clamp.format(value, low, high))


def _interpolate(f: str, x: Sequence[float], y: Sequence[float], way: Syntax) -> str:
    cases = [(f"{f} <= {way.number(x[0])}", way.number(y[0]))]
    for j in range(len(x) - 1):
        slope = (y[j + 1] - y[j]) / (x[j + 1] - x[j])
        line = f"{way.number(slope)} * ({f} - {way.number(x[j])}) + {way.number(y[j])}"
        cases.append((f"{f} <= {way.number(x[j + 1])}", line))
    return f"({way.case(cases, way.number(y[-1]))})"
