"""A classifier for training labels some of which are wrong."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import softmax

from kernelweave._dask import by_parts
from kernelweave._threads import threads
from kernelweave._types import Bools, Floats, Indices
from kernelweave._validation import (
    N_JOBS,
    Interval,
    StrOptions,
    check_labels,
    check_table,
    fit_context,
)
from kernelweave.banks import KernelBank
from kernelweave.errors import InputError, warn
from kernelweave.inner import solve_inner
from kernelweave.losses import Hinge
from kernelweave.noise.correct import Correction, correct_many, correct_two
from kernelweave.noise.decisions import merge_known
from kernelweave.noise.estimate import level_of_scores
from kernelweave.noise.report import label_targets
from kernelweave.ridge import RidgeAverage

from .classifier import BaseClassifier
from .fit import quiet_overflow
from .given_kernels import CONSTRAINTS
from .ridge_average import AVERAGE, FittedAverage, RidgeAverageClassifier
from .shared_docs import CLASSES, WEIGHTS, shared_attributes
from .targets import encode_labels, read_rates, refuse_one_class, require_target

_POWER = 2  # better than 1 on the development sets of the experiment, at every share of noise
_SVM_COST, _SVM_TOL = 3.0, 1e-4  # of the final SVM
_SHIFTS = {"class": 1.0, "symmetric": 0.0}  # "auto" is a parameter


@shared_attributes(WEIGHTS, CLASSES)
@dataclass(eq=False, repr=False)
class NoiseTolerantKernelClassifier(RidgeAverageClassifier):
    """Average of kernel ridge classifiers whose threshold is corrected for wrong labels.

    With every kernel and 16 ridges a model ``f(x) = sum_i beta_i k(x, x_i) + b`` is fitted to the
    labels with the square loss and the penalty ``ridge^2 |beta|^2``. Along an eigenvector of the
    centred kernel with eigenvalue d it fits the share ``d^2 / (d^2 + ridge^2)`` of the labels,
    which shrinks small eigenvalues more than the ``d / (d + ridge)`` of kernel ridge regression.
    One eigendecomposition per kernel gives the leave-one-out values of all models in closed form;
    they weight the average. Their range gives the rates of wrong labels of two classes, and the
    threshold: for the square loss, moving it equals the unbiased loss for these rates. The same
    values rank the training labels by how wrong they look. Nothing is iterative.

    It helps when 30 % or more of the labels are wrong, or when one class has more wrong labels than
    the other. Compare with `kernelweave.baselines.BalancedKernelSVM`, which also copes with the
    latter; expect no gain for symmetric noise of 20 % or less. Accuracy can fall where classes
    overlap and one is rare, because overlap looks like noise.

    From 5000 rows on (from 2000, where memory is short) each kernel has a Nystroem approximation
    with up to 500 landmarks, and rows are read in blocks, so that memory hardly grows with n. A
    Dask table is read in its parts, and gives the same model to the last bit; few rows,
    `Precomputed` kernels and ``final="svm"`` are fetched.

    There is no ``sample_weight``: rates of wrong labels are shares of rows, and a row that counts
    twice would vouch for itself when it is left out once. Use `MKLClassifier` or
    `NoisyLabelMKLClassifier` where rows must count differently.

    Columns of numbers are taken as they are: put scikit-learn's `StandardScaler` in front in a
    pipeline. Frames with other columns, too, are encoded.

    Parameters
    ----------
    mode : {"auto", "class", "symmetric"}
        Of two classes, "auto" moves the threshold by the share `shift` of the estimated correction,
        "class" fully, with a second fit to expected true labels (for noise that is known to hit one
        class harder; where less than a quarter of the labels are of a class, it warns if no row is
        surely of it, and moves nothing, or if few rows are, and does as "auto"), "symmetric" not
        at all. Of more classes, "symmetric" omits
        the second fit, and "class" divides calibrated probabilities by the shares of the labels:
        for classes that are about equally frequent, but labelled unequally often.
    rates : pair of float, or array of shape (n_classes, n_classes), optional
        Known rates: for two classes the shares of ``classes_[0]`` and of ``classes_[1]`` that carry
        the other label; or a matrix whose row c holds the probabilities of the observed labels of
        class c.
    class_prior : float, optional
        Known share of ``classes_[1]`` among the true labels of two classes; sets the threshold.
    shift : float
        Between 0 and 1; see `mode`. Small values suit classes that overlap and of which one is
        rare, large ones noise that may hit one class harder.
    tail : float
        Share of the examples beyond each end of the range of scores.
    average : {"models", "kernels"}
        "kernels" averages the kernels first: one eigendecomposition instead of one per kernel.
    final : {"ridge", "svm"}
        "svm" ends with an SVM on the weighted kernels, fitted to expected true labels; with
        ``mode="class"`` only.
    verbose : int
        1 reports each kernel, or each pass over the rows.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Share of every (normalised) kernel in the average; 0 for constant kernels and for copies of
        earlier ones.
    contributions_ : ndarray of shape (n_kernels,)
        Share of each kernel in the sum of the variances, over the training rows, of what the
        kernels add to the decision function.
    dual_coef_ : ndarray of shape (n_kernels, n_outputs, n_support)
        Coefficients of each normalised kernel: the decision function is
        ``sum_j scales_j k_j(x, rows) @ dual_coef_[j].T + intercept_``.
    intercept_ : ndarray of shape (n_outputs,)
        Biases; the threshold is already taken off.
    threshold_ : float
        Score, on the scale of `loo_scores_`, from which on ``classes_[1]`` is predicted; 0 for more
        than two classes.
    rates_ : ndarray of shape (2,) or (n_classes, n_classes)
        Estimated (or given) rates, two classes: of ``classes_[0]`` and of ``classes_[1]``.
    noise_level_ : float
        Mean of `wrong_label_probability_`. Too high where classes overlap, up to half too low where
        they are easy to separate, and far too low where people make the same mistake on the same
        kind of row, which no method can see from the columns.
    counted_noise_level_ : float
        The same by counts of rows that confidently belong to another class, as in `estimate_noise`:
        nearer where classes are easy to separate or people make the same mistake, too high where
        classes overlap. Where the two differ, neither is to be trusted.
    label_quality_ : ndarray of shape (n_samples,)
        Between 0 and 1, strictly increasing in the leave-one-out margin; small for suspects.
    wrong_label_probability_ : ndarray of shape (n_samples,)
        Estimated probability that each training label is wrong; of more than two classes in the
        order of `label_quality_`.
    loo_scores_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Averaged leave-one-out values.
    objective_ : float
        The same.
    duality_gap_ : float
        Not a number: nothing is optimised.
    converged_ : bool
        True.
    n_iter_ : int
        1.
    history_ : list
        Empty.

    References
    ----------
    Natarajan, Dhillon, Ravikumar and Tewari (2013), Learning with noisy labels, NIPS 26, lemma 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import NoiseTolerantKernelClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = rng.normal(size=(300, 2)) + 3 * y[:, None]
    >>> noisy = np.where(rng.random(300) < 0.3 * y, 0, y)  # 30 % of the ones say zero
    >>> model = NoiseTolerantKernelClassifier(mode="class").fit(X, noisy)
    >>> bool(model.score(X, y) > 0.95), model.rates_.round(1)
    (True, array([0. , 0.3]))
    """

    kernels: Any = None
    _: KW_ONLY
    missing: str | None = None
    mode: str = "auto"
    rates: Any = None
    class_prior: float | None = None
    shift: float = 0.7
    temperature: float = 4.0
    floor: float = 0.5
    tail: float = 0.05
    ridges: Any = None
    average: str = "models"
    final: str = "ridge"
    memory_limit: float | str | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _declaration = BaseClassifier._declaration.extended(
        {
            **AVERAGE,
            "threshold_": "real",
            "rates_": "float[classes, classes?]",
            "noise_level_": "real",
            "wrong_label_probability_": "float[rows]",
            "_slope": "real",
        },
        aspects=("kernels", "labels"),
        method="noisy",
        optional={**BaseClassifier._declaration.optional, "counted_noise_level_": "real"},
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "mode": [StrOptions({"auto", "class", "symmetric"})],
        "rates": ["array-like", None],
        "class_prior": [Interval(Real, 0, 1, closed="neither"), None],
        "shift": [Interval(Real, 0, 1, closed="both")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "floor": [Interval(Real, 0, 1, closed="both")],
        "tail": [Interval(Real, 0, 0.5, closed="neither")],
        "ridges": ["array-like", None],
        "average": [StrOptions({"models", "kernels"})],
        "final": [StrOptions({"ridge", "svm"})],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, known: Any = None) -> Self:
        """Learn a classifier and assess the labels.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Dask table of shape (n_samples, n_features)
            Training rows; for `Precomputed` kernels a column of row numbers.
        y : array of shape (n_samples,)
            Class labels of any type, two classes or more, some of them wrong.
        known : array of shape (n_samples,), optional
            Labels that were checked, None (or NaN) elsewhere. They take the place of those in
            ``y`` and count as certain: they are no suspects, and the second fit of
            ``mode="class"``, or of more than two classes, takes them as they are.

        Returns
        -------
        self : NoiseTolerantKernelClassifier
            The fitted estimator.
        """
        X = check_table(self, X, reset=True, parts=True)
        require_target(self, y)
        labels, certain = (y, None) if known is None else merge_known(check_labels(y), known)
        _, codes = encode_labels(self, X, labels)
        refuse_one_class(self, codes)
        n_classes = len(self.classes_)
        rates = self._check_options(n_classes)
        Y = label_targets(codes, n_classes)
        with threads(self.n_jobs), quiet_overflow():
            fitted = self._fit_average(
                self._expand_kernels(X),
                X,
                Y,
                dense=self.final == "svm",
                joint=self.average == "kernels",
                power=_POWER,
            )
            correction = self._correct(fitted.average, codes, rates, certain)
            self._keep(fitted, correction, codes)
            if self.final == "svm":
                self._end_with_svm(fitted.held, correction)
            self._store_predictor(fitted.predictor())
        if correction.doubted is not None:
            what = "no more than mode='auto' here: few rows are"
            if not correction.doubted:
                what = "nothing here: no row is"
            warn(
                f"{type(self).__name__}: mode='class' corrects {what} surely of the rarer class, "
                "so that its rate of wrong labels cannot be distinguished from its share. Hint: "
                "give rates or class_prior."
            )
        if not correction.learned:
            warn(
                f"{type(self).__name__}: the kernels predict these labels no better than "
                "chance; predictions and noise level mean little. Hint: try other "
                "kernels, or check that y belongs to X."
            )
        return self

    def _check_options(self, n_classes: int) -> Floats | None:
        """Return known rates as a matrix."""
        if self.final == "svm" and self.mode != "class":
            raise InputError(
                f"final='svm': is fitted to expected true labels, which mode={self.mode!r} does "
                "not compute; use mode='class'."
            )
        if self.class_prior is not None and n_classes > 2:
            raise InputError(f"class_prior: is for two classes, but y has {n_classes}.")
        if self.class_prior is not None and self.rates is not None:
            raise InputError("class_prior: cannot be given together with rates; leave one out.")
        self._read_ridges()
        return None if self.rates is None else read_rates(self.rates, n_classes)

    def _correct(
        self, average: RidgeAverage, codes: Indices, rates: Floats | None, certain: Bools | None
    ) -> Correction:
        if len(self.classes_) > 2:
            refurbish = self.mode != "symmetric"
            return correct_many(
                average,
                codes,
                len(self.classes_),
                refurbish=refurbish,
                balance=self.mode == "class",
                tail=self.tail,
                rates=rates,
                certain=certain,
            )
        return correct_two(
            average,
            codes,
            shift=_SHIFTS.get(self.mode, self.shift),
            refurbish=self.mode == "class",
            cautious=self.shift,
            tail=self.tail,
            rates=None if rates is None else (float(rates[0, 1]), float(rates[1, 0])),
            prior=self.class_prior,
            certain=certain,
        )

    def _keep(self, fitted: FittedAverage, correction: Correction, codes: Indices) -> None:
        shift = self._keep_average(fitted, correction.targets)
        self.intercept_ = correction.intercept + shift - correction.threshold
        self.n_iter_, self.converged_ = 1, True
        self.history_: list[Any] = []
        self.threshold_ = correction.threshold
        self.rates_ = correction.rates
        self.wrong_label_probability_ = correction.wrong_label_probability
        self.noise_level_ = float(self.wrong_label_probability_.mean())
        self.counted_noise_level_ = level_of_scores(fitted.average.soft_scores, codes, "counts")
        self.label_quality_ = correction.label_quality
        scores = correction.scores
        self.loo_scores_ = scores[:, 0] if scores.shape[1] == 1 else scores
        self._given, self._suggested = np.asarray(codes, dtype=np.intp), correction.suggested
        self._slope = correction.slope

    def _end_with_svm(self, bank: KernelBank, correction: Correction) -> None:
        dual_coef, intercept, support, spread = _support_vectors(bank, self.weights_, correction)
        # In this order, as a model file has it: sums of another order have other last digits.
        self.dual_coef_ = np.ascontiguousarray(dual_coef)
        self.intercept_, self.support_ = intercept, support
        self.contributions_ = spread / (spread.sum() or 1.0)
        self._slope = 1.0  # margins end at -1 and 1

    @by_parts
    def predict_proba(self, X: Any) -> Floats:
        """Return the estimated probability of every class, as if labels were right.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`; of two classes linear in the decision value, clipped
            to [0.02, 0.98].
        """
        decision = self.decision_function(X) * self._slope
        if decision.ndim == 2:
            return np.asarray(softmax(decision, axis=1))
        second = np.clip(0.5 * (decision + 1.0), 0.02, 0.98)
        return np.column_stack([1.0 - second, second])


def _support_vectors(
    bank: KernelBank, weights: Floats, correction: Correction
) -> tuple[Floats, Floats, Indices, Floats]:
    """Fit an SVM to expected true labels, weighted by how certain they are."""
    tau = 2.0 * correction.posterior - 1.0
    Y = np.where(tau >= 0, 1.0, -1.0)
    solution = solve_inner(Hinge(), bank.combine(weights), Y, _SVM_COST * np.abs(tau), tol=_SVM_TOL)
    support = np.flatnonzero(solution.dual_coef.any(axis=1))
    dual_coef = weights[:, None, None] * solution.dual_coef[support].T
    spread = weights * bank.quadratic_forms(solution.dual_coef)
    return dual_coef, solution.intercept, support, spread
