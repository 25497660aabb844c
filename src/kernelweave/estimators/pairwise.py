"""Kernel weights from pairs that belong together or apart, some of them labelled wrongly."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from kernelweave._declaration import Declaration
from kernelweave._summary import NotebookSummary
from kernelweave._threads import one_thread
from kernelweave._validation import (
    Interval,
    StrOptions,
    check_table,
    fit_context,
)
from kernelweave.errors import InputError
from kernelweave.pairs import Rates, Statistic, check_pairs
from kernelweave.pairs.shapes import SHAPES
from kernelweave.pairs.shrink import Assessment, Setting

from .fit import quiet_overflow
from .given_kernels import CONSTRAINTS, GivenKernels
from .pairwise_kernel import PairKernel
from .pairwise_methods import METHODS
from .shared_docs import shared_attributes

if TYPE_CHECKING:
    import pandas as pd

_OPTION = [Interval(Real, 0, None, closed="left"), StrOptions({"select"})]


@shared_attributes()
@dataclass(eq=False, repr=False)
class PairwiseKernelLearner(GivenKernels, PairKernel, NotebookSummary, BaseEstimator):
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
        Share of truly same pairs among all; None: it follows from ``reliability``.
    lam : float or None, default=None
        Strength of the penalty; None is ``0.01 / n_pairs``, as published.
    correction : {"noise", "nonneg", "naive"}, default="noise"
        Correct the statistic; correct it and keep means of nonnegative kernels nonnegative; or
        take the labels as true.
    fit_intercept : bool or "auto", default="auto"
        Whether to add a free bias (``lkcnpc``; ``shrink`` always has one). "auto" adds it where
        less than a quarter of the given pairs are of one kind.
    shape : {"diag", "words", "graph", "auto"}, default="diag"
        Kernel of ``shrink``: one weight per column; columns that interact through the links;
        columns smoothed along the links, so that links are part of the kernel. "auto" chooses
        between the first two.
    gamma : float or "select", default="select"
        Power of the idf that multiplies every column (``shrink``); 0 leaves it out.
    alpha : float or "select", default="select"
        Probability that a walk along the links stops after a step (``shrink``); at 1 the links
        themselves are learned from.
    rho : float or "select", default="select"
        Shrinkage towards equal weights, which infinity gives (``shrink``).
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
        Maximum number of Newton steps.
    memory_limit : number of bytes, str such as "8GB", or None, default=None
        For kernel values of pairs, beyond which ``lkcnpc`` uses a temporary file; for products of
        columns, beyond which ``shrink`` is refused; and for rows of a Dask table. None: half of the
        free memory.
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
        The equal weight that ``shrink`` shrinks to; otherwise 0.
    threshold_ : float
        Score from which `predict_pairs` returns "same": where less than a quarter of the given
        pairs are of one kind, the score at which both are equally likely, from a curve that
        allows for wrong labels; otherwise that of the best balanced accuracy on the training pairs.
    rates_ : Rates or None
        The rates that were used.
    statistic_ : Statistic or None
        Means over same and different pairs (``lkcnpc``).
    diagnostics_ : dict
        Share of columns with impossible means, condition of the noise matrix, constants of the
        error bounds.
    selection_ : list of Assessment
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

    kernels: Any = None
    _: KW_ONLY
    missing: str | None = None
    method: str = "lkcnpc"
    reliability: Any = None
    prior: float | None = None
    lam: float | None = None
    correction: str = "noise"
    fit_intercept: bool | str = "auto"
    shape: str = "diag"
    gamma: Any = "select"
    alpha: Any = "select"
    rho: Any = "select"
    steps: Any = "select"
    n_clusters: int | None = None
    n_resample: int = 8
    n_splits: int = 3
    holdout: float = 0.2
    n_pairs: int | None = None
    tol: float = 1e-8
    max_iter: int = 200
    memory_limit: float | str | None = None
    random_state: Any = None

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
        **CONSTRAINTS,
        "method": [StrOptions({"lkcnpc", "shrink"})],
        "reliability": "no_validation",  # checked with the sentence it deserves
        "prior": [Real, None],
        "lam": [Interval(Real, 0, None, closed="neither"), None],
        "correction": [StrOptions({"noise", "nonneg", "naive"})],
        "fit_intercept": ["boolean", StrOptions({"auto"})],
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

    rates_: Rates | None = field(init=False)
    statistic_: Statistic | None = field(init=False)
    setting_: Setting | None = field(init=False)
    selection_: list[Assessment] = field(init=False)
    diagnostics_: dict[str, float] = field(init=False)

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
        self.__dict__.update({f"{name}_": value for name, value in vars(model).items()})
        return self

    def _default_kernels(self) -> None:
        return None  # columns are compared one by one

    def _takes_gaps(self) -> bool:
        return self.kernels is not None and super()._takes_gaps()

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

        names: Any = self.kernels_
        if names is None:
            numbered = [f"column {j}" for j in range(len(self.weights_))]
            names = getattr(self, "feature_names_in_", numbered)
        frame = pd.DataFrame({"kernel": list(map(str, names)), "weight": self.weights_})
        return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags
