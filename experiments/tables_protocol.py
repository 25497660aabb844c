"""One result of the comparison on one table: fit to a division, score, log loss and seconds."""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from .store import Record
from .tables_data import REGRESSION, TABLES, divide
from .tables_methods import METHODS, score, values_for_score

_LEAST = 1e-15  # probabilities are kept away from 0 by this, as scikit-learn does


def evaluate(table: str, rows: int, division: int, method: str) -> Record:
    """Fit a method to the training rows of a division and score it on its test rows.

    The score is None where the method is not meant for that many classes.
    """
    task = TABLES[table].task
    part = divide(table, rows, division)
    labels = None if task == REGRESSION else np.unique(part.y.astype(str))
    record: Record = {
        "table": table,
        "rows": rows,
        "division": division,
        "method": method,
        "score": None,
        "n_train": len(part.y),
    }
    if labels is not None and len(labels) > METHODS[method].most_classes:
        return record
    model = METHODS[method].make(task)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # of rivals and of ours: scores say what is wrong
        started = time.process_time()
        model.fit(part.X, part.y)
        seconds = time.process_time() - started
        found = score(task, part.y_test, values_for_score(task, model, part.X_test))
        loss = None
        if labels is not None and hasattr(model, "predict_proba"):
            shares = np.clip(model.predict_proba(part.X_test), _LEAST, 1.0)
            shares /= shares.sum(axis=1, keepdims=True)
            loss = float(log_loss(part.y_test.astype(str), shares, labels=labels))
    record |= {"score": found, "log_loss": loss, "seconds": seconds}
    if method == "metric":
        record |= {"n_columns": len(model.encoded_names_), "step": model.step_}
    return record
