"""What all plots have in common."""

import sys

import matplotlib as mpl
import pytest
from sklearn.exceptions import NotFittedError

from kernelweave import (
    MKLClassifier,
)
from kernelweave.errors import InputError, KernelweaveError
from kernelweave.plots import (
    plot_history,
    plot_weights,
)
from plot_models import fitted


def test_a_figure_is_made_where_none_is_given():
    mpl.use("agg")
    from matplotlib import pyplot as plt

    model = fitted(1.0)
    for ax in (plot_weights(model), plot_history(model)):
        assert len(ax.figure.axes) == 1
        plt.close(ax.figure)


def test_refusals(monkeypatch):
    with pytest.raises(NotFittedError):
        plot_weights(MKLClassifier())
    with pytest.raises(InputError, match="max_kernels must be a whole number >= 1, got 0"):
        plot_weights(fitted(1.0), max_kernels=0)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(KernelweaveError, match=r'need matplotlib.*"kernelweave\[report\]"'):
        plot_history(fitted(1.0))
