"""Plots of the training rows: quality of their labels, and clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from kernelweave._types import Floats

from .drawing import DARK, GREY, WARM, check_aspect, new_axes, tidy


def plot_noise(model: Any, ax: Any = None) -> Any:
    """Draw the quality of the training labels from the worst to the best.

    Labels that are not what the model suggests are marked; the steeper the curve rises behind them,
    the clearer they stand out.

    Parameters
    ----------
    model : fitted estimator
        With ``label_quality_``, such as `NoiseTolerantKernelClassifier`.
    ax : matplotlib axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from kernelweave import NoiseTolerantKernelClassifier
    >>> from kernelweave.plots import plot_noise
    >>> X = [[0.0], [0.1], [0.2], [0.3], [2.0], [2.1], [2.2], [2.3]]
    >>> model = NoiseTolerantKernelClassifier().fit(X, [0, 0, 0, 0, 1, 1, 1, 1])
    >>> plot_noise(model).get_title(loc="left")
    '0 of 8 labels look wrong'
    """
    check_aspect(model, "labels", "does not assess its training labels; see kernelweave.suspects")
    found = model.suspects()
    order = np.argsort(model.label_quality_, kind="stable")
    quality, at = model.label_quality_[order], np.arange(1, len(order) + 1)
    wrong = np.isin(order, found.index)
    ax = new_axes((6.0, 4.0)) if ax is None else ax
    ax.plot(at, quality, color=DARK, linewidth=2)
    ax.scatter(at[wrong], quality[wrong], s=14, color=WARM, zorder=3, label="looks wrong")
    level = model.noise_level_ * len(order)
    ax.axvline(
        level, color=GREY, linewidth=1, linestyle=":", label=f"noise level {model.noise_level_:.1%}"
    )
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("training labels, the least trusted first")
    ax.set_ylabel("label quality")
    ax.set_title(f"{found.n_wrong} of {found.n_samples} labels look wrong", loc="left", fontsize=11)
    ax.legend(frameon=False, loc="lower right")
    tidy(ax, grid="y")
    return ax


def plot_clusters(model: Any, ax: Any = None) -> Any:
    """Draw the first two principal components of the embedding that was clustered.

    Parameters
    ----------
    model : fitted KernelSpectralClustering
        Has ``embedding_`` and ``labels_``.
    ax : matplotlib axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import numpy as np
    >>> from kernelweave import KernelSpectralClustering
    >>> from kernelweave.plots import plot_clusters
    >>> X = np.array([[1, 0.1], [1, 0], [0.9, 0], [0, 1], [0.1, 1], [0, 0.8]])
    >>> plot_clusters(KernelSpectralClustering(2, random_state=0).fit(X)).get_title(loc="left")
    '6 rows in 2 clusters'
    """
    check_aspect(model, "clusters", "has no clusters to draw")
    points = in_plane(model.embedding_)
    ax = new_axes((6.0, 5.0)) if ax is None else ax
    clusters = np.unique(model.labels_)
    for cluster in clusters:
        own = points[model.labels_ == cluster]
        ax.scatter(own[:, 0], own[:, 1], s=16, alpha=0.8, label=f"cluster {cluster} ({len(own)})")
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(f"{len(points)} rows in {len(clusters)} clusters", loc="left", fontsize=11)
    ax.legend(frameon=False, fontsize=8)
    tidy(ax, grid="y")
    return ax


def in_plane(points: Floats) -> Floats:
    """Return the first two principal components, or fewer dimensions padded with zeros."""
    if points.shape[1] <= 2:
        return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))
    return np.asarray(PCA(2, svd_solver="full").fit_transform(points))
