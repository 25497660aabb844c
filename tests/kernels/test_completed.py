"""Completed kernels: values of combined features, positive semi-definite, for any holes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gap_cases import SOURCES, two_sources
from kernelweave.errors import InputError
from kernelweave.kernels import Completed, Completion, expand_kernels, rbf_ladder, views
from kernelweave.kernels.completed import mean_similarity
from kernelweave.testing import check_kernel
from quick import examples


def completed(X, **options):
    return expand_kernels(views(SOURCES, rbf_ladder([1.0, 2.0]), missing="complete", **options), X)


def test_values_are_inner_products_of_combined_features():
    X = two_sources()
    first = completed(X)[0]
    assert isinstance(first, Completed)
    rows = first.prepare(X)
    there = ~np.isnan(X[:, 0])
    anchors = np.flatnonzero(there)
    coefs = np.zeros((len(X), len(anchors)))
    coefs[anchors, np.arange(len(anchors))] = 1.0
    coefs[~there] = rows[1][~there]
    gram = first.kernel(X)[np.ix_(anchors, anchors)]
    np.testing.assert_allclose(first(X), coefs @ gram @ coefs.T, atol=1e-12)
    np.testing.assert_allclose(
        first(X)[np.ix_(there, there)], first.kernel(X)[np.ix_(there, there)]
    )


def test_coefficients_are_those_of_ridge_regression():
    X = two_sources()
    completion = completed(X)[0].completion
    rows = completion.prepare(X)
    (reference,) = completion.references
    S = mean_similarity((reference,), completion.anchors, completion.anchors)
    s = mean_similarity((reference,), (reference.prepare(X[:5]),), completion.anchors)
    solved = np.linalg.solve(S + 0.1 * np.eye(len(S)), s.T).T
    np.testing.assert_allclose(rows[:5], solved, atol=1e-12)
    np.testing.assert_array_equal(rows[~np.isnan(X[:, 0])], 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_the_contract_holds_for_training_rows_and_for_other_holes(seed):
    X = two_sources(seed=seed)
    other = two_sources(seed=seed + 10)[::-1]
    for kernel in completed(X):
        check_kernel(kernel, X)
        check_kernel(kernel, other)


@examples(25)
@given(st.integers(0, 2**31), st.floats(0.0, 0.8))
def test_completed_kernels_are_positive_semi_definite_for_any_holes(seed, share):
    rng = np.random.default_rng(seed)
    X, new = two_sources(24, seed=seed % 50), rng.normal(size=(8, 5))
    for rows in (X, new):
        gone = rng.random((len(rows), 2)) < share
        gone[:3] = False  # no source is empty
        gone[gone.all(axis=1)] = [True, False]
        for k, columns in enumerate(SOURCES.values()):
            kept = np.where(np.isnan(rows[:, columns]), 0.5, rows[:, columns])
            rows[:, columns] = np.where(gone[:, [k]], np.nan, kept)
    for kernel in completed(X):
        values = np.linalg.eigvalsh(kernel(np.vstack([X, new])))
        assert values[0] >= -1e-12 * 32 * max(values[-1], 1.0)


def test_related_sources_are_recovered():
    X = two_sources(200)
    whole = two_sources(200)
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(200, 2))
    whole[:, :2] = hidden + 0.1 * rng.normal(size=(200, 2))
    kernel = completed(X)[1]
    gone = np.isnan(X[:, 0])
    truth = kernel.kernel(whole)[gone][:, ~gone]
    found = kernel(X)[gone][:, ~gone]
    assert np.corrcoef(truth.ravel(), found.ravel())[0, 1] > 0.9


def test_equal_completions_share_their_rows():
    X = two_sources()
    one, two = completed(X)[:2]
    assert one.completion.view == two.completion.view
    assert one == completed(X)[0]
    assert one != two
    assert one.linear_rows(one.prepare(X)) is None


def test_parts_that_do_not_belong_together_are_refused():
    X = two_sources()
    kernel = completed(X)[0]
    with pytest.raises(InputError, match="a square matrix of the anchors"):
        Completion(kernel.completion.gate, (), (), np.ones((2, 3)))
    with pytest.raises(InputError, match="rows of all anchors"):
        Completion(kernel.completion.gate, (kernel.kernel,), (), np.eye(2))
    with pytest.raises(InputError, match="do not belong to the completion"):
        Completed(kernel.kernel, kernel.completion, kernel.kernel.prepare(X[:2]))
