"""Data sources combined in a known structure: two act only together, others add.

A synthetic study of plant growth, with measurements of the soil and the weather, a count of
insects, and the variety. Soil that is good in a wet year is bad in a dry one, so soil and weather
act together. Insects do harm beyond some number, and the variety has no effect.

The structure states this: soil and weather multiplied, plus insects, plus variety. Weights are
learned for every term, and inside a term for every kernel. The figure shows the weights, and the
accuracy of this structure and of other combinations of the same kernels.

Run it with ``python plot_structure.py [folder]``; the picture is saved in the folder.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.model_selection import GridSearchCV, train_test_split

from kernelweave import RBF, MKLClassifier, Overlap, SumProductMKLClassifier, group
from kernelweave.plots import plot_structure

SOURCES = {
    "soil": ["nitrogen", "acidity"],
    "weather": ["rain", "warmth"],
    "insects": ["beetles", "aphids"],
}
WIDTHS = {"fine": 1.0, "coarse": 3.0}


def make_study(n_samples=900, seed=0):
    """Return a table and whether each plant does well."""
    random = np.random.default_rng(seed)
    names = [column for columns in SOURCES.values() for column in columns]
    table = pd.DataFrame(random.standard_normal((n_samples, len(names))), columns=names)
    table["variety"] = random.choice(["early", "late", "wild"], n_samples)
    soil, weather = table[SOURCES["soil"]].sum(axis=1), table[SOURCES["weather"]].sum(axis=1)
    harm = np.square(table[SOURCES["insects"]]).sum(axis=1) - 1.4
    score = soil * weather - 0.8 * harm + 0.3 * random.standard_normal(n_samples)
    return table, np.where(score > 0, "well", "badly")


def tune(model, X, y):
    """Fit with the best of four values of C, which is not on one scale for flat and structured."""
    return GridSearchCV(model, {"C": [0.1, 0.3, 1, 3]}, cv=3).fit(X, y).best_estimator_


def main(folder="."):
    """Fit, print the terms, and draw the structure beside the accuracy of other combinations."""
    table, y = make_study()
    train, test, y_train, y_test = train_test_split(table, y, train_size=300, random_state=0)
    soil, weather, insects = (
        [RBF(width, columns=columns, name=f"{source}, {how}") for how, width in WIDTHS.items()]
        for source, columns in SOURCES.items()
    )
    variety = Overlap(columns=["variety"], name="variety")
    together = (soil[0] + soil[1]) * (weather[0] + weather[1])
    structure = together + group(*insects) + variety
    model = tune(SumProductMKLClassifier(structure), train, y_train)
    print(model.to_frame().to_string(index=False, float_format="%.3f"))

    base = [*soil, *weather, *insects, variety]
    terms = [*(a * b for a in soil for b in weather), *insects, variety]  # the same, written out
    models = {
        "no product, equal weights": MKLClassifier(base, norm="uniform"),
        "no product, weights learned": MKLClassifier(base),
        "product, equal weights": MKLClassifier(terms, norm="uniform"),
        "product, one weight per path": MKLClassifier(terms),
    }
    accuracy = {name: tune(m, train, y_train).score(test, y_test) for name, m in models.items()}
    accuracy["product, structure"] = model.score(test, y_test)
    for name, value in accuracy.items():
        print(f"{value:.3f} {name}")

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4), layout="constrained", width_ratios=[3, 2]
    )
    plot_structure(model, left)
    colours = ["#8fc1de"] * (len(accuracy) - 1) + ["#1f5f8b"]
    bars = right.barh([*accuracy], [*accuracy.values()], color=colours)
    right.bar_label(bars, fmt="%.2f", padding=3)
    right.set(title="accuracy on new rows", xlim=(0, 1.1))
    right.invert_yaxis()
    right.spines[["top", "right"]].set_visible(False)
    path = Path(folder) / "plot_structure.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
