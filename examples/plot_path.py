"""Weights and accuracy along C, with one call of ``fit_path``.

A small C regularises strongly and selects few kernels. As C grows, more kernels get weight, and at
some point the model overfits. ``fit_path`` computes the kernels once and starts every fit from the
previous solution, so a whole path costs as much as a few fits.

Run it with ``python plot_path.py [folder]``; the picture is saved in the folder.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.model_selection import train_test_split

from kernelweave import MKLClassifier, rbf_ladder
from kernelweave.datasets import make_additive

N_COLUMNS = 12


def main(folder="."):
    """Draw the weight of every column, the kernels in use and the accuracy along C."""
    X, y = make_additive(1000, N_COLUMNS, random_state=0)  # columns 0 to 4 matter
    X, X_test, y, y_test = train_test_split(X, y, train_size=400, random_state=0)
    widths = [0.5, 1.0, 2.0]
    kernels = [rbf_ladder(widths, per_feature=True), rbf_ladder([4.0])]
    Cs = np.logspace(-2, 2, 17)
    models = MKLClassifier(kernels).fit_path(X, y, Cs)

    weights = np.array([model.weights_ for model in models])
    columns = weights[:, :-1].reshape(len(Cs), N_COLUMNS, len(widths)).sum(axis=2)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    noise = dict.fromkeys(range(5, N_COLUMNS), "#d1d5db")
    signal = dict(enumerate(["#12395c", "#1f5f8b", "#5a9bc4", "#b4691f", "#e0a458"]))
    for j, colour in (noise | signal).items():
        label = f"column {j}" if j in signal else "noise columns" if j == 5 else None
        left.semilogx(Cs, columns[:, j], color=colour, label=label)
    left.semilogx(Cs, weights[:, -1], color="#12395c", linestyle="--", label="all columns together")
    left.set(xlabel="C", ylabel="weight", title="which columns come in")
    left.legend(frameon=False, fontsize=8, ncols=2, loc="upper right")

    train = [model.score(X, y) for model in models]
    test = [model.score(X_test, y_test) for model in models]
    right.semilogx(Cs, train, color="#8fc1de", label="training rows")
    right.semilogx(Cs, test, color="#1f5f8b", label="new rows")
    best = int(np.argmax(test))
    right.plot(Cs[best], test[best], "o", color="#1f5f8b")
    for k in range(0, len(Cs), 4):
        text = f"{np.count_nonzero(weights[k])} kernels"
        right.annotate(text, (Cs[k], train[k]), (-18, 9), textcoords="offset points", size=8)
    right.set(xlabel="C", ylabel="accuracy", title="how well that predicts", ylim=(0.45, 1.05))
    right.legend(frameon=False, loc="lower right")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    print(f"best C on new rows: {Cs[best]:.2g}, accuracy {test[best]:.3f}")
    path = Path(folder) / "plot_path.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
