"""Several data sources: which of them matter?

A synthetic study with three sources of different kinds: a table of four measurements, two
categorical columns, and DNA-like sequences given only by a matrix of similarities. The label
depends on a ring in the measurements and on a motif in the sequences; it is independent of the
categories.

Run it with ``python plot_views.py [folder]``; the picture is saved in the folder.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.model_selection import train_test_split

from kernelweave import MKLClassifier, Overlap, Precomputed, rbf_ladder, views

MEASUREMENTS = ["weight", "length", "iron", "zinc"]
CATEGORIES = ["station", "season"]


def make_study(n_samples=600, seed=0):
    """Return a table, the similarities of the sequences, and labels."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(random.standard_normal((n_samples, 4)), columns=MEASUREMENTS)
    table["station"] = random.choice(["north", "east", "south"], n_samples)
    table["season"] = random.choice(["spring", "summer", "autumn", "winter"], n_samples)
    table["sequence"] = np.arange(n_samples)  # row numbers of the similarity matrix
    sequences = ["".join(random.choice(list("ACGT"), 60)) for _ in range(n_samples)]
    has_motif = random.random(n_samples) < 0.5
    for i in np.flatnonzero(has_motif):
        sequences[i] = sequences[i][:20] + "GATTACA" + sequences[i][27:]
    ring = np.square(table[MEASUREMENTS]).sum(axis=1) / 4 - 0.85
    score = 1.2 * ring + 1.2 * (has_motif - 0.5) + 0.2 * random.standard_normal(n_samples)
    return table, similarity(sequences), np.where(score > 0, "case", "control")


def similarity(sequences, length=4):
    """Count the words that two sequences share: a kernel, though not one on numbers."""
    words = sorted({s[i : i + length] for s in sequences for i in range(len(s) - length + 1)})
    place = {word: j for j, word in enumerate(words)}
    counts = np.zeros((len(sequences), len(words)))
    for row, s in zip(counts, sequences, strict=True):
        for i in range(len(s) - length + 1):
            row[place[s[i : i + length]]] += 1
    return counts @ counts.T


def main(folder="."):
    """Fit, and draw the share of each source beside the accuracy with and without the others."""
    table, gram, y = make_study()
    sources = {
        "measurements": views({"measurements": MEASUREMENTS}, rbf_ladder()),
        "categories": Overlap(columns=CATEGORIES, name="categories: overlap"),
        "sequences": Precomputed(gram, columns="sequence", name="sequences: shared words"),
    }
    train, test, y_train, y_test = train_test_split(table, y, train_size=300, random_state=0)
    model = MKLClassifier(list(sources.values())).fit(train, y_train)
    print(model.to_frame().to_string(index=False, float_format="%.3f"))

    names = [str(kernel) for kernel in model.kernels_]
    shares = {
        source: sum(w for w, n in zip(model.weights_, names, strict=True) if n.startswith(source))
        for source in sources
    }
    accuracy = {
        f"{source} alone": MKLClassifier(kernel).fit(train, y_train).score(test, y_test)
        for source, kernel in sources.items()
    }
    equal = MKLClassifier(list(sources.values()), norm="uniform").fit(train, y_train)
    accuracy["all, equal weights"] = equal.score(test, y_test)
    accuracy["all, weights learned"] = model.score(test, y_test)

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    bars = left.barh(list(shares), list(shares.values()), color="#1f5f8b")
    left.bar_label(bars, fmt="%.2f", padding=3)
    left.set(title="share of the kernel weights", xlim=(0, 1.1))
    colours = ["#8fc1de"] * (len(accuracy) - 1) + ["#1f5f8b"]
    bars = right.barh(list(accuracy), list(accuracy.values()), color=colours)
    right.bar_label(bars, fmt="%.2f", padding=3)
    right.set(title="accuracy on new rows", xlim=(0, 1.1))
    for ax in (left, right):
        ax.invert_yaxis()
        ax.spines[["top", "right"]].set_visible(False)
    path = Path(folder) / "plot_views.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
