"""Several people labelled each row: who makes which mistakes, and what do the columns add?

Images of ten digits, and eight simulated annotators. Half of them are right nine times out of ten,
the others guess often and call every second 8 a 3. Each image is shown to one to four of them. A
majority vote counts all annotators alike. The method of Dawid and Skene weighs them, for which it
needs images with several answers. `AnnotatorKernelClassifier` lets the images vote, too, which
counts most where answers are few.

Run it with ``python plot_annotators.py [folder]``; the picture is saved in the folder.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from kernelweave import AnnotatorKernelClassifier
from kernelweave.baselines import DawidSkene

DARK, ORANGE, GREY = "#1f5f8b", "#c2571a", "#9ca3af"
N_IMAGES, N_ANNOTATORS, PER_IMAGE = 500, 8, (1, 2, 3, 4)


def ask(y, per_image, random):
    """Return a table of answers, a column for each annotator; NaN where one was not asked."""
    answers = np.full((len(y), N_ANNOTATORS), np.nan)
    for image, digit in enumerate(y):
        for who in random.permutation(N_ANNOTATORS)[:per_image]:
            careless = who >= N_ANNOTATORS // 2
            said = 3 if careless and digit == 8 and random.random() < 0.5 else digit
            guesses = random.random() < (0.4 if careless else 0.1)
            answers[image, who] = random.integers(10) if guesses else said
    return answers


def main(folder="."):
    """Draw the share of right classes by the number of answers, and one confusion matrix."""
    X, y = load_digits(return_X_y=True)
    random = np.random.default_rng(0)
    some = random.permutation(len(y))[:N_IMAGES]
    X, y = X[some] / 16.0, y[some]
    found = {"majority vote": [], "Dawid and Skene": [], "with the images": []}
    for per_image in PER_IMAGE:
        answers = ask(y, per_image, random)
        votes = (answers[:, :, None] == np.arange(10)).sum(axis=1)
        alone = DawidSkene(kappa=3.0).fit(answers)
        model = AnnotatorKernelClassifier().fit(X, answers)
        for name, labels in zip(
            found, (votes.argmax(axis=1), alone.labels_, model.labels_), strict=True
        ):
            found[name].append(np.mean(labels == y))
    for name, shares in found.items():
        print(f"{name}: " + ", ".join(f"{share:.2f}" for share in shares))
    print(model.to_frame().round(2).to_string(index=False))

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for (name, shares), colour in zip(found.items(), (GREY, ORANGE, DARK), strict=True):
        left.plot(PER_IMAGE, shares, "o-", color=colour, linewidth=2, label=name)
    left.set(xticks=PER_IMAGE, ylim=(0, 1.04))
    left.set(xlabel="answers for each image", ylabel="share of right classes")
    left.set_title("what the images add")
    left.legend(frameon=False, loc="lower right")
    left.spines[["top", "right"]].set_visible(False)

    worst = int(np.argmin(model.annotator_accuracy_))
    right.imshow(model.confusions_[worst], cmap="Blues", vmin=0, vmax=1)
    right.set(xticks=range(10), yticks=range(10), xlabel="answer", ylabel="class")
    right.set_title(f"annotator {worst}, right {model.annotator_accuracy_[worst]:.0%} of the time")
    share = model.confusions_[worst][8, 3]
    right.annotate(f"{share:.0%}", (3, 8), color="black", ha="center", va="center", size=7)
    path = Path(folder) / "plot_annotators.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
