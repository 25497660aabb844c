"""Compare methods with those of scikit-learn by nested cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from kernelweave._summary import TITLES
from kernelweave._types import Floats
from kernelweave.errors import DataError, InputError

from .choosing import Announce, encode_target, silent
from .columns import note_columns
from .fitting import choose_model
from .methods import COMPARED, METHODS, Settings, check_sources, choose_method, for_method
from .planning import make_folds, sample_rows
from .problem import Problem, make_problem
from .reference_models import reference_models
from .scoring import paired_difference, row_losses, total_score

if TYPE_CHECKING:
    import pandas as pd

USUAL_SECONDS = 120.0  # time to spend where none is given
_OURS = ("auto",)  # compared unless others are asked for
_INNER = 3  # folds on which reference models choose their options
_LEAST_ROWS = 200  # rows that are kept whatever the budget
_SURE = 1.96  # standard errors of a 95% interval


@dataclass(frozen=True)
class Comparison:
    """Scores of several methods on the same folds.

    Attributes
    ----------
    measure : str
        "AUC" of two classes, "accuracy" of more, or "R2".
    scores : dict of ndarray of shape (n_folds,)
        By the name of the method, best mean first.
    seconds : dict of float
        Mean time for one fold, with the choice of options.
    n_rows : int
        Rows that were used.
    behind : dict of tuple of two floats
        By the name: how much the score is smaller than that of the best method, and the standard
        error of that, from the losses of the same rows.
    notes : tuple of str
        A sentence for every step that changed the data.
    """

    measure: str
    scores: dict[str, Floats]
    seconds: dict[str, float]
    n_rows: int
    behind: dict[str, tuple[float, float]]
    notes: tuple[str, ...] = ()

    def summarize(self) -> list[str]:
        """Return the result in sentences: the best method, and how far the others are behind.

        Returns
        -------
        sentences : list of str
            The best first.
        """
        names = list(self.scores)
        best = float(self.scores[names[0]].mean())
        lines = [f"Best: {names[0]}, {self.measure} {best:.3f} in the mean of the folds."]
        for name in names[1:]:
            gap, error = self.behind[name]
            ends = f"95% interval {gap - _SURE * error:.3f} to {gap + _SURE * error:.3f}"
            sure = "significant" if gap > _SURE * error else "may be chance"
            lines.append(f"{name} is {gap:.3f} behind ({ends}; {sure}).")
        return lines

    def to_frame(self) -> pd.DataFrame:
        """Return a table with the mean, its standard error and the time of every method.

        The standard error is that of the mean over folds. Folds share training rows, so the true
        one is somewhat larger.

        Returns
        -------
        frame : pandas.DataFrame
            ``method``, ``mean``, ``standard_error``, ``behind`` (the best), its
            ``behind_error``, and ``seconds``, best first.
        """
        import pandas as pd

        lines = [
            (
                name,
                s.mean(),
                s.std(ddof=1) / np.sqrt(len(s)),
                *self.behind[name],
                self.seconds[name],
            )
            for name, s in self.scores.items()
        ]
        names = ["method", "mean", "standard_error", "behind", "behind_error", "seconds"]
        return pd.DataFrame(lines, columns=names)

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
    groups: str | None = None,
    folds: int = 5,
    max_rows: int | None = None,
    seconds: float | None = None,
    settings: Settings | None = None,
    sources: Mapping[str, Sequence[str]] | None = None,
    missing: str = "fill",
    announce: Announce = silent,
) -> Comparison:
    """Compare methods by nested cross-validation.

    All methods see the same folds, and each chooses its options on the training part alone: ours
    as `fit_table` does, an SVM and a linear model their penalties, gradient boosting its learning
    rate. CatBoost, LightGBM and xRFM take part where they are installed.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    target : str
        The column to predict.
    methods : sequence of str
        Ours: "auto", "metric", "linear", "svm", or keys of ``METHODS`` other than "pairs".
    task : {"auto", "classification", "regression"}
        What the target is.
    ignore : sequence of str
        Columns to leave out.
    groups : str, optional
        The column that says which rows belong together; see `fit_table`.
    folds : int
        Outer folds.
    max_rows : int, optional
        Maximum number of rows, drawn by class; None: as many as the time allows.
    seconds : float, optional
        About how long it may take, which limits the rows; None: two minutes.
    settings : Settings, optional
        Options of our methods.
    sources : dict of str to sequence of str, optional
        Columns of each source, for our methods; see `make_problem`. "auto" is then "mkl".
    missing : {"fill", "refuse", "off", "complete"}
        What our methods do with missing values; the others fill them, or take them as they are.
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
    >>> names = sorted(compare_table(frame, "y", methods=["mkl"], folds=3).scores)
    >>> names[:4]
    ['SVM', 'gradient boosting', 'kernelweave mkl', 'linear model']
    """
    settings = settings or Settings()
    columns: dict[str, Any] = {"ignore": ignore, "groups": groups, "sources": sources}
    problem = make_problem(frame, target, task=task, missing=missing, **columns)
    if problem.has_own_kernels:
        methods = ["mkl" if name == "auto" else name for name in methods]
    for name in methods:
        if name in COMPARED:
            check_sources(problem, name)
        elif name != "auto":
            _check_method(problem, name)
    notes = [*problem.notes, *note_columns(problem.kinds)]
    budget = USUAL_SECONDS if seconds is None else seconds
    limit = rows_in_time(budget, folds) if max_rows is None else max_rows
    rows = sample_rows(problem, limit, settings.seed)
    if len(rows) < len(problem.y):
        notes.append(
            f"{len(rows)} of {len(problem.y)} rows are compared on, drawn at random; on all rows "
            "every method would be better, and gradient boosting gains most (--time, --max-rows)"
        )
        problem = problem.take(rows)
    _check_folds(problem, folds)
    measure = "r2" if problem.regression else "roc_auc" if _two(problem) else "accuracy"
    scores: dict[str, list[float]] = {}
    losses: dict[str, list[Floats]] = {}
    spent: dict[str, list[float]] = {}
    codes = encode_target(problem)
    parts = make_folds(problem, folds, settings.seed)
    for k, (train, test) in enumerate(parts):
        models = _models(problem.take(train), methods, settings)
        for i, (name, fit) in enumerate(models.items()):
            announce(f"fold {k + 1} of {len(parts)}: {name}", (k + i / len(models)) / len(parts))
            began = time.perf_counter()
            # On few rows OpenMP's threads mostly wait for each other.
            with warnings.catch_warnings(), threadpool_limits(1):
                warnings.simplefilter("ignore")  # of models that are not kept
                predicted = _predict(fit(), problem, test)
            spent.setdefault(name, []).append(time.perf_counter() - began)
            scores.setdefault(name, []).append(total_score(measure, codes[test], predicted))
            own = row_losses(measure, codes[test], predicted)
            losses.setdefault(name, []).append(own)
    order = sorted(scores, key=lambda name: -float(np.mean(scores[name])))
    unit = float(np.var(codes)) if problem.regression else 1.0  # R2 divides by the variance
    stacked = {name: np.concatenate(values) / unit for name, values in losses.items()}
    return Comparison(
        TITLES[measure],
        {name: np.array(scores[name]) for name in order},
        {name: float(np.mean(spent[name])) for name in order},
        len(rows),
        {name: paired_difference(stacked[order[0]], stacked[name]) for name in order},
        tuple(notes),
    )


def rows_in_time(seconds: float, folds: int) -> int:
    """Return about how many rows can be compared on in a time: nested choices take most of it."""
    per_fold = seconds / folds
    # About 8 ms a row, of which 4 are for the choice among our candidates, and the SVM's square.
    found = 0.5 * (-8e-3 + np.sqrt(6.4e-5 + 4 * 1.5e-6 * per_fold)) / 1.5e-6
    return max(_LEAST_ROWS, int(found))


def _two(problem: Problem) -> bool:
    return not problem.regression and problem.y.nunique() == 2


def _check_method(problem: Problem, name: str) -> None:
    if name == "pairs" or name not in METHODS:
        known = ", ".join(["auto", *COMPARED, *(name for name in METHODS if name != "pairs")])
        raise InputError(f"methods: must be out of {known}, got {name!r}.")
    choose_method(problem, name)


def _models(
    train: Problem, methods: Sequence[str], settings: Settings
) -> dict[str, Callable[[], Any]]:
    """Return functions that choose the options of a model and fit it."""
    ours = {f"kernelweave {name}": partial(_fit_ours, train, name, settings) for name in methods}
    folds = make_folds(train, _INNER, settings.seed)
    references = reference_models(train, folds)
    return ours | {name: partial(model.fit, train.X, train.y) for name, model in references.items()}


def _fit_ours(train: Problem, name: str, settings: Settings) -> Any:
    return choose_model(for_method(train, name), name, settings, test_share=0).model


def _predict(model: Any, problem: Problem, test: Any) -> Floats:
    """Return predictions in the form that scores take: numbers, or a column for each class."""
    X = problem.X.iloc[test]
    if problem.regression:
        return np.asarray(model.predict(X), dtype=np.float64)
    if _two(problem):
        if hasattr(model, "predict_proba"):
            values = np.asarray(model.predict_proba(X))[:, 1]
        else:
            values = np.asarray(model.decision_function(X))
        return np.column_stack([-values, values])
    labels = np.ravel(model.predict(X))
    return np.asarray(labels[:, None] == np.unique(problem.y), dtype=np.float64)


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
