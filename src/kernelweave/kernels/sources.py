"""Whole sources that rows lack: kernels that are off there, or completed from other sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._types import Bools, Floats, Indices
from kernelweave._validation import pick_rows
from kernelweave.errors import InputError, RowError

from .base import Kernel, Rows
from .completed import Completed, Completion, mean_similarity
from .expression import Cosine
from .gaps import Known
from .table import Columns


@dataclass(frozen=True)
class CompletionOptions:
    """Constants of completion, chosen on development data (see the experiment `missing`)."""

    ridge: float = 0.1  # added to similarities of at most one
    most_anchors: int = 500  # rows of each source that others are written by


OPTIONS = CompletionOptions()


def with_sources(
    sources: Mapping[str, tuple[Columns, Sequence[Kernel]]],
    X: Any,
    weight: Floats | None,
    *,
    complete: bool,
    alone: bool,
) -> dict[str, list[Kernel]]:
    """Return the kernels of each source for rows that may lack it.

    Kernels of ``sources`` are off for rows without their source. ``weight`` is how often each row
    counts. ``complete``: rows without a source get expected features, learned from the other
    sources. ``alone``: a model has no other kernels, so that every row needs one of the sources.
    """
    gates = {name: _gate(name, columns, kernels) for name, (columns, kernels) in sources.items()}
    present = {name: gate.diagonal(gate.prepare(X)) > 0 for name, gate in gates.items()}
    used = np.ones(len(next(iter(present.values()))), bool) if weight is None else weight > 0
    for name, there in present.items():
        if not (there & used).any():
            raise InputError(f"views[{name!r}]: no training row has this source; leave it out.")
    if alone:
        _check_rows(present, used)
    found = {name: list(kernels) for name, (_, kernels) in sources.items()}
    lacking = {name: bool((used & ~present[name]).any()) for name in sources}
    if complete and len(sources) > 1:
        bound = {name: [k.bound(X, weight) for k in kernels] for name, kernels in found.items()}
        rungs = {name: _rungs(kernels) for name, kernels in bound.items()}
        found = {
            name: _completed(name, bound[name], gates, rungs, X, used & present[name])
            for name in found
        }
    return {
        name: [*kernels, *([gates[name]] if lacking[name] else [])]
        for name, kernels in found.items()
    }


def _gate(name: str, columns: Columns, kernels: Sequence[Kernel]) -> Known:
    numbers = all(kernel.is_precomputed for kernel in kernels)
    return Known(every=False, row_numbers=numbers, columns=columns, name=f"{name}: known")


def _check_rows(present: Mapping[str, Bools], used: Bools) -> None:
    """Refuse rows that have no source: they would say nothing but their label."""
    none = np.flatnonzero(used & ~np.any(list(present.values()), axis=0))
    if len(none):
        raise RowError(
            "X: row {row} has none of the sources; leave such rows out of the fit.", int(none[0])
        )


def _rungs(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return a source's Gaussians, narrow to wide, or its first kernel where it has none."""
    gaussians = [kernel for kernel in kernels if _is_gaussian(kernel)]
    gaussians = [kernel for kernel in gaussians if kernel.view == gaussians[0].view]
    return [Cosine(kernel) for kernel in gaussians or kernels[:1]]


def _is_gaussian(kernel: Kernel) -> bool:
    inner = [factor.decay for factor in kernel.factors if not factor.is_gate]
    return len(inner) == 1 and inner[0] is not None and inner[0].distance == "squared"


def _completed(
    name: str,
    kernels: Sequence[Kernel],
    gates: Mapping[str, Known],
    rungs: Mapping[str, Sequence[Kernel]],
    X: Any,
    having: Bools,
) -> list[Kernel]:
    """Return the kernels of one source, completed from the others."""
    rows = _spread(np.flatnonzero(having))
    table = pick_rows(X, rows)
    known: dict[Any, Any] = {}
    target = rungs[name][len(rungs[name]) // 2]
    prepared = target.prepare_once(table, known)
    K = target.block(prepared, prepared)
    others = [ladder for other, ladder in rungs.items() if other != name]
    found: list[tuple[float, tuple[Kernel, ...], tuple[Rows, ...], Floats]] = []
    for step in range(max(map(len, others))):
        references = tuple(ladder[min(step, len(ladder) - 1)] for ladder in others)
        anchors = tuple(reference.prepare_once(table, known) for reference in references)
        inverse = _inverse(mean_similarity(references, anchors, anchors))
        found.append((leave_one_out(inverse, K), references, anchors, inverse))
    _, references, anchors, inverse = min(found, key=lambda item: item[0])
    completion = Completion(gates[name], references, anchors, inverse, name=f"{name}: completion")
    return [
        Completed(kernel, completion, kernel.prepare_once(table, known), name=str(kernel))
        for kernel in kernels
    ]


def _inverse(S: Floats) -> Floats:
    inverse = np.linalg.inv(S + OPTIONS.ridge * np.eye(len(S)))
    return np.asarray((inverse + inverse.T) / 2)


def leave_one_out(inverse: Floats, K: Floats) -> float:
    """Return the mean squared error of features that are estimated from the other anchors.

    The residual of anchor i is ``(inverse Phi)_i / inverse_ii``, as in ridge regression with
    targets Phi, whose inner products are ``K``.
    """
    lengths = np.einsum("ij,ij->i", inverse @ K, inverse)
    return float(np.mean(lengths / np.diag(inverse) ** 2))


def _spread(rows: Indices) -> Indices:
    if len(rows) <= OPTIONS.most_anchors:
        return rows
    at = np.linspace(0, len(rows) - 1, OPTIONS.most_anchors).round().astype(np.intp)
    return rows[at]
