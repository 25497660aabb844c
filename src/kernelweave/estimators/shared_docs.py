"""Docstring entries that several estimators share: fitted attributes, inherited parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

from kernelweave._docstrings import entries, with_section

Class = TypeVar("Class", bound=type)

WEIGHTS = {
    "weights_ : ndarray of shape (n_kernels,)": "Weight of every (normalised) kernel.",
    "contributions_ : ndarray of shape (n_kernels,)": """Share of each kernel in the squared norm of
        the decision or regression function.""",
    "kernels_ : list of Kernel": "The kernels, families written out.",
    "scales_ : ndarray of shape (n_kernels,)": "Factor that normalises each kernel.",
}
BOUNDS = {
    "objective_ : float": "Value of the objective at the returned model.",
    "duality_gap_ : float": """No model has an objective smaller than
        ``objective_ - duality_gap_``.""",
    "converged_ : bool": "Whether the gap met `tol`.",
    "n_iter_ : int": "Number of inner solves.",
    "history_ : list of Step": "Bounds and work after each step.",
}
# Of problems that Nystroem features may stand for.
NYSTROEM = {
    "duality_gap_ : float": """No model has an objective smaller than ``objective_ - duality_gap_``,
        and this one's is no larger than ``objective_ + duality_gap_``: a bound of the rounding
        error is included, except in Nystroem fits.""",
    "landmark_gap_ : float": """Duality gap of the Nystroem problem, in which landmarks replace
        the rows where n is large; `duality_gap_` is that of the exact kernels, and may be larger. A
        fit whose `duality_gap_` exceeds `tol` is not called certified. NaN when kernels are
        exact.""",
    "converged_ : bool": """Whether the gap, rounding error included, met `tol`; of Nystroem fits,
        `landmark_gap_`. Also where the objective is no larger than its rounding error and below
        1e-24 of the loss of the zero function.""",
}
NODES = {
    "active_nodes_ : list": """Nodes in use; those of a lattice are tuples of pairs of ladder (from
        0) and rung (from 1).""",
    "block_norms_ : ndarray of shape (n_active,)": "Norm ``Q_w`` of the function of each.",
    "weights_ : ndarray of shape (n_active,)": "Weight of the (normalised) kernel of each.",
    "contributions_ : ndarray of shape (n_active,)": """Share of each in the squared norm of the
        decision or regression function in the learned kernel.""",
    "kernels_ : list of Kernel": "The kernel of each.",
    "scales_ : ndarray of shape (n_active,)": "Factor that normalises each kernel.",
    "n_nodes_ : int": "Number of activated nodes.",
    "duality_gap_ : float": """No model on any nodes of the graph has an objective smaller than
        ``objective_ - duality_gap_``; infinite where the search of a lattice was cut.""",
}
SUPPORT = {
    "support_ : ndarray of shape (n_support,)": "Training rows that prediction needs.",
    "dual_coef_ : ndarray of shape (n_outputs, n_support)": "Their signed coefficients.",
    "intercept_ : ndarray of shape (n_outputs,)": "Biases.",
}
METRIC = {
    "column_weights_ : dict": """Share of each column in the squared gradients of the function, per
        unit of its spread; ``name?`` is the indicator of the gaps of a column. It says what the
        function reacts to, not what causes the target; correlated columns share.""",
    "weights_ : ndarray of shape (n_features_in_,)": """The same for every column of the table, its
        gaps included; also `feature_importances_` and `contributions_`.""",
    "kernel_ : MetricLaplacian": "The learned kernel.",
    "metric_ : ndarray of shape (n_encoded, n_encoded)": "The metric of the encoded columns.",
    "encoded_names_ : list of str": "Names of the encoded columns.",
    "share_ : float": "Chosen share of the product Laplacian.",
    "widths_ : tuple of float": "Widths of both Laplacians.",
    "ridge_ : float": "The chosen ridge.",
    "step_ : int": "Step that was kept; 0 is the metric in which all columns count alike.",
    "steps_ : list of dict": """Leave-one-out error, setting and number of factorisations of each
        step.""",
    "loo_values_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)": """Leave-one-out values
        of the ridge regression with the metric fixed, NaN for rows of weight zero. The metric has
        seen the target of the row, so that they are slightly too good.""",
    "loo_error_ : float": """Mean squared error of these values relative to the variance, metric
        fixed.""",
    "cv_error_ : float": """With ``select="cv"``: mean squared error of left-out folds relative to
        the variance, the metric learned without them: an honest estimate but for the choice of the
        smallest among the steps. NaN otherwise.""",
    "coverage_guarantee_ : float": """NaN: no theorem covers intervals and sets, because the metric
        has seen the targets.""",
    "solver_ : str": """"cholesky" (all rows in closed form), "conjugate gradients" (all rows; the
        leave-one-out values are those of five left-out folds) or "nystroem" (landmarks).""",
    "trace_left_out_ : float": """Share of the trace of the kernel that landmarks leave out; 0 where
        the fit is exact.""",
    "objective_ : float": "The leave-one-out error.",
    "duality_gap_ : float": """NaN: every ridge problem is solved exactly, and no bound is known for
        the choice of the metric.""",
    "converged_ : bool": "True.",
    "n_iter_ : int": "Number of ridge problems solved.",
    "history_ : list": "Empty.",
}
CLASSES = {"classes_ : ndarray of shape (n_classes,)": "Class labels."}
_GUARANTEE = """At least this share of new rows is covered at a coverage of 0.9, whatever their
        distribution, if rows are exchangeable; twice a change of the coverage is added to it. NaN
        where kernel weights, scales or C have seen the held-out rows: the coverage is nominal
        then."""
CALIBRATED = {
    "out_of_fold_ : ndarray of shape (n_samples, n_outputs)": """Where `calibration` is set:
        decisions of the rows by models that did not see them; NaN for rows without weight.""",
    "calibrator_ : Calibrator": """Where `calibration` is set: the map from decisions to
        probabilities, with ``method``, ``slopes``, ``biases`` and, of a matrix, ``mixing``.""",
    "coverage_guarantee_ : float": f"Where `calibration` is set, for `predict_set`. {_GUARANTEE}",
}
COVERED = {
    "out_of_fold_ : ndarray of shape (n_samples, n_outputs)": """Where `intervals` is set:
        predictions of the rows by models that did not see them; NaN for rows without weight.""",
    "coverage_guarantee_ : float": f"Where `intervals` is set. {_GUARANTEE}",
}
RULES = {
    "rules_ : list of Rule": "With text, weight, coverage and length; heaviest first.",
    "norms_ : ndarray of shape (n_rules,)": "Norm of each rule in the objective.",
    "linear_terms_ : list of LinearTerm": """What columns of numbers add to the score; empty without
        `linear_terms`.""",
    "linear_norms_ : ndarray of shape (n_linear_terms,)": "Norm of each in the objective.",
    "intercept_ : ndarray of shape (n_outputs,)": "Score of a row to which no rule applies.",
    "propositions_ : tuple of Proposition": "The conditions that rules are made of.",
    "n_nodes_ : int": "Number of activated conjunctions.",
    "n_changed_ : int": """Distinct training rows whose predicted class `threshold` changed; zero
        for regression.""",
    "objective_ : float": """Value of the objective of the search over all conjunctions. It is that
        of the returned model unless rules were dropped or fitted again (`max_rules`, `refit`).""",
    "duality_gap_ : float": "Distance of the objective from a lower bound for all conjunctions.",
    "refit_gap_ : float": """Where `refit` is set: relative duality gap of the problem of the kept
        rules; NaN where there was nothing to fit again.""",
    "linear_stability_ : ndarray of shape (n_linear_terms,)": "The same as `stability_`.",
    "stability_ : ndarray of shape (n_rules,)": """Where `n_resamples` is set: share of half samples
        of the rows that select the rule or an equivalent one (a column with an absolute correlation
        of 0.9 or more).""",
    "tasks_ : ndarray": "The tasks, where `fit` was given some.",
}
CHOSEN = {
    "C_ : float": "The chosen value of C; the model was fitted to all rows with it.",
    "cv_results_ : dict": """``C``, of refitted rules also ``max_rules``; ``mean_score``,
        ``std_score``, ``scores`` of shape (n_values, n_folds), and the mean size of the models:
        ``n_rules`` or ``n_kernels``.""",
}
FOLDS = {
    "fold_similarity_ : float": """Mean Dice index of the rule sets of two folds, for the chosen
        parameters: the share of rules with an equivalent one in the other set (a column with an
        absolute correlation of 0.9 or more). NaN with a single fold.""",
}
_INPUT = {
    "n_features_in_ : int": "Columns seen in `fit`.",
    "feature_names_in_ : ndarray of shape (n_features_in_,)": "Their names, where there were any.",
}

# Parameters that mean the same in most estimators.
_COMMON = {
    'missing : {"refuse", "off", "fill", "expected", "category", "complete"} or None': """What
        kernels do with missing values unless they have a rule of their own, as in the guide "Some
        of my data are missing". None: default kernels fill them, others refuse them. "refuse": a
        missing value anywhere in ``X`` is an error. "complete" is for `views`.""",
    "tol : float": "Relative duality gap to stop at, at least 1e-9.",
    "fit_intercept : bool": "Whether to add a bias to every output.",
    'class_weight : dict, "balanced" or None': "Factors of C by class.",
    'calibration : {"auto", "sigmoid", "matrix", "vector", "temperature", "isotonic"} or None': """
        How decisions become probabilities, as in `MKLClassifier`; None: not at all.""",
    "calibration_cv : int, splitter, array of shape (n_samples,) or None": """Folds for it, as in
        `MKLClassifier`.""",
    'memory_limit : number of bytes, str such as "8GB", or None': "None: half of the free memory.",
    "n_landmarks : int or None": """From 3000 rows on: Nystroem features with at most so many
        landmarks for every kernel in place of the exact kernels, whose gap is then not small;
        `landmark_gap_` is that of the approximation. None: exact kernels up to 200 000 rows where
        they can be computed (logistic and square loss: 50 000), and 500 landmarks beyond.""",
    "n_jobs : int or None": """Threads; None: all that the process may use. The result does not
        depend on it.""",
    "verbose : int": "1 shows a bar with the gap.",
}

# Parameters of the rule ensembles.
RULE_PARAMETERS = {
    "rho : float, default=1.1": """In [1, 2]. Smaller values give fewer rules; 2 is hierarchical
        kernel learning, and 1 is a weighted l1 norm, which gives most conjunctions the weight zero
        and is by far the fastest. It needs a smooth loss.""",
    "base : float, default=2.0": """A conjunction of k propositions costs ``base ** k``. Larger
        values favour short rules.""",
    'propositions : {"auto", "given"}, default="auto"': """Make propositions from the columns of
        ``X``, or use its columns, which are then truth values or zeros and ones, as they are.""",
    "n_cuts : int, default=4": "Most cuts for a column of numbers.",
    'cut_strategy : {"quantile", "uniform"}, default="quantile"': "Where to cut.",
    'categorical : "auto" or list of names or positions, default="auto"': """Columns of numbers to
        treat as categories; see `Propositions`.""",
    "max_length : int or None, default=None": "Longest conjunction that may become a rule.",
    'linear_terms : bool or "auto", default=False': """Whether columns of more than two numbers may
        also add to the score themselves, between their 2.5 % and 97.5 % quantiles; such a term
        costs as much as a rule of one condition. Needs ``rho=1`` and ``propositions="auto"``;
        "auto": where both are so.""",
    "task_correlation : float, array of shape (n_outputs, n_outputs) or None, default=None": """How
        the outputs of several classes, labels or tasks are related: a matrix ``B``, or a number mu
        for ``I + 11'/mu`` (small values pull them together). None: not at all, but they share
        rules.""",
    "threshold : float, default=1e-3": """Rules whose norm is at most this share of the largest are
        dropped.""",
    "max_rules : int or None, default=None": """Maximum number of rules: those whose contribution
        to the scores varies most are kept.""",
    "refit : bool, default=False": """Whether to merge rules that hold on the same rows or on
        complementary ones (``x <= 3`` and ``x > 3``), and to fit the weights of the kept rules
        again: half the sum of their squares and a tenth of the loss, whatever C is. `refit_gap_` is
        the relative duality gap of this second fit.""",
    "monotone : dict or None, default=None": """Direction by column: 1 where the score may not fall
        as the column rises, -1 where it may not rise. Needs ``rho=1`` and one output.""",
    "forbidden : list of names or positions, default=None": "Columns that no rule may use.",
    "required : list of names or positions, default=None": """Columns that have a rule in any case:
        where the search finds none, the proposition with the steepest loss is added.""",
    "max_columns : int or None, default=None": """Most columns in all. Greedy: required columns
        and those with the largest rules are kept, and the problem is solved on them alone; the
        certificate holds for these columns. Needs ``rho=1``.""",
    "n_resamples : int, default=0": """Number of half samples of the rows from which `stability_` is
        computed; each costs a fit.""",
    "min_stability : float, default=0.0": """Rules that are selected in a smaller share of the half
        samples are dropped.""",
    "random_state : int, RandomState instance or None, default=None": "Draws the half samples.",
    'solver : {"alternate", "mirror"}, default="alternate"': """For rho > 1: how the problem on the
        active conjunctions is solved, by accelerated closed-form updates or by the published mirror
        descent, which needs far more inner solves.""",
    'certificate : {"tight", "paper"}, default="tight"': """For rho > 1: how other conjunctions are
        shown to be useless, by the exact bound on each or by the published condition (15) on sums
        over all their extensions. The latter activates many more conjunctions for the same gap,
        and needs the square of the rows in memory.""",
    "tol : float, default=1e-2": "Relative duality gap to stop at.",
    "max_iter : int, default=2000": "Maximum number of inner solves.",
    "max_nodes : int, default=20000": "Maximum number of activated conjunctions.",
    "fit_intercept : bool, default=True": "Whether to add a bias.",
    "warm_start : bool, default=False": """Whether to start from the last fit on the same rows, for
        rho > 1.""",
    "n_jobs : int or None, default=None": """Threads; None: all that the process may use. The result
        does not depend on it.""",
    "verbose : int, default=0": "Whether to show progress.",
}


def shared_attributes(
    *groups: dict[str, str], parameters: dict[str, str] | None = None
) -> Callable[[Class], Class]:
    """Complete the docstring of a class; entries that it has itself stay.

    Parameters without an entry get that of the class that it inherits them from, of the given
    ``parameters``, or the common one.
    Attributes are those of the groups and of the classes that it inherits from.
    """

    def decorate(cls: Class) -> Class:
        if cls.__doc__ is None:  # python -OO
            return cls
        known = _written(_COMMON | (parameters or {}))
        for owner in reversed(cls.__mro__):
            known |= entries(owner.__doc__ or "", "Parameters")
        names = [name for name in inspect.signature(cls).parameters if name in known]
        attributes = entries(cls.__doc__, "Attributes")
        inherited = [entries(owner.__doc__ or "", "Attributes") for owner in cls.__mro__[1:]]
        for group in (*map(_written, groups), *inherited, _written(_INPUT)):
            attributes |= {name: entry for name, entry in group.items() if name not in attributes}
        doc = with_section(cls.__doc__, "Parameters", [known[name] for name in names])
        cls.__doc__ = with_section(doc, "Attributes", [*attributes.values()])
        return cls

    return decorate


def _written(group: dict[str, str]) -> dict[str, str]:
    """Return entries as they stand in a docstring, by their names."""
    return {
        signature.split()[0]: f"{signature}\n    {' '.join(text.split())}"
        for signature, text in group.items()
    }
