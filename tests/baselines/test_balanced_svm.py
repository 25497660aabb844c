"""The balanced support vector machine that methods for wrong labels are compared with."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import RBF, Linear, MKLClassifier, Precomputed
from kernelweave.baselines import BalancedKernelSVM
from kernelweave.errors import InputError


def blobs(n=200, seed=0, rates=(0.0, 0.4), apart=3.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += apart * y
    flipped = rng.random(n) < np.where(y == 1, rates[1], rates[0])
    return X, y, np.where(flipped, 1 - y, y)


X, TRUE, NOISY = blobs()


@pytest.mark.slow
@parametrize_with_checks([BalancedKernelSVM(), BalancedKernelSVM([RBF(2.0)], Cs=[1.0], cv=2)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_the_choice_is_that_of_a_plain_search():
    """scikit-learn's SVC on the mean of the normalised Gram matrices, fold by fold."""
    kernels, Cs = [RBF(1.0), Linear()], [0.1, 1.0, 10.0]
    model = BalancedKernelSVM(kernels, Cs=Cs, tol=1e-6).fit(X, NOISY)
    scores = np.zeros(3)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, NOISY))
    for train, test in folds:
        mean = np.zeros((len(X), len(train)))
        for kernel in kernels:
            K = kernel(X, X[train])
            J = np.eye(len(train)) - 1 / len(train)
            mean += K / np.trace(J @ K[train] @ J) * len(train) / 2
        for k, C in enumerate(Cs):
            svm = SVC(C=C, kernel="precomputed", class_weight="balanced", tol=1e-6)
            svm.fit(mean[train], NOISY[train])
            scores[k] += balanced_accuracy_score(NOISY[test], svm.predict(mean[test])) / 5
    np.testing.assert_allclose(model.cv_scores_, scores, atol=0.011)
    assert model.C_ == Cs[int(model.cv_scores_.argmax())]
    direct = MKLClassifier(kernels, norm="uniform", class_weight="balanced", C=model.C_, tol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(X), direct.fit(X, NOISY).decision_function(X), atol=1e-3
    )


def test_one_sided_noise_does_not_move_it():
    new, true, _ = blobs(500, seed=1)
    balanced = BalancedKernelSVM().fit(X, NOISY).score(new, true)
    plain = MKLClassifier([RBF(2.0)]).fit(X, NOISY).score(new, true)
    assert balanced > 0.9
    assert balanced > plain + 0.02


def test_frames_names_and_ready_kernels():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    labels = np.array(["no", "yes"])[NOISY]
    model = BalancedKernelSVM([RBF(2.0)], Cs=[1.0, 10.0], tol=1e-6).fit(frame, labels)
    assert set(model.predict(frame)) == {"no", "yes"}
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    rows = np.arange(len(X))[:, None]
    gram = Precomputed(RBF(2.0)(X))
    ready = BalancedKernelSVM([gram], Cs=[1.0, 10.0], tol=1e-6).fit(rows, labels)
    np.testing.assert_allclose(
        ready.decision_function(rows), model.decision_function(frame), atol=1e-2
    )


def test_bad_input_gets_one_sentence():
    with pytest.raises(InputError, match="Cs: must be one or more finite numbers > 0"):
        BalancedKernelSVM(Cs=[0.0]).fit(X, NOISY)
    with pytest.raises(InputError, match=r"two examples or more.*smallest has 1"):
        BalancedKernelSVM().fit(X, np.r_[2, NOISY[1:]])
    with pytest.raises(InputError, match="two classes or more"):
        BalancedKernelSVM().fit(X, np.ones(len(X)))
