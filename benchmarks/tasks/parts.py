"""Single building blocks: banks, passes over a bank, the SVM solver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import Precomputed, rbf_ladder
from kernelweave._threads import threads as using
from kernelweave.banks import KernelBank, KernelSum, make_bank
from kernelweave.inner import Solution, solve_inner
from kernelweave.kernels import expand_kernels
from kernelweave.kernels.ladders import KernelFamily
from kernelweave.losses import Hinge

from . import Task
from .fits import TOL, build_bank, final_kernel
from .problems import Problem, additive
from .svm import fit_svc, primal

Array = NDArray[np.float64]

LADDER = tuple(0.5 * 2.0**k for k in range(8))
_ONE_COLUMN = (1.0, 3.0, 10.0)  # on each of 20 columns: 60 kernels


def one_column_bank(n: int, threads: int) -> Task:
    """Hold 60 Gaussian kernels on single columns."""
    return _building(additive(n), rbf_ladder(_ONE_COLUMN, per_feature=True), threads)


def ladder_bank(n: int, threads: int) -> Task:
    """Hold eight widths on all columns."""
    return _building(additive(n), rbf_ladder(LADDER), threads)


def ladder_combined(n: int, threads: int) -> Task:
    """Hold eight widths on all columns and compute the Gram matrix of their average."""
    data = additive(n)

    def work() -> Any:
        with using(threads):
            bank = _bank(data, rbf_ladder(LADDER))
            return bank.combine(np.full(bank.n_kernels, 1.0 / bank.n_kernels)).dense()

    return Task(work)


def ladder_forms(n: int, threads: int) -> Task:
    """Hold eight widths on all columns and read the quadratic form of each."""
    data = additive(n)
    v = _vector(n)

    def work() -> Array:
        with using(threads):
            return _bank(data, rbf_ladder(LADDER)).quadratic_forms(v)

    return Task(work)


def dense_gram(n: int, threads: int, columns: int = 20) -> Task:
    """Compute one dense Gaussian Gram matrix with scikit-learn."""
    X = additive(n).X[:, :columns]
    return Task(lambda: rbf_kernel(X, gamma=0.5))


def quadratic_forms(n: int, threads: int, which: str) -> Task:
    """Read the quadratic forms of all kernels of a bank."""
    bank = _prepared(n, threads, which)
    v = _vector(n)

    def work() -> Array:
        with using(threads):
            return bank.quadratic_forms(v)

    return Task(work, lambda _: {"nbytes": bank.nbytes, "n_kernels": bank.n_kernels})


def one_pass(n: int, threads: int, which: str) -> Task:
    """Multiply a matrix of as many bytes as the bank holds by a vector, once."""
    rows = max(1, round(_prepared(n, threads, which).nbytes / (8 * n)))
    A = np.random.default_rng(0).standard_normal((rows, n))
    v = _vector(n)[:, 0].copy()
    return Task(lambda: A @ v)


def smo(n: int, threads: int, warm: bool, tol: float = TOL) -> Task:
    """Solve one SVM with our solver on the kernel a fit ends with.

    ``warm``: from the solution of that kernel mixed with a tenth of another.
    """
    data = additive(n)
    Y, cost = data.y[:, None], np.ones((n, 1))
    K = final_kernel(data, threads)
    with using(threads):
        kernel = _single(K)
        start = None
        if warm:
            other = rbf_kernel(data.X, gamma=0.5 / 5.0**2)
            before = solve_inner(Hinge(), _single(0.9 * K + 0.1 * other), Y, cost, tol=tol)
            start = replace(before, fitted=kernel.dense() @ before.dual_coef)

    def work() -> Solution:
        with using(threads):
            return solve_inner(Hinge(), kernel, Y, cost, tol=tol, start=start)

    return Task(work, lambda s: {"objective": s.primal, "gap": s.gap / s.primal, "updates": s.work})


def libsvm(n: int, threads: int) -> Task:
    """Solve the same SVM with scikit-learn."""
    data = additive(n)
    K = final_kernel(data, threads)
    return Task(
        lambda: fit_svc(K, data.y),
        lambda svc: {"objective": primal(svc, K, data.y), "updates": int(svc.n_iter_[0])},
    )


def _vector(n: int) -> Array:
    v = np.random.default_rng(1).standard_normal((n, 1))
    return v - v.mean()


def _bank(data: Problem, family: KernelFamily) -> KernelBank:
    return make_bank(expand_kernels([family], data.X), data.X, tol=TOL)


def _building(data: Problem, family: KernelFamily, threads: int) -> Task:
    def work() -> KernelBank:
        with using(threads):
            return _bank(data, family)

    return Task(work, lambda bank: {"nbytes": bank.nbytes, "n_kernels": bank.n_kernels})


def _prepared(n: int, threads: int, which: str) -> KernelBank:
    with using(threads):
        return build_bank(additive(n), which)


def _single(K: Array) -> KernelSum:
    """Return one ready Gram matrix in the form SVM solvers take, all rows computed."""
    rows = np.arange(len(K))[:, None]
    bank = make_bank([Precomputed(K, check=False)], rows, normalize=None, tol=TOL)
    combined = bank.combine(np.ones(1))
    combined.dense()
    return combined
