"""Fit the kernels that matter to all rows of a large table, where that takes minutes at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from kernelweave.banks.nystroem.build import count_features, may_compute
from kernelweave.kernels import Kernel

from .choosing import Announce, Member, build_model, silent
from .methods import Settings
from .planning import sample_rows
from .problem import Problem
from .sureness import SureFit

_ENOUGH = 0.95  # share of the function's squared norm that the selected kernels must carry
_MANY_ROWS = 5000  # from which on not all kernels are fitted to all rows
_WORK = 2e10  # rows x features^2 x outputs that take about a minute on two cores
# Seconds per pair of a row and a support row that a fit with kernels on demand takes, for every
# output: a share for each column, and the rest. Measured on 25 000 rows of 20 columns.
_PER_COLUMN = 1.2e-9
_PER_PAIR = 1.6e-8
_SECONDS = 300.0  # that such a fit may take


def fit_many_rows(
    members: Sequence[Member],
    problem: Problem,
    settings: Settings,
    announce: Announce = silent,
) -> tuple[SureFit, list[str], list[str]]:
    """Fit a model of many kernels, with a note or a warning where there are more than 5000 rows."""
    n, limit = len(problem.y), _MANY_ROWS
    if n <= limit:
        return build_model(members, problem, settings), [], []
    first = build_model(members, problem.take(sample_rows(problem, limit, settings.seed)), settings)
    kernels, seconds = kernels_for_all(first.model, problem)
    if kernels is None:
        hint = "" if seconds is None else f", about {_time(seconds)}"
        warning = (
            f"{limit} of {n} rows are fitted to, drawn at random, since all of them would take "
            f"long{hint} (--max-rows changes that)"
        )
        return first, [], [warning]

    def make(setting: dict[str, Any], task: Any) -> Any:
        return members[0].candidate.make(setting, task).set_params(kernels=kernels)

    (member,) = members
    if seconds is not None:
        announce(f"fitting to all {n} rows, about {_time(seconds)}", 0.0)
    chosen = replace(member, candidate=replace(member.candidate, make=make))
    note = (
        f"all rows are fitted to {len(kernels)} of {len(first.model[-1].kernels_)} kernels, those "
        f"that carry {_ENOUGH:.0%} of a fit to {limit} rows drawn at random (--max-rows {limit} "
        "keeps to that fit)"
    )
    return build_model((chosen,), problem, settings), [note], []


def kernels_for_all(model: Pipeline, problem: Problem) -> tuple[list[Kernel] | None, float | None]:
    """Return the kernels that carry most of the norm of a model fitted to some rows, and the time.

    They are None where a fit of them to all rows would take long. The time is that of a fit with
    kernels on demand, in seconds; None for Nystroem features, which take about a minute at most.
    """
    estimator = model[-1]
    order = np.argsort(-estimator.contributions_, kind="stable")
    needed = int(np.searchsorted(np.cumsum(estimator.contributions_[order]), _ENOUGH)) + 1
    kernels = [estimator.kernels_[j] for j in sorted(order[:needed])]
    rows: Any = clone(model[0]).fit_transform(problem.X, problem.y)
    tol = estimator.tol / max(1.0, estimator.C)  # the accuracy that the fit will require
    features = count_features(kernels, rows, normalize=estimator.normalize, tol=tol)
    n, n_outputs = len(problem.y), len(estimator.intercept_)
    if features is not None and float(n) * sum(features) ** 2 * n_outputs <= _WORK:
        return kernels, None
    if not may_compute(kernels, rows, estimator.normalize, estimator.memory_limit):
        return None, None
    share = len(estimator.support_) / int(model[0].n_samples_seen_)
    pair = _PER_PAIR + _PER_COLUMN * np.shape(rows)[1]
    seconds = pair * share * float(n) ** 2 * n_outputs
    return (kernels if seconds <= _SECONDS else None), seconds


def _time(seconds: float) -> str:
    return f"{max(1.0, seconds):.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
