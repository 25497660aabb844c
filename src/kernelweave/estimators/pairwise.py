"""Kernel weights from pairs that belong together or apart, some of them labelled wrongly."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from kernelweave._dask import by_parts, fetch
from kernelweave._declaration import Declaration
from kernelweave._summary import NotebookSummary
from kernelweave._threads import one_thread
from kernelweave._types import Floats, Indices
from kernelweave._validation import (
    Interval,
    StrOptions,
    check_table,
    fit_context,
)
from kernelweave.errors import InputError, numbering
from kernelweave.pairs import Rates, Statistic, check_pairs, check_rows, pair_values, paired_rows
from kernelweave.pairs.shapes import SHAPES, ShapedKernel
from kernelweave.pairs.shrink import Judged, Setting, scale_rows

from .fit import quiet_overflow
from .pairwise_methods import METHODS, as_numbers
from .shared_docs import shared_attributes

if TYPE_CHECKING:
    import pandas as pd

_OPTION = [Interval(Real, 0, None, closed="left"), StrOptions({"select"})]


@shared_attributes()
class PairwiseKernelLearner(NotebookSummary, TransformerMixin, BaseEstimator):
    """Learn weights of kernels from pairs labelled "same" or "different", some of them wrongly.

    With ``method="lkcnpc"`` a logistic model of the pairs is fitted, ::

        min over w >= 0 of mean_i ln(2 cosh(w.k_i / 2)) - w.b/2 + lam/2 |w|^2,

    where labels enter through the statistic ``b`` only, which is corrected for wrong labels.
    ``method="shrink"`` learns deviations from equal weights with a free bias, and chooses its
    options by how well clusters agree with held-out pairs.

    Parameters
    ----------
    kernels : list of kernels or None, default=None
        None: one linear kernel for each column of ``X``, which may be sparse.
    method : {"lkcnpc", "shrink"}, default="lkcnpc"
        The published method, or the one beyond it (columns only).
    reliability : tuple of two floats or None, default=None
        Share of truly same pairs among those labelled +1, and of truly different ones among those
        labelled -1; see `estimate_pair_rates`. None: labels are taken as true.
    prior : float or None, default=None
        Share of truly same pairs among all; None: what follows from ``reliability``.
    lam : float or None, default=None
        Strength of the penalty; None is ``0.01 / n_pairs``, as published.
    correction : {"noise", "nonneg", "naive"}, default="noise"
        Correct the statistic; correct it and keep means of kernels without negative values from
        being negative; or take the labels as true.
    fit_intercept : bool, default=False
        Whether to add a free bias (``lkcnpc``; ``shrink`` always has one).
    shape : {"diag", "words", "graph", "auto"}, default="diag"
        The kernel that weights of ``shrink`` stand for: one weight per column; columns that
        interact through the links; columns smoothed along the links, so that links are part of the
        kernel. "auto" chooses between the first two.
    gamma : float or "select", default="select"
        Power of the idf that every column is multiplied with (``shrink``); 0 leaves it out.
    alpha : float or "select", default="select"
        Probability that a walk along the links stops after a step; at 1 the links themselves are
        learned from (``shrink``).
    rho : float or "select", default="select"
        Strength of the pull towards equal weights; infinity gives equal weights (``shrink``).
    steps : int or "select", default="select"
        Steps along the links in the shapes "words" and "graph".
    n_clusters : int or None, default=None
        Clusters for comparing options; needed where one is "select".
    n_resample : int, default=8
        Draws of walks and negatives that the weights of ``shrink`` are averaged over.
    n_splits : int, default=3
        How often pairs are held out to compare options.
    holdout : float, default=0.2
        Share of the pairs held out.
    n_pairs : int or None, default=None
        Pairs to draw from the classes ``y`` where no pairs are given; None: ten a row.
    tol : float, default=1e-8
        Projected gradient to stop at, relative to half the largest entry of the statistic.
    max_iter : int, default=200
        Newton steps at most.
    memory_limit : number of bytes, str such as "8GB", or None, default=None
        Memory for the kernel values of the pairs of ``lkcnpc``, beyond which they go to a
        temporary file, for the products of columns of ``shrink``, which is refused beyond it, and
        for rows taken from a Dask table. None: half of what is free.
    random_state : int, RandomState or None, default=None
        For everything drawn.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels, or of the columns.
    kernels_ : list of Kernel or None
        The kernels, where some were given.
    intercept_ : float
        Bias of the pair model.
    scale_ : float
        The equal weight that those of ``shrink`` are pulled to; otherwise 0.
    threshold_ : float
        Score from which `predict_pairs` says "same", chosen on the training pairs.
    rates_ : Rates or None
        The rates that were used.
    statistic_ : Statistic or None
        Means over same and different pairs (``lkcnpc``).
    diagnostics_ : dict
        Share of columns with impossible means, condition of the noise matrix, constants of the
        error bounds.
    selection_ : list of Judged
        Settings that were compared, best first (``shrink``).
    setting_ : Setting or None
        The one in use.
    objective_ : float
        Value reached; NaN for ``shrink``, which averages several.
    n_iter_ : int
        Newton steps, in all draws.
    converged_ : bool
        Whether the tolerance was met.

    References
    ----------
    .. [1] T. Yang, R. Jin, A. Jain, "Learning kernel combination from noisy pairwise constraints",
           IEEE SSP 2012. Equation (6) is used with the transpose it lacks in print.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import PairwiseKernelLearner
    >>> rng = np.random.default_rng(0)
    >>> classes = rng.integers(2, size=60)
    >>> X = np.column_stack([classes == 0, classes == 1, rng.random((60, 2)) < 0.5]).astype(float)
    >>> learner = PairwiseKernelLearner(lam=0.01, random_state=0).fit(X, classes)
    >>> (learner.weights_ > 0.1).tolist()
    [True, True, False, False]
    """

    _declaration: ClassVar[Declaration] = Declaration(
        "pairs",
        saved={
            "weights_": "weights[kernels]",
            "intercept_": "real",
            "scale_": "real",
            "threshold_": "real",
            "objective_": "real",
            "n_iter_": "integer",
            "converged_": "flag",
            "diagnostics_": "dict",
            "n_features_in_": "integer",
            "_factors": "any",
        },
        optional={"feature_names_in_": "names"},
        substitutes={"kernels": "kernels_"},
        aspects=("kernels", "pairs"),
        method="pairs",
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernels": "no_validation",
        "method": [StrOptions({"lkcnpc", "shrink"})],
        "reliability": "no_validation",  # checked with the sentence it deserves
        "prior": [Real, None],
        "lam": [Interval(Real, 0, None, closed="neither"), None],
        "correction": [StrOptions({"noise", "nonneg", "naive"})],
        "fit_intercept": ["boolean"],
        "shape": [StrOptions({*SHAPES, "auto"})],
        "gamma": _OPTION,
        "alpha": [Interval(Real, 0, 1, closed="right"), StrOptions({"select"})],
        "rho": [Interval(Real, 0, np.inf, closed="right"), StrOptions({"select"})],
        "steps": [Interval(Integral, 0, None, closed="left"), StrOptions({"select"})],
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "n_resample": [Interval(Integral, 1, None, closed="left")],
        "n_splits": [Interval(Integral, 1, None, closed="left")],
        "holdout": [Interval(Real, 0, 1, closed="neither")],
        "n_pairs": [Interval(Integral, 2, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), str, None],
        "random_state": ["random_state"],
    }

    kernels_: list[Any] | None
    rates_: Rates | None
    statistic_: Statistic | None
    setting_: Setting | None
    selection_: list[Judged]
    diagnostics_: dict[str, float]
    _kernel: ShapedKernel | None
    _factors: Floats | None

    def __init__(
        self,
        kernels: Any = None,
        *,
        method: str = "lkcnpc",
        reliability: Any = None,
        prior: float | None = None,
        lam: float | None = None,
        correction: str = "noise",
        fit_intercept: bool = False,
        shape: str = "diag",
        gamma: Any = "select",
        alpha: Any = "select",
        rho: Any = "select",
        steps: Any = "select",
        n_clusters: int | None = None,
        n_resample: int = 8,
        n_splits: int = 3,
        holdout: float = 0.2,
        n_pairs: int | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        memory_limit: float | str | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernels = kernels
        self.method = method
        self.reliability = reliability
        self.prior = prior
        self.lam = lam
        self.correction = correction
        self.fit_intercept = fit_intercept
        self.shape = shape
        self.gamma = gamma
        self.alpha = alpha
        self.rho = rho
        self.steps = steps
        self.n_clusters = n_clusters
        self.n_resample = n_resample
        self.n_splits = n_splits
        self.holdout = holdout
        self.n_pairs = n_pairs
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, pairs: Any = None, labels: Any = None) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows that the pairs join. Of a Dask table ``lkcnpc`` takes the rows that occur in
            pairs and looks at no others; ``shrink`` fetches it.
        y : array of shape (n_samples,), optional
            Classes, from which pairs are drawn where none are given.
        pairs : array of shape (n_pairs, 2), optional
            Row numbers.
        labels : array of shape (n_pairs,), optional
            +1 for same and -1 for different. With ``method="shrink"`` None means that all pairs
            are same, and different ones are drawn.

        Returns
        -------
        self : PairwiseKernelLearner
            The fitted estimator.
        """
        with one_thread(), quiet_overflow():
            method = METHODS[self.method](self)
            X = check_table(self, X, reset=True, parts=method.in_parts, finite=not method.in_parts)
            self._factors, self._kernel = None, None
            model = method.fit(X, *method.pairs(y, pairs, labels, X.shape[0]))
        if not (np.isfinite(model.weights).all() and np.isfinite(model.intercept)):
            raise InputError(
                f"{type(self).__name__}: values are too large, so that weights overflow. Hint: "
                "rescale the columns."
            )
        vars(self).update({f"{name}_": value for name, value in vars(model).items()})
        return self

    def _prepared(self, X: Any) -> Any:
        """Return rows as the learned kernel takes them."""
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        return X if self.kernels_ is not None else self._numbers(X)

    def _numbers(self, X: Any) -> Any:
        """Return columns as numbers, scaled as in the fit."""
        X = as_numbers(X)
        return X if self._factors is None else scale_rows(X, self._factors)

    def _values(self, rows: Any, pairs: Indices) -> Any:
        """Return kernel values at pairs of rows."""
        rows = rows if self.kernels_ is not None else self._numbers(rows)
        return pair_values(rows, pairs, self.kernels_, self.memory_limit)

    @by_parts
    def transform(self, X: Any) -> Any:
        """Return features whose inner products are the learned kernel.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows; for ``shape="graph"`` those of `fit`. The features of a Dask table are a lazy
            Dask array.

        Returns
        -------
        Z : array or sparse matrix of shape (n_samples, n_components)
            Columns times the roots of their weights, or what the shape makes of them.
        """
        rows = self._prepared(X)
        if self.kernels_ is not None:
            raise InputError("transform: only for kernels=None; use kernel(X, Y) otherwise.")
        if self._kernel is None:
            return ShapedKernel("diag", rows, self.weights_).features(rows)
        self._refuse_new(rows)
        return self._kernel.features(rows)

    def _refuse_new(self, rows: Any) -> None:
        if self._kernel is not None and self._kernel.shape == "graph":
            known = self._kernel.X
            same = rows.shape == known.shape and abs(rows - known).max() <= 1e-12
            if not same:
                raise InputError(
                    "X: with shape='graph' links are part of the kernel, so only the rows of fit "
                    "are known. Hint: use shape='words'."
                )

    def kernel(self, X: Any, Y: Any = None) -> Floats:
        """Return the learned kernel between the rows of ``X`` and of ``Y``.

        Parameters
        ----------
        X : array, sparse matrix or data frame
            Rows like those of the training data; a Dask table is fetched.
        Y : array, sparse matrix or data frame, optional
            Rows of the other side; ``X`` by default.

        Returns
        -------
        block : ndarray of shape (n_rows of X, n_rows of Y)
            ``sum_j weights_j k_j``.
        """
        X, Y = fetch(X), fetch(Y)
        if self.__sklearn_is_fitted__() and self.kernels_ is not None:
            A = self._prepared(X)
            B = A if Y is None else self._prepared(Y)
            used = np.flatnonzero(self.weights_)
            out = np.zeros((A.shape[0], B.shape[0]))
            for j in used:
                out += self.weights_[j] * self.kernels_[j](A, B)
            return out
        A = self.transform(X)
        B = A if Y is None else self.transform(Y)
        product = A @ B.T
        return np.asarray(product.toarray() if hasattr(product, "toarray") else product)

    def operator(self, X: Any) -> LinearOperator:
        """Return the learned kernel between the rows of ``X``, to be multiplied with.

        Parameters
        ----------
        X : array, sparse matrix or data frame
            Rows; for shapes other than ``diag`` those of `fit`. A Dask table is fetched.

        Returns
        -------
        operator : LinearOperator of shape (n_samples, n_samples)
            What `KernelSpectralClustering` takes with ``affinity="precomputed"``.
        """
        X = fetch(X)
        rows = self._prepared(X)
        if self.kernels_ is not None:
            from scipy.sparse.linalg import aslinearoperator

            return aslinearoperator(self.kernel(X))
        if self._kernel is None or self._kernel.shape == "diag":
            return ShapedKernel("diag", rows, self.weights_).operator()
        if self._kernel.shape == "graph":
            self._refuse_new(rows)
            return self._kernel.operator()
        Z = self._kernel.features(rows)
        n = rows.shape[0]
        return LinearOperator((n, n), matvec=lambda v: Z @ (Z.T @ np.ravel(v)), dtype=np.float64)

    def score_pairs(self, X: Any, pairs: Any) -> Floats:
        """Return how similar the rows of every pair are by the learned weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows; of a Dask table those that occur in pairs are taken.
        pairs : array of shape (n_pairs, 2)
            Row numbers.

        Returns
        -------
        scores : ndarray of shape (n_pairs,)
            ``sum_j weights_j k_j``; larger means rather same.
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False, parts=True, finite=False)
        return self._scores(X, check_rows(pairs, X.shape[0]))

    def _scores(self, X: Any, pairs: Indices) -> Floats:
        rows, pairs, index = paired_rows(X, pairs, self.memory_limit)
        with numbering(index):
            return np.asarray(self._values(rows, pairs) @ self.weights_).ravel()

    def predict_pairs(self, X: Any, pairs: Any) -> Indices:
        """Tell for new pairs whether they belong together.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows; of a Dask table those that occur in pairs are taken.
        pairs : array of shape (n_pairs, 2)
            Row numbers.

        Returns
        -------
        labels : ndarray of shape (n_pairs,)
            +1 for same and -1 for different.
        """
        return np.where(self.score_pairs(X, pairs) >= self.threshold_, 1, -1)

    def score(self, X: Any, y: Any = None, *, pairs: Any = None, labels: Any = None) -> float:
        """Return the area under the ROC curve of the pair scores.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows; of a Dask table those that occur in pairs are taken.
        y : array of shape (n_samples,), optional
            Classes, from which pairs are drawn where none are given.
        pairs, labels : arrays, optional
            Pairs and what is true of them.

        Returns
        -------
        area : float
            1 where every same pair scores above every different one.
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False, parts=True, finite=False)
        if pairs is None:
            pairs, labels = METHODS[self.method](self).pairs(y, None, None, X.shape[0])
        pairs, signs = check_pairs(pairs, labels, X.shape[0])
        return float(roc_auc_score(signs, self._scores(X, pairs)))

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the kernels or columns, heaviest first.

        Returns
        -------
        frame : pandas.DataFrame
            ``kernel`` and ``weight``.
        """
        check_is_fitted(self)
        import pandas as pd

        if self.kernels_ is not None:
            names = [str(kernel) for kernel in self.kernels_]
        else:
            names = list(
                getattr(
                    self, "feature_names_in_", [f"column {j}" for j in range(len(self.weights_))]
                )
            )
        frame = pd.DataFrame({"kernel": names, "weight": self.weights_})
        return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)

    @property
    def _n_features_out(self) -> int:
        kernel = self._kernel
        if kernel is not None and kernel.shape == "words":
            return int(kernel.X.shape[0])
        return len(self.weights_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        """Return names of what `transform` returns.

        Parameters
        ----------
        input_features : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        names : ndarray of str
            As many as there are columns.
        """
        check_is_fitted(self)
        return np.array([f"weighted{j}" for j in range(self._n_features_out)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = False
        return tags
