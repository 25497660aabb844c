"""Choose a storage form for every kernel, within a memory budget, and normalise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._memory import check_memory, parse_bytes
from kernelweave._threads import run_each
from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError
from kernelweave.kernels import Cosine, Kernel
from kernelweave.kernels.base import Decay, Rows, take

from .ball import solve_ball
from .base import KernelBank
from .on_demand import FORM, ComputedKernels, ComputedLadder, stored_ladder
from .on_demand import OPTIONS as ON_DEMAND
from .protocol import Workspace
from .storage import Factors, Grams, Part, precision
from .views import Views, is_plain_gaussian, ungated

NORMALIZATIONS = ("trace", "diagonal", "cosine", "radius")

_TRIAL_ROWS = 256  # rows of a sample, on which a kernel of more than half the rank is not factored
_SMALL = 1500  # rows up to which Gram matrices are held in float64 whatever the tolerance
_BUFFER = 512  # columns that BLAS packs while it solves a system
_COPIES = 3  # copies of the values of a kernel while they are computed
_BALL_TOL = 1e-5  # relative accuracy of the radii that kernels are divided by


@dataclass(frozen=True)
class _Factor:
    columns: Floats
    residual: Floats


def make_bank(
    kernels: Sequence[Kernel],
    X: Any,
    *,
    normalize: str | None = "trace",
    centred: bool = True,
    tol: float = 1e-3,
    memory_limit: float | str | None = None,
    sample_weight: Floats | None = None,
    n_combined: int = 1,
    n_solved: int = 0,
    beside: dict[str, float] | None = None,
    on_demand: bool = False,
    factored: bool = True,
) -> KernelBank:
    """Hold kernels over the rows of ``X``.

    A kernel of small numerical rank becomes a pivoted-Cholesky factor, Gaussian and Laplacian
    kernels of larger rank share the distance matrix of their columns, others store their Gram.

    Parameters
    ----------
    kernels : sequence of Kernel
        At least one.
    X : array, sparse matrix, data frame or Views
        Training rows.
    normalize : {None, "trace", "diagonal", "cosine", "radius"}
        Quantity that is scaled to one: none, the mean (centred) diagonal, the mean diagonal, every
        diagonal entry, or the radius of the smallest ball around the points.
    centred : bool
        Whether `"trace"` means the centred Gram matrix, as for models with an intercept.
    tol : float
        Tolerance of the fit; kernels are held far more exactly.
    memory_limit : number of bytes, str such as "8GB", or None
        None: half of the free memory.
    sample_weight : ndarray of shape (n_samples,), optional
        Weights of the rows in the means that kernels are normalised by.
    n_combined : int
        Weighted sums of the kernels that the fit holds at a time, for the limit of memory.
    n_solved : int
        Rows of the largest linear system that the fit solves, for the limit of memory.
    beside : dict, optional
        Bytes of other memory of the fit, by name.
    on_demand : bool
        Whether kernels of high rank are computed from the rows whenever they are needed, so that no
        matrix over all rows is formed. Means that they are normalised by come from a sample.
    factored : bool
        Whether kernels of low rank are held as factors.

    Returns
    -------
    bank : KernelBank
        Normalised kernels over the rows of ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import RBF, Linear
    >>> bank = make_bank([Linear(), RBF(width=1.0)], np.eye(3), normalize=None)
    >>> bank.quadratic_forms(np.ones((3, 1))).round(3)
    array([3.   , 5.207])
    """
    kernels = prepare_kernels(kernels, normalize)
    views = Views.of(kernels, X)
    n = views.n_samples
    diagonals = [_diagonal(kernel, views[j]) for j, kernel in enumerate(kernels)]
    dtype = (
        np.float64
        if n <= _SMALL
        else precision(np.array([d.max(initial=0.0) for d in diagonals]), tol)
    )
    # Tight factors cost little (ranks grow with the logarithm) and keep the certificate of the
    # exact kernels free of evaluations; 1e-14 is where rounding takes over.
    factors: dict[int, _Factor] = {}
    if factored:
        factors = _try_factors(kernels, views, diagonals, max(1e-5 * tol, 1e-14))
    ladders, stored = _group_rest(kernels, views, factors, gates=not on_demand)
    at_once = _core.get_threads() if normalize == "radius" else 1
    work = _Work(max(n_combined, at_once), n_solved, bool(stored), beside or {})
    workspace = None
    if on_demand:
        working = _working_rows(n, dtype, factors, memory_limit)
        whole = ON_DEMAND.whole_bytes * float(n) ** 2 <= parse_bytes(memory_limit)
        workspace = Workspace(working, dtype, whole=whole)
    else:
        _check_budget(n, dtype, factors, ladders, stored, memory_limit, work)

    parts: list[tuple[Part, Indices]] = []
    if factors:
        ids = np.array(sorted(factors))
        columns = [factors[int(j)].columns for j in ids]
        offsets = np.concatenate(([0], np.cumsum([len(part) for part in columns])))
        roots = np.sqrt([factors[int(j)].residual for j in ids])
        exact = np.array([diagonals[int(j)] for j in ids])
        parts.append((Factors(np.concatenate(columns), offsets, roots, exact), ids))
        factors.clear()
    for members in ladders:
        decays = [_decay(ungated(kernels[j], views[j])[0]) for j in members]
        rates = np.array([decay.rate for decay in decays])
        _, rows, gate = ungated(kernels[members[0]], views[members[0]])
        squared = decays[0].distance == "squared"
        ladder: Any
        if on_demand:
            ladder = ComputedLadder(np.ascontiguousarray(rows), squared, rates, dtype)
        else:
            ladder = stored_ladder(rows, squared, rates, dtype)
            if gate is not None:  # exp(-inf) = 0
                ladder.distances[gate == 0], ladder.distances[:, gate == 0] = np.inf, np.inf
        parts.append((ladder, np.array(members)))
    if stored and on_demand:
        rest = tuple(kernels[j] for j in stored), tuple(views[j] for j in stored)
        parts.append((ComputedKernels(*rest, dtype), np.array(stored)))
    elif stored:
        grams = tuple(kernels[j].stored_block(views[j], dtype) for j in stored)
        parts.append((Grams(grams), np.array(stored)))

    bank = KernelBank(
        kernels=tuple(kernels),
        parts=tuple(parts),
        scales=np.ones(len(kernels)),
        views=views,
        dtype=dtype,
        workspace=workspace,
    )
    share = np.full(n, 1.0 / n) if sample_weight is None else sample_weight / sample_weight.sum()
    sizes: Floats | None = None
    measured: Floats | None = None
    if normalize == "trace" and centred and on_demand:
        sizes = _estimated_means(bank, share)
    elif normalize == "trace" and centred:
        sizes = bank.centred_means(share)
        measured = n * sizes if sample_weight is None else None
    elif normalize in ("trace", "diagonal"):
        sizes = np.array([float(share @ d) for d in diagonals])
    elif normalize == "radius":
        measured = bank.centred_traces
        sizes = np.where(measured > 0, squared_radii(bank, tol=_BALL_TOL), 0.0)
    return replace(bank, scales=scales_for(kernels, sizes), measured=measured)


def prepare_kernels(kernels: Sequence[Kernel], normalize: str | None) -> list[Kernel]:
    """Return the kernels that a bank holds: cosines where diagonals are normalised."""
    if normalize != "cosine":
        return list(kernels)
    return [k if k.decay else Cosine(k) for k in kernels]


def scales_for(kernels: Sequence[Kernel], sizes: Floats | None) -> Floats:
    """Return factors that scale the sizes of the kernels to one."""
    scales = np.ones(len(kernels))
    if sizes is not None:
        # A constant or zero kernel has no size; it stays as it is and gets no weight.
        with np.errstate(over="ignore"):
            np.divide(1.0, sizes, out=scales, where=sizes > 0)
    if not np.isfinite(scales).all():
        worst = int(np.flatnonzero(~np.isfinite(scales))[0])
        raise InputError(
            f"kernels[{worst}] = {kernels[worst]}: its values are too small to normalise; "
            "rescale the columns first, for example with scikit-learn's StandardScaler."
        )
    return scales


def squared_radii(bank: KernelBank, *, tol: float) -> Floats:
    """Return the squared radius of the smallest ball around the points of every kernel.

    Parameters
    ----------
    bank : KernelBank
        The kernels; their scales count.
    tol : float
        Relative accuracy.
    """
    units = np.eye(bank.n_kernels)
    balls = run_each(lambda unit: solve_ball(bank.combine(unit), tol=tol), units)
    return np.array([ball.squared_radius for ball in balls])


def _estimated_means(bank: KernelBank, share: Floats) -> Floats:
    """Return `KernelBank.centred_means`, of kernels on demand from a sample of the rows.

    The mean over pairs of different rows is estimated without bias: with weights w that sum to one,
    a centred mean is ``1 - |w|^2`` times the mean diagonal less the mean over these pairs.
    """
    there = np.flatnonzero(share)
    some = there[np.unique(np.linspace(0, len(there) - 1, ON_DEMAND.sample).astype(np.intp))]
    own = np.zeros_like(share)
    own[some] = share[some] / share[some].sum()
    means = np.zeros(bank.n_kernels)
    for part, ids in bank.parts:
        if part.form != FORM:
            means[ids] = bank.subset(ids).centred_means(share)
            continue
        sampled = bank.subset(ids).centred_means(own)
        spread = 1.0 - float(own @ own)  # zero for a single row
        means[ids] = sampled * ((1.0 - float(share @ share)) / spread) if spread > 0 else sampled
    return means


def _diagonal(kernel: Kernel, rows: Rows) -> Floats:
    diagonal = kernel.diagonal(rows)
    with np.errstate(over="ignore"):
        total = diagonal.sum()
    if not np.isfinite(total):
        raise InputError(
            f"{kernel}: its values overflow; rescale the columns first, for example with "
            "scikit-learn's StandardScaler."
        )
    if (diagonal < 0).any():
        raise InputError(f"{kernel}: k(x, x) is negative, so this is not a valid kernel.")
    if 0 < diagonal.max(initial=0.0) < np.finfo(np.float64).tiny:
        raise InputError(
            f"{kernel}: its values underflow; rescale the columns first, for example with "
            "scikit-learn's StandardScaler."
        )
    return diagonal


def _max_rank(n: int) -> int:
    return int(max(1, min(n / 4, np.sqrt(90.0 * n))))


def _try_factors(
    kernels: Sequence[Kernel], views: Views, diagonals: Sequence[Floats], tol: float
) -> dict[int, _Factor]:
    """Factor every kernel of a numerical rank for which that is the cheapest storage form."""
    n = views.n_samples
    limit = _max_rank(n)
    sample = np.unique(np.linspace(0, n - 1, min(n, _TRIAL_ROWS)).astype(np.intp))
    gaussians: list[int] = []
    transposed: dict[Any, Floats] = {}
    found: dict[int, _Factor] = {}
    hopeless: dict[Any, float] = {}  # per view, the widest Gaussian known to be of high rank
    order = sorted(range(len(kernels)), key=lambda j: -_width(kernels[j]))
    for j in order:
        kernel, rows, view = kernels[j], views[j], views.keys[j]
        if kernel.is_precomputed:
            continue  # its Gram matrix exists already
        linear = kernel.linear_rows(rows)
        if linear is not None and linear.shape[1] <= limit:
            found[j] = _Factor(np.ascontiguousarray(linear.T), np.zeros(n))
            continue
        if views.is_plain_gaussian(kernel, j):
            # Within a view, rank only grows as the width falls.
            if hopeless.get(view, 0.0) >= _width(kernel):
                continue
            if view not in transposed:
                transposed[view] = np.ascontiguousarray(rows.T)
            if rows.shape[1] > 2 and trial_rank(kernel, rows, sample, tol) is None:
                hopeless[view] = _width(kernel)
                continue
            gaussians.append(j)
            continue
        if n > 2 * _TRIAL_ROWS and trial_rank(kernel, rows, sample, tol) is None:
            continue
        parts = _core.factor_by_columns(diagonals[j], _columns(kernel, rows, n), tol, limit)
        if parts[0]:
            found[j] = _Factor(parts[1], parts[3])
    results = _core.factor_gaussians(
        [transposed[views.keys[j]] for j in gaussians],
        np.array([_decay(kernels[j]).rate for j in gaussians]),
        tol,
        np.full(len(gaussians), limit),
    )
    for j, (complete, columns, _, residual) in zip(gaussians, results, strict=True):
        if complete:
            found[j] = _Factor(columns, residual)
    return found


def _columns(kernel: Kernel, rows: Rows, n: int) -> Callable[[int], Floats]:
    """Return a function that returns columns of a Gram matrix."""
    if n <= 2 * _TRIAL_ROWS:  # cheaper all at once than one by one
        gram = kernel.block(rows, rows)
        return lambda i: gram[i]
    return lambda i: kernel.block(rows, take(rows, [i])).ravel()


def trial_rank(kernel: Kernel, rows: Rows, sample: Indices, tol: float) -> int | None:
    """Return the numerical rank on a sample of rows, None when above half of the sample."""
    few = take(rows, sample)
    gram = kernel.block(few, few)
    complete, _, pivots, _ = _core.factor_by_columns(
        np.ascontiguousarray(gram.diagonal()), lambda i: gram[i], tol, len(sample) // 2
    )
    return len(pivots) if complete else None


def _width(kernel: Kernel) -> float:
    """Return the width of a Gaussian, zero for other kernels."""
    decay = kernel.decay
    return decay.width if decay is not None and decay.distance == "squared" else 0.0


def _decay(kernel: Kernel) -> Decay:
    assert kernel.decay is not None
    return kernel.decay


def _group_rest(
    kernels: Sequence[Kernel], views: Views, factors: dict[int, _Factor], *, gates: bool
) -> tuple[list[list[int]], list[int]]:
    """Return kernels that share a distance matrix, one list for each, and those with Grams.

    With ``gates`` kernels that are switched off for some rows share one, too.
    """
    ladders: dict[Any, list[int]] = {}
    stored = []
    for j, kernel in enumerate(kernels):
        if j in factors:
            continue
        inner, rows, gate = ungated(kernel, views[j]) if gates else (kernel, views[j], None)
        decay = inner.decay
        absolute = decay if decay and decay.distance == "absolute" else None
        if absolute:
            shares = absolute.has_moderate_width
        elif gate is None:
            shares = views.is_plain_gaussian(kernel, j)
        else:
            shares = is_plain_gaussian(inner, rows)
        if shares:
            ladders.setdefault((absolute is None, views.keys[j]), []).append(j)
        else:
            stored.append(j)
    return list(ladders.values()), stored


def _working_rows(
    n: int, dtype: Any, factors: dict[int, _Factor], memory_limit: float | str | None
) -> int:
    """Return how many rows an inner solver may hold a square block of; refuse where too few."""
    limit, item = parse_bytes(memory_limit), np.dtype(dtype).itemsize
    rows = int(np.sqrt(ON_DEMAND.working_share * limit / item))
    least = min(n, ON_DEMAND.least_working)
    held = sum(f.columns.nbytes + 2 * f.residual.nbytes for f in factors.values())
    pieces = {f"a block of {least} rows": item * float(max(least, min(rows, n))) ** 2}
    if factors:
        pieces[f"{len(factors)} factors"] = 2.0 * held
    if rows < least or factors:
        check_memory(
            "Kernels on demand need",
            pieces | ({} if rows >= least else {"the same beside it": item * float(least) ** 2}),
            memory_limit,
            "use fewer kernels, or kernels on one or two columns (their rank is small)",
        )
    return min(n, rows, ON_DEMAND.most_working)


@dataclass(frozen=True)
class _Work:
    """Memory of a fit beside the kernels: sums of them, systems, and temporary blocks."""

    n_combined: int
    n_solved: int
    blocks: bool
    beside: dict[str, float]

    def pieces(self, n: int, square: float, factors: float) -> dict[str, float]:
        """Return bytes by name."""
        each = "the combined kernel" if self.n_combined == 1 else f"{self.n_combined} sums of them"
        pieces = {each: self.n_combined * (square + factors), **self.beside}
        if self.n_solved:
            rows = self.n_solved
            pieces[f"a linear system of {rows} rows"] = 8.0 * rows * (rows + _BUFFER)
        # Values of a kernel are computed in double precision, with copies; that memory is free
        # again when sums and systems are formed.
        building = _COPIES * 8.0 * n**2 if self.blocks else 0.0
        if building > sum(pieces.values()):
            return {"values as they are computed": building}
        return pieces


def _check_budget(
    n: int,
    dtype: Any,
    factors: dict[int, _Factor],
    ladders: list[list[int]],
    stored: list[int],
    memory_limit: float | str | None,
    work: _Work,
) -> None:
    square = float(n) ** 2 * np.dtype(dtype).itemsize
    held = sum(f.columns.nbytes + 2 * f.residual.nbytes for f in factors.values())
    pieces = {}
    if factors:
        pieces[f"{len(factors)} factors"] = 2.0 * held  # twice while they are put together
    if ladders:
        pieces[f"{len(ladders)} distance matrices of {n} rows"] = square * len(ladders)
    if stored:
        pieces[f"{len(stored)} Gram matrices of {n} rows"] = square * len(stored)
    pieces |= work.pieces(n, square, float(held))
    check_memory(
        f"These {len(factors) + sum(map(len, ladders)) + len(stored)} kernels need",
        pieces,
        memory_limit,
        "use fewer rows, kernels on one or two columns (their rank is small)",
    )
