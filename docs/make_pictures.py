"""Draw the pictures of the documentation: ``python docs/make_pictures.py``.

The result is committed, so that the pages can be read and built without running it. Run it after a
change of the examples or of what they show.
"""

import json
import runpy
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC

from kernelweave import MKLClassifier, Polynomial, rbf_ladder
from kernelweave.datasets import make_additive

matplotlib.use("agg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
STATIC = HERE / "_static"
DARK, LIGHT, GREY = "#1f5f8b", "#8fc1de", "#c3ccd4"


def draw_demo(path):
    """Draw the example of the README: weights, accuracy beside a tuned SVC, and both bounds."""
    X, y = make_additive(800, 12, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, train_size=500, random_state=0)
    kernels = [rbf_ladder([0.5, 1, 2], per_feature=True), Polynomial(degree=2)]
    model = MKLClassifier(kernels).fit(X, y)
    common = {"C": [0.01, 0.1, 1, 10, 100], "gamma": [0.005, 0.01, 0.02, 0.05, 0.1]}
    grid = [common, common | {"kernel": ["poly"], "degree": [2], "coef0": [1.0]}]
    svc = GridSearchCV(SVC(), grid).fit(X, y)
    together, alone = model.weights_[-1], model.weights_[:-1].reshape(12, 3).sum(axis=1)

    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(10.5, 3.4), layout="constrained", width_ratios=[5, 3, 4]
    )
    names = ["in\npairs", *(f"x{j}" for j in range(12))]
    colours = [LIGHT] + [DARK] * 5 + [GREY] * 7
    left.bar(names, [together, *alone], color=colours)
    left.tick_params(axis="x", labelsize=8)
    left.set(title="learned weight by column", ylabel="share of the weight")
    left.annotate(
        "x5 to x11\nare noise", (9.5, 0.06), ha="center", va="bottom", color="#6b7280", size=9
    )

    scores = {
        "always the\nsame class": max(np.mean(y_test == 1), np.mean(y_test == -1)),
        "SVC,\ntuned": svc.score(X_test, y_test),
        "kernelweave,\nC = 1": model.score(X_test, y_test),
    }
    bars = middle.bar(list(scores), list(scores.values()), color=[GREY, LIGHT, DARK])
    middle.bar_label(bars, fmt="%.2f")
    middle.tick_params(axis="x", labelsize=8)
    middle.set(title="accuracy on new rows", ylim=(0, 1))

    steps = [step for step in model.history_ if step.lower > 0]
    solves = [step.solves for step in steps]
    upper, lower = ([getattr(s, side) for s in steps] for side in ("upper", "lower"))
    right.fill_between(solves, lower, upper, color=LIGHT, alpha=0.4, step="post")
    right.step(solves, upper, where="post", color=DARK, label="this model")
    right.step(solves, lower, where="post", color=DARK, linestyle="--", label="no model is below")
    gap = model.duality_gap_ / model.objective_
    right.set(title=f"certified: relative gap {gap:.0e}", xlabel="inner solves", ylabel="objective")
    right.xaxis.get_major_locator().set_params(integer=True)
    right.legend(frameon=False, loc="upper right")
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def draw_scale(results, path):
    """Draw time and memory against rows, from what ``python -m benchmarks --only scale`` wrote."""
    tables = json.loads(results.read_text())["suites"]["scale"]["tables"]
    growth = next(t for t in tables if "weights of 60" in t["title"])
    places = next(t for t in tables if "where its features are" in t["title"])

    def column(table, name, keep=lambda row: True):
        where = table["columns"].index(name)
        rows = [row for row in table["rows"] if row[0].isdigit() and keep(row)]
        return [int(row[0]) for row in rows], [float(row[where]) for row in rows]

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.plot(*column(growth, "CPU s"), "o-", color=DARK, label="in memory, CPU, one thread")
    marks = {"in a file": ("s", LIGHT), "on Dask, 2 workers": ("^", "#d97706")}
    for name, (mark, colour) in marks.items():
        points = column(places, "wall s", lambda row, name=name: row[1] == name)
        left.plot(*points, mark, color=colour, label=f"{name}, wall")
    left.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds", title="one fit")
    left.legend(frameon=False, fontsize=8)
    right.plot(*column(growth, "MB added"), "o-", color=DARK, label="in memory")
    for name, (mark, colour) in marks.items():
        points = column(places, "MB added", lambda row, name=name: row[1] == name)
        here = " (client)" if "Dask" in name else ""
        right.plot(*points, mark, color=colour, label=name + here)
    right.set(xscale="log", yscale="log", xlabel="rows", ylabel="MB added", title="memory")
    right.legend(frameon=False, fontsize=8)
    save(figure, path)


def save(figure, path):
    """Write a small file without a date in it."""
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def main():
    """Draw everything; what needs long measurements only where there are some."""
    measured = HERE.parent / "benchmarks" / "results" / "scale.json"
    if measured.exists():
        draw_scale(measured, STATIC / "scale.png")
    gallery = STATIC / "gallery"
    gallery.mkdir(parents=True, exist_ok=True)
    draw_demo(STATIC / "demo.png")
    for script in sorted((HERE.parent / "examples").glob("plot_*.py")):
        runpy.run_path(str(script))["main"](gallery)


if __name__ == "__main__":
    main()
