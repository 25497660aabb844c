"""What is measured of labels that people gave: protocols of the three parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from kernelweave import AnnotatorKernelClassifier, NoiseTolerantKernelClassifier
from kernelweave.baselines import BalancedKernelSVM, DawidSkene

from .people_data import FLIPPED, Codes, Floats, People, division, flipped, one_label

ENOUGH = 0.95  # share of the accuracy from gold labels that a review is to reach
STEP = 0.05  # share of the rows that are reviewed in a round
MOST = 0.8  # of the rows that are reviewed at most


@dataclass(frozen=True)
class Part:
    """Sets, methods and number of draws of a part."""

    title: str
    data: tuple[str, ...]
    methods: tuple[str, ...]
    draws: int


PARTS = {
    "review": Part(
        "The gain of a review",
        ("music one", "labelme one", "products one", *(f"{name} flipped" for name in FLIPPED)),
        ("ours", "cleanlab, ranked again", "cleanlab, one order", "random"),
        2,  # the protocol was set with a third one
    ),
    "answers": Part(
        "Answers of several annotators",
        ("music all", "music two", "labelme all", "sentiment all", "products all"),
        (
            "majority + SVC",
            "Dawid-Skene + SVC",
            "Dawid-Skene + balanced SVC",
            "CROWDLAB + SVC",
            "kernel EM",
            "kernel EM, equal prior",
        ),
        5,
    ),
    "checks": Part(
        "Other answers, and columns of noise",
        (
            "music all",
            "music copy",
            "music shift",
            *(f"music two-{k}" for k in range(1, 4)),
            *(f"music noise-{k}" for k in range(1, 4)),
            "labelme noise-1",
        ),
        ("Dawid-Skene, kappa 3", "kernel EM"),
        5,
    ),
    "labels": Part(
        "One label a row",
        (
            "music one",
            "music majority",
            "labelme one",
            "labelme majority",
            "sentiment one",
            "products one",
        ),
        ("tolerant, auto", "tolerant, class", "SVC", "balanced kernel SVM", "cleanlab, LR"),
        3,
    ),
}


def measure(part: str, data: str, method: str, seed: int) -> dict[str, Any]:
    """Return the figures of one method on one draw."""
    name, how = data.split()
    began = time.process_time()
    if part in ("answers", "checks"):
        found = _answers(division(name, seed, how), name, method)
    else:
        rows, labels = flipped(name, seed) if how == "flipped" else one_label(name, seed, how)
        run: Callable[..., dict[str, Any]] = _review if part == "review" else _labels
        found = run(rows, labels, name, method, seed)
    return found | {"seconds": time.process_time() - began}


def score(name: str, truth: Codes, predicted: Any) -> float:
    """Return the accuracy, or F1 of the rare class of products."""
    right = f1_score(truth, predicted) if name == "products" else np.mean(truth == predicted)
    return 100.0 * float(right)


def _tuned(X: Floats, balanced: bool = False) -> GridSearchCV:
    scale = 1.0 / (X.shape[1] * X.var())
    grid = {"C": [1.0, 10.0], "gamma": [scale / 4.0, scale]}
    model = SVC(class_weight="balanced" if balanced else None)
    scoring = "balanced_accuracy" if balanced else "accuracy"
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return GridSearchCV(model, grid, scoring=scoring, cv=folds)


def _answers(data: People, name: str, method: str) -> dict[str, Any]:
    table = np.where(data.answers < 0, np.nan, data.answers)
    rows, who = np.nonzero(data.answers >= 0)
    wrong = data.answers[rows, who] != data.gold[rows]
    if method.startswith("kernel EM"):
        prior = "equal" if method.endswith("prior") else None
        model = AnnotatorKernelClassifier(class_prior=prior).fit(data.X, table)
        labels, quality = model.labels_, model.answer_quality_
        predicted = model.predict(data.X_test)
    else:
        if method.startswith("Dawid"):
            fitted = DawidSkene(kappa=3.0 if method.endswith("3") else 0.0).fit(table)
            labels, given = fitted.labels_, data.answers[rows, who]
            quality = fitted.truth_[rows, np.searchsorted(fitted.classes_, given)]
        else:
            votes = (data.answers[:, :, None] == np.arange(data.gold.max() + 1)).sum(axis=1)
            labels, shares = votes.argmax(axis=1), votes / votes.sum(axis=1, keepdims=True)
            quality = shares[rows, data.answers[rows, who]]
        if method.startswith("CROWDLAB"):
            labels, quality = _crowdlab(data.X, table, labels)
        predicted = None
        if "SVC" in method:
            tuned = _tuned(data.X, "balanced" in method).fit(data.X, labels.astype(int))
            predicted = tuned.predict(data.X_test)
    test = {} if predicted is None else {"test": score(name, data.gold_test, predicted.astype(int))}
    return test | {
        "truth": score(name, data.gold, labels.astype(int)),
        "auc": 100.0 * float(roc_auc_score(wrong, -quality)),
    }


def _crowdlab(X: Floats, table: Floats, labels: Codes) -> tuple[Codes, Floats]:
    """Return the consensus of cleanlab, and the quality of every answer, row by row."""
    from cleanlab.multiannotator import get_label_quality_multiannotator

    probabilities = np.full((len(X), int(np.nanmax(table)) + 1), 1e-6)
    probabilities[:, np.unique(labels)] += _probabilities(_regression(), X, labels)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    found = get_label_quality_multiannotator(table, probabilities, verbose=False)
    consensus = found["label_quality"]["consensus_label"].to_numpy(int)
    return consensus, found["detailed_label_quality"].to_numpy(float)[~np.isnan(table)]


def _labels(data: People, labels: Codes, name: str, method: str, seed: int) -> dict[str, Any]:
    wrong, level, other = labels != data.gold, None, None
    if method.startswith("tolerant"):
        model = NoiseTolerantKernelClassifier(mode=method.split()[-1]).fit(data.X, labels)
        quality, level = model.label_quality_, 100.0 * model.noise_level_
        other = 100.0 * float(roc_auc_score(wrong, model.wrong_label_probability_))
        predicted = model.predict(data.X_test)
    elif method == "SVC":
        fitted = _tuned(data.X).fit(data.X, labels)
        quality = _own(_probabilities(fitted.best_estimator_, data.X, labels), labels)
        predicted = fitted.predict(data.X_test)
    elif method == "balanced kernel SVM":
        chosen = BalancedKernelSVM(Cs=(0.1, 1.0, 10.0), cv=3).fit(data.X, labels)
        fixed = BalancedKernelSVM(Cs=(chosen.C_,), cv=3)
        quality = _own(_probabilities(fixed, data.X, labels), labels)
        predicted = chosen.predict(data.X_test)
    else:
        from cleanlab.classification import CleanLearning

        model = CleanLearning(_regression(), seed=0).fit(data.X, labels)
        quality = model.get_label_issues()["label_quality"].to_numpy()
        predicted = model.predict(data.X_test)
    return {
        "test": score(name, data.gold_test, predicted),
        "auc": 100.0 * float(roc_auc_score(wrong, -quality)),
        "precision": 100.0 * float(average_precision_score(wrong, -quality)),
        "wrong": 100.0 * float(wrong.mean()),
        **({} if level is None else {"level": level, "auc of probability": other}),
    }


def _regression() -> LogisticRegression:
    return LogisticRegression(C=0.1, max_iter=300)


def _probabilities(model: Any, X: Floats, labels: Codes) -> Floats:
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    if hasattr(model, "predict_proba"):
        return np.asarray(cross_val_predict(model, X, labels, cv=folds, method="predict_proba"))
    values = cross_val_predict(model, X, labels, cv=folds, method="decision_function")
    return np.column_stack([-values, values]) if values.ndim == 1 else np.asarray(values)


def _own(values: Floats, labels: Codes) -> Floats:
    """Return by how much the given label exceeds the best of the others."""
    codes, rows = np.searchsorted(np.unique(labels), labels), np.arange(len(labels))
    others = values.copy()
    others[rows, codes] = -np.inf
    return np.asarray(values[rows, codes] - others.max(axis=1))


def _cleanlab_order(X: Floats, labels: Codes) -> Floats:
    from cleanlab.rank import get_label_quality_scores

    classes, codes = np.unique(labels, return_inverse=True)
    probabilities = _probabilities(_regression(), X, labels)
    assert probabilities.shape[1] == len(classes)
    return np.asarray(get_label_quality_scores(codes, probabilities, method="normalized_margin"))


def _review(data: People, labels: Codes, name: str, method: str, seed: int) -> dict[str, Any]:
    """Return the rows to review until an SVM is as good as 95 % of that on gold labels."""

    def assess(current: Codes) -> float:
        cost = 1.0 if name == "products" else 10.0
        fitted = SVC(C=cost).fit(data.X, current)
        return score(name, data.gold_test, fitted.predict(data.X_test))

    n, target = len(labels), ENOUGH * assess(data.gold)
    step, current = max(1, int(STEP * n)), labels.copy()
    reviewed = np.zeros(n, dtype=bool)
    # A stream of its own: that of the seed flips labels, and would put wrong rows first.
    fixed = np.random.default_rng([seed, 1]).random(n) if method == "random" else None
    curve = [assess(current)]
    while curve[-1] < target and reviewed.sum() < MOST * n:
        if fixed is not None:
            quality = fixed
        elif method == "ours":
            known = np.where(reviewed, data.gold.astype(object), None)
            quality = (
                NoiseTolerantKernelClassifier().fit(data.X, labels, known=known).label_quality_
            )
        else:
            quality = _cleanlab_order(data.X, current)
            fixed = quality if method.endswith("one order") else None
        order = np.argsort(np.where(reviewed, np.inf, quality), kind="stable")[:step]
        reviewed[order], current[order] = True, data.gold[order]
        curve.append(assess(current))
    if curve[-1] < target:
        needed = float(reviewed.sum())
    elif len(curve) == 1:
        needed = 0.0
    else:  # between the last two rounds
        needed = step * (len(curve) - 2 + (target - curve[-2]) / (curve[-1] - curve[-2]))
    return {"needed": 100.0 * needed / n, "target": target, "curve": curve}
