"""Summaries of fitted models, in sentences and in notebooks."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from kernelweave import (
    RBF,
    Linear,
    MKLClassifier,
    MKLRegressor,
    PairwiseKernelLearner,
    RuleEnsembleClassifier,
    RuleEnsembleRegressor,
)
from kernelweave._summary import (
    fit_status,
    headline,
    is_approximate,
    is_vacuous,
    relative_gap,
)
from report_models import COUNTS, GROUPS, MODELS, QUANTITY, TWO, X, fitted
from report_pages import parse


def estimator(name):
    model = fitted(name)[0]
    return model[-1] if name.endswith("pipeline") else model


@pytest.mark.parametrize("name", MODELS)
def test_notebooks_show_the_diagram_and_what_was_learned(name):
    model = estimator(name)
    plain = clone(model)._repr_html_()
    assert "kernelweave-summary" not in plain
    for shown in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert type(model).__name__ in shown
        head, summary = shown.split('<div class="kernelweave-summary"')
        assert "sk-container" in head
        assert head.count("<div") == head.count("</div>")  # it stands behind, not inside
        assert headline(model).split("\u201c")[0].replace(">", "&gt;") in summary
        assert fit_status(model).text in summary
    assert model._repr_mimebundle_()["text/plain"] == repr(model)


def test_text_notebooks_stay_text():
    model = estimator("mkl")
    with sklearn.config_context(display="text"):
        assert set(model._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(model, "_repr_html_")


def test_the_summary_shows_the_largest_weights():
    model = estimator("mkl")
    page = parse(
        model._repr_html_()
        .split("</style>")[-1]
        .partition("kernelweave-summary")[2]
        .partition(">")[2]
        .rpartition("</div>")[0]
    )
    lines = [[cell.text() for cell in line.find("td")] for line in page.find("tr")]
    order = np.argsort(-model.weights_, kind="stable")[:5]
    used = [j for j in order if model.weights_[j] > 0]
    assert [line[0] for line in lines] == [str(model.kernels_[j]) for j in used]
    assert [line[1] for line in lines] == [f"{model.weights_[j]:.1%}" for j in used]


def test_the_summary_shows_the_rules_that_matter_most():
    model = estimator("rules")
    summary = model._repr_html_().partition("kernelweave-summary")[2]
    for rule in model.rules_[:5]:
        assert rule.text.replace(">", "&gt;").replace("<", "&lt;") in summary
        assert f"{rule.weight:+.3g}" in summary


def test_names_are_escaped_in_notebooks():
    model = MKLClassifier([Linear(name="<script>x</script>")]).fit(X, TWO)
    summary = model._repr_html_().partition("kernelweave-summary")[2]
    assert "<script>" not in summary
    assert "&lt;script&gt;" in summary


def test_pipelines_are_shown_as_before():
    shown = make_pipeline(MKLClassifier()).fit(X, TWO)._repr_html_()
    assert "kernelweave-summary" not in shown


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mkl", "This model separates high from low with"),
        ("mkl of three classes", "This model separates 3 classes with all"),
        ("regression", "This model predicts a quantity with"),
        ("rules for quantities", "This model predicts 2 quantities by"),
        ("widths", "a Gaussian kernel whose widths were learned"),
        ("tolerant", "training labels look wrong"),
        ("structure", "paths; the heaviest"),
        ("structure of many paths", "products of kernels that share"),
        ("rules", "the most important one is"),
        ("pairs", "separates same from different pairs of rows by"),
        ("clusters", "put 60 rows into 3 clusters of"),
    ],
)
def test_sentences(name, words):
    text = headline(estimator(name))
    assert words in text
    assert text.endswith(".")
    assert "\n" not in text


def test_sentences_name_the_target():
    assert "predicts \u201csize\u201d (high or low) with" in headline(estimator("mkl"), "size")
    assert "predicts \u201csize\u201d with" in headline(estimator("regression"), "size")


def test_sentences_of_models_that_learned_little():
    one = MKLClassifier([RBF(1.0)]).fit(X, TWO)
    assert headline(one) == "This model separates high from low with 1 kernel, rbf(width=1)."
    none = RuleEnsembleClassifier().fit(X, TWO)
    none.rules_ = []
    assert headline(none).endswith("by 0 rules, so it predicts the same for every row.")
    several = RuleEnsembleRegressor(C=1).fit(X, np.column_stack([QUANTITY] * 2))
    assert "2 quantities" in headline(several)
    labels = RuleEnsembleClassifier().fit(X, np.column_stack([QUANTITY > 0, QUANTITY > 1]))
    assert "2 labels at once" in headline(labels)


def test_verdicts():
    assert fit_status(estimator("mkl")).good
    assert np.isnan(relative_gap(estimator("tolerant")))
    assert np.isinf(relative_gap(estimator("widths")))
    with pytest.warns(UserWarning, match="raise max_iter"):
        model = MKLRegressor([RBF(w) for w in (0.5, 1, 2)], max_iter=1, tol=1e-9).fit(X, QUANTITY)
    assert not fit_status(model).good
    assert "Stopped before the tolerance was met" in fit_status(model).text


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (0, "0%"),
        (1.67e-6, "0.00017%"),
        (0.00094, "0.094%"),
        (0.5, "50%"),
        (1e-12, "under 0.000001%"),
    ],
)
def test_gaps_are_written_out(gap, words):
    model = MKLClassifier([RBF(1.0), RBF(2.0)]).fit(X, TWO)
    model.duality_gap_ = gap * model.objective_
    assert fit_status(model).short == words


def test_two_kernels_are_both():
    model = MKLClassifier([RBF(1.0), RBF(2.0)], norm=2).fit(X, TWO)
    assert "with both kernels; the heavier, rbf" in headline(model)


def test_equal_weights_are_said_to_be_equal():
    model = MKLClassifier([RBF(1.0), RBF(2.0), RBF(3.0)], norm="uniform").fit(X, TWO)
    assert headline(model).endswith("with all 3 kernels; each has the same weight.")
    options = {"gamma": 0, "alpha": 1.0, "rho": np.inf, "shape": "diag", "random_state": 0}
    pairs = PairwiseKernelLearner(method="shrink", n_clusters=3, **options).fit(COUNTS, GROUPS)
    assert headline(pairs).endswith("by all 6 columns; each has the same weight.")
    assert fit_status(pairs).short == "equal weights"


def test_landmarks_are_told_from_the_exact_kernels():
    model = clone(estimator("mkl")).set_params(tol=1e-3)
    vars(model).update(vars(estimator("mkl")))
    model.duality_gap_, model.landmark_gap_ = 0.19 * model.objective_, 1e-4 * model.objective_
    model.converged_ = True
    end = fit_status(model)
    assert (end.short, end.good) == ("approximate kernels, not certified", True)
    assert end.text.startswith("Converged, with approximate kernels, not certified: ")
    assert "is within 0.01% of the optimum of the Nystroem problem" in end.text
    assert "19%" not in end.text  # it says nothing
    assert end.text.endswith("no useful bound on its distance to the optimum of the exact kernels.")
    model.duality_gap_ = 0.009 * model.objective_
    assert fit_status(model).short == "approximate kernels, not certified"
    assert "With the exact kernels it could be up to 0.9% smaller." in fit_status(model).text
    model.converged_ = False  # for the exact kernels; the Nystroem problem is solved
    assert fit_status(model).good
    assert "Raise max_iter" not in fit_status(model).text
    model.landmark_gap_ = 5e-3 * model.objective_
    assert fit_status(model).text.startswith(
        "Stopped before the tolerance was met, with approximate"
    )
    assert not fit_status(model).good
    model.converged_, model.duality_gap_ = True, 1e-4 * model.objective_
    assert fit_status(model).short == "0.01%"


def test_refitted_rules_are_told_from_the_search():
    model = RuleEnsembleClassifier(1.0, loss="logistic", refit=True, max_rules=3).fit(X, TWO)
    assert "kept are fitted again, within" in fit_status(model).text
    plain = RuleEnsembleClassifier().fit(X, TWO)
    assert "fitted again" not in fit_status(plain).text


def test_when_a_bound_for_the_exact_kernels_is_vacuous():
    assert not is_approximate(0.9, np.nan, 1e-3)  # exact kernels
    assert not is_approximate(1e-3, 1e-4, 1e-3)  # proven for the exact kernels too
    assert is_approximate(1.1e-3, 1e-4, 1e-3)
    assert [is_vacuous(gap, 1e-3) for gap in (0.01, 0.011, np.inf, np.nan)] == [
        False,
        True,
        True,
        True,
    ]
    assert [is_vacuous(gap, 1e-2) for gap in (0.1, 0.11)] == [False, True]


def test_sentences_of_quantiles_constants_and_pairs_cut_short():
    levels = MKLRegressor(loss="quantile", quantile=(0.1, 0.9)).fit(X, QUANTITY)
    assert "predicts 2 quantiles of" in headline(levels)
    levels.weights_ = np.zeros_like(levels.weights_)
    assert "by a constant: no kernel has a weight" in headline(levels)
    learner = PairwiseKernelLearner(max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        learner.fit(COUNTS, GROUPS)
    assert fit_status(learner).text.startswith("Stopped after 1 Newton step before the tolerance")
