"""Folds follow the rows, not their order."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold, KFold

import kernelweave as kw
from probability_cases import KERNELS, NEW, RANDOM, TWO, N, X


def test_rows_in_another_order_have_the_same_folds():
    order = RANDOM.permutation(N)
    for rows in (X, sparse.csr_array(X)):
        one = kw.MKLClassifier(KERNELS, calibration="auto", tol=1e-8).fit(rows, TWO)
        two = kw.MKLClassifier(KERNELS, calibration="auto", tol=1e-8)
        two.fit(rows[order], TWO[order])
        assert np.array_equal(one._fold[order], two._fold)
        np.testing.assert_allclose(one.out_of_fold_[order], two.out_of_fold_, atol=1e-3)


def test_a_weight_of_two_is_a_row_given_twice():
    weight = RANDOM.integers(0, 3, size=N)
    again = np.repeat(np.arange(N), weight)
    one = kw.MKLClassifier(KERNELS, calibration="auto").fit(X, TWO, sample_weight=weight)
    two = kw.MKLClassifier(KERNELS, calibration="auto").fit(X[again], TWO[again])
    assert np.array_equal(one.predict_proba(NEW), two.predict_proba(NEW))
    assert np.array_equal(one.predict_set(NEW), two.predict_set(NEW))
    assert np.isnan(one.out_of_fold_[weight == 0]).all()
    assert np.array_equal(one.out_of_fold_[again], two.out_of_fold_)


def test_folds_of_the_user():
    groups = np.arange(N) // 10
    for cv in (groups, list(groups), 4, KFold(3), GroupKFold(3)):
        model = kw.MKLClassifier(KERNELS, calibration="auto", calibration_cv=cv)
        if isinstance(cv, GroupKFold):
            with pytest.raises(ValueError, match="groups"):
                model.fit(X, TWO)
            continue
        model.fit(X, TWO)
        assert model._n_folds == (9 if not isinstance(cv, (int, KFold)) else 4 if cv == 4 else 3)
    assert np.array_equal(
        kw.MKLClassifier(KERNELS, calibration="auto", calibration_cv=groups).fit(X, TWO)._fold,
        groups,
    )
