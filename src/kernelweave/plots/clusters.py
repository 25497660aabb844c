"""Clusters as points in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from kernelweave._types import Floats

from .drawing import check_aspect, new_axes, tidy


def plot_clusters(model: Any, ax: Any = None) -> Any:
    """Draw the first two principal components of the embedding that was clustered.

    Parameters
    ----------
    model : fitted KernelSpectralClustering
        Has ``embedding_`` and ``labels_``.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes
        What was drawn on.

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
