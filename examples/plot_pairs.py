"""Only pairs: cluster linked documents without a single class label.

A synthetic collection of 450 documents on three subjects. Each subject has its own words, but most
words of a document depend on one of four writing styles, which are independent of the subject.
Documents link to others, and four links in five are within a subject. With equal weights the
clusters follow the style. With weights of the words learned from the links they follow the subject.

Run it with ``python plot_pairs.py [folder]``; the picture is saved in the folder.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score

from kernelweave import KernelSpectralClustering, PairwiseKernelLearner, constraints_from_graph

COLOURS = np.array(["#1f5f8b", "#e08e2b", "#5a9e6f"])


def make_documents(n_samples=450, seed=0):
    """Return words by document, subjects, and links."""
    random = np.random.default_rng(seed)
    subject, style = random.integers(3, size=n_samples), random.integers(4, size=n_samples)
    own = np.where(np.arange(90) % 3 == subject[:, None], 0.22, 0.03)
    common = np.where(np.arange(80) % 4 == style[:, None], 0.5, 0.1)
    words = random.random((n_samples, 170)) < np.column_stack([own, common])
    drawn = random.integers(n_samples, size=(20 * n_samples, 2))
    same = subject[drawn[:, 0]] == subject[drawn[:, 1]]
    links = np.concatenate([drawn[same][: 4 * n_samples], drawn[~same][:n_samples]])
    return csr_array(words.astype(float)), subject, links


def main(folder="."):
    """Cluster before and after learning, and draw both embeddings and the weights."""
    X, subject, links = make_documents()
    found = constraints_from_graph(links, n_samples=X.shape[0], random_state=0)
    learner = PairwiseKernelLearner(correction="naive", lam=1e-3)
    learned = learner.fit_transform(X, pairs=found.pairs, labels=found.labels)

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for ax, title, rows in zip(axes, ("before", "after"), (X, learned), strict=False):
        clusters = KernelSpectralClustering(3, random_state=0).fit(rows)
        agreement = normalized_mutual_info_score(subject, clusters.labels_)
        print(f"{title} learning, clusters and subjects agree to {agreement:.2f} (NMI)")
        points = PCA(2).fit_transform(clusters.embedding_)
        ax.scatter(*points.T, c=COLOURS[subject], s=9, alpha=0.7, linewidths=0)
        ax.set(title=f"{title} learning: NMI {agreement:.2f}", xticks=[], yticks=[])
    weights = learner.weights_
    axes[2].bar(np.arange(90), weights[:90], width=1.0, color="#1f5f8b", label="of a subject")
    axes[2].bar(np.arange(90, 170), weights[90:], width=1.0, color="#c3ccd4", label="of a style")
    axes[2].set(title="weights of the words", xlabel="word")
    axes[2].legend(frameon=False, loc="upper right")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    path = Path(folder) / "plot_pairs.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])
