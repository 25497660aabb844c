"""The method of Dawid and Skene: truth from the answers of several annotators, without columns."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from kernelweave._validation import Interval, fit_context
from kernelweave.noise.annotators import find_consensus, read_answers


@dataclass(eq=False, repr=False)
class DawidSkene(BaseEstimator):
    """Class probabilities of rows and confusions of annotators by maximum likelihood.

    Rows have no columns: a class is what the annotators say, each weighted by a confusion matrix,
    times the share of the class. Start: the shares of the answers of each row.

    Parameters
    ----------
    kappa : float
        Weight, in answers, of the confusion of all annotators in that of each one; 0 is the
        published method.
    max_iter : int
        Maximum number of rounds.
    tol : float
        Largest change of a probability at which the rounds stop.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators.
    truth_ : ndarray of shape (n_rows, n_classes)
        Probability of each class for each row.
    labels_ : ndarray of shape (n_rows,)
        Most probable class of each row.
    confusions_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Row c of an annotator: probabilities of the answers where the class is c.
    n_iter_ : int
        Rounds.
    converged_ : bool
        Whether the last round changed no probability by more than `tol`.

    References
    ----------
    Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM
    algorithm, Journal of the Royal Statistical Society C 28.

    Examples
    --------
    >>> from kernelweave.baselines import DawidSkene
    >>> answers = [["a", "a", "b"], ["b", "b", "a"], ["a", "a", None], ["b", "b", "b"]]
    >>> DawidSkene().fit(answers).labels_.tolist()
    ['a', 'b', 'a', 'b']
    """

    _: KW_ONLY
    kappa: float = 0.0
    max_iter: int = 200
    tol: float = 1e-6

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kappa": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, answers: Any, y: Any = None) -> Self:
        """Estimate the truth and the confusions.

        Parameters
        ----------
        answers : array or data frame of shape (n_rows, n_annotators), or Answers
            As in `AnnotatorKernelClassifier.fit`.
        y : None
            Ignored.

        Returns
        -------
        self : DawidSkene
            The fitted estimator.
        """
        read = read_answers(answers)
        found = find_consensus(
            read, kappa=float(self.kappa), max_iter=self.max_iter, tol=float(self.tol)
        )
        self.classes_, self.annotators_ = read.classes, read.names
        self.truth_, self.confusions_ = found.truth, found.confusions
        self.labels_ = np.asarray(read.classes[found.truth.argmax(axis=1)])
        self.n_iter_, self.converged_ = len(found.history), found.converged
        return self
