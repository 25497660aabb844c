"""Every estimator fitted to small data, for tests of reports."""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from kernelweave import (
    RBF,
    AnnotatorKernelClassifier,
    CombinedClassifier,
    CombinedRegressor,
    HierarchicalMKLClassifier,
    HierarchicalMKLRegressor,
    KernelSpectralClustering,
    Linear,
    MetricKernelClassifier,
    MetricKernelRegressor,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    NoiseTolerantKernelClassifier,
    NoisyLabelMKLClassifier,
    Overlap,
    PairwiseKernelLearner,
    RadiusKernelClassifier,
    RadiusMKLClassifier,
    RuleEnsembleClassifier,
    RuleEnsembleClassifierCV,
    RuleEnsembleRegressor,
    RuleEnsembleRegressorCV,
    SumProductMKLClassifier,
    group,
    rbf_ladder,
)
from kernelweave.io import TablePreparer
from kernelweave.report import to_html

RANDOM = np.random.default_rng(0)
N = 60
X = RANDOM.normal(size=(N, 3))
QUANTITY = X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * RANDOM.normal(size=N)
TWO = np.where(QUANTITY > 0, "high", "low")
THREE = np.array(["a", "b", "c"])[np.digitize(QUANTITY, [-0.5, 0.5])]
FRAME = pd.DataFrame(X, columns=["age", "height", "weight"]).assign(
    town=RANDOM.choice(["Ulm", "Bonn"], N, p=[0.7, 0.3])
)
NOISY = np.where(np.arange(N) % 10 == 0, np.where(TWO == "high", "low", "high"), TWO)
SAID = np.where(
    np.arange(N)[:, None] % [7, 5, 3] == 0, 1 - (QUANTITY > 0)[:, None], TWO[:, None] == "high"
)
ANSWERS = np.where(np.arange(3) == np.arange(N)[:, None] % 3, np.nan, SAID)  # two a row
COUNTS = RANDOM.poisson(1.0, size=(N, 6)).astype(float)
COUNTS[np.arange(N), np.arange(N) % 3] += 4
GROUPS = np.arange(N) % 3
LEFT, RIGHT = RBF(1.0, columns=[0]), RBF(1.0, columns=[1])
PLAIN = [rbf_ladder(), Linear()]
NUMBERS = ["age", "height", "weight"]
SEPARATE = [rbf_ladder(columns=NUMBERS), Linear(columns=NUMBERS), Overlap(columns=["town"])]


def prepared(model):
    return Pipeline([("table", TablePreparer()), ("model", model)])


# Each: the model, its rows, what is true of them, and the parts of its report.
# Rule ensembles as published, the defaults of the searches when the stored files were written.
PUBLISHED = {
    "rho": 1.1,
    "n_cuts": 4,
    "max_length": None,
    "refit": False,
    "max_rules": None,
    "selection": "best",
    "tol": 1e-2,
    "cv": 3,
}
ALWAYS = {"performance", "convergence", "data", "reproduce"}
MODELS = {
    "metric": (MetricKernelClassifier(), FRAME, TWO, {"kernels"}),
    "combination": (
        CombinedClassifier(
            [("learned metric", MetricKernelClassifier()), ("linear", prepared(MKLClassifier()))],
            weights=[0.7, 0.3],
            calibrations=[None, (np.array([[2.0]]), np.array([0.1]))],
        ),
        FRAME,
        TWO,
        {"kernels"},
    ),
    "combination of a quantity": (
        CombinedRegressor(
            [("log", MetricKernelRegressor()), ("plain", MetricKernelRegressor(n_steps=0))],
            logarithms=[(4.0, 1.01), None],
        ),
        FRAME,
        QUANTITY,
        {"kernels"},
    ),
    "metric of a quantity": (MetricKernelRegressor(), FRAME, QUANTITY, {"kernels"}),
    "mkl": (MKLClassifier([rbf_ladder(), Linear()]), X, TWO, {"kernels"}),
    "mkl, C chosen": (MKLClassifierCV([RBF(1.0), Linear()], Cs=[0.1, 1.0]), X, TWO, {"kernels"}),
    "mkl regression, C chosen": (MKLRegressorCV(Cs=[0.1, 1.0]), FRAME, QUANTITY, {"kernels"}),
    "mkl of three classes": (MKLClassifier(SEPARATE, norm=2.0), FRAME, THREE, {"kernels"}),
    "mkl in a pipeline": (
        prepared(MKLClassifier([rbf_ladder(columns=["age", "height"]), Overlap(columns=["town"])])),
        FRAME,
        pd.Series(TWO, name="size"),
        {"kernels"},
    ),
    "regression": (MKLRegressor(PLAIN, C=10, target_scale=None), X, QUANTITY, {"kernels"}),
    "radius": (RadiusMKLClassifier([Linear(), RBF(1.0)]), X, TWO, {"kernels", "radius"}),
    "widths": (
        RadiusKernelClassifier("ard", n_starts=1),
        FRAME[["age", "height"]],
        TWO,
        {"kernels", "radius"},
    ),
    "noisy": (NoisyLabelMKLClassifier(PLAIN, lam=0.05), X, NOISY, {"kernels", "labels"}),
    "tolerant": (NoiseTolerantKernelClassifier(), X, NOISY, {"kernels", "labels"}),
    "tolerant of three": (NoiseTolerantKernelClassifier(), X, THREE, {"kernels", "labels"}),
    "annotators": (AnnotatorKernelClassifier(), X, ANSWERS, {"kernels", "annotators"}),
    "structure": (
        SumProductMKLClassifier(group(LEFT + RIGHT, name="either") * Linear() + LEFT),
        X,
        TWO,
        {"kernels", "structure"},
    ),
    "structure of many paths": (
        SumProductMKLClassifier((LEFT + RIGHT) * (Linear() + LEFT), max_paths=2),
        X,
        TWO,
        {"structure"},
    ),
    "lattice": (HierarchicalMKLClassifier(C=100), X, TWO, {"kernels", "structure"}),
    "graph": (
        HierarchicalMKLRegressor(
            {"left": LEFT, "right": RIGHT, "both": LEFT * RIGHT},
            parents={"both": ["left", "right"]},
            C=1000,
            target_scale=None,
        ),
        X,
        QUANTITY,
        {"kernels", "structure"},
    ),
    "rules": (RuleEnsembleClassifier(C=1000), FRAME, TWO, {"rules"}),
    "rules of three": (
        RuleEnsembleClassifierCV(Cs=[0.1, 1.0], **PUBLISHED, loss="hinge", scoring="accuracy"),
        FRAME,
        THREE,
        {"rules"},
    ),
    "rules for a quantity": (RuleEnsembleRegressor(C=10), FRAME, QUANTITY, {"rules"}),
    "rules for quantities": (
        RuleEnsembleRegressorCV(Cs=[0.1, 1.0], **PUBLISHED),
        FRAME,
        np.column_stack([QUANTITY, -QUANTITY]),
        {"rules"},
    ),
    "pairs": (
        PairwiseKernelLearner(lam=0.01, reliability=(0.9, 0.9), random_state=0),
        COUNTS,
        GROUPS,
        {"kernels", "pairs"},
    ),
    "shrunk pairs": (
        PairwiseKernelLearner(
            method="shrink",
            gamma=0,
            alpha=1.0,
            n_clusters=3,
            n_resample=1,
            n_splits=1,
            n_pairs=200,
            random_state=0,
        ),
        COUNTS,
        GROUPS,
        {"kernels", "pairs"},
    ),
    "clusters": (KernelSpectralClustering(3, random_state=0), COUNTS, GROUPS, {"clusters"}),
}

# Nothing is held out of clusters, and answers of annotators are no truth to score against: reports
# of both get the rows.
UNMEASURED = {"clusters", "annotators"}


@cache
def fitted(name):
    """Return a fitted model with its data; each is fitted once."""
    model, rows, target, _ = MODELS[name]
    return model.fit(rows, target), rows, target


def page(name, data=True):
    """Return the page of a model, with its data or without; each is made once."""
    return _page(name, data)


@cache
def _page(name, data):
    model, rows, target = fitted(name)
    given = (rows, None if name == "annotators" else target) if data else ()
    return to_html(model, *given, cv=2)


def parts(name, data=False):
    """Return the names of the parts that the page of a model has, without data or with them."""
    predicts = not {"pairs", "clusters"} & MODELS[name][3]
    return ALWAYS | MODELS[name][3] | ({"decides"} if data and predicts else set())
