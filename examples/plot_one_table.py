"""One table: what does a learned metric react to, and what do useless columns cost?

Left: the weights of the columns of a table with numbers, categories and gaps, after each step.
Right: a function of five columns beside more and more columns of noise. Without a metric the
distances drown in noise; the learned metric finds the five columns, and needs no tuning.

Run it with ``python plot_one_table.py [folder]``; the picture is saved in the folder.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from kernelweave import MetricKernelRegressor

USELESS = (0, 5, 20, 50)
STEP_COLOURS = ("#c3ccd4", "#8fc1de", "#123f5f")
COLOURS = {"learned metric": "#123f5f", "plain metric": "#8fc1de", "gradient boosting": "#b45309"}


def make_flats(n_samples=500, seed=0):
    """Return a table of flats with gaps, and their rents."""
    random = np.random.default_rng(seed)
    flats = pd.DataFrame(
        {
            "area": random.uniform(25, 140, n_samples),
            "built": random.integers(1900, 2024, n_samples).astype(float),
            "floor": random.integers(0, 7, n_samples),
            "district": random.choice(["centre", "east", "harbour", "west"], n_samples),
            "state": random.choice(["new", "fair", "poor"], n_samples),
            "agent": random.choice(list("ABCDEFGHIJ"), n_samples),
        }
    )
    rate = flats["district"].map({"centre": 16, "harbour": 14, "west": 12, "east": 9})
    state = flats["state"].map({"new": 1.2, "fair": 1.0, "poor": 0.8})
    rent = flats["area"] * rate * state * np.exp(0.05 * random.standard_normal(n_samples))
    flats.loc[random.random(n_samples) < 0.1, "built"] = np.nan
    return flats, rent


def column_weights():
    """Return the weights of the columns by step."""
    flats, rent = make_flats()
    weights = {}
    for n_steps in range(3):
        model = MetricKernelRegressor(n_steps=n_steps).fit(flats, rent)
        weights[f"step {n_steps}"] = pd.Series(model.weights_, flats.columns)
    return pd.DataFrame(weights).sort_values("step 2")


def scores_with_useless_columns():
    """Return R2 on new rows by method and number of useless columns."""
    scores = {name: [] for name in COLOURS}
    for n_useless in USELESS:
        X, y = make_friedman1(1300, n_features=5 + n_useless, noise=1.0, random_state=0)
        X, X_test, y, y_test = train_test_split(X, y, train_size=300, random_state=0)
        methods = {
            "learned metric": MetricKernelRegressor(),
            "plain metric": MetricKernelRegressor(n_steps=0),
            "gradient boosting": HistGradientBoostingRegressor(random_state=0),
        }
        for name, method in methods.items():
            scores[name].append(method.fit(X, y).score(X_test, y_test))
    return pd.DataFrame(scores, index=pd.Index(USELESS, name="useless columns"))


def main(folder="."):
    """Fit, and draw the weights by step beside the scores."""
    weights, scores = column_weights(), scores_with_useless_columns()
    print(scores.round(2).to_string())

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for k, (step, colour) in enumerate(zip(weights, STEP_COLOURS, strict=True)):
        left.barh(np.arange(len(weights)) + 0.27 * (1 - k), weights[step], 0.25, color=colour)
        left.plot([], [], "s", color=colour, label=step)
    left.set_yticks(range(len(weights)), weights.index)
    left.set(title="weight of the column", xlim=(0, 1))
    left.legend(frameon=False, loc="lower right")
    for name, colour in COLOURS.items():
        right.plot(range(len(USELESS)), scores[name], "o-", color=colour, label=name)
    right.set_xticks(range(len(USELESS)), USELESS)
    right.set(title="R2 on new rows, 300 training rows", xlabel="useless columns beside five")
    right.legend(frameon=False, loc="lower left")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    path = Path(folder) / "plot_one_table.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
