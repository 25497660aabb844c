"""Attributions of kernel models."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from kernelweave._types import Floats
from kernelweave.errors import InputError
from kernelweave.estimators.terms import KernelTerm, KernelTerms
from kernelweave.kernels.base import Rows

from .game import Game, Shares, attribute, mean_and_error


@attribute.register
def attribute_kernels(terms: KernelTerms, game: Game) -> Shares:
    """Return the values of columns or of kernels."""
    if game.by == "rule":
        raise InputError(
            "by: 'rule' needs a model that consists of rules, such as RuleEnsembleClassifier."
        )
    X, Z = terms.check(game.rows), terms.check(game.background)
    if game.by == "kernel":
        return _by_kernel(terms, X, Z, game)
    raise NotImplementedError


def _by_kernel(terms: KernelTerms, X: Any, Z: Any, game: Game) -> Shares:
    """Return ``f_j(x) - mean f_j(z)``: the model is a sum over its kernels."""
    values, errors, base = [], [], terms.intercept.astype(np.float64)
    at_rows: dict[Hashable, Rows] = {}
    at_background: dict[Hashable, Rows] = {}
    for term in terms.terms:
        mean, error = mean_and_error(_values(term, Z, at_background), game)
        values.append(_values(term, X, at_rows) - mean)
        errors.append(np.broadcast_to(error, values[-1].shape))
        base = base + mean
    names = tuple(term.name for term in terms.terms)
    return Shares(names, np.stack(values, axis=1), base, np.stack(errors, axis=1))


def _values(term: KernelTerm, X: Any, known: dict[Hashable, Rows]) -> Floats:
    """Return the values of a term at the rows of a table."""
    block: Any = 1.0
    for kernel, rows in term.factors:
        block = block * kernel.block(kernel.prepare_once(X, known), rows)
    return np.asarray(block @ term.coef)
