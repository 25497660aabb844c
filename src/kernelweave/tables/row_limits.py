"""Fit the kernels that matter to all rows of a large table, where that takes minutes at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from kernelweave.banks.nystroem.build import count_features
from kernelweave.kernels import Kernel

from .choosing import Member, build_model
from .methods import Settings
from .planning import sample_rows
from .problem import Problem
from .sureness import SureFit

_ENOUGH = 0.95  # share of the function's squared norm that the selected kernels must carry
_MANY_ROWS = 5000  # from which on not all kernels are fitted to all rows
_WORK = 2e10  # rows x features^2 x outputs that take about a minute on two cores


def fit_many_rows(
    members: Sequence[Member], problem: Problem, settings: Settings
) -> tuple[SureFit, list[str], list[str]]:
    """Fit a model of many kernels, with a note or a warning where there are more than 5000 rows."""
    n, limit = len(problem.y), _MANY_ROWS
    if n <= limit:
        return build_model(members, problem, settings), [], []
    first = build_model(members, problem.take(sample_rows(problem, limit, settings.seed)), settings)
    kernels = kernels_for_all(first.model, problem)
    if kernels is None:
        warning = (
            f"{limit} of {n} rows are fitted to, drawn at random, since all of them would take "
            "long (--max-rows changes that)"
        )
        return first, [], [warning]

    def make(setting: dict[str, Any], task: Any) -> Any:
        return members[0].candidate.make(setting, task).set_params(kernels=kernels)

    (member,) = members
    chosen = replace(member, candidate=replace(member.candidate, make=make))
    note = (
        f"all rows are fitted to {len(kernels)} of {len(first.model[-1].kernels_)} kernels, those "
        f"that carry {_ENOUGH:.0%} of a fit to {limit} rows drawn at random (--max-rows {limit} "
        "keeps to that fit)"
    )
    return build_model((chosen,), problem, settings), [note], []


def kernels_for_all(model: Pipeline, problem: Problem) -> list[Kernel] | None:
    """Return the kernels that carry most of the norm of a model fitted to some rows.

    None where a Nystroem fit of them to all rows would take long: for several kernels on many
    columns at once, on categories of many values or on texts.
    """
    estimator = model[-1]
    order = np.argsort(-estimator.contributions_, kind="stable")
    needed = int(np.searchsorted(np.cumsum(estimator.contributions_[order]), _ENOUGH)) + 1
    kernels = [estimator.kernels_[j] for j in sorted(order[:needed])]
    rows: Any = clone(model[0]).fit_transform(problem.X, problem.y)
    tol = estimator.tol / max(1.0, estimator.C)  # the accuracy that the fit will require
    features = count_features(kernels, rows, normalize=estimator.normalize, tol=tol)
    if features is None:
        return None
    work = float(len(problem.y)) * sum(features) ** 2 * len(estimator.intercept_)
    return kernels if work <= _WORK else None
