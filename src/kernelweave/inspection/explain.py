"""Which columns, sources, kernels or rules made a prediction: exact Shapley values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kernelweave._declaration import declared
from kernelweave._summary import column_names, listed
from kernelweave._threads import threads
from kernelweave.banks.nystroem.build import even_rows
from kernelweave.errors import InputError, InputTypeError

from . import kernels, rules  # noqa: F401  register the branches of kernel models and of rules
from .game import Game, Players, Shares, attribute, layout
from .names import find_name
from .result import Attributions
from .tables import cells, merge_equal, model_columns, pick_rows

MOST_BACKGROUND = 500  # rows in use; more change values less than their standard errors
_LEAST_BACKGROUND = 20  # rows of X that may serve as their own background
_MOST_PAIRED = 64  # players of which pairs are computed
_BY = ("column", "source", "kernel", "rule")
_VALUES = ("joint", "independent", "functional")


def explain(
    model: Any,
    X: Any,
    background: Any = None,
    *,
    by: str | Mapping[str, Sequence[Any]] = "column",
    value: str = "joint",
    output: Any = None,
    interactions: bool = False,
    n_permutations: int | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Attributions:
    """Explain predictions by exact Shapley values.

    The decision value (of a classifier) or prediction (of a regressor) of each row is compared
    with the mean over the background; the difference is shared among the players.

    Parameters
    ----------
    model : estimator, Pipeline or search
        A fitted estimator of kernelweave that predicts, or a pipeline or search around one.
    X : array, sparse matrix or data frame
        Rows to explain.
    background : array, sparse matrix or data frame, optional
        Rows to compare with, such as the training rows; at most 500 of them are used, spread
        evenly. None: the rows of ``X``, of which there must be 20.
    by : {"column", "source", "kernel", "rule"} or dict
        The players: single columns; sources (the groups of `views`, or columns that kernels
        connect); kernels; rules; or groups of columns by name, as in ``{"blood": ["iron"]}``, with
        columns in no group as players of their own.
    value : {"joint", "independent", "functional"}
        How absent columns are filled: together from a row of the background; each on its own from
        the rows of the background, which is faster; or not at all, by setting their factor in
        product kernels to one, which no input attains and is offered for comparison with PKeX and
        shapiq only.
    output : label, name or number, optional
        One output of several, such as a class; None: all.
    interactions : bool
        Whether to compute pairwise interactions too, of 64 players at most.
    n_permutations : int, optional
        Sample this many permutations for each row where values cannot be computed exactly: columns
        compared together by a kernel that is not a product or sum over them. None: models with a
        learned metric and combinations of probabilities are sampled with about 500 permutations,
        all else must be exact.
    random_state : int
        Seed of the sample.
    n_jobs : int or None
        Threads; None: all that the process may use. The result does not depend on it.

    Returns
    -------
    attributions : Attributions
        Values, base values, standard errors and names.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernelweave import MKLClassifier
    >>> from kernelweave.inspection import explain
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = MKLClassifier().fit(X, y == 0)
    >>> e = explain(model, X[:5], background=X)
    >>> bool(abs(e.predictions - model.decision_function(X[:5])).max() < 1e-9)
    True
    """
    chosen = getattr(model, "best_estimator_", model)
    first = chosen.steps[0][1] if isinstance(chosen, Pipeline) else chosen
    estimator = chosen[-1] if isinstance(chosen, Pipeline) else chosen
    _check_model(estimator)
    if isinstance(by, str):
        by = _BY[find_name(by, _BY, "by")]
    value = _VALUES[find_name(value, _VALUES, "value")]
    rows = model_columns(first, X)
    if not rows.shape[0]:
        raise InputError("X: has no rows.")
    table, weights, n_background, correction = _background(first, rows, background)
    names = column_names(first, rows.shape[1])
    players = Players(tuple(names), tuple((j,) for j in range(len(names))))
    if isinstance(by, Mapping):
        players = _grouped(players, by, names)
    game = Game(
        rows,
        table,
        weights,
        n_background,
        correction,
        players,
        by=by if isinstance(by, str) else "column",
        value=value,
        interactions=bool(interactions),
        n_permutations=n_permutations,
        random_state=random_state,
    )
    with threads(n_jobs):
        if game.by == "source":
            game = replace(game, players=_sources(chosen, game), by="column")
        if game.interactions and game.by == "column" and len(game.players) > _MOST_PAIRED:
            raise InputError(
                f"interactions: at most {_MOST_PAIRED} players have pairs, got "
                f"{len(game.players)}. Hint: group columns with by=."
            )
        shares = shares_of(chosen, game)
    return _result(estimator, game, shares, output)


def shares_of(model: Any, game: Game) -> Shares:
    """Return the values of the players of one model, which may be a pipeline."""
    estimator = model[-1] if isinstance(model, Pipeline) else model
    return attribute(estimator._terms(), game)


def _sources(model: Any, game: Game) -> Players:
    raise NotImplementedError


def _check_model(estimator: Any) -> None:
    if declared(estimator) is None:
        raise InputTypeError(
            "model: must be an estimator of kernelweave, or a pipeline or search around one, "
            f"got {type(estimator).__name__}."
        )
    if not hasattr(estimator, "_terms"):
        raise InputTypeError(
            f"model: {type(estimator).__name__} has no decision or prediction to explain."
        )
    check_is_fitted(estimator)


def _background(first: Any, rows: Any, given: Any) -> tuple[Any, Any, int, float]:
    """Return background rows, their weights, their number and the factor of standard errors."""
    if given is None:
        if rows.shape[0] < _LEAST_BACKGROUND:
            raise InputError(
                f"background: X has {rows.shape[0]} rows, too few to be compared with each other; "
                "pass training rows, as in explain(model, X, background=X_train)."
            )
        given = rows
    table = model_columns(first, given, "background")
    n = table.shape[0]
    if not n:
        raise InputError("background: has no rows; pass training rows.")
    correction = 1.0
    if n > MOST_BACKGROUND:
        table = pick_rows(table, even_rows(n, MOST_BACKGROUND))
        correction = float(np.sqrt(1.0 - table.shape[0] / n))
    used = table.shape[0]
    table, weights = merge_equal(table)
    return table, weights, used, correction


def _grouped(players: Players, groups: Mapping[str, Sequence[Any]], names: list[str]) -> Players:
    """Return the groups, and the columns in no group."""
    owner: dict[int, str] = {}
    found: dict[str, list[int]] = {}
    for group, columns in groups.items():
        listed_columns = [columns] if isinstance(columns, str | int) else list(columns)
        if not listed_columns:
            raise InputError(f"by: the group {group!r} has no columns.")
        places = found.setdefault(str(group), [])
        for column in listed_columns:
            place = _place(column, names, str(group))
            if place in owner:
                raise InputError(
                    f"by: column {names[place]!r} is in the groups {owner[place]!r} and "
                    f"{str(group)!r}; it may be in one only."
                )
            owner[place] = str(group)
            places.append(place)
    rest = [j for j in range(len(names)) if j not in owner]
    if clash := [names[j] for j in rest if names[j] in found]:
        raise InputError(f"by: {listed(map(repr, clash))} is a group and a column in no group.")
    return Players(
        (*found, *(names[j] for j in rest)),
        (*(tuple(places) for places in found.values()), *((j,) for j in rest)),
    )


def _place(column: Any, names: list[str], group: str) -> int:
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        if -len(names) <= column < len(names):
            return int(column) % len(names)
        raise InputError(
            f"by: group {group!r} has column {column}, but there are {len(names)} columns."
        )
    return find_name(column, names, f"by: a column of group {group!r}")


def _result(estimator: Any, game: Game, shares: Shares, output: Any) -> Attributions:
    n_outputs = len(shares.base)
    outputs, labels = _outputs(estimator, n_outputs)
    pairs = None
    if shares.interactions is not None:
        pairs = layout(shares.values, shares.interactions)
    arrays: dict[str, Any] = {
        "values": shares.values,
        "base_values": np.tile(shares.base, (len(shares.values), 1)),
        "errors": shares.errors,
        "interaction_values": pairs,
    }
    if n_outputs == 1:
        arrays = {name: None if a is None else a[..., 0] for name, a in arrays.items()}
    found = Attributions(
        **arrays,
        data=_data(game, shares),
        feature_names=shares.names,
        output_names=outputs,
        nodes=shares.nodes,
        error_bound=shares.error_bound,
        n_background=game.n_background,
        n_permutations=shares.n_permutations,
        quantity="decision" if is_classifier(estimator) else "prediction",
    )
    if output is None:
        return found
    if len(labels) == len(outputs) + 1:  # two classes
        if find_name(output, labels, "output") == 0:
            raise InputError(
                f"output: two classes have one decision, for {labels[1]!r}, got {output!r}; that "
                "of the other class has the opposite sign."
            )
        return found
    by_number = isinstance(output, int | np.integer) and output not in labels
    return found[..., output if by_number else find_name(output, labels, "output")]


def _outputs(estimator: Any, n_outputs: int) -> tuple[tuple[str, ...], list[Any]]:
    """Return names of the outputs, and the labels by which one is chosen."""
    labels = getattr(estimator, "classes_", None)
    if labels is not None and is_classifier(estimator):
        found = labels.tolist()
        return tuple(map(str, found[-n_outputs:])), found
    if getattr(estimator, "_several_levels", False):
        levels = list(estimator._levels())
        return tuple(f"quantile {level:g}" for level in levels), levels
    names = ["prediction"] if n_outputs == 1 else [f"output {k}" for k in range(n_outputs)]
    return tuple(names), list(names)


def _data(game: Game, shares: Shares) -> Any:
    """Return the columns of the players; None for players that are not one column."""
    if shares.data is not None:
        return shares.data
    if game.by != "column":
        return np.full(shares.values.shape[:2], None, dtype=object)
    single = [columns[0] if len(columns) == 1 else -1 for columns in game.players.columns]
    if min(single, default=-1) >= 0:
        return cells(game.rows, single)
    out = np.full((game.rows.shape[0], len(single)), None, dtype=object)
    for j, column in enumerate(single):
        if column >= 0:
            out[:, j] = cells(game.rows, [column])[:, 0]
    return out
