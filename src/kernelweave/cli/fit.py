"""``kernelweave fit``: learn from a table and write a model file."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from kernelweave import (
    Linear,
    MKLClassifier,
    MKLRegressor,
    Overlap,
    RadiusMKLClassifier,
    rbf_ladder,
)
from kernelweave.errors import DataError, InputError
from kernelweave.io import TablePreparer, save

from .console import (
    certificate,
    open_console,
    print_facts,
    print_kernels,
    radius_facts,
    summarize,
    warn_unless_converged,
)
from .tables import Problem, is_number, read_problem

_EPSILON = 0.1  # free zone of regression, in standard deviations of the target


def run(args: argparse.Namespace) -> int:
    """Fit, evaluate, write and report."""
    out = Path(args.out or f"{Path(args.file).name.split('.')[0]}.kw")
    if not out.parent.is_dir() or out.is_dir():  # better said before a long fit than after
        what = "is a folder" if out.is_dir() else "is in a folder that does not exist"
        raise DataError(f"--out: {out} {what}.")
    console = None if args.quiet or args.json else open_console()
    if args.method == "radius" and args.norm not in (1, 2, "uniform"):
        raise InputError(
            f"--norm: must be 1, 2 or 'uniform' with --method radius, got {args.norm:g}; 1 and 2 "
            "only scale the weights there."
        )
    problem = read_problem(args.file, args.target, args.ignore, args.method)
    held_out = evaluate(problem, args) if args.test_share else None
    model = make_model(problem, args)
    began = time.perf_counter()
    fit_model(model, problem.X, problem.y)
    seconds = time.perf_counter() - began
    model[-1].set_params(verbose=0)  # the bar belongs to this terminal, not to the model
    save(model, out)
    summary = summarize(model[-1])
    report = {
        "file": args.file,
        "model": str(out),
        "target": args.target,
        "rows": len(problem.y),
        "columns": list(problem.X.columns),
        "notes": list(problem.notes),
        "held_out": held_out,
        "seconds": seconds,
        **summary,
    }
    if args.json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    elif console is not None:
        _print(console, report)
    warn_unless_converged(summary)
    return 1 if args.strict and not summary["converged"] else 0


def fit_model(model: Pipeline, X: Any, y: Any) -> None:
    """Fit; whether that converged is looked up afterwards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)


def make_model(problem: Problem, args: argparse.Namespace) -> Pipeline:
    """Return the pipeline that ``args`` ask for, not yet fitted."""
    options = {
        "norm": args.norm,
        "tol": args.tol,
        "max_iter": args.max_iter,
        "verbose": int(sys.stderr.isatty() and not args.quiet),
    }
    kernels = offer_kernels(problem, args.per_feature)
    estimator: Any
    if problem.regression:
        unit = float(problem.y.std())
        options |= {"C": args.C * unit, "epsilon": _EPSILON * unit}
        estimator = MKLRegressor(kernels, **options)
    else:
        learner = RadiusMKLClassifier if args.method == "radius" else MKLClassifier
        estimator = learner(kernels, C=args.C, **options)
    return Pipeline([("table", TablePreparer(standardize=args.standardize)), ("model", estimator)])


def split_columns(problem: Problem) -> tuple[list[str], list[str]]:
    """Return the names of the columns of numbers, and of the others."""
    numbers = [name for name in problem.X.columns if is_number(problem.X[name])]
    return numbers, [name for name in problem.X.columns if name not in numbers]


def offer_kernels(problem: Problem, per_feature: bool) -> list[Any]:
    """Return kernels on all columns of a kind, and on each alone where there are several."""
    numbers, texts = split_columns(problem)
    kernels: list[Any] = []
    if numbers:
        kernels += [rbf_ladder(columns=numbers), Linear(columns=numbers)]
    if texts:
        kernels.append(Overlap(columns=texts))
    if per_feature and len(numbers) > 1:
        kernels.append(rbf_ladder(columns=numbers, per_feature=True))
    if per_feature and len(texts) > 1:
        kernels += [Overlap(columns=name) for name in texts]
    return kernels


def evaluate(problem: Problem, args: argparse.Namespace) -> dict[str, Any]:
    """Score the method and a plain SVM on rows that neither has seen."""
    train, test = split(problem, args.test_share, args.seed)
    model, plain = make_model(train, args), make_baseline(train, args.C)
    fit_model(model, train.X, train.y)
    plain.fit(train.X, train.y)
    return {
        "rows": len(test.y),
        "measure": "R2" if problem.regression else "accuracy",
        "score": float(model.score(test.X, test.y)),
        "plain_svm": float(plain.score(test.X, test.y)),
    }


def split(problem: Problem, share: float, seed: int) -> tuple[Problem, Problem]:
    """Hold some rows out, with all classes on both sides where that can be."""
    counts = problem.y.value_counts()
    n_test = share * len(problem.y)
    both = not problem.regression and counts.min() > 1 and n_test >= len(counts)
    parts = train_test_split(
        problem.X,
        problem.y,
        test_size=share,
        random_state=seed,
        stratify=problem.y if both else None,
    )
    train, test = (Problem(parts[i], parts[i + 2], problem.regression, ()) for i in (0, 1))
    return train, test


def make_baseline(problem: Problem, C: float) -> Pipeline:
    """Return a Gaussian SVM with scikit-learn's defaults, on the same information."""
    numbers, texts = split_columns(problem)
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), numbers),
            ("texts", OneHotEncoder(handle_unknown="ignore"), texts),
        ]
    )
    unit = float(problem.y.std()) if problem.regression else 1.0
    svm = SVR(C=C * unit, epsilon=_EPSILON * unit) if problem.regression else SVC(C=C)
    return make_pipeline(columns, svm)


def _print(console: Any, report: dict[str, Any]) -> None:
    task = "a quantity" if report["classes"] is None else f"{len(report['classes'])} classes"
    console.print(
        f"{report['file']}: {report['rows']} rows, {len(report['columns'])} columns to learn from, "
        f"target {report['target']!r} ({task}).",
        soft_wrap=True,
    )
    for note in report["notes"]:
        console.print(f"Note: {note}.", soft_wrap=True)
    print_kernels(console, report)
    facts = [certificate(report), *radius_facts(report), ("fit", f"{report['seconds']:.1f} s")]
    if held_out := report["held_out"]:
        facts += score_facts(held_out)
    print_facts(console, [*facts, ("model", f"{report['model']} (fitted to all rows)")])


def score_facts(held_out: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the score on held-out rows beside that of the plain SVM."""
    where = f"{held_out['measure']} on {held_out['rows']} held-out rows"
    ours, plain = (
        f"{held_out[key]:.1%}" if held_out["measure"] == "accuracy" else f"{held_out[key]:.3f}"
        for key in ("score", "plain_svm")
    )
    return [(where, f"{ours}   (plain SVM: {plain})")]
