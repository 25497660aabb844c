"""Kernels on very different scales: margin alone, and margin relative to the radius.

The data have four groups of columns, and only the first determines the label. Its two Gaussians are
not scaled; those of the three irrelevant groups are multiplied by a factor. A kernel of large scale
has a large margin, so learning by the margin alone prefers it. The ratio of margin and radius does
not depend on the factor. Neither does the margin if kernels are normalised first, as
``MKLClassifier`` does by default. The figure shows all three.

Run it with ``python plot_radius.py [folder]``; the picture is saved in the folder.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from kernelweave import RBF, MKLClassifier, RadiusMKLClassifier
from kernelweave.datasets import make_views

FACTORS = [1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3]
WIDTHS = [2.0, 4.0]
STYLES = {
    "margin, kernels as given": {"color": "#b4691f", "marker": "o"},
    "margin, kernels normalised": {"color": "#8fc1de", "marker": "s"},
    "margin / radius, as given": {"color": "#12395c", "marker": "^", "linestyle": "--"},
}


def offer(views, factor):
    """Return two Gaussians for each view, those of useless views multiplied by the factor."""
    useful, *useless = views.values()
    kernels = [RBF(width, columns=useful) for width in WIDTHS]
    return kernels + [factor * RBF(width, columns=view) for view in useless for width in WIDTHS]


def make_models(kernels):
    """Return the three ways to learn from the same kernels, in the order of ``STYLES``."""
    return [
        MKLClassifier(kernels, normalize=None),
        MKLClassifier(kernels),  # normalize="trace"
        RadiusMKLClassifier(kernels, normalize=None),
    ]


def main(folder="."):
    """Draw accuracy along the factor, and what each view contributes at the largest."""
    data = make_views(2300, n_views=4, random_state=0)
    X, y, X_test, y_test = data.X[:300], data.y[:300], data.X[300:], data.y[300:]
    accuracy = {name: [] for name in STYLES}
    shares = {}
    print("accuracy on new rows, and share of the useful view in the decision function")
    print("useless x", *STYLES, sep=" | ")
    for factor in FACTORS:
        models = make_models(offer(data.views, factor))
        for name, model in zip(STYLES, models, strict=True):
            model.fit(X, y)
            accuracy[name].append(model.score(X_test, y_test))
            shares[name] = model.contributions_.reshape(-1, len(WIDTHS)).sum(axis=1)
        cells = [f"{accuracy[name][-1]:.3f}, {shares[name][0]:.0%}" for name in STYLES]
        print(f"{factor:9g}", *map("{:<{}}".format, cells, map(len, STYLES)), sep=" | ")
    along_C = models[0].fit_path(X, y, np.logspace(-4, 4, 9))
    best = max(model.score(X_test, y_test) for model in along_C)
    print(f"No C helps the margin alone: the best of nine reaches {best:.2f}.")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name, style in STYLES.items():
        left.semilogx(FACTORS, accuracy[name], label=name, linewidth=2, **style)
    left.axhline(0.5, color="#9ca3af", linewidth=1, linestyle=":")
    left.annotate("guessing", (FACTORS[0], 0.507), color="#6b7280", size=8)
    left.set(
        xlabel="factor of the useless kernels",
        ylabel="accuracy on new rows",
        title="how well that predicts",
        ylim=(0.45, 1.0),
    )
    left.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 0.18))

    at = np.arange(len(data.views))
    for k, (name, style) in enumerate(STYLES.items()):
        right.bar(at + 0.27 * (k - 1), shares[name], 0.27, color=style["color"], label=name)
    right.set(
        ylabel="share of the decision function",
        title=f"what is used at a factor of {FACTORS[-1]:g}",
        ylim=(0, 1.05),
    )
    right.set_xticks(at, ["useful\nview", *(f"useless\nview {j}" for j in at[1:])])
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    path = Path(folder) / "plot_radius.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
