"""How sure is it? Probabilities that mean what they say, and intervals that widen where needed.

Left: a reliability curve. Rows are sorted by the probability that a calibrated classifier gives
them, and compared with how often the class really occurs. Decisions of the training rows look far
too sure, which is why calibration uses rows that were held out. Right: prediction intervals of a
regression whose noise grows to one side, by residuals and by a pair of quantiles.

Run it with ``python plot_probabilities.py [folder]``; the picture is saved in the folder.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from kernelweave import RBF, MKLClassifier, MKLRegressor, rbf_ladder
from kernelweave.datasets import make_additive
from kernelweave.estimators.calibrators import fit_sigmoid

DARK, LIGHT, ORANGE = "#12395c", "#8fc1de", "#b4691f"


def reliability(p, y, n_bins=10):
    """Return mean probability and share of positives in bins of equally many rows."""
    parts = np.array_split(np.argsort(p), n_bins)
    return [p[part].mean() for part in parts], [y[part].mean() for part in parts]


def classify():
    """Return probabilities by held-out and by training decisions, and the truth."""
    X, y = make_additive(4200, 10, random_state=0)
    y = np.where(np.random.default_rng(1).random(len(y)) < 0.15, -y, y)  # some labels are noise
    new, truth = X[200:], (y[200:] > 0).astype(float)
    model = MKLClassifier([rbf_ladder([0.5, 1, 2], per_feature=True)], C=10, calibration="auto")
    model.fit(X[:200], y[:200])
    slope, bias = fit_sigmoid(model.decision_function(X[:200]), (y[:200] > 0) * 1.0, np.ones(200))
    naive = 1 / (1 + np.exp(-(slope * model.decision_function(new) + bias)))
    sets = model.predict_set(new)
    covered = sets[np.arange(len(new)), truth.astype(int)].mean()
    print(f"sets: {covered:.1%} of new rows covered, {sets.sum(axis=1).mean():.2f} classes in each")
    return model.predict_proba(new)[:, 1], naive, truth


def regress():
    """Return rows and targets, and intervals by residuals and by quantiles for a grid of rows."""
    random = np.random.default_rng(3)
    x = random.uniform(-3, 3, size=1400)
    y = np.sin(1.5 * x) + (0.1 + 0.25 * (x + 3) / 2) * random.normal(size=1400)
    X, grid = x[:, None], np.linspace(-3, 3, 200)[:, None]
    models = {
        "residuals": MKLRegressor([RBF(1.0)], loss="square", intervals="auto"),
        "quantiles": MKLRegressor(
            [RBF(1.0)], loss="quantile", quantile=(0.05, 0.95), C=10, intervals="auto"
        ),
    }
    found = {}
    for name, model in models.items():
        model.fit(X[:400], y[:400])
        low, high = model.predict_interval(X[400:]).T
        covered = (low <= y[400:]) & (y[400:] <= high)
        right = x[400:] > 0
        print(
            f"{name}: {covered.mean():.1%} of new rows covered, {covered[~right].mean():.1%} on "
            f"the quiet side and {covered[right].mean():.1%} on the noisy one"
        )
        found[name] = model.predict_interval(grid)
    return x[400:], y[400:], grid[:, 0], found


def main(folder="."):
    """Draw both figures side by side."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    p, naive, truth = classify()
    left.plot([0, 1], [0, 1], color="#9ca3af", linewidth=1)
    left.plot(*reliability(naive, truth), "s--", color=ORANGE, label="from training decisions")
    left.plot(*reliability(p, truth), "o-", color=DARK, label='calibration="auto"')
    left.set(
        xlabel="probability given",
        ylabel="how often it is true",
        title="probabilities of a class",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    left.legend(frameon=False, loc="upper left")

    x, y, grid, intervals = regress()
    right.fill_between(grid, *intervals["residuals"].T, color=LIGHT, alpha=0.5, label="residuals")
    right.plot(x, y, ".", color="#6b7280", markersize=2)
    for k, end in enumerate(intervals["quantiles"].T):
        right.plot(
            grid, end, color=DARK, linewidth=2, label=None if k else "quantiles 5 % and 95 %"
        )
    right.set(xlabel="x", ylabel="y", title="intervals for 90 % of new rows")
    right.legend(frameon=False, loc="upper left")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    path = Path(folder) / "plot_probabilities.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
