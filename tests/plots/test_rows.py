"""Rows in the plane: label noise and clusters."""

import numpy as np
import pytest

from kernelweave import (
    KernelSpectralClustering,
    NoiseTolerantKernelClassifier,
)
from kernelweave.errors import InputError
from kernelweave.plots import (
    plot_clusters,
    plot_noise,
)
from plot_models import X, Y, fitted


def test_the_noise_curve_is_the_quality_of_the_labels(ax):
    noisy = np.where(np.arange(40) % 10 == 0, -Y, Y)
    model = NoiseTolerantKernelClassifier().fit(X, noisy)
    assert plot_noise(model, ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), np.sort(model.label_quality_))
    found = model.suspects()
    (marked,) = ax.collections
    np.testing.assert_array_equal(marked.get_offsets()[:, 1], found.quality)
    assert ax.lines[1].get_xdata()[0] == model.noise_level_ * 40
    assert ax.get_title(loc="left") == f"{found.n_wrong} of 40 labels look wrong"
    with pytest.raises(InputError, match="MKLClassifier does not assess"):
        plot_noise(fitted(1.0))


@pytest.mark.parametrize("n_clusters", [1, 2, 4])
def test_clusters_are_the_points_that_were_grouped(ax, n_clusters):
    model = KernelSpectralClustering(n_clusters, random_state=0).fit(np.abs(X))
    assert plot_clusters(model, ax) is ax
    drawn = [group.get_offsets() for group in ax.collections]
    sizes = np.bincount(model.labels_).tolist()
    assert [len(points) for points in drawn] == sizes
    labels = [f"cluster {k} ({n})" for k, n in enumerate(sizes)]
    assert [group.get_label() for group in ax.collections] == labels
    if n_clusters == 2:
        expected = [model.embedding_[model.labels_ == k] for k in range(2)]
        for points, own in zip(drawn, expected, strict=True):
            np.testing.assert_array_equal(points, own)
    if n_clusters == 4:  # distances in the plane are no longer than the true ones
        flat = np.concatenate(drawn)
        order = np.argsort(model.labels_, kind="stable")
        true = np.linalg.norm(np.diff(model.embedding_[order], axis=0), axis=1)
        assert (np.linalg.norm(np.diff(flat, axis=0), axis=1) <= true + 1e-9).all()
    with pytest.raises(InputError, match="MKLClassifier has no clusters"):
        plot_clusters(fitted(1.0))
