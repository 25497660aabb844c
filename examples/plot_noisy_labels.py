"""Find the wrong labels: rank the training labels of a table by their estimated quality.

The data describe cell nuclei of 569 tumours. 40 % of the malignant and 10 % of the benign cases get
the wrong label. One fit ranks the labels and estimates the number of wrong ones. The estimate is
too low, as usual if classes are easy to separate. For comparison, the labels are also ranked by the
cross-validated margins of an SVM. If both classes have equal noise rates and few labels are wrong,
that ranking is as good.

Run it with ``python plot_noisy_labels.py [folder]``; the picture is saved in the folder.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave import NoiseTolerantKernelClassifier, label_quality

DARK, ORANGE, GREY = "#1f5f8b", "#c2571a", "#9ca3af"
COLOURS = (DARK, "#8fc1de", ORANGE)


def flip(y, rates, random):
    """Return labels of which each class has its own share of wrong ones."""
    wrong = random.random(len(y)) < np.array(rates)[y]
    return np.where(wrong, 1 - y, y), wrong


def main(folder="."):
    """Draw the quality of right and wrong labels, and how soon the wrong ones are found."""
    X, y = load_breast_cancer(return_X_y=True)  # 0 is malignant
    observed, wrong = flip(y, (0.4, 0.1), np.random.default_rng(0))
    models = {mode: NoiseTolerantKernelClassifier(mode=mode) for mode in ("class", "auto")}
    X = StandardScaler().fit_transform(X)
    qualities = {
        f'mode="{mode}"': model.fit(X, observed).label_quality_ for mode, model in models.items()
    }
    qualities["SVC, margins on folds"] = label_quality(SVC(), X, observed)
    fitted = models["class"]
    found = fitted.suspects()
    hits = wrong[found.index].mean()
    print(f"{wrong.mean():.0%} of {len(y)} labels are wrong, {fitted.noise_level_:.0%} look wrong.")
    print(f"{len(found)} suspects, {hits:.0%} of them truly wrong:")
    print(fitted.suspects(limit=5))

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    bins = np.linspace(0, 1, 26)
    quality = fitted.label_quality_
    left.hist(quality[~wrong], bins, color=DARK, alpha=0.75, label="right labels")
    left.hist(quality[wrong], bins, color=ORANGE, alpha=0.75, label="wrong labels")
    left.axvline(0.5, color=GREY, linewidth=1, linestyle=":")
    left.set(xlabel="label_quality_", ylabel="labels", title="what a fit thinks of its labels")
    left.set_yscale("log")
    left.legend(frameon=False, loc="upper center")

    looked_at = np.arange(1, len(y) + 1)
    for (name, values), colour in zip(qualities.items(), COLOURS, strict=True):
        share = np.cumsum(wrong[np.argsort(values, kind="stable")]) / wrong.sum()
        area = roc_auc_score(wrong, -values)
        print(f"{name}: area under the curve {area:.3f}")
        right.plot(looked_at, share, color=colour, linewidth=2, label=f"{name} ({area:.3f})")
    perfect = np.minimum(looked_at / wrong.sum(), 1)
    right.plot(looked_at, perfect, color=GREY, linewidth=1, linestyle="--", label="perfect")
    right.plot(looked_at, looked_at / len(y), color=GREY, linewidth=1, linestyle=":")
    right.annotate("at random", (330, 0.53), color="#6b7280", size=8)
    right.set(
        xlabel="labels looked at, the most suspicious first",
        ylabel="share of the wrong ones found",
        title="how soon they are found",
    )
    right.legend(frameon=False, loc="lower right", title="area under the curve")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    path = Path(folder) / "plot_noisy_labels.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
