"""Compare ways to learn from sources that rows lack: switched off, completed, filled.

Sources are removed from real data at random and not at random, from training and test rows alike.
Results are kept as they come; at the end a page and a picture show them.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from kernelweave import MKLClassifier, views
from kernelweave.errors import DataError

from .missing_data import DATA, GROUPS, JUDGEMENT, Division, divide
from .page import describe_run, make_table
from .store import Record, Store, write

FIELDS = ("data", "share", "how", "split", "method")
CONDITIONS = (
    (0.0, "random"),
    (0.3, "random"),
    (0.5, "random"),
    (0.7, "random"),
    (0.5, "not random"),
)
COSTS = [1.0, 10.0, 100.0]  # of the SVMs, by three folds
N_FACTORS = (10, 30)  # of MOFA, by the same folds
N_COMPONENTS = 10  # of iMML's imputers, its default
N_SPLITS = {JUDGEMENT: 5}  # divisions of a data set; of other groups three
N_SPLITS_SMALL, SMALL = 10, 300  # of judgement data with fewer rows
RESULTS = Path(__file__).parent / "results"


def _multiple(rule: str) -> Callable[[Division], Any]:
    def fit(division: Division) -> Any:
        model = MKLClassifier(views(division.sources, missing=rule))
        return model.fit(division.X[division.train], division.y[division.train])

    return fit


def _complete_rows(division: Division) -> Any:
    rows = division.train & ~np.isnan(division.X).any(axis=1)
    if len(set(division.y[rows])) < len(set(division.y)) or rows.sum() < 20:
        return None
    model = MKLClassifier(views(division.sources, missing="off"))
    return model.fit(division.X[rows], division.y[rows])


def _filled(imputer: Any) -> Callable[[Division], Any]:
    def fit(division: Division) -> Any:
        steps = make_pipeline(StandardScaler(), imputer, SVC())
        model = GridSearchCV(steps, {"svc__C": COSTS}, cv=3)
        return model.fit(division.X[division.train], division.y[division.train])

    return fit


@dataclass(frozen=True)
class _OnFactors:
    """A model on factors of the test rows, which were found together with those of training."""

    model: Any
    rows: Any

    def score(self, X: Any, y: Any) -> float:
        return float(self.model.score(self.rows, y))


def _factors(division: Division) -> Any:
    """Return an SVM on factors of iMML's MOFA; None where the package is not installed.

    Its `transform` takes no rows with gaps, so factors are those of all rows, without labels.
    """
    if find_spec("imml") is None:
        return None
    from imml.decomposition import MOFA

    X = StandardScaler().fit(division.X[division.train]).transform(division.X)
    parts, found = [X[:, columns] for columns in division.sources.values()], []
    for n_factors in sorted({min(n, X.shape[1]) for n in N_FACTORS}):
        rows = np.asarray(MOFA(n_factors, random_state=0).fit(parts).factors_)
        steps = make_pipeline(StandardScaler(), SVC())
        model = GridSearchCV(steps, {"svc__C": COSTS}, cv=3)
        model.fit(rows[division.train], division.y[division.train])
        found.append((model.best_score_, _OnFactors(model, rows[~division.train])))
    return max(found, key=lambda pair: pair[0])[1]


def _imputed(imputer: str) -> Callable[[Division], Any]:
    """Return a fit of an SVM on columns that an imputer of iMML fills.

    Its imputers are factorisations of non-negative tables; like MOFA they see all rows at once.
    """

    def fit(division: Division) -> Any:
        if find_spec("imml") is None:
            return None
        from imml import impute

        found = MinMaxScaler().fit(division.X[division.train]).transform(division.X)
        X = np.clip(found, 0.0, 1.0)
        parts = [pd.DataFrame(X[:, columns]) for columns in division.sources.values()]
        make = getattr(impute, imputer)(n_components=N_COMPONENTS, random_state=0)
        rows = np.hstack([np.asarray(part, float) for part in make.fit_transform(parts)])
        if not np.isfinite(rows).all():  # some factorisations end in NaN
            return None
        model = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": COSTS}, cv=3)
        model.fit(rows[division.train], division.y[division.train])
        return _OnFactors(model, rows[~division.train])

    return fit


def _boosted(division: Division) -> Any:
    model = HistGradientBoostingClassifier(random_state=0)
    return model.fit(division.X[division.train], division.y[division.train])


METHODS: dict[str, tuple[str, Callable[[Division], Any]]] = {
    "complete": ('MKL, `missing="complete"`', _multiple("complete")),
    "off": ('MKL, `missing="off"`', _multiple("off")),
    "default": ("MKL, medians and indicators", _multiple("refuse")),
    "complete rows": ("MKL, complete rows only", _complete_rows),
    "mean": ("mean + SVC", _filled(SimpleImputer())),
    "knn": ("5 neighbours + SVC", _filled(KNNImputer())),
    "mofa": ("MOFA factors + SVC", _factors),
    "jnmf": ("JNMF imputer + SVC", _imputed("JNMFImputer")),
    "dfmf": ("DFMF imputer + SVC", _imputed("DFMFImputer")),
    "boosting": ("HistGradientBoosting", _boosted),
}


def evaluate(data: str, share: float, how: str, split: int, method: str) -> Record:
    """Fit one method to one division and return its accuracy on the other rows, in per cent."""
    division = divide(data, share, how, split)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = METHODS[method][1](division)
        test = ~division.train
        accuracy = None
        if model is not None:
            accuracy = 100.0 * float(model.score(division.X[test], division.y[test]))
    seconds = time.process_time() - start
    task = dict(zip(FIELDS, (data, share, how, split, method), strict=True))
    return {**task, "accuracy": accuracy, "seconds": seconds}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is still missing, write the page and the picture, and return an exit status."""
    parser = argparse.ArgumentParser(prog="python -m experiments.missing", description=__doc__)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), metavar="NAME")
    parser.add_argument("--group", choices=GROUPS, help="only data that served for this")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--shares", nargs="+", type=float, help="of missing sources, such as 0.5")
    parser.add_argument("--splits", type=int, default=10, help="divisions of a data set at most")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    options = parser.parse_args(arguments)
    store = Store(options.output / "missing.json", {"n_train": 300}, FIELDS)
    for task in _wanted(options):
        if task not in store:
            store.add(evaluate(*task))
    records = store.records()
    if not records:
        print("There is nothing to report.", file=sys.stderr)
        return 1
    page, picture = (store.path.with_suffix(suffix) for suffix in (".md", ".png"))
    protocol = f"divisions by seeds 0 to {max(record['split'] for record in records)}"
    write(page, to_markdown(records) + describe_run("make missing", protocol, records))
    draw(records, picture)
    print(f"The table is in {page}, the picture in {picture}.")
    return 0


def _wanted(options: argparse.Namespace) -> list[tuple[str, float, str, int, str]]:
    """Return what is to be run, whole divisions first; data that cannot be read is left out."""
    n_splits = {}
    for data in options.data:
        if options.group not in (None, DATA[data].group):
            continue
        try:
            n_splits[data] = min(options.splits, _n_splits(data))
        except DataError as error:
            print(f"{DATA[data].title} is left out: {error}.", file=sys.stderr)
    return [
        (data, share, how, split, method)
        for split in range(max(n_splits.values(), default=0))
        for share, how in CONDITIONS
        if options.shares is None or share in options.shares
        for data, most in n_splits.items()
        if split < most
        for method in options.methods
    ]


def _n_splits(data: str) -> int:
    """Return the number of divisions of a data set: more where there are few rows to test on."""
    _, y = DATA[data].read()
    small = DATA[data].group == JUDGEMENT and len(y) < SMALL
    return N_SPLITS_SMALL if small else N_SPLITS.get(DATA[data].group, 3)


def accuracies(records: Sequence[Record]) -> dict[tuple[str, float, str, str], dict[int, float]]:
    """Return accuracies by data set, share, kind of holes and method, each by division."""
    out: dict[tuple[str, float, str, str], dict[int, float]] = {}
    for r in sorted(records, key=lambda r: r["split"]):
        key = (r["data"], r["share"], r["how"], r["method"])
        out.setdefault(key, {})[r["split"]] = np.nan if r["accuracy"] is None else r["accuracy"]
    return out


def difference(
    records: Sequence[Record],
    one: str,
    other: Sequence[str],
    cells: Sequence[tuple[str, float, str]],
) -> tuple[float, float]:
    """Return the mean of one method less the better of others, and its standard error.

    Cells are data sets under a condition. The better of the others is that of the means over the
    divisions of a cell in which all have a result; the standard error is over data sets.
    """
    found = accuracies(records)
    by_data: dict[str, list[float]] = {}
    for data, share, how in cells:
        scores = [found.get((data, share, how, name), {}) for name in (one, *other)]
        shared = set.intersection(*({k for k, x in s.items() if x == x} for s in scores))
        if not shared:
            continue
        means = [np.mean([score[split] for split in sorted(shared)]) for score in scores]
        by_data.setdefault(data, []).append(means[0] - max(means[1:]))
    values = np.array([np.mean(part) for part in by_data.values()])
    if not len(values):
        return np.nan, np.nan
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean()), float(error)


def to_markdown(records: Sequence[Record]) -> str:
    """Return tables of mean accuracies and of paired differences."""
    found = accuracies(records)
    out = []
    for group in GROUPS:
        names = _names(records, group)
        if not names:
            continue
        out.append(f"### {group.capitalize()} data\n\n")
        rows = []
        for share, how in CONDITIONS:
            for data in names:
                shown = [_shown(found.get((data, share, how, method))) for method in METHODS]
                rows.append([f"{share:.0%} {how}", DATA[data].title, *shown])
        out.append(make_table(["missing", "data", *(m[0] for m in METHODS.values())], rows) + "\n")
        rows = []
        for share in sorted({share for share, _ in CONDITIONS}):
            cells = [(d, s, how) for s, how in CONDITIONS if s == share for d in names]
            rivals = [("mean", "knn"), ("mofa",), ("jnmf",), ("dfmf",), ("boosting",), ("off",)]
            pairs = [difference(records, "complete", r, cells) for r in rivals]
            shown = ["" if mean != mean else f"{mean:+.1f} ± {error:.1f}" for mean, error in pairs]
            rows.append([f"{share:.0%}", *shown])
        head = ["better filling + SVC", "MOFA + SVC", "JNMF + SVC", "DFMF + SVC", "boosting"]
        head = ["missing", *(f"less {name}" for name in (*head, '`"off"`'))]
        out.append(make_table(head, rows) + "\n")
    return "".join(out)


def _names(records: Sequence[Record], group: str) -> list[str]:
    """Return the data sets of a group that there are results of."""
    found = {record["data"] for record in records}
    return [name for name in DATA if name in found and DATA[name].group == group]


def _shown(found: dict[int, float] | None) -> str:
    values = [value for value in (found or {}).values() if not np.isnan(value)]
    return f"{np.mean(values):.1f}" if values else ""


def draw(records: Sequence[Record], path: Path) -> None:
    """Draw mean accuracies of each group by the share that is missing at random."""
    from matplotlib.figure import Figure

    found = accuracies(records)
    groups = [group for group in GROUPS if _names(records, group)]
    figure = Figure(figsize=(2.2 + 2.9 * len(groups), 3.4), layout="constrained")
    axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for axis, group in zip(axes, groups, strict=True):
        names = _names(records, group)
        for k, (method, (label, _)) in enumerate(METHODS.items()):
            points = []
            for share, how in CONDITIONS:
                cells = [found.get((d, share, how, method), {0: np.nan}) for d in names]
                values = [np.mean([*cell.values()]) for cell in cells]
                if how == "random" and values and not np.isnan(values).any():
                    points.append((100 * share, np.mean(values)))
            if points:
                bold = method == "complete"
                axis.plot(
                    *zip(*points, strict=True),
                    color=f"C{k}",
                    marker="o",
                    markersize=4,
                    linewidth=2.4 if bold else 1.2,
                    label=label.replace("`", ""),
                )
        axis.set_title(f"{group} data")
        axis.set_xlabel("sources missing at random, %")
    axes[0].set_ylabel("accuracy, %")
    axes[-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    sys.exit(main())
