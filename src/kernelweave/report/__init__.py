"""HTML reports on fitted models: how good, what decides, then weights, certificate and data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelweave.errors import DataError, InputTypeError
from kernelweave.io import FitRecord
from kernelweave.io.record import check_record

__all__ = ["to_html", "write"]


def to_html(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    cv: Any = 5,
    scoring: Any = None,
    record: FitRecord | None = None,
    evaluation: Any = None,
    data_name: str | None = None,
    warnings: Sequence[str] = (),
    title: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> str:
    """Return a self-contained page about a fitted model.

    The first screen says what is predicted, how good the model is beside others, and what decides.
    Sections follow on scores, on the method (kernels, rules, structure, suspect labels, pairs,
    clusters, radius), on the optimiser, the data, parameters and versions. The page loads nothing
    from the network. Pages need jinja2, which ``pip install "kernelweave[report]"`` brings.

    Parameters
    ----------
    model : estimator of kernelweave, or a pipeline or search around one
        A fitted model.
    X : array, sparse matrix or data frame, optional
        Rows for the summary of the data, best those of `fit`.
    y : array of shape (n_samples,), optional
        Their target. With it, the method is measured: models are fitted again, one per fold.
    cv : int, splitter or None
        Folds; a number means that many in random order, the same in every call. None skips the
        measurement.
    scoring : str, callable, list or dict, optional
        Scores, as in scikit-learn. None: accuracy, balanced accuracy and (two classes)
        the area under the ROC curve; R squared and the mean absolute error for regression.
    record : FitRecord, optional
        How the model compared when it was fitted, as its file keeps it:
        ``kernelweave.io.describe(path)["record"]``.
    evaluation : Evaluation, optional
        Scores of this model on rows that it was not fitted to, of `kernelweave.tables`.
    data_name : str, optional
        Name of the table that was evaluated.
    warnings : sequence of str
        Sentences for the top of the page, before those of the record.
    title : str, optional
        Heading; by default the name of the target and the method.
    facts : dict, optional
        Further lines for "How to reproduce", such as the name of a file.

    Returns
    -------
    page : str
        HTML.

    Examples
    --------
    >>> from kernelweave import MKLClassifier
    >>> from kernelweave.report import to_html
    >>> model = MKLClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> page = to_html(model, title="Heights & widths")
    >>> "<h1>Heights &amp; widths</h1>" in page
    True
    """
    from .page import render
    from .subject import Subject

    if title is not None and not isinstance(title, str):
        raise InputTypeError(f"title: must be text, got {type(title).__name__}.")
    check_record(record)
    shown = {**({} if record is None else record.facts), **(facts or {})}
    measured = (record, evaluation, data_name, tuple(warnings))
    return render(Subject(model, X, y, cv, scoring, shown, *measured), title)


def write(
    model: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    cv: Any = 5,
    scoring: Any = None,
    record: FitRecord | None = None,
    evaluation: Any = None,
    data_name: str | None = None,
    warnings: Sequence[str] = (),
    title: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write a page about a fitted model to a file.

    Parameters
    ----------
    model : estimator of kernelweave, or a pipeline or search around one
        A fitted model.
    path : str or path
        The file; an existing one is replaced.
    X, y, cv, scoring, record, evaluation, data_name, warnings, title, facts
        As in `to_html`.

    Returns
    -------
    path : Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from kernelweave import MKLClassifier, report
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"]
    >>> model = MKLClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.write(model, f"{folder}/heights.html", X, y, cv=2).name
    'heights.html'
    """
    from kernelweave.io.archive import replacing

    try:
        where = Path(path).expanduser()
    except TypeError:
        raise InputTypeError(f"path: must be a string or a path, got {path!r}.") from None
    page = to_html(
        model,
        X,
        y,
        cv=cv,
        scoring=scoring,
        record=record,
        evaluation=evaluation,
        data_name=data_name,
        warnings=warnings,
        title=title,
        facts=facts,
    )
    try:
        with replacing(where) as stream:
            stream.write(page.encode("utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"The file {where} cannot be written: {reason}.") from error
    return where
