"""Multiple kernel learning from noisy labels by a worst case over their weights (StPMKL)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import product
from numbers import Real
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from kernelweave._dask import by_parts, gather
from kernelweave._types import Floats
from kernelweave._validation import Interval, StrOptions, fit_context
from kernelweave.banks import KernelBank
from kernelweave.banks.protocol import Bank
from kernelweave.errors import warn
from kernelweave.kernels import Constant
from kernelweave.losses import CVaRHinge, Hinge
from kernelweave.noise import LabelReport, assess_labels, assess_rows
from kernelweave.solvers import (
    Callback,
    Limits,
    Problem,
    Result,
    WarmStart,
    gradient_play,
    learn_weights,
    mirror_prox,
    trimmed,
)
from kernelweave.solvers.mirror_prox import GameOptions
from kernelweave.weights import Simplex

from .classifier import KernelClassifier
from .duplicates import MergedRows
from .fit import RefinableBank, check_costs
from .label_quality import LabelQuality
from .noisy_rows import (
    AssessedRows,
    NoisyFolds,
    caps_by_class,
    class_codes,
    multiplied,
    row_weights,
    split_bias,
    weight_sum,
    without_last,
)
from .shared_docs import BOUNDS, CALIBRATED, CLASSES, NYSTROEM, SUPPORT, WEIGHTS, shared_attributes
from .targets import Targets

_DEFAULT_NOISE = 0.2
_IDLE = 1e-9  # multiplier of an inactive cap: rounding
_NOTHING = 1e-10  # gamma from which the function is zero
_INHERITED = """kernels missing normalize tol max_iter fit_intercept class_weight calibration
calibration_cv memory_limit n_jobs verbose""".split()


@shared_attributes(WEIGHTS, NYSTROEM, BOUNDS, SUPPORT, CLASSES, CALIBRATED)
@dataclass(eq=False, repr=False)
class NoisyLabelMKLClassifier(LabelQuality, NoisyFolds, KernelClassifier):
    """Multiple kernel learning when a known share of the labels is wrong (StPMKL).

    Minimises over functions ``f = sum_j f_j``, one per kernel, and maximises over the unknown
    weights of the losses

    ``lam/2 (sum_j |f_j|)^2 + 1/n sum_i alpha_i (1 - y_i f(x_i))``

    with ``0 <= alpha_i <= 1 + slack`` and ``sum_i alpha_i <= n (cap + slack)``: the loss of the
    fraction `cap` of the rows that fit worst, their conditional value at risk. The classifier is
    always one that `MKLClassifier` gives for another C, up to the scale of its values, so that the
    cap chooses the regularisation rather than another kind of model. Where accuracy under wrong
    labels matters, try `NoiseTolerantKernelClassifier`.

    With large n, kernels on many columns are computed on demand. With two classes, others are
    replaced by Nystroem features (see `MKLClassifier`), and the rows of a Dask table stay where
    they are. Other options fetch all rows.

    Parameters
    ----------
    kernels : Kernel, KernelFamily, list of both, or None
        What to combine, as in `MKLClassifier`.
    noise_level : float in [0, 0.5) or "auto"
        Expected share of wrong labels; "auto" estimates it from the data.
    lam : float
        Weight of the squared norm; C of an SVM is ``1 / (n lam)``.
    cap : float in (0, 1] or None
        Share of the rows that count; 1 is multiple kernel learning without a cap. None: one less
        the noise level (with more than two classes, less the share of rows with a wrong membership
        of a class).
    slack : float
        By how much a loss may count beyond its probability, the constant of a chance constraint.
    uncertainty : {"relaxed", "exact"}
        With `slack`: the published set above, or the one it relaxes, in which the cap applies to
        weights beyond the slack.
    robust : {"worst", "best"}
        Keep the rows that fit worst, or (MiPMKL) leave them out; the latter is not convex.
    solver : {"fast", "paper", "vi"}
        Bundle steps (mirror prox with restarts for the exact set), the published accelerated mirror
        prox, or subgradient steps for the variational inequality.
    normalize : {"trace", "diagonal", "cosine", "radius"} or None
        What is made one before weights are learned: the mean diagonal (both of the first two),
        every diagonal entry, the radius of the smallest ball around the rows, or nothing.
    tol : float
        Duality gap to stop at, at least 1e-9, relative to the part of the objective that depends on
        the classifier: a cap adds a constant.
    max_iter : int
        Maximum number of inner SVM solves, or of steps of a first-order method.
    fit_intercept : bool
        Whether to add a constant kernel as a bias. It has a weight and counts in the norm.
    class_weight : dict, "balanced" or None
        Factors of the losses by class.
    calibration : {"auto", "sigmoid", "matrix", "vector", "temperature", "isotonic"} or None
        How decisions become probabilities of the given labels, as in `MKLClassifier`.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Weight of every (normalised) kernel; with `bias_weight_` they sum to one.
    bias_weight_ : float
        Weight of the constant kernel.
    noise_level_ : float
        The level used, or the estimate.
    cap_ : ndarray of shape (n_outputs,)
        Share of the rows that count.
    gamma_ : float or ndarray of shape (n_outputs,)
        One less the multiplier of the cap; 1 where the cap is inactive. With two classes
        ``decision_function / gamma_`` is the solution without a cap at ``lam gamma_``, with margins
        in the usual units.
    dual_weights_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The worst-case weight of every loss.
    label_quality_ : ndarray of shape (n_samples,)
        Estimated probability that a label is right, from leave-one-out values of ridge regression
        on the average kernel. NaN for rows of weight zero, whose labels are not assessed.
    duality_gap_ : float
        No model has an objective smaller than ``objective_ - duality_gap_``; infinite for
        ``robust="best"``.
    converged_ : bool
        Whether the gap met `tol`, or the alternation ended.
    n_iter_ : int
        Number of inner SVM solves, or of steps.
    dual_coef_ : ndarray of shape (n_outputs, n_support)
        Their signed coefficients; with more than two classes divided by `gamma_`, so that the
        values of different classes can be compared.
    intercept_ : ndarray of shape (n_outputs,)
        What the constant kernel adds.

    References
    ----------
    Yang, Mahdavi, Jin, Zhang and Zhou (2012), Multiple kernel learning from noisy labels by
    stochastic programming, ICML, problems (10) and (11), Algorithm 1.

    Examples
    --------
    >>> from kernelweave import NoisyLabelMKLClassifier
    >>> from kernelweave.datasets import make_views
    >>> data = make_views(120, random_state=0)
    >>> model = NoisyLabelMKLClassifier(noise_level=0.3, lam=0.05).fit(data.X, data.y)
    >>> bool(model.converged_), model.cap_
    (True, array([0.7]))
    """

    kernels: Any = None
    _: KW_ONLY
    missing: str | None = None
    noise_level: float | str = _DEFAULT_NOISE
    lam: float = 0.01
    cap: float | None = None
    slack: float = 0.0
    uncertainty: str = "relaxed"
    robust: str = "worst"
    solver: str = "fast"
    normalize: str | None = "trace"
    tol: float = 1e-3
    max_iter: int = 1000
    fit_intercept: bool = True
    class_weight: dict[Any, float] | str | None = None
    calibration: str | None = None
    calibration_cv: Any = None
    memory_limit: float | str | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _declaration = KernelClassifier._declaration.extended(
        {
            "bias_weight_": "real",
            "noise_level_": "real",
            "cap_": "float[outputs]",
            "gamma_": "float[outputs?]",
            "dual_weights_": "float[rows, outputs?]",
            "label_quality_": "quality[rows]",
            "_given": "codes[rows]",
            "_suggested": "codes[rows]",
            "_by_size": "order[classes]",
        },
        aspects=("kernels", "labels"),
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: KernelClassifier._parameter_constraints[name] for name in _INHERITED},
        "noise_level": [Interval(Real, 0, 0.5, closed="left"), StrOptions({"auto"})],
        "lam": [Interval(Real, 0, None, closed="neither")],
        "cap": [Interval(Real, 0, 1, closed="right"), None],
        "slack": [Interval(Real, 0, None, closed="left")],
        "uncertainty": [StrOptions({"relaxed", "exact"})],
        "robust": [StrOptions({"worst", "best"})],
        "solver": [StrOptions({"fast", "paper", "vi"})],
    }
    _takes_features = True
    _adds_passes = True  # to estimate which labels are wrong
    warm_start = False
    C = 1.0  # of the base class; costs are 1 / (n lam) here

    @fit_context(prefer_skip_nested_validation=True)
    def fit_path(
        self,
        X: Any,
        y: Any,
        lams: Iterable[float],
        caps: Iterable[float] | None = None,
        sample_weight: Any = None,
    ) -> list[Self]:
        """Fit for every pair of a `lam` and a `cap`, sharing kernels.

        Where a cap is active, all larger values of `lam` give the same classifier up to a factor;
        elsewhere the classifier is that without a cap. Starts from neighbours make use of this, so
        that a grid costs about as many solutions as it has rows and columns.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Class labels.
        lams : iterable of float
            Values of `lam`, in any order.
        caps : iterable of float, optional
            Values of `cap`; None: that of this estimator.
        sample_weight : array of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        models : list
            A fitted estimator for every pair, all caps of the first `lam` first.
        """
        grid: dict[str, list[float]] = {"lam": check_costs(lams, "lams")}
        if caps is not None:
            grid["cap"] = check_costs(caps, "caps", 1.0)
        X, targets = self._targets(X, y, sample_weight)
        models = [
            self._copy(**dict(zip(grid, values, strict=True))) for values in product(*grid.values())
        ]
        self._fit_models(sorted(models, key=lambda m: (m.lam, -(m.cap or 0.0))), X, targets)
        return models

    def _merge(self, X: Any, targets: Targets) -> MergedRows:
        parts = self._may_use_features(targets.Y, targets.weight)
        return super()._merge(X if parts else gather(X), targets)

    def _prepare(self, rows: MergedRows, targets: Targets, models: list[Self]) -> AssessedRows:
        C = 1.0 / (weight_sum(rows) * min(m.lam for m in models))
        # The error of factors is multiplied by the C at which a cap begins to bind.
        bank = RefinableBank(lambda C: self._bank(rows, C), C, factors=self.robust == "worst")
        return AssessedRows(bank, self._assess_labels(bank.bank, rows), class_codes(targets.Y))

    def _start(self, shared: AssessedRows, rows: MergedRows, last: Any) -> WarmStart | None:
        self._set_caps(shared.labels.noise_level, rows)
        return shared.nearest(self)

    def _learn(
        self, shared: AssessedRows, rows: MergedRows, start: WarmStart | None, report: Callback
    ) -> Result:
        search = partial(self._search, rows=rows, report=report)
        return shared.refinable.solve(search, start, self.tol)

    def _assess_labels(self, bank: Bank, rows: MergedRows) -> LabelReport:
        plain, codes = without_last(bank) if self.fit_intercept else bank, class_codes(rows.Y)
        if bank.n_features is None and bank.workspace is None:
            return assess_labels(cast(KernelBank, plain), codes, len(self.classes_))
        return assess_rows(plain.kernels, rows.X, codes, len(self.classes_))

    def _has_inner_solver(self) -> bool:
        """Return whether the problem is solved by steps with SVMs, not by a first-order method."""
        exact = self.uncertainty == "exact" and self.slack > 0
        return self.robust == "best" or (self.solver == "fast" and not exact)

    def _on_demand(self) -> Literal["parts"] | None:
        return "parts" if self._has_inner_solver() else None

    def _may_use_features(self, Y: Floats, weight: Floats | None) -> bool:
        """Return whether Nystroem features are allowed, and Dask tables stay in their parts."""
        fast = self.robust == "worst" and self._has_inner_solver()
        return fast and Y.shape[1] == 1 and (weight is None or bool((weight > 0).all()))

    def _bank(self, rows: MergedRows, C: float) -> Bank:
        kernels = self._expand_kernels(rows.X, rows.weight)
        if self.fit_intercept:
            kernels = [*kernels, Constant()]
        features = self._may_use_features(rows.Y, rows.weight)
        return self._make_bank(kernels, rows, C, centred=False, features=features)

    def _n_combined(self) -> int:
        return 4  # the solver of a capped loss also needs a signed copy

    def _set_caps(self, estimate: float, rows: MergedRows) -> None:
        """Set the noise level, and the share of the rows that count for each output."""
        auto = self.noise_level == "auto"
        self.noise_level_ = float(min(estimate, 0.49) if auto else self.noise_level)
        n_outputs = rows.Y.shape[1]
        if self.cap is not None:
            self.cap_ = np.full(n_outputs, float(self.cap))
            level = self.noise_level
            if level not in ("auto", _DEFAULT_NOISE) and abs(self.cap - (1.0 - level)) > 1e-9:  # type: ignore[operator]
                warn(f"cap={self.cap:g} and noise_level={level:g} disagree; the cap is used.")
            return
        self.cap_ = caps_by_class(self.noise_level_, rows)

    def _make_loss(self) -> CVaRHinge:
        box = 1.0 + self.slack
        if self.uncertainty == "exact":
            return CVaRHinge(tuple(self.cap_), free=self.slack / box)
        return CVaRHinge(tuple(np.minimum((self.cap_ + self.slack) / box, 1.0)))

    def _box(self, rows: MergedRows) -> Floats:
        """Return the largest weight of every loss."""
        return np.asarray(rows.cost * (1.0 + self.slack) / weight_sum(rows))

    def _search(
        self, bank: Bank, rows: MergedRows, start: WarmStart | None, report: Callback | None
    ) -> Result:
        lam, n = self.lam, float(len(rows.Y))  # n for first-order methods, whatever the weights
        limits = Limits(self.tol, self.max_iter, report)
        if self.robust == "best":
            cost = rows.cost / (weight_sum(rows) * lam)
            problem = Problem(bank, rows.Y, cost, Hinge(fit_intercept=False), Simplex())
            return trimmed(problem, limits, float(self.cap_.min()))
        loss = self._make_loss()
        problem = Problem(bank, rows.Y, self._box(rows) / lam, loss, Simplex())
        if self.solver == "fast" and loss.free == 0.0:
            return learn_weights(problem, limits, start)
        if self.solver == "vi":
            return gradient_play(problem, limits, GameOptions(lam, n))
        return mirror_prox(problem, limits, GameOptions(lam, n, restarts=self.solver == "fast"))

    def _store(self, shared: AssessedRows, result: Result, rows: MergedRows) -> None:
        bank, weight = shared.bank, row_weights(rows)
        shared.add(self, result)
        if result.function is None:
            fitted = bank.combine(result.weights).exact_product(result.dual_coef)
        else:
            fitted = bank.values(result.function)
        gamma = np.ones(rows.Y.shape[1])
        if self.robust == "worst":  # the multiplier of a cap is a threshold of the losses
            limits = self._make_loss().thresholds(fitted, rows.Y, rows.cost)
            gamma -= np.where(limits < _IDLE, 0.0, np.minimum(limits, 1.0))
        self.gamma_ = float(gamma[0]) if len(gamma) == 1 else gamma
        alpha = weight_sum(rows) * self.lam * np.abs(result.dual_coef) / weight[:, None]
        alpha = np.where(rows.inverse[:, None] >= 0, alpha[rows.inverse], 0.0)
        self.dual_weights_ = alpha[:, 0] if alpha.shape[1] == 1 else alpha
        result = self._compare_with_zero(result, fitted, gamma, rows)
        if len(gamma) > 1:  # values of different classes are compared, so in the same units
            dual_coef = np.where(
                gamma > _NOTHING, result.dual_coef / np.maximum(gamma, _NOTHING), 0.0
            )
            result = replace(result, dual_coef=dual_coef)
        self.bias_weight_ = 0.0
        if self.fit_intercept:
            self.bias_weight_ = float(result.weights[-1])
            bank, result = split_bias(bank, result)
        balance = weight @ rows.Y
        sizes = np.array([-balance[0], balance[0]]) if len(balance) == 1 else balance
        self._by_size = np.argsort(-sizes, kind="stable")
        self._store_model(bank, multiplied(result, self.lam), rows)
        labels, codes = shared.labels, shared.codes
        used = rows.inverse >= 0  # labels of rows without weight are not assessed
        self.label_quality_ = np.where(used, labels.label_quality[rows.inverse], np.nan)
        self._given = codes
        self._suggested = np.where(used, labels.suggested[rows.inverse], codes)

    def _compare_with_zero(
        self, result: Result, fitted: Floats, gamma: Floats, rows: MergedRows
    ) -> Result:
        """Return the result, or that of the zero function where it is as good or better."""
        zero = result.converged and (gamma.max() <= _NOTHING or not fitted.any())
        if self.robust == "worst":
            cost = self._box(rows) / self.lam
            loss, _ = self._make_loss().value(np.zeros_like(fitted), rows.Y, cost)
            near = loss - result.lower_bound <= self.tol * result.size or not fitted.any()
            zero = (zero and near) or loss < result.objective
            if zero:  # the objective is that of the function returned
                result = replace(
                    result,
                    objective=loss if fitted.any() else max(result.objective, loss),
                    lower_bound=min(result.lower_bound, loss),
                )
        if not zero:
            return result
        if result.converged:
            warn(
                f"{type(self).__name__}: with cap={self.cap_.min():g} the best function is "
                "zero, and the larger class is predicted everywhere. Hint: raise cap, or use "
                "other kernels if they are all constant."
            )
        function = None if result.function is None else np.zeros_like(result.function)
        return replace(result, dual_coef=np.zeros_like(result.dual_coef), function=function)

    @by_parts
    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the predicted class of every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Class labels; ties go to the larger class.
        """
        decision = self._decide(X)
        if decision.shape[1] == 1:
            decision = np.column_stack([-decision, decision])
        # argmax takes the first of equal values, so the larger class comes first.
        codes = self._by_size[decision[:, self._by_size].argmax(axis=1)]
        return np.asarray(self.classes_[codes])
