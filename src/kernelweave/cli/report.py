"""``kernelweave report``: a page about a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kernelweave.errors import DataError, InputError

from .commands import FILE, check_output, command, model_argument, option, quiet_option
from .terminal import standard_output, write_message

_HELP = """\
Writes one HTML page that needs no network: what is predicted, how good the model is beside others,
what decides, then the results of the method (kernels, rules, structure, suspect labels, pairs,
radius), the optimiser, the data, and how to reproduce it. A model of kernelweave fit brings the
scores of its comparison. With a table of new rows, the model is scored on them as it is. --cv fits
it again on folds of the table, which scores its method.

examples:
  kernelweave report patients.kw
  kernelweave report patients.kw --data new_patients.csv --out patients.html
  kernelweave report rules.kw --data patients.csv --target outcome --cv 10"""


@command("report", _HELP)
@model_argument
@option("--data", "a table with the columns of the model, best of new rows", "FILE", FILE)
@option("--target", "what is predicted (the column that fit was given)", "COLUMN")
@option("--out", "where to write (MODEL with ending .html)", "HTML", FILE)
@option("--cv", "fit the model again on this many folds of the table", "NUMBER", click.IntRange(2))
@option("--title", "heading of the page", "TEXT")
@quiet_option
def report(args: Any) -> int:
    """Load, measure and write."""
    from kernelweave.io import describe, load
    from kernelweave.report import write

    from .live import live

    if args.target is not None and args.data is None:
        raise InputError("--target: names a column of a table, so it needs --data FILE.")
    if args.cv is not None and args.data is None:
        raise InputError("--cv: fits the model again on folds of a table, so it needs --data FILE.")
    out = Path(args.out or f"{Path(args.model).stem}.html")
    check_output("--out", out)  # before measuring
    model, about = load(args.model), describe(args.model)
    versions = ", ".join(f"{name} {version}" for name, version in about["made_by"].items())
    facts = {"Model file": Path(args.model).name, "Model file written by": versions}
    X = y = evaluation = name = None
    warnings: list[str] = []
    with live(args.quiet) as announce:
        if args.data is not None:
            facts["Data file"] = name = Path(args.data).name
            X, y = _data(model, args.data, args.target)
        if y is not None:
            warnings, is_new = _seen(model, about["record"], X, y, name)
            evaluation = _evaluate(model, X, y, announce) if is_new else None
        if args.cv and y is not None:
            X, y = _as_many_rows(model, X, y, args.quiet)
            announce("measuring on folds", 0.0)
        write(
            model,
            out,
            X,
            y,
            cv=args.cv,
            record=about["record"],
            evaluation=evaluation,
            data_name=name,
            warnings=warnings,
            title=args.title,
            facts=facts,
        )
    if not args.quiet:
        standard_output().write(f"{out}\n")
    return 0


def _evaluate(model: Any, X: Any, y: Any, announce: Any) -> Any:
    """Return scores of the model as it is; None for models that predict nothing of a row."""
    import pandas as pd

    from kernelweave._declaration import has_aspect
    from kernelweave.tables import evaluate_table
    from kernelweave.tables.predicting import last_step

    estimator = last_step(model)
    if has_aspect(estimator, "pairs") or has_aspect(estimator, "clusters"):
        return None
    if hasattr(estimator, "tasks_"):
        return None
    frame = pd.DataFrame(X) if not hasattr(X, "assign") else X
    return evaluate_table(model, frame.assign(**{y.name: y}), y.name, announce=announce)


def _seen(model: Any, record: Any, X: Any, y: Any, name: Any) -> tuple[list[str], bool]:
    """Return warnings on rows that the model was fitted to, and whether some are new."""
    from sklearn.pipeline import Pipeline

    from kernelweave.tables.recording import count_seen

    if not isinstance(model, Pipeline):
        return [], True
    if record is None or record.row_hashes is None:
        if len(y) != model[0].n_samples_seen_:
            return [], True
        said = (
            f"{name} has as many rows as the model was fitted to: if they are the same rows, their "
            "scores are too good."
        )
        return [said], True
    seen = count_seen(model, record.row_hashes, X, y)
    if seen == len(y):
        said = (
            f"The rows of {name} are rows that the model was fitted to. Scores on them would be "
            "too good, so those of its fit are shown."
        )
        return [said], False
    if seen:
        said = (
            f"{seen} of the {len(y)} rows of {name} equal rows that the model was fitted to, so "
            "that scores may be too good."
        )
        return [said], True
    return [], True


def _data(model: Any, file: str, target: str | None) -> tuple[Any, Any]:
    """Return the rows of a table in the form that the model takes, and their target."""
    import numpy as np
    from sklearn.base import is_regressor
    from sklearn.pipeline import Pipeline

    from kernelweave.tables import read_for, read_table
    from kernelweave.tables.problem import check_column

    X: Any = read_for(model, file).frame
    estimator = model
    if isinstance(model, Pipeline):
        target, estimator = target or model[0].target_, model[-1]
    elif not hasattr(model, "feature_names_in_"):  # it was fitted to an array
        X = X.to_numpy(dtype=np.float64)
    if target is None:
        return X, None
    classes = getattr(estimator, "classes_", None)
    words = classes is not None and classes.dtype.kind in "OU"
    table = read_table(file, text=[target] if words else ()).frame
    check_column(table, target)
    if len(np.atleast_1d(getattr(estimator, "intercept_", 0.0))) > 1 and classes is None:
        raise InputError("--target: names one column, but this model predicts several targets.")
    there = table[target].notna().to_numpy()
    y = table[target][there].reset_index(drop=True)
    X = X[there].reset_index(drop=True) if hasattr(X, "iloc") else X[there]
    return X, _typed(y, classes, is_regressor(estimator))


def _as_many_rows(model: Any, X: Any, y: Any, quiet: bool) -> tuple[Any, Any]:
    """Draw as many rows as the model was fitted to; with more, folds would take far longer."""
    from sklearn.base import is_classifier
    from sklearn.utils import resample

    limit = model[0].n_samples_seen_ if hasattr(model, "steps") else len(y)
    if len(y) <= limit:
        return X, y
    labels = y if is_classifier(model) else None
    rows = sorted(
        resample(range(len(y)), replace=False, n_samples=limit, stratify=labels, random_state=0)
    )
    if not quiet:
        write_message(
            f"note: the model was fitted to {limit} rows, so it is measured on as many of the "
            f"{len(y)} in the table, drawn at random"
        )
    return X.iloc[rows], y.iloc[rows]


def _typed(y: Any, classes: Any, regression: bool) -> Any:
    """Return the target in the type that the model was fitted to."""
    from kernelweave.tables.reading import is_number

    if regression:
        if not is_number(y):
            raise DataError(f"--target: {y.name!r} must hold numbers, but has {y.iloc[0]!r}.")
        return y.astype(float)
    if classes is None:
        return y
    known = set(classes.tolist())
    if unknown := [value for value in y.unique().tolist() if value not in known]:
        listed = ", ".join(map(str, classes[:8]))
        raise DataError(
            f"--target: {y.name!r} has the value {unknown[0]!r}, which is no class of the model; "
            f"these are: {listed}{', ...' if len(classes) > 8 else ''}."
        )
    return y.astype(classes.dtype if classes.dtype.kind != "U" else object)
