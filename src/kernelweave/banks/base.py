"""The bank that holds kernels exactly, or to a tolerance far below that of the fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._types import Bools, Floats, Indices
from kernelweave.errors import InputError
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import take
from kernelweave.kernels.distances import squared_distances

from . import on_demand
from .kernel_sum import KernelSum
from .on_demand import FORM, ComputedSum
from .protocol import Bank, Predictor, Workspace
from .storage import Part, Selected, support
from .views import Views, gaussian_rate


@dataclass(frozen=True)
class RoundingOptions:
    """What counts as rounding in quadratic forms, and rows at a time; chosen by hand."""

    negative: float = 1e-8  # quadratic form below zero, relative to trace * |V|^2
    tiny: float = 1e-12  # coefficients for which quadratic forms of huge kernels do not overflow
    underflow: float = 1e-240  # below which products of tiny numbers have no digits
    constant: float = 1e-12  # centred trace of a constant kernel, relative to the trace
    chunk: int = 512  # rows of exact kernels evaluated at a time


OPTIONS = RoundingOptions()


def exact_bank(bank: Bank) -> KernelBank:
    """Return a bank of which exact storage is required, by its own type.

    Parameters
    ----------
    bank : Bank
        Of exact kernels.
    """
    assert isinstance(bank, KernelBank), "the bank must hold exact kernels"
    return bank


@dataclass(frozen=True)
class KernelBank(Bank):
    """Several kernels over the same rows, each in the cheapest form that is exact to tolerance.

    Build one with `make_bank`.

    Parameters
    ----------
    kernels : tuple of Kernel
        The kernels, in the user's order.
    parts : tuple of (Part, ndarray)
        Storage, with the positions in `kernels` that each part holds.
    scales : ndarray of shape (n_kernels,)
        A normalised kernel is ``scales_j * K_j``; test blocks use the same numbers.
    views : Views
        The training rows.
    measured : ndarray of shape (n_kernels,) or None
        `centred_traces`, if they were computed already.
    dtype : dtype
        Of the Gram matrices of weighted sums.
    workspace : Workspace or None
        Memory of inner solvers, where kernels are on demand.
    """

    kernels: tuple[Kernel, ...]
    parts: tuple[tuple[Part, Indices], ...]
    scales: Floats
    views: Views
    measured: Floats | None = None
    dtype: Any = np.float64
    workspace: Workspace | None = None

    @property
    def n_samples(self) -> int:
        return self.views.n_samples

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part, _ in self.parts)

    def quadratic_forms(self, V: Floats, which: Indices | None = None) -> Floats:
        """Return ``tr(V' K_j V)``; rows of zeros cost nothing."""
        out = np.zeros(self.n_kernels)
        with np.errstate(over="ignore", invalid="ignore"):
            for part, ids, local in self._split(which):
                out[ids] = part.quadratic_forms(V, local)
        wanted = np.arange(self.n_kernels) if which is None else which
        values = out[wanted] * self.scales[wanted]
        if not np.isfinite(values).all() and (largest := float(np.abs(V).max())) > OPTIONS.tiny:
            # Huge kernels overflow before their scales are applied; with tiny vectors they do not.
            tiny = OPTIONS.tiny
            return (self.quadratic_forms(V * (tiny / largest), which) / tiny**2) * largest**2
        self._refuse_negative(values, wanted, V)
        return np.maximum(values, 0.0)

    def _refuse_negative(self, values: Floats, wanted: Indices, V: Floats) -> None:
        if not (values < 0).any():
            return
        largest = float(np.abs(V).max())
        shape = V / largest  # the square of a tiny number would be zero
        size = (self.traces()[wanted] * largest) * largest * np.vdot(shape, shape)
        bad = np.flatnonzero(values < -np.maximum(OPTIONS.negative * size, OPTIONS.underflow))
        if len(bad):
            kernel = self.kernels[wanted[bad[0]]]
            raise InputError(
                f"kernels[{wanted[bad[0]]}] = {kernel}: the Gram matrix is not positive "
                f"semi-definite (a quadratic form is {values[bad[0]]:.3g}). "
                "Hint: clip its negative eigenvalues, or add a multiple of the identity."
            )

    def products(self, V: Floats, which: Indices, rows: Indices | None = None) -> Floats:
        """Return ``K_j[rows] V``; ``which`` may be in any order, and rows of zeros cost nothing."""
        return self._products(V, which, rows, rough=False)

    def rough_products(self, V: Floats, which: Indices, rows: Indices) -> Floats:
        return self._products(V, which, rows, rough=True)

    def _products(self, V: Floats, which: Indices, rows: Indices | None, *, rough: bool) -> Floats:
        place = np.full(self.n_kernels, -1)
        place[which] = np.arange(len(which))
        if (place[which] != np.arange(len(which))).any():  # some are asked for twice
            once, places = np.unique(which, return_inverse=True)
            return self._products(V, once, rows, rough=rough)[places]
        n_rows = self.n_samples if rows is None else len(rows)
        out = np.empty((len(which), n_rows, V.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            for part, ids, local in self._split(which):
                multiply = part.rough_products if rough else part.products
                out[place[ids]] = self.scales[ids, None, None] * multiply(V, local, rows)
        return out

    def traces(self, *, centred: bool = False) -> Floats:
        if centred:
            return self.scales * self.centred_traces
        out = np.empty(self.n_kernels)
        for part, ids in self.parts:
            out[ids] = part.traces()
        return self.scales * out

    def trace_bounds(self, *, centred: bool) -> Floats:
        # Centring takes a pass over all entries, which for stored Gram matrices costs more than
        # sharper bounds save.
        costly = self.measured is None and any(
            part.form in ("dense", FORM) for part, _ in self.parts
        )
        return self.traces(centred=centred and not costly)

    @cached_property
    def centred_traces(self) -> Floats:
        """Traces of the centred Gram matrices as written, without scales."""
        if self.measured is not None:
            return self.measured
        n = self.n_samples
        return n * self.centred_means(np.full(n, 1.0 / n))

    def centred_means(self, share: Floats) -> Floats:
        """Return the mean diagonals of the centred Gram matrices as written, without scales.

        Rows have the weights ``share``, which sum to one.
        """
        means = self._diagonal_sums(share)
        centred = means - self.quadratic_forms(share[:, None]) / self.scales
        # The difference of a constant kernel is rounding.
        centred = np.where(centred <= OPTIONS.constant * means, 0.0, centred)
        for j, kernel in enumerate(self.kernels):
            rows = kernel.linear_rows(self.views[j])
            if rows is not None:
                # From centred rows: the difference above loses the digits of a common offset.
                rows = rows - share @ rows
                rows -= share @ rows  # the first mean is rounded, and a constant would not be one
                exact = float(share @ np.einsum("ij,ij->i", rows, rows))
                constant = means[j] == 0.0 or exact <= 1e-30 * means[j]
                centred[j] = 0.0 if constant else exact
        return centred

    def diagonal_sums(self, shares: Floats) -> Floats:
        return self.scales * self._diagonal_sums(shares)

    def _diagonal_sums(self, shares: Floats) -> Floats:
        """Return ``sum_i shares_i K_j[i, i]`` of the kernels as written."""
        out = np.empty(self.n_kernels)
        for part, ids in self.parts:
            out[ids] = part.diagonal_sums(shares)
        return out

    @property
    def is_constant(self) -> Bools:
        if self.measured is None:
            return np.zeros(self.n_kernels, dtype=bool)
        return np.asarray(self.measured == 0.0)

    def spreads(self, centre: Floats) -> Floats:
        """Return ``centre' diag(K_j) - centre' K_j centre`` of the normalised kernels.

        For a centre on the simplex this is a lower bound of the squared radius of the ball around
        the points of each kernel.
        """
        return np.asarray(self.diagonal_sums(centre) - self.quadratic_forms(centre[:, None]))

    def residual_forms(self, V: Floats) -> Floats:
        """Bound ``tr(V' E_j V)``, where ``E_j`` is what the factor of kernel j leaves out.

        Two bounds follow from ``|E_ik| <= sqrt(d_i d_k)`` with the diagonal d of E: the smaller of
        ``trace(E) |V|^2`` and ``(sum_i |V_i| sqrt(d_i))^2`` is returned; no kernel is evaluated.
        """
        out = np.zeros(self.n_kernels)
        for part, ids in self.parts:
            roots = part.residual_roots()
            if roots is not None:
                by_rows = ((roots @ np.abs(V)) ** 2).sum(axis=1)
                out[ids] = np.minimum(by_rows, (roots**2).sum(axis=1) * np.vdot(V, V))
        return self.scales * out

    def residual_roots(self, which: Indices) -> Floats:
        """Return ``sqrt(d)``, d the diagonals of what storage leaves out.

        With e_j from `residual_forms`, ``|(E_j V)_i| <= sqrt(e_j d_i)``.
        """
        out = np.zeros((self.n_kernels, self.n_samples))
        for part, ids in self.parts:
            roots = part.residual_roots()
            if roots is not None:
                out[ids] = roots
        return np.asarray(np.sqrt(self.scales[which])[:, None] * out[which])

    @cached_property
    def leaves_out(self) -> bool:
        roots = (part.residual_roots() for part, _ in self.parts)
        return any(r is not None and bool(r.any()) for r in roots)

    @cached_property
    def _storage_units(self) -> Floats:
        out = np.zeros(self.n_kernels)
        for part, ids in self.parts:
            out[ids] = part.storage_units()
        given = [kernel.is_precomputed for kernel in self.kernels]  # as they are
        return np.where(given, 0.0, out)

    @property
    def rounded(self) -> Bools:
        """Which kernels have values in double precision but are stored in single precision."""
        return self._storage_units > 0

    @property
    def refinement(self) -> float | None:
        return 1e9 if self.leaves_out else None

    def form_errors(self, V: Floats, quadratic_forms: Floats) -> Floats:
        """Bound the rounding of storage in single precision.

        With ``|E[i, k]| <= unit sqrt(K[i, i] K[k, k])`` for the errors of entries,
        ``|v' E v| <= unit (sum_i |v_i| sqrt(K[i, i]))^2 <= unit |v|_1 sum_i |v_i| K[i, i]``.
        """
        sizes = np.sum([v.sum() * self.diagonal_sums(v) for v in np.abs(V).T], axis=0)
        errors = np.zeros(self.n_kernels)
        np.multiply(self._storage_units, sizes, out=errors, where=self.rounded)
        return errors

    @property
    def is_exact(self) -> bool:
        """Whether storage neither leaves out nor rounds anything."""
        return self.dtype == np.float64 and not self.leaves_out

    def exact_product(
        self, weights: Floats, V: Floats, quadratic_forms: Floats | None = None
    ) -> Floats:
        raw = weights * self.scales
        out = np.zeros(V.shape)
        single = np.flatnonzero((raw != 0) & self.rounded)
        for places, rows, products in self._rounded_products(V, single):
            j = single[places]
            out[rows] += np.tensordot(raw[j], products, axes=1)
            if quadratic_forms is not None:
                here = self.scales[j] * np.einsum("jno,no->j", products, V[rows])
                quadratic_forms[j] = here if rows.start == 0 else quadratic_forms[j] + here
        if quadratic_forms is not None:
            quadratic_forms[single] = np.maximum(quadratic_forms[single], 0.0)
        used = support(V)
        gaussians: dict[Any, list[int]] = {}
        for part, ids in self.parts:
            roots = part.residual_roots()
            whole = np.full(len(ids), True) if roots is None else ~roots.any(axis=1)
            asked = (raw[ids] != 0) & ~self.rounded[ids]
            active = np.flatnonzero(asked & whole)
            if len(active):
                out += np.tensordot(raw[ids[active]], part.products(V, active), axes=1)
            for j in ids[asked & ~whole].tolist():
                if self.views.is_plain_gaussian(self.kernels[j], j):
                    gaussians.setdefault(self.views.keys[j], []).append(j)
                else:
                    out += weights[j] * self.exact_products(V, np.array([j]))[0]
        for members in gaussians.values():
            rows = self.views[members[0]]
            features = np.ascontiguousarray(rows.T)
            rates = np.array([gaussian_rate(self.kernels[j]) for j in members])
            out += _core.gaussian_products(
                features,
                np.ascontiguousarray(features[:, used]),
                rates,
                raw[members],
                np.ascontiguousarray(V[used]),
            )
        return out

    def exact_forms(self, V: Floats, which: Indices | None = None) -> Floats:
        which = np.arange(self.n_kernels) if which is None else which
        out = np.zeros(len(which))
        stored = ~self.rounded[which]
        if stored.any():
            out[stored] = self.quadratic_forms(V, which[stored])
        rows, single = support(V), which[~stored]
        here = np.zeros(len(single))
        for places, part, products in self._rounded_products(V, single, rows):
            here[places] += np.einsum("jno,no->j", products, V[rows[part]])
        out[~stored] = self.scales[single] * here
        return np.maximum(out, 0.0)

    def _rounded_products(
        self, V: Floats, which: Indices, rows: Indices | None = None
    ) -> Iterator[tuple[list[int], slice, Floats]]:
        """Yield places in ``which``, some of the rows, and ``K_j[rows] V`` of kernels as written.

        The kernels are evaluated, Gaussians that share their distances together.
        """
        used = support(V)
        picked = np.ascontiguousarray(V[used])
        groups: dict[Any, list[int]] = {}
        for k, j in enumerate(which.tolist()):
            plain = self.views.is_plain_gaussian(self.kernels[j], j)
            groups.setdefault((self.views.keys[j],) if plain else k, []).append(k)
        for places in groups.values():
            first = int(which[places[0]])
            kernel, view = self.kernels[first], self.views[first]
            plain = self.views.is_plain_gaussian(kernel, first)
            A, B = view if rows is None else take(view, rows), take(view, used)
            for start in range(0, self.n_samples if rows is None else len(rows), OPTIONS.chunk):
                part = slice(start, start + OPTIONS.chunk)
                if plain:
                    distances = squared_distances(take(A, part), B)
                    rates = np.array([gaussian_rate(self.kernels[which[k]]) for k in places])
                    index = np.arange(len(distances)), np.arange(len(used))
                    yield places, part, _core.ladder_products(distances, rates, *index, picked)
                else:
                    yield places, part, (kernel.block(take(A, part), B) @ picked)[None]

    def exact_products(self, V: Floats, which: Indices, chunk: int = OPTIONS.chunk) -> Floats:
        """Return ``K_j V`` from the kernels themselves."""
        rows = support(V)
        out = np.zeros((len(which), *V.shape))
        for k, j in enumerate(which):
            A = self.views[j]
            B = take(A, rows)
            for start in range(0, self.n_samples, chunk):
                part = slice(start, start + chunk)
                out[k, part] = self.scales[j] * (self.kernels[j].block(take(A, part), B) @ V[rows])
        return out

    def exact_diagonal(self, weights: Floats) -> Floats:
        """Return the diagonal of ``sum_j weights_j K_j`` from the kernels themselves."""
        out = np.zeros(self.n_samples)
        for j in np.flatnonzero(weights).tolist():
            out += weights[j] * self.scales[j] * self.kernels[j].diagonal(self.views[j])
        return out

    def subset(self, which: Indices) -> KernelBank:
        place = np.full(self.n_kernels, -1)
        place[which] = np.arange(len(which))
        parts = []
        for part, ids in self.parts:
            inside = np.flatnonzero(place[ids] >= 0)
            if len(inside):
                parts.append((Selected(part, inside), place[ids[inside]]))
        return replace(
            self,
            kernels=tuple(self.kernels[j] for j in which),
            parts=tuple(parts),
            scales=self.scales[which],
            views=self.views.subset([int(j) for j in which]),
            measured=None if self.measured is None else self.measured[which],
        )

    def take(self, rows: Indices) -> KernelBank:
        return replace(
            self,
            parts=tuple((part.take(rows), ids) for part, ids in self.parts),
            views=self.views.take(rows),
            measured=None,
            workspace=self.workspace if len(rows) > on_demand.OPTIONS.stored_rows else None,
        )

    def combine(self, weights: Floats, *, coarse: bool = False) -> KernelSum:
        kind = KernelSum if self.workspace is None else ComputedSum
        return kind(self, weights, coarse=coarse)

    def predictor(
        self, support: Indices, which: Indices, columns: Floats | None = None
    ) -> Predictor:
        return Predictor(support=self.views.take(support).subset([int(j) for j in which]))

    def summary(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [{} for _ in self.kernels]
        for part, ids in self.parts:
            roots, traces, ranks = part.residual_roots(), part.traces(), part.ranks()
            for local, j in enumerate(ids):
                left = 0.0 if roots is None else float(np.vdot(roots[local], roots[local]))
                rows[j] = {
                    "kernel": str(self.kernels[j]),
                    "form": part.form,
                    "rank": ranks[local],
                    "left_out": left / max(float(traces[local]), 1e-300),
                }
        return rows

    def _split(self, which: Indices | None) -> Sequence[tuple[Part, Indices, Indices]]:
        """Return (part, kernels asked for, their places in the part) for each part with some."""
        asked = np.full(self.n_kernels, which is None)
        if which is not None:
            asked[which] = True
        out = []
        for part, ids in self.parts:
            local = np.flatnonzero(asked[ids])
            if len(local):
                out.append((part, ids[local], local))
        return out
