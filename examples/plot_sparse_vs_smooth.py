"""Sparse or smooth weights: norm 1, 1.5, 2 and equal weights on the same data.

The data have eight groups of columns, of which two, five or all eight determine the label. Norm 1
selects few kernels, larger norms spread the weight, "uniform" learns no weights. Which norm
predicts best depends on the number of relevant sources, so choose it on held-out rows.

Run it with ``python plot_sparse_vs_smooth.py [folder]``; the picture is saved in the folder.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from kernelweave import MKLClassifier, rbf_ladder, views
from kernelweave.datasets import make_views

N_VIEWS = 8
NORMS = [1.0, 1.5, 2.0, "uniform"]


def fit_and_score(n_informative, norm, seed):
    """Return the share of each view in the weights, and the accuracy on new rows."""
    data = make_views(900, n_views=N_VIEWS, n_informative=n_informative, random_state=seed)
    kernels = views(data.views, rbf_ladder([2.0, 4.0]))
    model = MKLClassifier(kernels, norm=norm).fit(data.X[:300], data.y[:300])
    shares = model.weights_.reshape(N_VIEWS, -1).sum(axis=1) / model.weights_.sum()
    return shares, model.score(data.X[300:], data.y[300:])


def main(folder=".", n_repeats=3):
    """Draw the weights of the views by norm, and the accuracy that each norm reaches."""
    problems = {2: "2 of 8 views matter", 5: "5 of 8 matter", 8: "all 8 matter"}
    figure, axes = plt.subplots(
        2, 3, figsize=(9, 5), layout="constrained", sharey="row", height_ratios=[3, 2]
    )
    colours = ["#12395c", "#1f5f8b", "#5a9bc4", "#c3ccd4"]
    at = np.arange(N_VIEWS)
    for column, (n_informative, title) in zip(axes.T, problems.items(), strict=True):
        runs = {
            norm: [fit_and_score(n_informative, norm, seed) for seed in range(n_repeats)]
            for norm in NORMS
        }
        for k, norm in enumerate(NORMS):
            shares = np.mean([shares for shares, _ in runs[norm]], axis=0)
            column[0].bar(at + 0.2 * k - 0.3, shares, 0.2, color=colours[k], label=norm)
        accuracy = [np.mean([score for _, score in runs[norm]]) for norm in NORMS]
        bars = column[1].bar([str(norm) for norm in NORMS], accuracy, color=colours)
        column[1].bar_label(bars, fmt="%.3f", fontsize=8)
        column[0].set(title=title, xticks=at, xlabel="view (those that matter come first)")
        column[1].set(ylim=(0.5, 1.0), xlabel="norm")
        print(title, dict(zip(NORMS, np.round(accuracy, 3).tolist(), strict=True)))
    axes[0, 0].set_ylabel("share of the weight")
    axes[1, 0].set_ylabel("accuracy on new rows")
    axes[0, 0].legend(title="norm", frameon=False)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    path = Path(folder) / "plot_sparse_vs_smooth.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
