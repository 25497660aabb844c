"""The protocol of the comparison of structures: kernels, divisions, methods and the choice of C.

Every group of columns has three base kernels: a linear one and Gaussians of 0.7 and 1.4 times the
typical distance of its rows. All have a unit diagonal, which products keep. The stated structure
adds, for every group, the sum of its kernels, and for every two groups the product of their sums.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLClassifier, Precomputed, SumProductMKLClassifier, group
from kernelweave.kernels import Kernel, Product, Sum

from .sum_product_data import SOURCES, Floats, terms

Rows = NDArray[np.intp]

FACTORS = (0.7, 1.4)
GRID = (0.05, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0, 30.0)
N_SPLITS = 5
N_INNER = 3
USED = 1e-3  # share of the decision function from which on a path counts as used


@dataclass(frozen=True)
class Split:
    """One division of a problem, with the base kernels of all its rows.

    Parameters
    ----------
    kernels : dict of str to list of Precomputed
        Those of each group.
    together : list of Precomputed
        Those of all columns taken as one group.
    y : ndarray of shape (n_rows,)
        Labels.
    train, test : ndarray of int
        The rows of both parts.
    truth : list of tuple of str
        The terms that decide, where they are known.
    """

    kernels: dict[str, list[Precomputed]]
    together: list[Precomputed]
    y: NDArray[np.str_]
    train: Rows
    test: Rows
    truth: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def base(self) -> list[Precomputed]:
        """All base kernels."""
        return [kernel for kernels in self.kernels.values() for kernel in kernels]

    @cached_property
    def paths(self) -> list[Precomputed]:
        """The base kernels and all products of two from different groups, multiplied out."""
        return self._written_out(terms(self.kernels))

    @cached_property
    def true_paths(self) -> list[Precomputed]:
        """Those of the terms that decide."""
        return self._written_out(self.truth)

    def _written_out(self, which: list[tuple[str, ...]]) -> list[Precomputed]:
        choices = [product(*(self.kernels[name] for name in term)) for term in which]
        return [_multiply(choice) for term in choices for choice in term]


def _multiply(factors: Sequence[Precomputed]) -> Precomputed:
    gram = np.prod([np.asarray(factor.gram) for factor in factors], axis=0)
    return Precomputed(gram, check=False, name=" * ".join(map(str, factors)))


@dataclass(frozen=True)
class Method:
    """A row of the table."""

    name: str
    label: str
    make: Callable[[Split], Any]  # an estimator for these kernels
    quick: bool = True  # whether the short run has it
    told: bool = False  # whether it knows which terms decide, so that only made-up problems have it


def _flat(which: str, norm: float | str) -> Callable[[Split], Any]:
    return lambda split: MKLClassifier(
        getattr(split, which), norm=norm, normalize=None, max_iter=300, n_jobs=1
    )


def _structured(build: Callable[[Split], Kernel], p: float = 1.0) -> Callable[[Split], Any]:
    return lambda split: SumProductMKLClassifier(
        build(split), p=p, normalize=None, max_iter=300, n_jobs=1
    )


def groups_only(split: Split) -> Kernel:
    """State that every group has a weight, and so has every kernel in it."""
    return Sum(tuple(group(*kernels, name=name) for name, kernels in split.kernels.items()))


def with_products(split: Split) -> Kernel:
    """State that groups count alone and two by two; every term has weights of its own."""
    return _state(split, terms(split.kernels))


def with_truth(split: Split) -> Kernel:
    """State the terms that decide, and no others."""
    return _state(split, split.truth)


def _state(split: Split, which: list[tuple[str, ...]]) -> Kernel:
    parts: list[Kernel] = []
    for term in which:
        sums = tuple(Sum(tuple(split.kernels[name])) for name in term)
        name = " * ".join(term)
        parts.append(group(*sums, name=name) if len(sums) == 1 else Product(sums, name=name))
    return Sum(tuple(parts))


def with_shared(split: Split) -> Kernel:
    """State the same terms, but the kernels of a group have the same weights in all of them."""
    known = {name: group(*kernels, name=name) for name, kernels in split.kernels.items()}
    parts = [
        known[term[0]] if len(term) == 1 else Product(tuple(known[name] for name in term))
        for term in terms(split.kernels)
    ]
    return Sum(tuple(parts))


METHODS = {
    method.name: method
    for method in (
        Method("equal-together", "equal, all columns", _flat("together", "uniform")),
        Method("equal-base", "equal, base", _flat("base", "uniform")),
        Method("l1-base", "flat L1, base", _flat("base", 1)),
        Method("l2-base", "flat L2, base", _flat("base", 2)),
        Method("groups", "groups p=1", _structured(groups_only)),
        Method("equal-paths", "equal, paths", _flat("paths", "uniform")),
        Method("l1-paths", "flat L1, paths", _flat("paths", 1)),
        Method("l2-paths", "flat L2, paths", _flat("paths", 2)),
        Method("structure", "structure p=1", _structured(with_products)),
        Method("structure-p2", "structure p=2", _structured(with_products, 2.0)),
        Method("shared", "shared p=1", _structured(with_shared)),
        Method("equal-told", "equal, true terms", _flat("true_paths", "uniform"), told=True),
        Method("l1-told", "flat L1, true terms", _flat("true_paths", 1), told=True),
        Method("told", "structure p=1, true terms", _structured(with_truth), told=True),
    )
}
REFERENCE = "structure"  # what the others are compared with


# A process works through the methods of a division one after the other, so it keeps the last one.
@lru_cache(maxsize=1)
def open_split(data: str, split: int, seed: int) -> Split:
    """Read or draw a problem, divide it and compute its base kernels."""
    source = SOURCES[data]
    problem = source.read(1000 * seed + split)
    y = problem.y
    halves = StratifiedShuffleSplit(1, train_size=0.5, random_state=1000 * seed + split)
    train, test = next(halves.split(y, y))
    X = problem.X
    if problem.standardise:
        X = StandardScaler().fit(X[train]).transform(X)
    kernels = {
        name: make_kernels(X[:, columns], train, name) for name, columns in problem.groups.items()
    }
    truth = [tuple(sorted(term)) for term in source.truth]
    return Split(kernels, make_kernels(X, train, "all"), y, train, test, truth)


def make_kernels(X: Floats, train: Rows, name: str) -> list[Precomputed]:
    """Return the three base kernels of some columns, with unit diagonals."""
    inner = X @ X.T
    norms = inner.diagonal()
    squares = np.maximum(norms[:, None] + norms[None, :] - 2 * inner, 0)
    np.fill_diagonal(squares, 0)
    typical = squares[np.ix_(train, train)].mean() / 2  # the sum of the columns' variances
    lengths = np.sqrt(np.maximum(norms, 1e-12))
    linear = inner / np.outer(lengths, lengths)
    np.fill_diagonal(linear, 1)
    out = [Precomputed(linear, check=False, name=f"{name}: linear")]
    for factor in FACTORS:
        gram = np.exp(-squares / (2 * factor**2 * typical))
        out.append(Precomputed(gram, check=False, name=f"{name}: rbf {factor:g}"))
    return out


def evaluate(data: str, split: int, name: str, grid: Sequence[float], seed: int) -> dict[str, Any]:
    """Choose C on the training part, fit with it, and return what the table needs as plain data."""
    part, method = open_split(data, split, seed), METHODS[name]
    start = time.process_time()
    y = part.y[part.train]
    n_correct, n_unfinished = np.zeros(len(grid), dtype=int), 0
    for rows, held_out in StratifiedKFold(N_INNER, shuffle=True, random_state=seed).split(y, y):
        models = fit_grid(method, part, part.train[rows], grid)
        n_unfinished += sum(not fitted.converged_ for fitted in models)
        for k, fitted in enumerate(models):
            right = fitted.predict(part.train[held_out, None]) == y[held_out]
            n_correct[k] += np.count_nonzero(right)
    best = int(np.argmax(n_correct))  # the first, so ties go to the smaller C
    before = time.process_time()
    [model] = fit_grid(method, part, part.train, grid[best : best + 1])
    after = time.process_time()
    accuracy = np.mean(model.predict(part.test[:, None]) == part.y[part.test])
    shares = term_shares(model)
    return {
        "data": data,
        "split": split,
        "method": name,
        "accuracy": 100 * float(accuracy),
        "C": grid[best],
        "n_paths": len(model.weights_),
        "n_used": int(np.count_nonzero(model.contributions_ > USED)),
        "solves": int(model.n_iter_),
        "unfinished": not model.converged_,
        "n_fits": N_INNER * len(grid) + 1,
        "n_unfinished": n_unfinished + (not model.converged_),
        "terms": {term: round(share, 6) for term, share in shares.items()},
        "n_correct": n_correct.tolist(),
        "seconds_fit": round(after - before, 4),
        "seconds": round(time.process_time() - start, 3),
    }


def fit_grid(method: Method, part: Split, rows: Rows, grid: Sequence[float]) -> list[Any]:
    """Fit a method on some rows for each C of a grid."""
    with warnings.catch_warnings():
        # Fits that stop early are counted in the results; a warning each would drown the progress.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".*the best weights are zero", UserWarning)  # small C
        # Each from scratch, so that solves can be compared.
        return [method.make(part).set_params(C=C).fit(rows[:, None], part.y[rows]) for C in grid]


def term_shares(model: Any) -> dict[str, float]:
    """Return the share of the decision function of every term: a group, or two multiplied."""
    if isinstance(model, SumProductMKLClassifier):
        names = [model.network_.describe(path) for path in model.paths_]
    else:
        names = [str(kernel) for kernel in model.kernels_]
    shares: dict[str, float] = {}
    for name, share in zip(names, model.contributions_.tolist(), strict=True):
        factors = sorted(factor.partition(":")[0] for factor in name.split(" * "))
        term = " * ".join(factors)
        shares[term] = shares.get(term, 0.0) + share
    return shares
