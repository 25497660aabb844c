"""Kernels of one inner kernel pass columns and rules on to it."""

import pytest

from kernelweave.errors import InputTypeError
from kernelweave.kernels import RBF, Cosine, Scaled


def test_columns_and_rules_go_to_the_inner_kernel():
    kernel = Scaled(RBF(), 2.0, columns=[1], missing="off")
    assert kernel.kernel == RBF(columns=[1], missing="off")
    assert kernel.columns is None
    assert kernel.missing == "refuse"
    assert kernel.encodes_gaps
    assert not kernel.has_learned
    kept = Cosine(RBF(missing="fill")).with_missing("off")
    assert kept.kernel.missing == "fill"


def test_the_inner_kernel_must_be_one():
    with pytest.raises(InputTypeError, match="Cosine: kernel must be a kernel, got str"):
        Cosine("rbf")
