"""Truth from the answers of several annotators, with or without a vote of the columns.

Every annotator has a confusion matrix; every row has class probabilities. They are estimated in
turn, as Dawid and Skene do by expectation maximisation. Where rows have columns, a leave-one-out
kernel model of the current probabilities votes beside the annotators: its value for a row does not
contain that row's own probabilities, so no row confirms itself. How much the vote counts is chosen
by held-out answers, so that columns without information do no harm.

References
----------
Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM
algorithm, Journal of the Royal Statistical Society C 28.
Raykar, Yu, Zhao, Valadez, Florin, Bogoni and Moy (2010), Learning from crowds, JMLR 11 (the same
with a logistic regression in place of kernels).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from scipy import sparse
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.exceptions import DataConversionWarning
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets

from kernelweave._types import Floats, Indices
from kernelweave._validation import is_missing
from kernelweave.errors import InputError, InputTypeError, warn

_SHORTEST = 0.125  # step of a row whose probabilities oscillate
_PENALTIES = (1.0, 10.0, 100.0, 1000.0)  # of the slopes of votes
_FOLDS = 3  # to choose among them
_CHOICES = 8  # first rounds, in each of which the penalty is chosen
_UNIFORM = 0.01  # share of the uniform distribution in pooled confusions and in votes


@dataclass(frozen=True)
class Answers:
    """Answers of several annotators in long form: one entry for each answer.

    Attributes
    ----------
    rows, annotators, labels : ndarray of int of shape (n_answers,)
        Row, number of the annotator, and class number of each answer.
    classes : ndarray of shape (n_classes,)
        Class labels.
    names : ndarray of shape (n_annotators,)
        Names of the annotators.
    n_rows : int
        Number of rows, those without answers included.
    """

    rows: Indices
    annotators: Indices
    labels: Indices
    classes: np.ndarray[Any, Any]
    names: np.ndarray[Any, Any]
    n_rows: int

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def _by_row(self) -> sparse.csr_matrix:
        """Sum over the answers of each row."""
        ones, places = np.ones(len(self.rows)), np.arange(len(self.rows))
        return sparse.csr_matrix((ones, (self.rows, places)), (self.n_rows, len(self.rows)))

    @cached_property
    def _by_label(self) -> sparse.csr_matrix:
        """Sum over the answers of each annotator with each label."""
        ones, places = np.ones(len(self.rows)), np.arange(len(self.rows))
        pairs = self.annotators * self.n_classes + self.labels
        shape = (len(self.names) * self.n_classes, len(self.rows))
        return sparse.csr_matrix((ones, (pairs, places)), shape)

    def shares(self) -> Floats:
        """Return the share of each class among the answers of each row.

        Rows without answers get the mean of the others.
        """
        votes = self._by_row @ (self.labels[:, None] == np.arange(self.n_classes)).astype(float)
        total = votes.sum(axis=1, keepdims=True)
        answered = total[:, 0] > 0
        out = votes / np.maximum(total, 1.0)
        out[~answered] = out[answered].mean(axis=0)
        return np.asarray(out)

    def counts(self, truth: Floats) -> Floats:
        """Return expected counts of (annotator, class, answer) under class probabilities."""
        found = self._by_label @ truth[self.rows]
        shape = (len(self.names), self.n_classes, self.n_classes)
        return np.asarray(found.reshape(shape).transpose(0, 2, 1))

    def log_likelihood(self, confusions: Floats) -> Floats:
        """Return the log-probability of the answers of each row, for each class."""
        with np.errstate(divide="ignore"):
            logs = np.log(confusions)
        return np.asarray(self._by_row @ logs[self.annotators, :, self.labels])


def answers_from_triples(
    rows: Any, annotators: Any, answers: Any, n_rows: int | None = None
) -> Answers:
    """Return answers that are given as a list of (row, annotator, answer).

    Parameters
    ----------
    rows : array of int of shape (n_answers,)
        Row numbers, from 0.
    annotators : array of shape (n_answers,)
        Names or numbers of the annotators.
    answers : array of shape (n_answers,)
        Labels of any type. Entries that are NaN or None are left out.
    n_rows : int, optional
        Number of rows; by default one more than the largest row number.

    Returns
    -------
    answers : Answers
        To pass to `AnnotatorKernelClassifier.fit`.

    Examples
    --------
    >>> from kernelweave.noise import answers_from_triples
    >>> answers = answers_from_triples([0, 0, 1], ["ann", "bob", "ann"], ["cat", "dog", "dog"])
    >>> answers.n_rows, answers.names.tolist(), answers.classes.tolist()
    (2, ['ann', 'bob'], ['cat', 'dog'])
    """
    given, people, places = _column(answers), _column(annotators), np.asarray(rows)
    if not len(given) == len(people) == len(places):
        raise InputError(
            "rows, annotators, answers: must have the same length, got "
            f"{len(places)}, {len(people)} and {len(given)}."
        )
    if places.dtype.kind not in "iu" or (len(places) and places.min() < 0):
        raise InputError(f"rows: must be row numbers from 0 on, got {_first_bad(places)!r}.")
    n = int(places.max(initial=-1)) + 1 if n_rows is None else n_rows
    if len(places) and places.max() >= n:
        raise InputError(f"rows: row {places.max()} does not exist; n_rows is {n}.")
    unnamed = [name for name in people.tolist() if is_missing(name)]
    if unnamed:
        raise InputError(f"annotators: every answer needs one, but {len(unnamed)} have none.")
    known = np.array([not is_missing(one) for one in given.tolist()], dtype=bool)
    classes, labels = _encode("answers", _whole(given[known], bool(known.all())))
    names, who = _encode("annotators", people[known])
    return Answers(places[known].astype(np.intp), who, labels, classes, names, n)


def read_answers(given: Any) -> Answers:
    """Return answers that are given as `Answers` or as a table with a column for each annotator.

    Missing answers are NaN, None, NaT, pandas' NA or masked. A data frame names the annotators.
    """
    if isinstance(given, Answers):
        return given
    names = getattr(given, "columns", None)
    mask = np.ma.getmaskarray(given) if isinstance(given, np.ma.MaskedArray) else None
    cells = np.asarray(given.to_numpy() if hasattr(given, "to_numpy") else given)
    if cells.ndim == 2 and cells.shape[1] == 1:
        warn(
            "A column-vector y was passed when a 1d array was expected; it is read as the answers "
            "of one annotator.",
            DataConversionWarning,
        )
    if cells.ndim == 1:
        cells = cells[:, None]
        mask = None if mask is None else mask[:, None]
    if cells.ndim != 2:
        raise InputError(
            "answers: must be a table with a row for each row of X and a column for each "
            f"annotator, got an array of shape {cells.shape}."
        )
    if names is None or len(names) != cells.shape[1]:
        names = np.arange(cells.shape[1])
    if cells.dtype.kind == "O":
        known = np.array([[not is_missing(one) for one in row] for row in cells.tolist()])
        known = known.reshape(cells.shape)
    else:
        known = cells == cells  # NaN and NaT differ from themselves
    if mask is not None:
        known = known & ~mask
    rows, who = np.nonzero(known)
    classes, labels = _encode("answers", _whole(cells[rows, who], bool(known.all())))
    return Answers(rows, who, labels, classes, np.asarray(list(names)), len(cells))


def _column(values: Any) -> np.ndarray[Any, Any]:
    out = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if out.ndim != 1:
        raise InputError(
            f"rows, annotators, answers: must be columns, got an array of shape {out.shape}."
        )
    return out


def _whole(values: np.ndarray[Any, Any], complete: bool) -> np.ndarray[Any, Any]:
    """Return numbers as what they are without the gaps that made them objects or floats."""
    if values.dtype.kind == "O":
        plain = np.array(values.tolist()) if len(values) else values
        return plain if plain.dtype.kind in "biuf" and plain.ndim == 1 else values
    if values.dtype.kind == "f" and not complete and (values == np.rint(values)).all():
        return values.astype(np.int64)
    return values


def _first_bad(places: np.ndarray[Any, Any]) -> Any:
    bad = [one for one in places.tolist() if not isinstance(one, int) or one < 0]
    return bad[0] if bad else None


def _encode(name: str, values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Indices]:
    if not len(values):
        raise InputError(f"{name}: there is no answer at all.")
    encoder = LabelEncoder()
    try:
        if name == "answers":
            check_classification_targets(values)
        codes = encoder.fit_transform(values)
    except TypeError:
        raise InputTypeError(
            f"{name}: all entries must be text, or all must be numbers, but both are there. "
            "Hint: turn the numbers into text."
        ) from None
    return encoder.classes_, np.asarray(codes, dtype=np.intp)


def confusions_of(counts: Floats, kappa: float) -> Floats:
    """Return confusion matrices from expected counts, shrunk towards the pooled one.

    ``kappa`` is the weight of the pooled confusion in answers: the mean of a Dirichlet prior.
    """
    n_classes = counts.shape[1]
    pooled = _normalised(counts.sum(axis=0))
    pooled = (1.0 - _UNIFORM) * pooled + _UNIFORM / n_classes
    return _normalised(counts + kappa * pooled)


def _normalised(rows: Floats) -> Floats:
    total = rows.sum(axis=-1, keepdims=True)
    even = np.full_like(rows, 1.0 / rows.shape[-1])
    return np.asarray(np.divide(rows, total, out=even, where=total > 0))


@dataclass(frozen=True)
class Vote:
    """Calibrated probabilities of scores: ``softmax(scores @ slopes + offsets)``."""

    slopes: Floats  # (n_classes, n_classes)
    offsets: Floats

    @classmethod
    def fit(cls, scores: Floats, truth: Floats, penalty: float = 1.0) -> Vote:
        """Fit a multinomial logistic regression of probabilities on standardised scores.

        Slopes W of the standardised scores carry the penalty ``penalty |W|^2 / 2``, offsets none.
        """
        n_classes = truth.shape[1]
        means, spread = scores.mean(axis=0), np.maximum(scores.std(axis=0), 1e-12)
        Z = (scores - means) / spread

        def loss(parameters: Floats) -> tuple[float, Floats]:
            offsets, slopes = parameters[:n_classes], parameters[n_classes:].reshape(-1, n_classes)
            logs = log_softmax(Z @ slopes + offsets, axis=1)
            excess = np.exp(logs) - truth
            gradient = np.concatenate(
                [excess.sum(axis=0), (Z.T @ excess + penalty * slopes).ravel()]
            )
            return -float(np.vdot(truth, logs)) + 0.5 * penalty * float((slopes**2).sum()), gradient

        found = scipy.optimize.minimize(
            loss, np.zeros(n_classes + n_classes**2), jac=True, method="L-BFGS-B"
        ).x
        slopes = found[n_classes:].reshape(-1, n_classes) / spread[:, None]
        return cls(slopes, found[:n_classes] - means @ slopes)

    def probabilities(self, scores: Floats, shift: Floats | float = 0.0) -> Floats:
        """Return the votes of rows, mixed with a share of the uniform distribution."""
        found = softmax(scores @ self.slopes + self.offsets + shift, axis=1)
        return np.asarray((1.0 - _UNIFORM) * found + _UNIFORM / found.shape[1])


@dataclass(frozen=True)
class Consensus:
    """Class probabilities of rows, and confusions of annotators."""

    truth: Floats  # (n_rows, n_classes): probabilities of the classes
    # (n_annotators, n_classes, n_classes): row c of an annotator: probabilities of the answers
    # where the class is c.
    confusions: Floats
    penalty: float  # of the slopes of the columns' vote
    history: list[float]  # largest change of a probability in each round
    converged: bool  # whether the last change is at most the tolerance


def find_consensus(
    answers: Answers,
    *,
    kappa: float,
    scores: Callable[[Floats], Floats] | None = None,
    prior: Floats | None = None,
    max_iter: int = 40,
    tol: float = 5e-3,
    known: Indices | None = None,
    report: Callable[[], None] | None = None,
) -> Consensus:
    """Estimate class probabilities and confusions in turn.

    ``kappa`` is the weight of the pooled confusion, in answers; 0 for the method of Dawid and
    Skene. ``scores`` returns leave-one-out scores of all rows for class probabilities; without it,
    the shares of the classes take the place of the columns' vote. ``prior`` are known shares of the
    classes, ``known`` class numbers of rows whose class is known, -1 elsewhere. Rounds end when no
    probability changes by more than ``tol``; ``report`` is called after each.
    """
    truth, penalty = _with_known(answers.shares(), known), 0.0
    history: list[float] = []
    step, before = np.ones((len(truth), 1)), np.zeros_like(truth)
    confusions = np.empty(0)
    for _ in range(max_iter):
        confusions = confusions_of(answers.counts(truth), kappa)
        likelihood = answers.log_likelihood(confusions)
        shares = truth.mean(axis=0)
        if scores is None:
            weights = shares if prior is None else prior
            votes = np.repeat(weights[None], len(truth), axis=0)
        else:
            values, shift = scores(truth), prior_shift(shares, prior)
            if len(history) < _CHOICES:
                penalty = _choose_penalty(values, truth, likelihood, shift, known)
            votes = Vote.fit(values, truth, penalty).probabilities(values, shift)
        with np.errstate(divide="ignore"):
            logs = np.log(votes) + likelihood
        best = logs.max(axis=1, keepdims=True)
        likely = np.exp(logs - np.where(np.isfinite(best), best, 0.0))
        # Equal probabilities where no class can explain the answers.
        found = _with_known(_normalised(likely), known)
        history.append(float(np.abs(found - truth).max()))
        change = found - truth
        if scores is not None:
            # With a vote of the columns no function decreases, and rows that support each other may
            # oscillate: rows that turn back take shorter steps. Fixed points are the same, and the
            # change that counts is that of the full step.
            turned = (change * before).sum(axis=1, keepdims=True) < 0
            step = np.where(turned, np.maximum(0.5 * step, _SHORTEST), np.minimum(2 * step, 1.0))
            before = change
        truth = found if history[-1] <= tol else truth + step * change
        if report is not None:
            report()
        if history[-1] <= tol:
            break
    return Consensus(truth, confusions, penalty, history, history[-1] <= tol)


def _choose_penalty(
    scores: Floats,
    truth: Floats,
    likelihood: Floats,
    shift: Floats | float,
    known: Indices | None,
) -> float:
    """Return the penalty of votes under which the answers of held-out rows are most probable.

    The largest, which leaves hardly any vote, unless another is clearly better.
    Slopes for C classes are C^2 numbers. Without the choice, scores of columns that carry no
    information fit the probabilities by chance, which follow the votes in the next round.
    """
    if known is not None:
        with np.errstate(divide="ignore"):
            certain = np.log((known[:, None] == np.arange(truth.shape[1])).astype(float))
        likelihood = np.where(known[:, None] >= 0, certain, likelihood)
    folds = np.random.default_rng(0).permutation(len(truth)) % _FOLDS

    def held_out(penalty: float) -> Floats:
        logs = np.empty(len(truth))
        for fold in range(_FOLDS):
            rest = folds != fold
            share = penalty * (1.0 - 1.0 / _FOLDS)
            vote = Vote.fit(scores[rest], truth[rest], share)
            votes = np.log(vote.probabilities(scores[~rest], shift))
            logs[~rest] = logsumexp(votes + likelihood[~rest], axis=1)
        return np.where(np.isfinite(logs), logs, 0.0)  # others no class can explain

    logs = np.array([held_out(penalty) for penalty in _PENALTIES])
    best = int(logs.sum(axis=1).argmax())
    gain = logs[best] - logs[-1]
    # Against hardly any vote two standard errors count: what is fitted by chance looks better still
    # in the next round.
    sure = gain.sum() > 2.0 * np.sqrt(len(gain)) * gain.std()
    return _PENALTIES[best] if sure else _PENALTIES[-1]


def _with_known(truth: Floats, known: Indices | None) -> Floats:
    """Return class probabilities that are one where a class is known."""
    if known is None:
        return truth
    return np.where(known[:, None] >= 0, known[:, None] == np.arange(truth.shape[1]), truth)


def prior_shift(shares: Floats, prior: Floats | None) -> Floats | float:
    """Return what to add to logarithms of probabilities to move from shares to a prior."""
    if prior is None:
        return 0.0
    return np.asarray(np.log(prior) - np.log(np.maximum(shares, 1e-12)))
