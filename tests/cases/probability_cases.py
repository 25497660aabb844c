"""Classifiers with probabilities, and their data."""

import functools
import warnings

import numpy as np

import kernelweave as kw
from kernelweave import RBF, Linear

RANDOM = np.random.default_rng(0)
N = 90
X = RANDOM.normal(size=(N, 4))
SCORE = X[:, 0] + 0.5 * X[:, 1] + 0.7 * RANDOM.normal(size=N)
TWO = np.where(SCORE > 0, "yes", "no")
THREE = np.digitize(SCORE, [-0.6, 0.6])
NEW = RANDOM.normal(size=(60, 4))
KERNELS = [RBF(1.0, columns=[j]) for j in range(4)] + [Linear()]
NODES = {f"k{j}": RBF(1.0, columns=[j]) for j in range(4)}
MANY = [RBF(w, columns=[j]) for w in (0.3, 0.5, 0.8, 1, 2, 3, 4, 5, 6, 7, 8, 9) for j in range(4)]
CLASSIFIERS = {
    "mkl": lambda **o: kw.MKLClassifier(KERNELS, **o),
    "many kernels": lambda **o: kw.MKLClassifier(MANY, **o),
    "norm 2": lambda **o: kw.MKLClassifier(KERNELS, norm=2, **o),
    "uniform": lambda **o: kw.MKLClassifier(KERNELS, norm="uniform", normalize=None, **o),
    "radius": lambda **o: kw.RadiusMKLClassifier(KERNELS, **o),
    "chapelle": lambda **o: kw.RadiusMKLClassifier(KERNELS, criterion="chapelle", **o),
    "radius kernel": lambda **o: kw.RadiusKernelClassifier(**o),
    "noisy": lambda **o: kw.NoisyLabelMKLClassifier(KERNELS, lam=0.02, **o),
    "noisy, best": lambda **o: kw.NoisyLabelMKLClassifier(KERNELS, robust="best", **o),
    "structure": lambda **o: kw.SumProductMKLClassifier(KERNELS[:4], **o),
    "structure, many": lambda **o: kw.SumProductMKLClassifier(MANY, **o),
    "hierarchy": lambda **o: kw.HierarchicalMKLClassifier(NODES, C=10, **o),
    "lattice": lambda **o: kw.HierarchicalMKLClassifier(C=10, tol=1e-2, **o),
    "rules": lambda **o: kw.RuleEnsembleClassifier(C=5, **o),
}


def quiet(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data, **options)


@functools.cache
def fit_pair(name):
    """Fit a classifier without and with calibration, to two and to three classes."""
    make = CLASSIFIERS[name]
    return [(quiet(make(), X, y), quiet(make(calibration="auto"), X, y), y) for y in (TWO, THREE)]
