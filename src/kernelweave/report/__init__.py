"""HTML reports on fitted models: weights, performance, convergence, data, and how to reproduce."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelweave.errors import DataError, InputTypeError

from .held_out import HeldOut

__all__ = ["HeldOut", "to_html", "write"]


def to_html(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    cv: Any = 5,
    scoring: Any = None,
    held_out: HeldOut | None = None,
    title: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> str:
    """Return a self-contained page about a fitted model.

    It holds a headline, the weights of the kernels, the convergence of the fit, its performance,
    sections of the method (rules, structure, suspect labels, pairs, clusters, radius), a summary of
    the data, parameters and versions. It loads nothing from the network. Pages need jinja2, which
    ``pip install "kernelweave[report]"`` brings.

    Parameters
    ----------
    model : estimator of kernelweave, or a pipeline or search around one
        A fitted model.
    X : array, sparse matrix or data frame, optional
        Rows for the summary of the data, best those of `fit`.
    y : array of shape (n_samples,), optional
        Their target. With it, performance is measured: the model is fitted once per fold.
    cv : int, splitter or None
        Folds; a number means that many in random order, the same in every call. None skips the
        measurement.
    scoring : str, callable, list or dict, optional
        Scores, as in scikit-learn. None: accuracy, balanced accuracy and (two classes)
        the area under the ROC curve; R squared and the mean absolute error for regression.
    held_out : HeldOut, optional
        A score that was measured before, to be shown where ``cv`` is None.
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
    if held_out is not None and not isinstance(held_out, HeldOut):
        raise InputTypeError(
            f"held_out: must be a kernelweave.report.HeldOut, got {type(held_out).__name__}."
        )
    return render(Subject(model, X, y, cv, scoring, dict(facts or {}), held_out), title)


def write(
    model: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    cv: Any = 5,
    scoring: Any = None,
    held_out: HeldOut | None = None,
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
    X, y, cv, scoring, held_out, title, facts
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
    page = to_html(model, X, y, cv=cv, scoring=scoring, held_out=held_out, title=title, facts=facts)
    try:
        with replacing(where) as stream:
            stream.write(page.encode("utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"The file {where} cannot be written: {reason}.") from error
    return where
