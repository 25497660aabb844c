"""Graphs of structures."""

import pytest

from kernelweave import (
    RBF,
    Linear,
    SumProductMKLClassifier,
    group,
)
from kernelweave.errors import InputError
from kernelweave.plots import (
    plot_structure,
)
from plot_models import X, Y, fitted


def test_a_structure_shows_its_weights_and_kernels(ax):
    structure = (RBF(1.0, columns=[0]) + RBF(2.0, columns=[1])) * Linear() + group(RBF(3.0))
    model = SumProductMKLClassifier(structure).fit(X, Y)
    assert plot_structure(model, ax) is ax
    texts = [text.get_text() for text in ax.texts]
    for leaf in model.network_.leaves:
        assert str(model.network_.nodes[leaf].kernel) in texts
    for weight in model.node_weights_.values():
        assert f"{weight:.2g}" in texts
    assert texts.count("+") == 2  # the root, and the sum inside the product
    with pytest.raises(InputError, match="has no structure"):
        plot_structure(fitted(1.0), ax)
