"""``kernelweave demo``: the main job on built-in data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from .commands import command, option
from .terminal import open_console, print_facts, require

_HELP = """\
Fits a classifier on scikit-learn's breast cancer data: Gaussian kernels of five widths on all
measurements together and on each alone, and the linear kernel. Prints which of them it kept, and
its accuracy on held-out tumours beside an SVM baseline; writes a picture, the model and a table.

example:
  kernelweave demo --out /tmp/demo"""


@command("demo", _HELP)
@option("--out", "where to write (./demo)", "DIR", click.Path(file_okay=False), default="demo")
def demo(args: Any) -> int:
    """Fit, compare, draw and write."""
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    from kernelweave import Linear, MKLClassifier, rbf_ladder
    from kernelweave.io import TablePreparer

    from .console import certificate, print_kernels, summarize

    console, matplotlib = open_console(), require("matplotlib.figure", "The demo")
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    X_train, X_test, y_train, y_test = _load()
    console.print(
        f"Breast cancer (Wisconsin): {X_train.shape[1]} measurements of each tumour, "
        f"{len(y_train)} tumours to learn from, {len(y_test)} held out.",
        soft_wrap=True,
    )
    kernels = [rbf_ladder(), Linear(), rbf_ladder(per_feature=True)]
    model = Pipeline([("table", TablePreparer()), ("model", MKLClassifier(kernels))])
    began = time.perf_counter()
    model.fit(X_train, y_train)
    seconds = time.perf_counter() - began
    svm = make_pipeline(StandardScaler(), SVC()).fit(X_train, y_train)
    summary = summarize(model[-1])
    print_kernels(console, summary)
    accuracy, baseline = (f"{fitted.score(X_test, y_test):.1%}" for fitted in (model, svm))
    facts = [
        ("accuracy on held-out rows", f"{accuracy}   (SVM baseline: {baseline})"),
        certificate(summary),
        ("fit", f"{seconds:.2f} s, {summary['inner_solves']} inner SVM solves"),
    ]
    figure = matplotlib.Figure(figsize=(13, 5), layout="constrained")
    _write(folder, model, figure, X_test)
    print_facts(console, [*facts, ("written", f"kernels.png, model.kw, held_out.csv in {folder}")])
    console.print()
    console.print("Next: look inside, predict from a file, and see which columns decide:")
    console.print(f"  kernelweave info {folder / 'model.kw'}", soft_wrap=True)
    paths = f"{folder / 'model.kw'} {folder / 'held_out.csv'}"
    console.print(f"  kernelweave predict {paths}", soft_wrap=True)
    console.print(f"  kernelweave explain {paths}", soft_wrap=True)
    return 0


def _load() -> Any:
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    from kernelweave.tables.reading import import_pandas

    import_pandas()
    data = load_breast_cancer(as_frame=True)
    labels = data.target.map(dict(enumerate(data.target_names))).rename("diagnosis").astype(object)
    return train_test_split(data.data, labels, test_size=0.25, random_state=0, stratify=labels)


def _write(folder: Path, model: Any, figure: Any, X_test: Any) -> None:
    from kernelweave.io import save
    from kernelweave.plots import plot_history, plot_weights

    left, right = figure.subplots(1, 2)
    plot_weights(model[-1], left, max_kernels=12)
    plot_history(model[-1], right)
    figure.savefig(folder / "kernels.png", dpi=120)
    save(model, folder / "model.kw")
    X_test.to_csv(folder / "held_out.csv", index=False)
