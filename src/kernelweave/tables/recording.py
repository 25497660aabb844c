"""The record of a fit that is kept in its model file, and the rows it was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelweave._summary import count
from kernelweave.io import FitRecord, ScoredModel

from .reading import import_pandas
from .verdicts import doubt_choice

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

    from .choosing import Choice
    from .fitting import TableFit

# Names of scores on held-out rows, by their titles.
_NAMES = {"accuracy": "accuracy", "R2": "r2", "area under the ROC curve of pairs": "pairs_auc"}


def record_fit(found: TableFit, facts: Mapping[str, str]) -> FitRecord:
    """Return how a model compared and what its fit warned of.

    Parameters
    ----------
    found : TableFit
        The model, and how it was obtained.
    facts : dict of str
        Further lines for a report, such as the name of the file.

    Returns
    -------
    record : FitRecord
        For `kernelweave.io.save`.
    """
    common: dict[str, Any] = {
        "notes": found.notes,
        "facts": {**facts, "method": found.method},
        "row_hashes": np.sort(hash_rows(found.model, found.problem.X, found.problem.y)),
    }
    warnings = tuple(_sentence(text) for text in found.warnings)
    if found.choice is not None:
        doubts = tuple(doubt_choice(found.choice))
        return _compared(found.choice, found.n_rows, common | {"warnings": (*doubts, *warnings)})
    return _held_out(found, common | {"warnings": warnings})


def _compared(choice: Choice, n_rows: int, common: dict[str, Any]) -> FitRecord:
    models = [
        ScoredModel(
            item.name if item.written else f"{item.name} (reference)",
            {name: float(value) for name, value in item.scores.items()},
            item.rows,
            item.behind if k else None,
            item.chosen_score,
        )
        for k, item in enumerate(choice.ranking)
    ]
    folds = f"in {choice.n_folds} folds" if choice.n_folds > 1 else "of the fit"
    return FitRecord(
        tuple(models),
        f"on {count(models[0].rows, 'row')} left out {folds}",
        choice.interval,
        choice.constant,
        f"The comparison was made with models fitted without those rows; {measured_again(n_rows)}",
        **common,
    )


def measured_again(n_rows: int) -> str:
    """Return that the model in the file has seen all rows."""
    return f"the model in the file was then fitted to all {count(n_rows, 'row')}."


def _held_out(found: TableFit, common: dict[str, Any]) -> FitRecord:
    score = found.held_out
    if score is None:
        return FitRecord((), "", **common)
    name, rows = _NAMES[score["measure"]], score["rows"]
    models = [ScoredModel("this model", {name: score["score"]}, rows)]
    if score["svm_baseline"] is not None:
        trained = f"SVM baseline, fitted to {count(score['svm_baseline_rows'], 'row')}"
        models.append(ScoredModel(trained, {name: score["svm_baseline"]}, rows))
    remark = (
        "These are scores of the model in the file."
        if score["same_model"]
        else f"They are those of a model fitted without those rows; {measured_again(found.n_rows)}"
    )
    return FitRecord(
        tuple(models),
        f"on {count(rows, 'row')} held out",
        score["interval"],
        {name: score["constant_prediction"]},
        remark,
        **common,
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def hash_rows(model: Pipeline, X: pd.DataFrame, y: Any) -> NDArray[Any]:
    """Return a number for each row and its target, equal for equal rows as the model sees them."""
    prepared = model[0].transform(X).reset_index(drop=True)
    target = import_pandas().Series(np.asarray(y).astype(str))
    hashed = import_pandas().util.hash_pandas_object(prepared.assign(**{"": target}), index=False)
    # Half of the bits tell millions of rows apart, save for a few.
    return np.asarray((hashed.to_numpy() >> np.uint64(32)).astype(np.int64))
