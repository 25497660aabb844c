"""Tags of an estimator say what its kernels do with sparse rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from kernelweave import (
    ARD,
    RBF,
    Additive,
    FromCallable,
    HierarchicalMKLClassifier,
    Laplacian,
    Linear,
    MKLClassifier,
    NoiseTolerantKernelClassifier,
    Overlap,
    PairwiseKernelLearner,
    Polynomial,
    Precomputed,
    ProductLattice,
    RadiusKernelClassifier,
    RadiusMKLClassifier,
    SumProductMKLClassifier,
    Words,
    complete_ladder,
    group,
    learned_metric,
    mixed_ladder,
    polynomial_ladder,
    rbf_ladder,
    views,
)
from kernelweave.errors import KernelweaveError
from kernelweave.kernels import Cosine
from kernelweave.kernels.given import encodes_gaps, takes_sparse, with_targets

RANDOM = np.random.default_rng(0)
ROWS = sp.csr_array(RANDOM.normal(size=(30, 3)) * (RANDOM.random((30, 3)) < 0.7))
Y = np.where(ROWS.toarray()[:, 0] + 0.3 * RANDOM.normal(size=30) > 0, 1, -1)
NUMBERED = sp.csr_array(np.arange(30.0)[:, None])

KERNELS = {
    "linear": Linear(),
    "linear centred": Linear(centre=[0.0, 1.0, 2.0]),
    "rbf": RBF(1.0),
    "rbf off": RBF(1.0, missing="off"),
    "rbf fill": RBF(1.0, missing="fill"),
    "rbf expected": RBF(1.0, missing="expected"),
    "ard": ARD([1.0, 2.0, 3.0]),
    "laplacian": Laplacian(1.0),
    "polynomial": Polynomial(2),
    "overlap": Overlap(),
    "words": Words(columns=[0]),
    "additive": Additive([1.0, 1.0, 1.0]),
    "function": FromCallable(lambda A, B: (A @ B.T).toarray()),
    "cosine": Cosine(RBF(1.0)),
    "cosine of laplacian": Cosine(Laplacian(1.0)),
    "sum": Linear() + RBF(1.0),
    "product": Linear() * Laplacian(1.0),
    "group": group(RBF(1.0) + Linear()),
    "several": [Linear(), Laplacian(1.0)],
    "rbf_ladder": rbf_ladder(),
    "rbf_ladder of columns": rbf_ladder([1.0], per_feature=True),
    "rbf_ladder fill": rbf_ladder([1.0], missing="fill"),
    "polynomial_ladder": polynomial_ladder(),
    "complete_ladder": complete_ladder(),
    "mixed_ladder": mixed_ladder(),
    "learned_metric": learned_metric(),
    "views": views({"a": [0], "b": ([1, 2], RBF(1.0))}),
    "views of laplacian": views({"a": [0], "b": ([1, 2], Laplacian(1.0))}),
    "views off": views({"a": ([0], RBF(1.0)), "b": ([1, 2], RBF(1.0))}, missing="off"),
    "views fill": views({"a": ([0], RBF(1.0)), "b": ([1, 2], RBF(1.0))}, missing="fill"),
    "views complete": views({"a": ([0], RBF(1.0)), "b": ([1, 2], RBF(1.0))}, missing="complete"),
}


def fits(model, X=ROWS):
    try:
        model.fit(X, Y)
    except KernelweaveError as error:
        told = str(error)
    else:
        return True
    assert "parse" in told
    return False


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS.keys())
def test_sparse_rows(kernels):
    assert takes_sparse(kernels) == fits(MKLClassifier(kernels))


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(),
        MKLClassifier([RBF(1.0), Laplacian(1.0)]),
        NoiseTolerantKernelClassifier([Laplacian(1.0)]),
        RadiusMKLClassifier([Laplacian(1.0), RBF(1.0)]),
        RadiusKernelClassifier(),
        SumProductMKLClassifier(Linear() * Laplacian(1.0) + RBF(1.0)),
        SumProductMKLClassifier(Linear() * RBF(2.0) + RBF(1.0)),
        HierarchicalMKLClassifier({"a": Linear(), "b": Laplacian(1.0)}),
        HierarchicalMKLClassifier({"a": Linear(), "b": RBF(1.0)}),
        HierarchicalMKLClassifier(),
        HierarchicalMKLClassifier(ProductLattice([Laplacian(1.0, columns=[0]), RBF(columns=[1])])),
    ],
    ids=str,
)
def test_tags(model):
    assert model.__sklearn_tags__().input_tags.sparse == fits(model)


def test_ready_matrices_and_pairs():
    assert fits(MKLClassifier([Precomputed((ROWS @ ROWS.T).toarray())]), NUMBERED)
    assert PairwiseKernelLearner().__sklearn_tags__().input_tags.sparse
    assert not PairwiseKernelLearner([Laplacian(1.0)]).__sklearn_tags__().input_tags.sparse


def test_gaps_and_targets():
    assert encodes_gaps(None)
    assert not encodes_gaps([Linear(), RBF(1.0)])
    assert encodes_gaps([Linear(), RBF(1.0, missing="off")])
    plain = [Linear(), RBF(1.0)]
    assert with_targets(plain, Y) is plain
    assert with_targets([Linear(), learned_metric()], Y)[1] != learned_metric()
