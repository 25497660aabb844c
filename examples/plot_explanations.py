"""Why did it say that? Values of one prediction, importance of columns, and their shapes.

The truth is known: the price of a flat grows with its size, falls with its distance from the
centre, and a garden is worth something in the suburbs only; year and agent do not matter. Above,
left: how the prediction of one flat comes about, with exact Shapley values. Above, right: what
changes predictions on average. Below: the shape functions, each averaged over the other columns;
garden and district also act together.

Run it with ``python plot_explanations.py [folder]``; the picture is saved in the folder.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLRegressor, Overlap, rbf_ladder
from kernelweave.inspection import effects, explain
from kernelweave.plots import plot_attributions, plot_effects, plot_importance

NUMBERS = ["size", "distance", "year"]


def make_flats(n, seed):
    """Return flats and their prices, in thousands."""
    random = np.random.default_rng(seed)
    flats = pd.DataFrame(
        {
            "size": random.uniform(30, 140, n),
            "distance": random.exponential(4.0, n),
            "year": random.integers(1920, 2020, n).astype(float),
            "district": random.choice(["centre", "suburb"], n),
            "garden": random.choice(["yes", "no"], n),
            "agent": random.choice(["A", "B", "C"], n),
        }
    )
    price = 2.5 * flats["size"] - 60 * np.log1p(flats["distance"])
    price += 70 * ((flats["garden"] == "yes") & (flats["district"] == "suburb"))
    return flats, price + random.normal(0, 10, n)


def main(folder="."):
    """Fit, explain, and draw."""
    flats, price = make_flats(300, 0)
    kernels = [rbf_ladder([0.5, 1, 2], columns=[name]) for name in NUMBERS]
    kernels += [Overlap(columns="district") * Overlap(columns="garden"), Overlap(columns="agent")]
    scaler = ColumnTransformer(
        [("scale", StandardScaler(), NUMBERS)],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    model = make_pipeline(
        scaler.set_output(transform="pandas"), MKLRegressor(kernels, C=10, loss="square")
    )
    model.fit(flats, price)
    new, new_price = make_flats(100, 1)
    print(f"R2 on new flats: {model.score(new, new_price):.3f}")

    values = explain(model, new, background=flats)
    row = int(np.flatnonzero((new["garden"] == "yes") & (new["district"] == "suburb"))[0])
    print(values[row])
    found = effects(model, flats, pairs=1)
    pair = found.pairs[0]
    print(f"{' and '.join(pair.names)} together: {pair.share:.1%} of the variance")

    figure = plt.figure(figsize=(10, 6.4), layout="constrained")
    upper, lower = figure.subfigures(2, 1)
    left, right = upper.subplots(1, 2)
    plot_attributions(values, row, left)
    plot_importance(values, right)
    panels = lower.subplots(1, 4)
    plot_effects(found, columns=["size", "distance", "district", "garden"], axes=panels)
    for panel in panels[1:]:
        panel.tick_params(axis="y", labelleft=False)
    path = Path(folder) / "plot_explanations.png"
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
