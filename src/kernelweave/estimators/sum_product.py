"""Kernel learning on sum-product structures (SPN-MKL)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval, StrOptions
from kernelweave.banks import Views, check_memory, cross_block, make_bank
from kernelweave.banks.computed_paths import ComputedLeaves, ComputedPathBank
from kernelweave.banks.nystroem.build import may_compute
from kernelweave.banks.paths import FactoredBank, NetworkBank, PathBank, arrange
from kernelweave.banks.triangles import Triangles
from kernelweave.errors import InputError, warn
from kernelweave.kernels import Kernel, KernelFamily, expand_kernels
from kernelweave.kernels.base import is_number
from kernelweave.kernels.given import with_missing
from kernelweave.kernels.network import Network, Path
from kernelweave.losses import Hinge
from kernelweave.solvers import Callback, Result
from kernelweave.solvers.problem import Limits
from kernelweave.solvers.rounding import keep_kernels
from kernelweave.solvers.structure import StructureProblem, learn_structure
from kernelweave.weights.sum_product import SumProduct

from .base import BlockFunction
from .classifier import KernelClassifier
from .duplicates import MergedRows
from .out_of_fold import HeldProblem, HeldSolution
from .shared_docs import BOUNDS, CALIBRATED, CLASSES, SUPPORT, shared_attributes
from .targets import Targets
from .terms import FunctionTerms, KernelTerm, KernelTerms

if TYPE_CHECKING:
    import pandas as pd

_NEGATIVE = 1e-8  # eigenvalue below zero, relative to the largest, that is not rounding
_INHERITED = """missing C max_iter fit_intercept class_weight calibration calibration_cv
memory_limit n_jobs verbose""".split()


@shared_attributes(BOUNDS, SUPPORT, CLASSES, CALIBRATED)
@dataclass(eq=False, repr=False)
class SumProductMKLClassifier(KernelClassifier):
    """Support vector classifier on a structured combination of kernels.

    The structure is a sum-product network: base kernels at the leaves, sums, and products with a
    weight ``beta_v`` each. Distributing products over sums writes it as a sum of paths, whose
    kernels are products of base kernels, and whose weights ``g_m`` are weighted geometric means of
    the weights of their products. Minimises

    ``sum_m |w_m|^2 / (2 g_m(beta)) + lam sum_v c_v beta_v^p_v + sum_i C_i max(0, 1 - y_i f(x_i))``

    over functions and weights, ``c_v`` being the sum of a weight's exponents over all paths.
    Several classes are learned one against the rest with one shared kernel.

    Parameters
    ----------
    structure : Kernel, list of Kernel, dict, networkx graph or None
        An expression such as ``(a + b) * (c + d) + e``, in which `group` gives a sum a weight of
        its own; a list, which is a sum; a dict as `Network.to_dict` returns it; a graph with edges
        from parents to children and node attributes ``kind`` ("sum", "product" or "leaf"),
        ``kernel``, ``p`` and ``name``. None: the sum of the default kernels of `MKLClassifier`.
        Normalisation removes factors of single kernels, not those of products.
    lam : float
        Penalty of the weights. With one common `p` it changes nothing that C does not: tune C.
    p : float or dict
        Exponent of the penalty, or exponents by the names of products (others have 1). Small values
        make parts of the structure vanish. The problem is convex while the mean of ``1 / p`` along
        every path is at most one; else no bound is known.
    normalize : {"cosine", "trace", "diagonal", "radius"} or None
        What is made one of every base kernel: each diagonal entry (which products keep), the mean
        centred diagonal, the mean diagonal, the radius, or nothing.
    C : float
        Cost of errors.
    solver : {"newton", "projected"}
        Weights for given functions by Newton's method in their logarithms, with Anderson
        acceleration; or by the published projected gradient, scaled by weight, with linear pieces
        for exponents below one.
    tol : float
        Relative duality gap to stop at, at least 1e-12; without a bound, a hundred times the
        relative decrease.
    max_iter : int
        Maximum number of inner SVM solves for each start.
    max_paths : int
        Maximum number of paths written out. Structures with more are evaluated as they are where
        all paths give a weight the same exponent, and refused otherwise.
    n_starts : int
        Starting points where the problem is not convex; the first has equal weights.
    random_state : int, RandomState instance or None
        For the starting points beyond the first.

    Attributes
    ----------
    network_ : Network
        The structure in canonical form.
    node_weights_ : dict
        Weight of every product, by its name.
    paths_ : list of Path
        The paths, equal ones merged; empty where they are too many.
    weights_ : ndarray of shape (n_paths,)
        Their weights.
    contributions_ : ndarray of shape (n_paths,)
        Share of each path in the squared norm of the decision function.
    kernels_ : list of Kernel
        The base kernels.
    scales_ : ndarray of shape (n_kernels,)
        What each was multiplied by to normalise it.
    duality_gap_ : float
        No model has an objective smaller than ``objective_ - duality_gap_``; infinite where the
        problem is not convex.
    converged_ : bool
        Whether the gap met `tol`; without a bound, whether the objective stood still.

    References
    ----------
    Regularization for multiple kernel learning via sum-product networks (2014), arXiv:1402.3032,
    equations (1), (2) and (10); equation (7) is corrected to count exponents, not paths.

    Examples
    --------
    >>> from kernelweave import RBF, Linear, SumProductMKLClassifier
    >>> from kernelweave.datasets import make_views
    >>> data = make_views(100, random_state=0)
    >>> left, right = RBF(1.0, columns=[0]), RBF(1.0, columns=[1])
    >>> model = SumProductMKLClassifier(left * right + Linear()).fit(data.X, data.y)
    >>> bool(model.converged_), list(model.node_weights_)
    (True, ['rbf(width=1) on column 0 * rbf(width=1) on column 1', 'linear'])
    """

    structure: Any = None
    _: KW_ONLY
    missing: str | None = None
    lam: float = 1.0
    p: float | dict[str, float] = 1.0
    normalize: str | None = "cosine"
    C: float = 1.0
    solver: str = "newton"
    tol: float = 1e-3
    max_iter: int = 200
    max_paths: int = 20_000
    n_starts: int = 1
    fit_intercept: bool = True
    class_weight: dict[Any, float] | str | None = None
    calibration: str | None = None
    calibration_cv: Any = None
    random_state: Any = None
    memory_limit: float | str | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _declaration = KernelClassifier._declaration.extended(
        {
            "weights_": "weights[paths]",
            "contributions_": "float[paths]",
            "node_weights_": "dict",
            "_structure": "any",
        },
        learns="paths",
        substitutes={"structure": "_structure"},
        aspects=("structure", "kernels"),
        method="structure",
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: KernelClassifier._parameter_constraints[name] for name in _INHERITED},
        "structure": "no_validation",  # structures check themselves, with the name of the node
        "normalize": KernelClassifier._parameter_constraints["normalize"],
        "tol": [Interval(Real, 1e-12, 1, closed="left")],
        "lam": [Interval(Real, 0, None, closed="neither")],
        "p": [Interval(Real, 0, None, closed="neither"), dict],
        "solver": [StrOptions({"newton", "projected"})],
        "max_paths": [Interval(Integral, 1, None, closed="left")],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }
    warm_start = False

    def _given_kernels(self) -> Any:
        structure = self._default_kernels() if self.structure is None else self.structure
        return with_missing(structure, self.missing)

    def _prepare(self, rows: MergedRows, targets: Targets, models: list[Self]) -> _Structure:
        return self._build_structure(rows)

    def _learn(
        self, shared: _Structure, rows: MergedRows, start: Floats | None, report: Callback
    ) -> Result:
        system = shared.system
        penalty = SumProduct(system.path_counts, self._exponents(shared.network), self.lam)
        cost, loss = self.C * rows.cost, Hinge(self.fit_intercept)
        return learn_structure(
            StructureProblem(system, rows.Y, cost, loss, penalty),
            Limits(self.tol, self.max_iter, report),
            solver=self.solver,
            starts=self._starts(system.n_nodes) if start is None else [start],
        )

    def _continue(self, result: Result, ratio: float) -> None:
        return None  # every C starts from `_starts`

    def _fold_start(self, shared: _Structure, result: Result, rows: MergedRows) -> Floats:
        return np.asarray(np.log(result.weights))

    def _n_learned(self, shared: _Structure) -> float:
        return shared.system.n_nodes

    def _hold(self, shared: _Structure, result: Result, rows: MergedRows) -> HeldProblem:
        kernel, cost = shared.system.kernel(np.log(result.weights)), self.C * rows.cost
        loss = Hinge(self.fit_intercept)
        return HeldProblem(kernel, loss, rows.Y, cost, result.dual_coef, self.tol)

    def _place(self, shared: _Structure, rows: MergedRows, solution: HeldSolution) -> None:
        support = self._store_support(solution.dual_coef, solution.intercept, rows)
        self._support_views = shared.views.take(support)

    def _row_values(
        self, shared: _Structure, result: Result, rows: MergedRows, test: Indices
    ) -> Floats:
        kernel = shared.system.kernel(np.log(result.weights))
        return np.asarray(kernel.product_at(test, result.dual_coef) + result.intercept)

    def _starts(self, n_nodes: int) -> list[Floats]:
        random, more = check_random_state(self.random_state), range(self.n_starts - 1)
        return [np.zeros(n_nodes), *(random.standard_normal(n_nodes) for _ in more)]

    def _build_structure(self, rows: MergedRows) -> _Structure:
        """Return the network over the training rows, without base kernels that are zero."""
        network = Network.of(_expanded(self._with_targets(self._given_kernels(), rows.Y), rows))
        network = network.map_kernels(
            lambda kernel: with_missing(kernel, self.missing).bound(rows.X, rows.weight)
        )
        kernels: list[Kernel] = [network.nodes[i].kernel for i in network.leaves]  # type: ignore[misc]
        on_demand = self._computes_leaves(network, kernels, rows)
        if not on_demand:
            self._check_budget(len(kernels), len(rows.Y))
        bank = make_bank(
            kernels,
            rows.X,
            normalize=self.normalize,
            centred=self.fit_intercept,
            tol=self.tol if on_demand else min(self.tol, 1e-6),
            memory_limit=self.memory_limit,
            sample_weight=rows.weight,
            on_demand=on_demand,
            factored=not on_demand,
        )
        place = {id(kernel): j for j, kernel in enumerate(kernels)}
        empty = np.flatnonzero(bank.traces() <= 0)
        if len(empty):
            names = ", ".join(str(kernels[j]) for j in empty)
            network = network.without({network.leaves[j] for j in empty.tolist()})
            warn(f"structure: zero on all training rows, and left out with its paths: {names}.")
        # The remaining network may have its leaves in another order, and fewer of them.
        kept = [place[id(network.nodes[i].kernel)] for i in network.leaves]
        for j in kept:
            _refuse_indefinite(kernels[j], bank.views[j])
        values = {j: kernels[j].constant_value for j in kept}
        # The factor of a product is not normalised.
        constants = {j: value for j, value in values.items() if value is not None}
        found = [kernels[j] if j in constants else bank.kernels[j] for j in kept]
        fixed = [j in constants for j in kept]
        views, scales = bank.views.subset(kept), np.where(fixed, 1.0, bank.scales[kept])
        if on_demand:
            paths = network.paths(self.max_paths)
            computed = ComputedLeaves.of(bank, kept, constants)
            system = ComputedPathBank(computed, network, paths)
            return _Structure(network, found, scales, views, system, paths)
        leaves = Triangles.of(bank, kept)
        leaves.entries[fixed] = np.array(list(constants.values()))[:, None]
        if network.count_paths() > self.max_paths and network.uniform_exponents() is not None:
            factored = FactoredBank(leaves, network)
            return _Structure(network, found, scales, views, factored, [])
        paths = network.paths(self.max_paths)
        return _Structure(network, found, scales, views, PathBank(leaves, network, paths), paths)

    def _computes_leaves(self, network: Network, kernels: list[Kernel], rows: MergedRows) -> bool:
        """Return whether n is so large that kernels are computed from the rows when needed."""
        if network.count_paths() > self.max_paths or any(
            kernel.unwrapped.may_be_indefinite for kernel in kernels
        ):
            return False
        given = kernels, rows.X, self.normalize, self.memory_limit
        return may_compute(*given, whole=True, features=False)

    @property
    def _structure(self) -> dict[str, Any]:
        """The fitted structure as it is stored."""
        return self.network_.to_dict() | {"paths": bool(self.paths_)}

    @_structure.setter
    def _structure(self, stored: dict[str, Any]) -> None:
        self.network_ = Network.of({k: v for k, v in stored.items() if k != "paths"})
        self.paths_ = self.network_.paths(self.max_paths) if stored["paths"] else []

    def _check_budget(self, n_leaves: int, n: int) -> None:
        square = 8.0 * n * n
        check_memory(
            f"A structure of {n_leaves} kernels over {n} rows needs",
            {"its kernels": 0.5 * square * n_leaves, "the learned kernel": 5 * square},
            self.memory_limit,
            "use fewer rows or kernels",
        )

    def _exponents(self, network: Network) -> Floats:
        """Return the exponent ``p`` of every product."""
        named = {network.names[i]: i for i in network.products}
        by_name = self.p if isinstance(self.p, Mapping) else {}
        for name, value in by_name.items():
            if name not in named:
                known = ", ".join(repr(name) for name in list(named)[:8])
                raise InputError(f"p: there is no product {name!r}; the first are {known}.")
            if not is_number(value) or not 0 < value < np.inf:
                raise InputError(f"p[{name!r}]: must be a finite number > 0, got {value!r}.")
        rest = 1.0 if isinstance(self.p, Mapping) else float(self.p)
        out = []
        for i in network.products:
            own = network.nodes[i].p
            out.append(float(by_name.get(network.names[i], rest if own is None else own)))
        return np.array(out)

    def _store(self, shared: _Structure, result: Result, rows: MergedRows) -> None:
        self.network_, self.paths_ = shared.network, shared.paths
        self.kernels_: list[Kernel] = list(shared.kernels)
        names = [self.network_.names[i] for i in self.network_.products]
        self.node_weights_ = dict(zip(names, result.weights.tolist(), strict=True))
        self.scales_ = shared.scales
        self.weights_ = self.contributions_ = np.zeros(0)
        paths = shared.system.by_paths()
        if paths is not None:
            weights = paths.path_weights(np.log(result.weights))
            parts = paths.quadratic_forms(result.dual_coef) * weights
            matter = keep_kernels(
                weights,
                np.sqrt(weights * parts),
                self.C * rows.cost,  # slopes of the hinge losses
                result.objective,
                paths.diagonal_sums,
                lambda weights: paths.combine(weights) @ result.dual_coef,
            )
            self.weights_ = np.where(matter, weights, 0.0)
            self._store_contributions(parts)
        self._store_bounds(result)
        support = self._store_support(result.dual_coef, result.intercept, rows)
        self._support_views = shared.views.take(support)
        self._warn_unless_converged(result)
        squared_norm = 0.5 * float(result.quadratic_forms.sum())
        if result.converged and squared_norm <= self.tol * result.objective:
            warn(
                f"{type(self).__name__}: the best weights are zero, and so is the function but for "
                "its bias. Hint: raise C, or lower lam."
            )

    def _learned_block(self, A: Views, B: Views, V: Floats | None = None) -> Floats:
        """Return the learned kernel between prepared rows; see `cross_block`."""
        pairs = enumerate(zip(self.kernels_, self.scales_, strict=True))
        leaves = np.array(
            [cross_block([k], s[None], A.subset([j]), B.subset([j])).ravel() for j, (k, s) in pairs]
        )
        if self.paths_:
            table, _, _ = arrange(self.network_, self.paths_)
            values = table.combine(leaves, self.weights_)
        else:
            system = FactoredBank(Triangles(leaves[:, :1], 1), self.network_)
            logs = system.exponents * np.log(list(self.node_weights_.values()))
            values = system.evaluate(leaves, logs)[self.network_.root]
        out = values.reshape(A.n_samples, B.n_samples)
        return np.asarray(out if V is None else out @ V)

    def _terms(self) -> KernelTerms | FunctionTerms:
        if self.paths_:
            return super()._terms()
        n_outputs, reason = len(self.intercept_), "it has more than max_paths paths"
        return FunctionTerms(lambda X: self.decision_function(X).reshape(-1, n_outputs), reason)

    def _support_terms(self) -> list[KernelTerm]:
        place, terms = {leaf: j for j, leaf in enumerate(self.network_.leaves)}, []
        for k in np.flatnonzero(self.weights_).tolist():
            leaves = [place[leaf] for leaf in self.paths_[k].leaves]
            factors = tuple((self.kernels_[j], self._support_views[j]) for j in leaves)
            coef = self.weights_[k] * np.prod(self.scales_[leaves]) * self.dual_coef_.T
            terms.append(KernelTerm(self.network_.describe(self.paths_[k]), factors, coef))
        return terms

    def _learned_kernel(self) -> tuple[list[Kernel], BlockFunction]:
        return self.kernels_, self._learned_block

    def _blocks_at_once(self, kernels: list[Kernel]) -> int:
        return len(kernels)

    def to_frame(self) -> pd.DataFrame:
        """Return a table of all paths, heaviest first.

        Returns
        -------
        frame : pandas.DataFrame
            ``path`` (its kernels), ``weight``, and ``contribution``, the share of the squared norm
            of the decision function.
        """
        check_is_fitted(self)
        paths = [self.network_.describe(path) for path in self.paths_]
        return self._sorted_frame({"path": paths, "weight": self.weights_}, by="weight")


@dataclass(frozen=True)
class _Structure:
    """A sum-product network over the training rows."""

    network: Network
    kernels: list[Kernel]
    scales: Floats
    views: Views
    system: NetworkBank
    paths: list[Path]  # empty where they are too many


def _expanded(structure: Any, rows: MergedRows) -> Any:
    """Write out families in a list, and the default kernels."""
    items = structure if isinstance(structure, list | tuple) else [structure]
    flat = not items or any(isinstance(item, KernelFamily) for item in items)
    return expand_kernels(structure, rows.X, rows.weight) if flat else structure


def _refuse_indefinite(kernel: Any, rows: Any) -> None:
    """Refuse given matrices and functions that are not positive semi-definite."""
    if kernel.unwrapped.may_be_indefinite:
        values = np.linalg.eigvalsh(kernel.block(rows, rows))
        if values[0] < -_NEGATIVE * values[-1]:
            raise InputError(
                f"structure: {kernel} is not positive semi-definite (an eigenvalue is "
                f"{values[0]:.3g}). Hint: clip its negative eigenvalues, or add a multiple of the "
                "identity."
            )
