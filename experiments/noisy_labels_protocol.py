"""The comparison of classifiers under wrong labels, and the estimates of how many are wrong.

Rows are divided 70 to 30 with equal shares of the classes, columns standardised on the training
part, labels of that part flipped, and everything that is tuned is tuned on flipped labels. Test
labels stay as they are.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_predict,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave import (
    RBF,
    Linear,
    MKLClassifier,
    NoiseTolerantKernelClassifier,
    NoisyLabelMKLClassifier,
    complete_ladder,
    estimate_noise,
)
from kernelweave.baselines import BalancedKernelSVM

from .noisy_labels_data import Codes, Floats, flip, random, read_problem

N_SPLITS = 4
N_DRAWS = 10
TEST_SHARE = 0.3
UNIFORM_COSTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
RBF_STEPS = (0.25, 0.5, 1.0, 2.0)  # widths in units of the median distance
RBF_COSTS = (0.1, 1.0, 10.0, 100.0)
MKL_COSTS = (0.1, 1.0, 10.0)
N_FOLDS, N_MKL_FOLDS = 5, 3
Paths = Callable[[Floats, Codes], Sequence[Any]]  # fits one model for each setting


@dataclass(frozen=True)
class Answer:
    """What a method says about test rows and about the training labels."""

    predicted: Codes
    quality: Floats  # small for labels that look wrong
    noise_level: float | None = None


@dataclass(frozen=True)
class Case:
    """Training rows with wrong labels, and test rows."""

    X: Floats
    y: Codes  # as observed
    wrong: NDArray[np.bool_]
    X_test: Floats
    y_test: Codes

    @cached_property
    def rbf(self) -> SVC:
        """A Gaussian SVM with width and cost tuned on the observed labels."""
        widths = np.array(RBF_STEPS) * _median_distance(self.X)
        grid = {"gamma": (0.5 / widths**2).tolist(), "C": list(RBF_COSTS)}
        search = GridSearchCV(SVC(), grid, cv=_folds(N_FOLDS), refit=False).fit(self.X, self.y)
        return SVC(**search.best_params_)

    @cached_property
    def kernels(self) -> list[Any]:
        """What sparse kernel learning chooses from: Gaussians on all columns and on single ones."""
        whole = [k for k in complete_ladder().expand(self.X) if isinstance(k, RBF)]
        kernels: list[Any] = [*whole, Linear()]
        for column in range(self.X.shape[1]):
            several = np.unique(self.X[:, column]).size > 2 and self.X.shape[1] <= 100
            widths = (0.5, 1.0, 2.0) if several else (1.0,)
            kernels += [RBF(width, columns=column) for width in widths]
        return kernels


@lru_cache(maxsize=1)
def open_case(data: str, split: int, condition: str, seed: int) -> Case:
    """Read a data set, divide it and make labels wrong."""
    X, y = read_problem(data)
    state = int(random(seed, data, "split", split).integers(2**31))
    halves = StratifiedShuffleSplit(1, test_size=TEST_SHARE, random_state=state)
    train, test = next(halves.split(X, y))
    X = StandardScaler().fit(X[train]).transform(X)
    observed = flip(y[train], condition, split, random(seed, data, "flip", split, condition))
    return Case(X[train], observed, observed != y[train], X[test], y[test])


def _tolerant(mode: str) -> Callable[[Case], Answer]:
    def run(case: Case) -> Answer:
        model = NoiseTolerantKernelClassifier(mode=mode, n_jobs=1).fit(case.X, case.y)
        return Answer(model.predict(case.X_test), model.label_quality_, model.noise_level_)

    return run


def _balanced(case: Case) -> Answer:
    model = BalancedKernelSVM(Cs=UNIFORM_COSTS, cv=N_FOLDS, n_jobs=1).fit(case.X, case.y)
    alone = _uniform_svm(C=model.C_, class_weight="balanced")
    return Answer(model.predict(case.X_test), _margins(alone, case))


def _uniform(case: Case) -> Answer:
    def paths(X: Floats, y: Codes) -> Sequence[Any]:
        return _uniform_svm().fit_path(X, y, UNIFORM_COSTS)

    best = choose(paths, case, N_FOLDS)
    model = _uniform_svm(C=UNIFORM_COSTS[best]).fit(case.X, case.y)
    return Answer(model.predict(case.X_test), _margins(model, case))


def _rbf(case: Case) -> Answer:
    model = case.rbf.fit(case.X, case.y)
    return Answer(model.predict(case.X_test), _margins(model, case))


def _cleanlab(case: Case) -> Answer:
    return _clean(CalibratedClassifierCV(case.rbf, ensemble=False), case)


def _cleanlab_svc(case: Case) -> Answer:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*`probability` parameter", FutureWarning)
        return _clean(clone(case.rbf).set_params(probability=True, random_state=0), case)


def _clean(model: Any, case: Case) -> Answer:
    from cleanlab.classification import CleanLearning

    alone = {"n_jobs": 1}  # it would start processes of its own
    learner = CleanLearning(
        model, cv_n_folds=N_FOLDS, seed=0, find_label_issues_kwargs=alone, verbose=False
    )
    learner.fit(case.X, case.y)
    quality = learner.get_label_issues()["label_quality"].to_numpy()
    return Answer(np.asarray(learner.predict(case.X_test)), quality)


def _sparse(case: Case) -> Answer:
    mkl = MKLClassifier(case.kernels, n_jobs=1)
    best = choose(lambda X, y: mkl.fit_path(X, y, MKL_COSTS), case, N_MKL_FOLDS)
    model = mkl.set_params(C=MKL_COSTS[best]).fit(case.X, case.y)
    return Answer(model.predict(case.X_test), _margins(model, case))


def _capped(case: Case) -> Answer:
    mkl = NoisyLabelMKLClassifier(case.kernels, noise_level="auto", n_jobs=1)

    def paths(X: Floats, y: Codes) -> Sequence[Any]:
        return mkl.fit_path(X, y, [1.0 / (len(y) * C) for C in MKL_COSTS])

    best = choose(paths, case, N_MKL_FOLDS)
    model = mkl.set_params(lam=1.0 / (len(case.y) * MKL_COSTS[best])).fit(case.X, case.y)
    return Answer(model.predict(case.X_test), model.label_quality_, model.noise_level_)


@dataclass(frozen=True)
class Method:
    """A row of the comparison."""

    label: str
    run: Callable[[Case], Answer]
    n_splits: int = N_SPLITS
    quick: bool = True  # whether the short run has it


METHODS = {
    "auto": Method("tolerant, auto", _tolerant("auto")),
    "class": Method("tolerant, class", _tolerant("class")),
    "symmetric": Method("tolerant, symmetric", _tolerant("symmetric")),
    "balanced": Method("balanced SVM", _balanced),
    "uniform": Method("uniform SVM", _uniform),
    "rbf": Method("RBF-SVM", _rbf),
    "cleanlab": Method("cleanlab", _cleanlab),
    "cleanlab_svc": Method("cleanlab, SVC's own probabilities", _cleanlab_svc),
    "mkl": Method("l1-MKL", _sparse, n_splits=2, quick=False),
    "capped": Method("capped MKL", _capped, n_splits=2, quick=False),
}


def has_cleanlab() -> bool:
    """Whether the package that is measured beside ours is there."""
    return find_spec("cleanlab") is not None


def needs_cleanlab(method: str) -> bool:
    """Whether a method cannot run without that package."""
    return METHODS[method].run in (_cleanlab, _cleanlab_svc)


def compare(data: str, split: int, condition: str, name: str, seed: int) -> dict[str, Any]:
    """Run one method on one division with one kind of noise."""
    case = open_case(data, split, condition, seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Where nothing can be learned, the results say so.
        warnings.filterwarnings("ignore", ".*kernels predict these labels no better", UserWarning)
        answer = METHODS[name].run(case)
    ranking = None
    if case.wrong.any():
        ranking = 100 * float(roc_auc_score(case.wrong, -answer.quality))
    return {
        "accuracy": 100 * float(accuracy_score(case.y_test, answer.predicted)),
        "balanced": 100 * float(balanced_accuracy_score(case.y_test, answer.predicted)),
        "ranking": ranking,
        "noise_level": answer.noise_level,
        "wrong": float(case.wrong.mean()),
        "seconds": round(time.process_time() - start, 3),
    }


def estimate(data: str, draw: int, condition: str, seed: int) -> dict[str, Any]:
    """Flip labels of all rows and estimate how many were flipped, in two ways."""
    X, y = read_problem(data)
    X = StandardScaler().fit_transform(X)
    observed = flip(y, condition, draw, random(seed, data, "draw", draw, condition))
    found = estimate_noise(X, observed, n_bootstrap=1, random_state=0, n_jobs=1)
    return {
        "truth": float((observed != y).mean()),
        "range": found.level,
        "counts": found.other["counts"],
    }


def choose(paths: Paths, case: Case, n_folds: int) -> int:
    """Return the setting with the most right answers on folds, of equal ones the first."""
    n_right: Any = 0
    for train, test in _folds(n_folds).split(case.X, case.y):
        models = paths(case.X[train], case.y[train])
        held_out = case.X[test]
        n_right += np.array([np.sum(m.predict(held_out) == case.y[test]) for m in models])
    return int(np.argmax(n_right))


def _uniform_svm(**options: Any) -> MKLClassifier:
    return MKLClassifier(complete_ladder(), norm="uniform", n_jobs=1, **options)


def _margins(model: Any, case: Case) -> Floats:
    """Return out-of-fold margins of the labels."""
    folds = _folds(N_FOLDS)
    values = cross_val_predict(model, case.X, case.y, cv=folds, method="decision_function")
    return np.where(case.y == 1, values, -values)


def _folds(n_folds: int) -> StratifiedKFold:
    return StratifiedKFold(n_folds, shuffle=True, random_state=0)


def _median_distance(X: Floats) -> float:
    squares = np.square(X).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * X @ X.T
    return float(np.sqrt(max(np.median(distances[np.triu_indices(len(X), 1)]), 1e-12)))
