"""Some of the sources are missing: switched off, filled or completed?

Three sources describe the same rows. Two of them are related, because both are functions of the
same hidden numbers; the third stands alone. Whole sources are removed at random, from training and
test rows alike.

Run it with ``python plot_missing.py [folder]``; the picture is saved in the folder.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from kernelweave import MKLClassifier, views

SOURCES = {"first": [*range(6)], "second": [*range(6, 11)], "third": [11, 12]}
RULES = {
    "refuse": "medians and indicators",
    "off": 'missing="off"',
    "complete": 'missing="complete"',
}
SHARES = (0.0, 0.25, 0.5)


def make_study(share, n_samples=600, seed=0):
    """Return a table with holes, and labels."""
    random = np.random.default_rng(seed)
    hidden = random.standard_normal((n_samples, 3))
    first = hidden @ random.standard_normal((3, 6))
    second = np.tanh(hidden @ random.standard_normal((3, 5)))
    third = random.standard_normal((n_samples, 2))
    X = np.hstack([first, second, third])
    X += 0.2 * random.standard_normal(X.shape)
    labels = np.where(hidden[:, 0] * abs(hidden[:, 0]) + 0.3 * third[:, 0] > 0, "yes", "no")
    for k, columns in enumerate(SOURCES.values()):
        gone = random.random(n_samples) < share * 1.5
        gone[k :: len(SOURCES)] = False  # every row has a source
        X[np.ix_(gone, columns)] = np.nan
    return X, labels


def main(folder):
    """Draw what is missing in some rows, and accuracies by the share that is missing."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    X, _ = make_study(0.5)
    known = np.array([~np.isnan(X[:40, columns[0]]) for columns in SOURCES.values()])
    left.imshow(known, aspect="auto", cmap="Greys", vmin=-0.5, vmax=1.5)
    left.set(yticks=range(len(SOURCES)), yticklabels=list(SOURCES), xlabel="row")
    left.set_title("dark: the row has the source")
    for rule, label in RULES.items():
        scores = []
        for share in SHARES:
            found = []
            for seed in range(5):
                X, labels = make_study(share, seed=seed)
                model = MKLClassifier(views(SOURCES, missing=rule)).fit(X[:300], labels[:300])
                found.append(100 * model.score(X[300:], labels[300:]))
            scores.append(np.mean(found))
        right.plot([100 * share for share in SHARES], scores, marker="o", label=label)
        print(f"{label}: " + ", ".join(f"{score:.1f} %" for score in scores))
    right.set(xlabel="sources that are missing, %", ylabel="accuracy, %")
    right.legend()
    path = Path(folder) / "plot_missing.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


if __name__ == "__main__":
    print(main(sys.argv[1] if len(sys.argv) > 1 else "."))
