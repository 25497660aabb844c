"""Which columns, sources, kernels or rules made a prediction: exact Shapley values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kernelweave._summary import column_names
from kernelweave._threads import threads
from kernelweave.banks.nystroem.build import even_rows
from kernelweave.errors import InputError, InputTypeError

from . import kernels, rules  # noqa: F401  register the branches of kernel models and of rules
from .game import Game, Players, Shares, attribute, layout, linked
from .models import check_model, last_step, through_steps
from .names import find_name
from .players import grouped, sources
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
        How many permutations to sample for each row where values cannot be computed exactly: more
        than eight columns compared together by a kernel that is not a product or sum over them,
        such as a learned metric, or members that do not add up. None: about 500. As many as there
        are background rows, or fewer: one permutation for each of them, which is much faster for a
        learned metric, whose permutations are then the same for all rows and for both parts of the
        kernel. Members of five to eight columns are sampled then, too.
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
    estimator = last_step(chosen)
    check_model(estimator)
    check_is_fitted(estimator)
    if isinstance(by, str):
        by = _BY[find_name(by, _BY, "by")]
    elif not isinstance(by, Mapping):
        raise InputTypeError(
            "by: must be 'column', 'source', 'kernel', 'rule' or a dict of groups, got "
            f"{type(by).__name__}."
        )
    value = _VALUES[find_name(value, _VALUES, "value")]
    whole = isinstance(n_permutations, int | np.integer)
    if n_permutations is not None and not (whole and n_permutations >= 1):
        raise InputError(f"n_permutations: must be 1 or more, got {n_permutations!r}.")
    if not isinstance(random_state, int | np.integer) or random_state < 0:
        raise InputError(f"random_state: must be a whole number >= 0, got {random_state!r}.")
    first = chosen.steps[0][1] if isinstance(chosen, Pipeline) else chosen
    rows = model_columns(first, X)
    if not rows.shape[0]:
        raise InputError("X: has no rows.")
    table, weights, n_background, correction = _background(first, rows, background)
    names = tuple(column_names(first, rows.shape[1]))
    players = Players(names, tuple((j,) for j in range(len(names))))
    if isinstance(by, Mapping):
        players = grouped(by, names)
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
        inner, same = through_steps(chosen, game)
        if not same:
            if isinstance(by, Mapping):
                raise InputError(
                    "by: the steps of the pipeline mix columns of different groups; explain the "
                    "last step on transformed rows."
                )
            game = inner
        if inner.by == "source":
            found = linked(estimator._terms(), inner)
            inner = replace(inner, players=sources(inner.players, found), by="column")
            game = replace(game, players=sources(game.players, found), by="column")
        if inner.interactions and inner.by == "column" and len(inner.players) > _MOST_PAIRED:
            raise InputError(
                f"interactions: at most {_MOST_PAIRED} players have pairs, got "
                f"{len(inner.players)}. Hint: group columns with by=."
            )
        shares = attribute(estimator._terms(), inner)
    return _result(estimator, game, shares, output)


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
        "shared_errors": None if shares.shared is None else shares.shared / len(shares.values),
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
    tasks = getattr(estimator, "tasks_", None)
    if tasks is not None and len(tasks) == n_outputs:
        return tuple(map(str, tasks.tolist())), tasks.tolist()
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
