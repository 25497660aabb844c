"""A classifier for rows that several annotators labelled."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from kernelweave._dask import by_parts
from kernelweave._progress import Counter
from kernelweave._threads import threads
from kernelweave._types import Floats, Indices
from kernelweave._validation import N_JOBS, Interval, StrOptions, check_table, fit_context
from kernelweave.errors import InputError, warn
from kernelweave.noise import Suspects, rank_suspects
from kernelweave.noise.annotators import (
    Answers,
    Consensus,
    Vote,
    find_consensus,
    prior_shift,
    read_answers,
)
from kernelweave.noise.decisions import find_known
from kernelweave.ridge.leave_one_out import means_of_others

from .classifier import BaseClassifier
from .fit import quiet_overflow
from .given_kernels import CONSTRAINTS
from .ridge_average import AVERAGE, RidgeAverageClassifier
from .shared_docs import CLASSES, WEIGHTS, shared_attributes
from .targets import finite_floats, refuse_one_class, require_target

if TYPE_CHECKING:
    import pandas as pd

_FEW_ANSWERS = 5  # of the median annotator, below which a warning says so
_UNINFORMATIVE = 0.05  # largest difference between two rows of a confusion that says nothing


@shared_attributes(WEIGHTS, CLASSES)
@dataclass(eq=False, repr=False)
class AnnotatorKernelClassifier(RidgeAverageClassifier):
    """Kernel classifier learned from the answers of several annotators who make mistakes.

    Every annotator has a confusion matrix, and every row has probabilities of the classes. Both are
    estimated in turn, as by Dawid and Skene, but the columns vote too: an average of kernel ridge
    models, fitted to the current probabilities of the *other* rows, is calibrated by a multinomial
    logistic regression and counts like one more annotator. The leave-one-out values are linear in
    the probabilities, so that one eigendecomposition per kernel serves all rounds. The models,
    weighted by their errors for the final probabilities and fitted to them, predict new rows.

    How much the columns count is chosen by answers of held-out rows: columns that carry no
    information leave the classes to the annotators. Columns help most where rows have few answers.
    Where the mistakes of people follow the columns (two classes that look alike are called by one
    name), columns and annotators agree on what is wrong, and better training labels need not give
    a better classifier.

    From 5000 rows on each kernel has a Nystroem approximation, as in
    `NoiseTolerantKernelClassifier`. Columns of numbers are taken as they are: put scikit-learn's
    `StandardScaler` in front in a pipeline. Frames with other columns, too, are encoded.

    Parameters
    ----------
    kappa : float
        Weight, in answers, of the confusion of all annotators in that of each one. Large values
        make annotators alike; 0 trusts the counts of each.
    class_prior : {"equal"}, array of shape (n_classes,), or None
        Known shares of the classes, in the order of `classes_`. None: estimated.
    max_iter : int
        Maximum number of rounds.
    tol : float
        Largest change of a probability at which the rounds stop.
    verbose : int
        1 reports each kernel and each round.

    Attributes
    ----------
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators: column names of a data frame, or numbers.
    truth_ : ndarray of shape (n_samples, n_classes)
        Probability of each class for each training row.
    labels_ : ndarray of shape (n_samples,)
        Most probable class of each training row.
    label_quality_ : ndarray of shape (n_samples,)
        Its probability.
    confusions_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Row c of an annotator: probabilities of the answers where the class is c.
    annotator_accuracy_ : ndarray of shape (n_annotators,)
        Expected share of right answers.
    n_answers_ : ndarray of shape (n_annotators,)
        Number of answers.
    answer_quality_ : ndarray of shape (n_answers,)
        Probability that each answer is right, in the order of the triples; of a table row by row.
    noise_level_ : float
        Expected share of wrong answers.
    contributions_ : ndarray of shape (n_kernels,)
        Share of each kernel in the sum of the variances, over the training rows, of what the
        kernels add to the averaged models.
    dual_coef_ : ndarray of shape (n_kernels, n_outputs, n_support)
        Coefficients of each normalised kernel; the decision values are logarithms of odds (two
        classes) or of probabilities up to a constant.
    intercept_ : ndarray of shape (n_outputs,)
        Biases.
    loo_scores_ : ndarray of shape (n_samples, n_classes)
        Leave-one-out values of the averaged models for `truth_`, less the means of the other rows.
    calibration_ : ndarray of shape (n_classes + 1, n_classes)
        Slopes, and offsets in the last row, that turn `loo_scores_` into logarithms of
        probabilities, up to a constant of each row.
    objective_ : float
        The same as `loo_error_`.
    duality_gap_ : float
        Not a number: the rounds do not minimise one function.
    converged_ : bool
        Whether the last round changed no probability by more than `tol`.
    n_iter_ : int
        Rounds.
    changes_ : ndarray of shape (n_iter_,)
        Largest change of a probability in each round.
    history_ : list
        Empty: there are no bounds.

    References
    ----------
    Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM
    algorithm, Journal of the Royal Statistical Society C 28.
    Raykar, Yu, Zhao, Valadez, Florin, Bogoni and Moy (2010), Learning from crowds, JMLR 11.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import AnnotatorKernelClassifier
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 2 * truth[:, None]
    >>> wrong = rng.random((200, 3)) < [0.1, 0.2, 0.4]  # the third annotator guesses a lot
    >>> answers = np.where(wrong, 1 - truth[:, None], truth[:, None]).astype(float)
    >>> answers[rng.random((200, 3)) < 0.3] = np.nan  # not asked
    >>> model = AnnotatorKernelClassifier().fit(X, answers)
    >>> model.annotator_accuracy_.round(1), bool((model.labels_ == truth).mean() > 0.95)
    (array([0.9, 0.8, 0.6]), True)
    """

    kernels: Any = None
    _: KW_ONLY
    missing: str | None = None
    kappa: float = 3.0
    class_prior: Any = None
    ridges: Any = None
    temperature: float = 4.0
    floor: float = 0.5
    max_iter: int = 300
    tol: float = 5e-3
    memory_limit: float | str | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _declaration = BaseClassifier._declaration.extended(
        {
            **AVERAGE,
            "loo_scores_": "float[rows, classes]",
            "noise_level_": "real",
            "annotators_": "labels[annotators]",
            "truth_": "float[rows, classes]",
            "labels_": "labels[rows]",
            "confusions_": "float[annotators, classes, classes]",
            "annotator_accuracy_": "float[annotators]",
            "n_answers_": "int[annotators]",
            "answer_quality_": "float[answers]",
            "calibration_": "float[slopes, classes]",
            "changes_": "float[rounds]",
            "_answer_rows": "int[answers]",
            "_answer_annotators": "int[answers]",
            "_given": "codes[answers]",
        },
        aspects=("annotators", "kernels"),
    )

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CONSTRAINTS,
        "kappa": [Interval(Real, 0, None, closed="left")],
        "class_prior": [StrOptions({"equal"}), "array-like", None],
        "ridges": ["array-like", None],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "floor": [Interval(Real, 0, 1, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    _answer_rows: Indices = field(init=False)
    _answer_annotators: Indices = field(init=False)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, known: Any = None) -> Self:
        """Estimate the true labels and the annotators, and learn a classifier.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Dask table of shape (n_samples, n_features)
            Training rows; for `Precomputed` kernels a column of row numbers.
        y : array or data frame of shape (n_samples, n_annotators), or Answers
            The answers: a column for each annotator, labels of any type; NaN, None, NaT, pandas' NA
            or a masked entry where an annotator was not asked. Or what `answers_from_triples`
            returns. Rows without any answer are allowed. A single column is one annotator.
        known : array of shape (n_samples,), optional
            Classes of rows that were checked, None (or NaN) elsewhere: they are certain, and show
            how good the annotators are.

        Returns
        -------
        self : AnnotatorKernelClassifier
            The fitted estimator.
        """
        X = check_table(self, X, reset=True, parts=True)
        answers = self._read_answers(X, y)
        prior = self._read_prior(answers.n_classes)
        self._read_ridges()
        rounds: dict[str, Any] = {
            "known": self._read_known(known, answers),
            "kappa": float(self.kappa),
            "prior": prior,
            "max_iter": self.max_iter,
            "tol": self.tol,
        }
        with threads(self.n_jobs), quiet_overflow():
            first = find_consensus(answers, **rounds)  # without columns
            fitted = self._fit_average(
                self._expand_kernels(X),
                X,
                first.truth,
                beside={"leave-one-out values": 8.0 * answers.n_rows**2},
            )
            scores = fitted.average.loo_map()
            report = Counter(self.verbose, self.max_iter, "rounds")
            found = find_consensus(answers, scores=scores, report=report, **rounds)
            # The classes of the annotators alone, by which the votes were weighted, may be poor.
            average = fitted.average.weighted_for(found.truth, self.temperature, self.floor)
            fitted = replace(fitted, average=average)
            shift = self._keep_average(fitted, found.truth - found.truth.mean(axis=0))
            own = average.scores - means_of_others(found.truth)
            self._keep_consensus(answers, found, own, shift, prior)
            self._store_predictor(fitted.predictor())
        self._warn(answers)
        return self

    def _read_answers(self, X: Any, y: Any) -> Answers:
        require_target(self, y)
        answers = read_answers(y)
        n_rows = X.shape[0]
        if answers.n_rows != n_rows:
            raise InputError(
                f"answers: inconsistent numbers of rows: X has {n_rows}, the answers have "
                f"{answers.n_rows}. "
                "Hint: give answers_from_triples the number of rows."
            )
        self.classes_ = answers.classes
        refuse_one_class(self, answers.labels)
        return answers

    def _read_known(self, known: Any, answers: Answers) -> Indices | None:
        """Return class numbers of the rows whose class is known, -1 elsewhere."""
        if known is None:
            return None
        certain, known = find_known(known, answers.n_rows), np.asarray(known, dtype=object)
        codes = {label: code for code, label in enumerate(self.classes_.tolist())}
        out = np.full(answers.n_rows, -1, dtype=np.intp)
        for row in np.flatnonzero(certain):
            if known[row] not in codes:
                raise InputError(
                    f"known: row {row} has the class {known[row]!r}, which no annotator has "
                    "answered."
                )
            out[row] = codes[known[row]]
        return out

    def _read_prior(self, n_classes: int) -> Floats | None:
        if self.class_prior is None:
            return None
        if isinstance(self.class_prior, str):  # "equal"
            return np.full(n_classes, 1.0 / n_classes)
        prior = finite_floats(self.class_prior)
        if prior.shape != (n_classes,) or not (prior > 0).all() or abs(prior.sum() - 1.0) > 1e-6:
            raise InputError(
                f"class_prior: must be 'equal' or {n_classes} positive shares that sum to 1, one "
                f"for each class, got {self.class_prior!r}."
            )
        return np.asarray(prior / prior.sum())

    def _keep_consensus(
        self,
        answers: Answers,
        found: Consensus,
        scores: Floats,
        shift: Floats,
        prior: Floats | None,
    ) -> None:
        truth, shares = found.truth, found.truth.mean(axis=0)
        vote = Vote.fit(scores, truth, found.penalty)
        # The calibration is linear: it is multiplied into the coefficients of the ridge models.
        slopes, offsets = vote.slopes, vote.offsets + prior_shift(shares, prior)
        self.calibration_ = np.vstack([slopes, offsets])
        if answers.n_classes == 2:  # the logarithm of the odds of the second class
            slopes, offsets = slopes[:, 1:] - slopes[:, :1], offsets[1:] - offsets[:1]
        self.dual_coef_ = np.einsum("jcs,ck->jks", self.dual_coef_, slopes, order="C")
        self.intercept_ = shift @ slopes + offsets
        self.annotators_ = answers.names
        self.truth_, self.confusions_ = truth, found.confusions
        self.labels_ = self.classes_[truth.argmax(axis=1)]
        self.label_quality_ = truth.max(axis=1)
        self.answer_quality_ = truth[answers.rows, answers.labels]
        self.noise_level_ = float(1.0 - self.answer_quality_.mean())
        who, n_annotators = answers.annotators, len(answers.names)
        self.n_answers_ = np.bincount(who, minlength=n_annotators)
        right = np.bincount(who, self.answer_quality_, n_annotators)
        self.annotator_accuracy_ = right / np.maximum(self.n_answers_, 1)
        self.loo_scores_ = scores
        self.n_iter_, self.converged_ = len(found.history), found.converged
        self.changes_ = np.array(found.history)
        self.history_: list[Any] = []
        self._answer_rows, self._answer_annotators = answers.rows, who
        self._given = answers.labels
        self._suggested = truth.argmax(axis=1).astype(np.intp)

    def _warn(self, answers: Answers) -> None:
        name = type(self).__name__
        if len(self.annotators_) > 1 and np.median(self.n_answers_) < _FEW_ANSWERS:
            warn(
                f"{name}: half of the annotators gave fewer than {_FEW_ANSWERS} answers, so their "
                "confusions are mostly that of all annotators together."
            )
        differences = np.ptp(self.confusions_, axis=1).max(axis=1)
        alike = (differences < _UNINFORMATIVE) & (self.n_answers_ >= _FEW_ANSWERS)
        if alike.any():
            first = self.annotators_.tolist()[int(np.flatnonzero(alike)[0])]
            warn(
                f"{name}: the answers of {int(alike.sum())} of {len(alike)} annotators say nothing "
                f"about the classes, for example those of {first!r}."
            )
        if not self.converged_:
            warn(
                f"{name}: stopped after {self.n_iter_} rounds, in the last of which a probability "
                f"changed by {self.changes_[-1]:.2g} (tol {self.tol:g}). Hint: raise max_iter.",
                ConvergenceWarning,
            )

    @by_parts
    def predict_proba(self, X: Any) -> Floats:
        """Return the estimated probability of every class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        decision = self.decision_function(X)
        if decision.ndim == 2:
            return np.asarray(softmax(decision, axis=1))
        return np.column_stack([expit(-decision), expit(decision)])

    def suspects(self, limit: int | None = None) -> Suspects:
        """Return the answers that look wrong, the most suspicious first.

        Parameters
        ----------
        limit : int, optional
            Maximum number of answers to return.

        Returns
        -------
        suspects : Suspects
            With `index` (rows), `annotator`, `quality`, `given`, `suggested` and `to_frame`.
        """
        check_is_fitted(self)
        found = rank_suspects(
            self.answer_quality_,
            self.classes_[self._given],
            self.classes_[self._suggested[self._answer_rows]],
            limit,
        )
        return found.of_answers(self._answer_rows, self.annotators_[self._answer_annotators])

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the annotators, the least accurate first.

        Returns
        -------
        frame : pandas.DataFrame
            With the columns annotator, n_answers and accuracy.
        """
        check_is_fitted(self)
        import pandas as pd

        order = np.argsort(self.annotator_accuracy_, kind="stable")
        columns = {
            "annotator": self.annotators_[order],
            "n_answers": self.n_answers_[order],
            "accuracy": self.annotator_accuracy_[order],
        }
        return pd.DataFrame(columns)
