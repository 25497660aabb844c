"""The smallest ball around the training points in the feature space of a kernel.

The dual problem ``max beta' diag(K) - beta' K beta`` over the simplex is solved by moving weight
between pairs of points (in C++); exact solutions on the points in use speed up slow convergence.

References
----------
K. Gai, G. Chen, C. Zhang, "Learning kernels with radiuses of minimum enclosing balls", NIPS 23,
2010, equations (7), (8) and (17).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import scipy.linalg

from kernelweave import _core
from kernelweave._types import Floats, Indices, Stored
from kernelweave.errors import InputError
from kernelweave.kernels.base import is_number

from .protocol import KernelOperator

_PAUSED, _NEEDS_ROWS = 1, 2  # status of a run; 0: converged


@dataclass(frozen=True)
class BallOptions:
    """Constants of the enclosing ball; chosen by hand."""

    entries_at_a_time: float = 5e7  # of rows, between two chances to interrupt: about 0.1 s
    batch: int = 32  # rows fetched together
    most_used: int = 1500  # points in use above which their linear system costs more than it saves
    drops: int = 20  # points dropped in a row
    farthest: int = 1000  # points without weight in a part, those farthest from the centre
    rough: float = 0.02  # gap of a part after it was solved, relative to that before
    max_parts: int = 200
    progress: float = 0.9  # gap relative to an earlier one that counts as progress
    max_fruitless: int = 20  # parts in a row without progress: the rest is rounding


OPTIONS = BallOptions()


@dataclass(frozen=True)
class Ball:
    """A ball around all points, and how far it may be from the smallest.

    Parameters
    ----------
    squared_radius : float
        All points lie within it.
    centre : ndarray of shape (n_samples,)
        The centre is ``sum_i centre_i phi(x_i)``; not negative, sums to one.
    gap : float
        No ball around all points has a squared radius below ``squared_radius - gap``.
    fitted : ndarray of shape (n_samples,)
        ``K @ centre``.
    """

    squared_radius: float
    centre: Floats
    gap: float
    fitted: Floats

    @property
    def radius(self) -> float:
        """The radius."""
        return float(np.sqrt(self.squared_radius))


class Rows(Protocol):
    """A Gram matrix whose rows are computed on demand."""

    @property
    def workspace(self) -> Any: ...

    @property
    def n_samples(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def blocks(self) -> Sequence[tuple[Indices, Stored]]: ...
    def fetch(self, index: Indices) -> None: ...
    def rows(self, index: Indices) -> Stored: ...
    def block(self, rows: Indices, columns: Indices) -> Floats: ...
    def diag(self) -> Floats: ...
    def product(self, V: Floats) -> Floats: ...
    def __matmul__(self, V: Floats) -> Floats: ...


@dataclass(frozen=True)
class _Whole:
    """A Gram matrix in memory."""

    K: Floats
    dtype: Any = np.float64
    workspace: None = None

    @property
    def n_samples(self) -> int:
        return len(self.K)

    @property
    def blocks(self) -> list[tuple[Indices, Stored]]:
        return [(np.arange(len(self.K)), self.K)]

    def fetch(self, index: Indices) -> None:
        raise AssertionError("all rows are in memory")

    def rows(self, index: Indices) -> Stored:
        return self.K[index]

    def block(self, rows: Indices, columns: Indices) -> Floats:
        return self.K[np.ix_(rows, columns)]

    def diag(self) -> Floats:
        return np.ascontiguousarray(self.K.diagonal())

    def product(self, V: Floats) -> Floats:
        return self @ V

    def __matmul__(self, V: Floats) -> Floats:
        return np.asarray(self.K @ V)


def enclosing_ball(K: Any, *, tol: float = 1e-8, max_iter: int = 10_000_000) -> Ball:
    """Return the smallest ball around points that are given by their Gram matrix.

    Solves ``max beta' diag(K) - beta' K beta`` over ``beta >= 0, sum beta = 1``, whose value is the
    squared radius.

    Parameters
    ----------
    K : array of shape (n_samples, n_samples)
        Symmetric and positive semi-definite.
    tol : float
        Gap to stop at, relative to the squared radius.
    max_iter : int
        Moves of weight from one point to another at most.

    Returns
    -------
    ball : Ball
        With `squared_radius`, `radius`, `centre` and `gap`.

    References
    ----------
    Gai, Chen and Zhang (2010), Learning kernels with radiuses of minimum enclosing balls, NIPS 23,
    equations (7), (8) and (17).

    Examples
    --------
    >>> import numpy as np
    >>> ball = enclosing_ball(np.eye(4))
    >>> round(ball.squared_radius, 6), ball.centre.round(3)
    (0.75, array([0.25, 0.25, 0.25, 0.25]))
    """
    given = _read_gram(K)
    if not is_number(tol) or not 0 < tol < np.inf:
        raise InputError(f"tol: must be a number > 0, got {tol!r}.")
    if not is_number(max_iter) or not 1 <= max_iter < np.inf or max_iter != int(max_iter):
        raise InputError(f"max_iter: must be a whole number >= 1, got {max_iter!r}.")
    # The ball is invariant under translations: relative to the first point, a common offset of
    # the points cancels no digits.
    scale = 2.0 ** float(np.frexp(np.abs(given).max())[1] - 1)  # a power of two rounds nothing
    unit = given / scale
    gram = unit - unit[0] - unit[0][:, None] + unit[0, 0]
    extent = gram.diagonal()[:, None] + gram.diagonal() - 2.0 * gram
    if extent.min() < -1e-8:
        i, j = np.unravel_index(int(np.argmin(extent)), extent.shape)
        raise InputError(
            f"K: not positive semi-definite, the squared distance of points {i} and {j} is "
            f"{scale * extent[i, j]:.3g}."
        )
    np.fill_diagonal(gram, np.maximum(gram.diagonal(), 0.0))
    inner = float(gram.diagonal().max()) or 1.0  # what a large offset leaves is small
    ball = solve_ball(_Whole(gram / inner), tol=float(tol), max_iter=int(max_iter))
    squared_radius, gap = scale * (inner * ball.squared_radius), scale * (inner * ball.gap)
    return Ball(squared_radius, ball.centre, gap, given @ ball.centre)


def _read_gram(K: Any) -> Floats:
    try:
        raw = np.asarray(K)
        gram = raw.astype(np.float64) if raw.dtype.kind in "biuf" else np.empty(0)
    except (TypeError, ValueError):
        gram = np.empty(0)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not gram.size:
        raise InputError("K: must be a square matrix of real numbers with at least one row.")
    if not np.isfinite(gram).all():
        raise InputError("K: every entry must be finite.")
    size = float(np.abs(gram).max())
    with np.errstate(over="ignore"):
        apart = float(np.abs(gram - gram.T).max())
    if apart > 1e-8 * size:
        raise InputError("K: must be symmetric; pass (K + K.T) / 2 if that is rounding.")
    if not gram.diagonal().min() >= 0:
        raise InputError("K: the diagonal of a Gram matrix is not negative.")
    return np.asarray(gram / 2 + gram.T / 2)


def solve_ball(
    K: Rows,
    *,
    tol: float,
    start: Floats | None = None,
    ridge: Floats | None = None,
    max_iter: int = 10_000_000,
) -> Ball:
    """Return the smallest ball around the points of a kernel, to a relative gap.

    Parameters
    ----------
    K : KernelSum
        Rows are computed as they are needed.
    tol : float
        Gap to stop at, relative to the squared radius.
    start : ndarray of shape (n_samples,), optional
        Centre to begin from.
    ridge : ndarray of shape (n_samples,), optional
        Added to the diagonal of the kernel.
    max_iter : int
        Maximum number of moves of weight.
    """
    n = K.n_samples
    diagonal = K.diag()
    ridge = np.zeros(n) if ridge is None else ridge
    if start is not None:
        beta = start / start.sum()
        fitted = (K @ beta[:, None])[:, 0]
    else:
        beta, fitted = _first(K, diagonal)
    if K.workspace is not None:
        return _solve_by_parts(cast(KernelOperator, K), beta, fitted, diagonal, ridge, tol)
    kind = _core.BallDouble if K.dtype == np.float64 else _core.BallFloat
    solver = kind(diagonal, ridge)
    solver.start(beta, np.ascontiguousarray(fitted))
    lent, jumping = 0, True
    at_a_time = int(min(10 * n + 500, max(1000, OPTIONS.entries_at_a_time / n)))
    while True:
        for index, block in K.blocks[lent:]:
            solver.lend(index, block)
        lent = len(K.blocks)
        status = solver.run(tol, min(at_a_time, max(1, max_iter - solver.updates)))
        if status == _NEEDS_ROWS:
            K.fetch(np.sort(solver.wanted(OPTIONS.batch)))
        elif status != _PAUSED or solver.updates >= max_iter:
            break
        elif jumping:
            # Moves between pairs are slow where points are nearly linearly dependent.
            now = ball_with_centre(solver.beta, solver.fitted, diagonal, ridge)
            centre = _jump(K, now.centre, diagonal, ridge)
            if centre is None:
                jumping = False
                continue
            fitted = np.ascontiguousarray((K @ centre[:, None])[:, 0])
            there = ball_with_centre(centre, fitted, diagonal, ridge)
            # Where the system is singular to rounding a jump gains nothing: stop jumping.
            gain = (there.squared_radius - there.gap) - (now.squared_radius - now.gap)
            jumping = gain > 1e-12 * now.squared_radius
            if jumping:
                solver.start(centre, fitted)
    return ball_with_centre(solver.beta, solver.fitted, diagonal, ridge)


def _solve_by_parts(
    K: KernelOperator, beta: Floats, fitted: Floats, diagonal: Floats, ridge: Floats, tol: float
) -> Ball:
    """Return the smallest ball around points of which only a part is moved at a time.

    With the weights of the other points held, those of a part sum to some m. In their shares of m
    the problem is that of a ball in the kernel ``m K``, whose reach is that of all points.
    """
    options, beta, fitted = OPTIONS, beta.copy(), fitted.copy()
    assert K.workspace is not None
    kind = _core.BallDouble if K.dtype == np.float64 else _core.BallFloat
    fruitless, best = 0, np.inf
    with K.workspace.borrow() as memory:
        for _ in range(options.max_parts):
            ball = ball_with_centre(beta, fitted, diagonal, ridge)
            value = ball.squared_radius - ball.gap
            fruitless = 0 if ball.gap < options.progress * best else fruitless + 1
            best = min(best, ball.gap) if fruitless else ball.gap
            if ball.gap <= tol * value or fruitless >= options.max_fruitless:
                break
            reach = diagonal + ridge - 2.0 * (fitted + ridge * beta)
            rows = _part(beta, reach, int(np.sqrt(len(memory))))
            mass, n = float(beta[rows].sum()), len(rows)
            block = memory[: n * n].reshape(n, n)
            K.scaled(mass).fill_square(rows, 0, block)
            solver = kind(mass * diagonal[rows], mass * ridge[rows])
            own = mass * (diagonal + ridge)[rows]
            solver.start(beta[rows] / mass, 0.5 * (own - reach[rows]) - (ridge * beta)[rows])
            solver.lend(np.arange(n), block)
            # The value of the part differs from that of all points: its gap is what matters.
            shares = beta[rows] / mass
            part_gap = float(reach[rows].max() - shares @ reach[rows])
            part_value = max(float(shares @ (own + reach[rows])) / 2.0, 1e-300)
            # Rounding may make both negative, where the points are one.
            aim = max(options.rough * part_gap, 0.3 * tol * value, 0.0) / part_value
            at_a_time = int(max(1000, options.entries_at_a_time / n))
            for _ in range(20 * n // at_a_time + 1):
                if solver.run(aim, at_a_time) != _PAUSED:
                    break
            change = np.zeros((len(beta), 1))
            change[rows, 0] = mass * solver.beta - beta[rows]
            beta[rows] = mass * solver.beta
            fitted += K.product_at(np.arange(len(beta)), change)[:, 0]
    return ball_with_centre(beta, fitted, diagonal, ridge)


def _part(beta: Floats, reach: Floats, room: int) -> Indices:
    """Return points that weight is moved between: those with some, and the farthest.

    Where they are too many, those that could give or take most.
    """
    used = np.flatnonzero(beta)
    n_far = min(OPTIONS.farthest, len(beta), room // 2)
    far = np.argpartition(-reach, n_far - 1)[:n_far]
    rest = np.setdiff1d(used, far, assume_unique=True)
    if len(rest) > room - n_far:
        promise = beta[rest] * (reach[rest] - reach.max())
        rest = rest[np.argsort(promise, kind="stable")[: room - n_far]]
    return np.union1d(far, rest)


def ball_with_centre(centre: Floats, fitted: Floats, diagonal: Floats, ridge: Floats) -> Ball:
    """Return the ball with a given centre.

    Parameters
    ----------
    centre : ndarray of shape (n_samples,)
        Not negative, sums to one.
    fitted : ndarray of shape (n_samples,)
        ``K @ centre``.
    diagonal : ndarray of shape (n_samples,)
        Of K.
    ridge : ndarray of shape (n_samples,)
        Added to the diagonal.
    """
    reach = diagonal + ridge - 2.0 * (fitted + ridge * centre)
    gap = max(float(reach.max() - centre @ reach), 0.0)
    inside = float(centre @ (fitted + ridge * centre))
    return Ball(max(float(reach.max()) + inside, 0.0), centre, gap, fitted)


def _first(K: Rows, diagonal: Floats) -> tuple[Floats, Floats]:
    """Return the mean of all points or of two far ones, whichever is nearer to the answer."""
    n = K.n_samples
    even = np.full(n, 1.0 / n)
    means = K.product(even[:, None])[:, 0]
    i = int(np.argmax(diagonal - 2.0 * means))
    row = K.rows(np.array([i]))[0].astype(np.float64)
    j = int(np.argmax(diagonal - 2.0 * row))
    apart = diagonal[i] + diagonal[j] - 2.0 * row[j]
    if i == j or 0.25 * apart <= diagonal.mean() - means.mean():
        return even, means
    beta = np.zeros(n)
    beta[[i, j]] = 0.5
    return beta, 0.5 * (row + K.rows(np.array([j]))[0])


def _jump(K: Rows, beta: Floats, diagonal: Floats, ridge: Floats) -> Floats | None:
    """Solve for the weights in use exactly, dropping those that would turn negative.

    Every move goes towards the maximum over the weights in use, so the value cannot fall.
    """
    beta = beta.copy()
    for _ in range(OPTIONS.drops):
        used = np.flatnonzero(beta)
        if not 2 <= len(used) <= OPTIONS.most_used:
            return None
        M = K.block(used, used)
        M[np.diag_indices_from(M)] += ridge[used] + 1e-14 * max(float(np.trace(M)), 1e-300)
        sides = np.column_stack([0.5 * (diagonal + ridge)[used], np.ones(len(used))])
        try:
            solved = scipy.linalg.solve(M, sides, assume_a="pos", check_finite=False)
        except np.linalg.LinAlgError:
            return None
        target = solved[:, 0] - solved[:, 1] * ((solved[:, 0].sum() - 1.0) / solved[:, 1].sum())
        falls = target < 0
        if not np.isfinite(target).all():
            return None
        if not falls.any():
            beta[used] = target / target.sum()
            return beta
        now = beta[used]
        share = now[falls] / (now[falls] - target[falls])
        step = now + float(share.min()) * (target - now)
        step[np.flatnonzero(falls)[np.argmin(share)]] = 0.0
        beta[used] = np.maximum(step, 0.0) / np.maximum(step, 0.0).sum()
    return beta
