"""Compare methods with those of scikit-learn by nested cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from kernelweave._types import Floats
from kernelweave.errors import DataError, InputError

from .columns import note_columns
from .methods import METHODS, Settings, choose_method, for_method, make_model
from .problem import Problem, make_problem
from .reference_models import reference_models
from .search import FOLDS, Announce, make_splitter, sample_rows, search_cost, silent

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 1000
_OURS = ("mkl", "rules")  # compared unless others are asked for


@dataclass(frozen=True)
class Comparison:
    """Scores of several methods on the same folds.

    Attributes
    ----------
    measure : str
        "accuracy" or "R2".
    scores : dict of ndarray of shape (n_folds,)
        By the name of the method, best mean first.
    seconds : dict of float
        Mean time for one fold, with the choice of options.
    n_rows : int
        Rows that were used.
    notes : tuple of str
        A sentence for every step that changed the data.
    """

    measure: str
    scores: dict[str, Floats]
    seconds: dict[str, float]
    n_rows: int
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return a table with the mean, its standard error and the time of every method.

        The standard error is that of the mean over folds. Folds share training rows, so the true
        one is somewhat larger.

        Returns
        -------
        frame : pandas.DataFrame
            ``method``, ``mean``, ``standard_error`` and ``seconds``, best first.
        """
        import pandas as pd

        lines = [
            (name, s.mean(), s.std(ddof=1) / np.sqrt(len(s)), self.seconds[name])
            for name, s in self.scores.items()
        ]
        return pd.DataFrame(lines, columns=["method", "mean", "standard_error", "seconds"])

    def plot(self, ax: Any = None) -> Any:
        """Draw means with standard errors, and the score on every fold.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ax : matplotlib.axes.Axes
            The axes.
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(7, 1 + 0.5 * len(self.scores)), layout="constrained").subplots()
        table = self.to_frame()
        places = np.arange(len(table))[::-1]
        ax.errorbar(
            table["mean"], places, xerr=table["standard_error"], fmt="o", capsize=4, zorder=3
        )
        for place, scores in zip(places, self.scores.values(), strict=True):
            ax.plot(scores, np.full(len(scores), place), "|", color="0.6", markersize=10)
        ax.set_yticks(places, table["method"])
        ax.set_xlabel(f"{self.measure} on rows left out (mean, one standard error, every fold)")
        ax.margins(y=0.15)
        ax.spines[["top", "right"]].set_visible(False)
        return ax


def compare_table(
    frame: pd.DataFrame,
    target: str,
    *,
    methods: Sequence[str] = _OURS,
    task: str = "auto",
    ignore: Sequence[str] = (),
    folds: int = 5,
    max_rows: int = MAX_ROWS,
    settings: Settings | None = None,
    announce: Announce = silent,
) -> Comparison:
    """Compare methods by nested cross-validation.

    All methods see the same folds, and each chooses its C (gradient boosting: its learning rate) on
    the training part alone.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    target : str
        The column to predict.
    methods : sequence of str
        Ours: keys of ``METHODS`` other than "pairs".
    task : {"auto", "classification", "regression"}
        What the target is.
    ignore : sequence of str
        Columns to leave out.
    folds : int
        Outer folds.
    max_rows : int
        Maximum number of rows, drawn by class.
    settings : Settings, optional
        Options of our methods.
    announce : callable
        Called with the current step and the share of the work that is done.

    Returns
    -------
    comparison : Comparison
        Scores and times.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> x = np.linspace(-3, 3, 90)
    >>> frame = pd.DataFrame({"x": x, "y": np.where(np.abs(x) > 1, "out", "in")})
    >>> sorted(compare_table(frame, "y", methods=["mkl"], folds=3).scores)
    ['SVC', 'gradient boosting', 'kernelweave mkl', 'logistic regression']
    """
    settings = settings or Settings()
    problem = make_problem(frame, target, ignore=ignore, task=task)
    for name in methods:
        if name == "pairs" or name not in METHODS:
            known = ", ".join(name for name in METHODS if name != "pairs")
            raise InputError(f"methods: must be out of {known}, got {name!r}.")
        choose_method(problem, name)
    notes = [*problem.notes, *note_columns(problem.kinds)]
    rows = sample_rows(problem, max_rows, settings.seed)
    if len(rows) < len(problem.y):
        notes.append(f"{len(rows)} of {len(problem.y)} rows are compared on, drawn at random")
        problem = problem.take(rows)
    _check_folds(problem, folds)
    scores: dict[str, list[float]] = {}
    spent: dict[str, list[float]] = {}
    splitter = make_splitter(problem, folds, settings.seed)
    for k, (train, test) in enumerate(splitter.split(problem.X, problem.y)):
        models = _models(problem.take(train), problem.take(test), methods, settings)
        for i, (name, score) in enumerate(models.items()):
            announce(f"fold {k + 1} of {folds}: {name}", (k + i / len(models)) / folds)
            began = time.perf_counter()
            scores.setdefault(name, []).append(score())
            spent.setdefault(name, []).append(time.perf_counter() - began)
    order = sorted(scores, key=lambda name: -float(np.mean(scores[name])))
    return Comparison(
        "R2" if problem.regression else "accuracy",
        {name: np.array(scores[name]) for name in order},
        {name: float(np.mean(spent[name])) for name in order},
        len(rows),
        tuple(notes),
    )


def _models(
    train: Problem, test: Problem, methods: Sequence[str], settings: Settings
) -> dict[str, Callable[[], float]]:
    """Return functions that choose the options of a model, fit and score it."""
    models: dict[str, Callable[[], float]] = {
        f"kernelweave {name}": partial(_score, train, test, name, settings) for name in methods
    }
    references = reference_models(train, make_splitter(train, FOLDS, settings.seed))
    for name, model in references.items():
        models[name] = partial(_score_reference, train, test, model)
    return models


def _score(train: Problem, test: Problem, name: str, settings: Settings) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        train, test = for_method(train, name), for_method(test, name)
        search = search_cost(train, name, settings)
        model = make_model(train, name, settings, 1.0 if search is None else search.C)
        return float(model.fit(train.X, train.y).score(test.X, test.y))


def _score_reference(train: Problem, test: Problem, model: Any) -> float:
    # On few rows OpenMP's threads mostly wait for each other.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        return float(model.fit(train.X, train.y).score(test.X, test.y))


def _check_folds(problem: Problem, folds: int) -> None:
    n, counts = len(problem.y), problem.y.value_counts()
    if not 2 <= folds <= n // 2:
        raise InputError(f"folds: must be between 2 and half of the {n} rows, got {folds}.")
    if not problem.regression and counts.min() < folds:
        rare = str(counts.index[-1])
        raise DataError(
            f"The class {rare!r} has {counts.min()} row(s), fewer than the {folds} folds; leave it "
            "out of the table, or use fewer folds."
        )
