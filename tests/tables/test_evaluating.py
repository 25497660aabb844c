"""A fitted model on new rows: the numbers of scikit-learn, curves, groups, comparisons, sources."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    RBF,
    CombinedClassifier,
    Linear,
    MetricKernelClassifier,
    MetricKernelRegressor,
    MKLClassifier,
    MKLRegressor,
    RuleEnsembleClassifier,
    views,
)
from kernelweave.errors import DataError, InputError
from kernelweave.tables import evaluate_table, fit_table
from kernelweave.tables.curves import reliability
from kernelweave.tables.measures import Classes


def halves(frame):
    """Return every other row, with row numbers from zero."""
    return frame.iloc[::2].reset_index(drop=True), frame.iloc[1::2].reset_index(drop=True)


CANCER = halves(load_breast_cancer(as_frame=True).frame[["mean area", "mean texture", "target"]])
WINE = halves(load_wine(as_frame=True).frame)
DIABETES = halves(load_diabetes(as_frame=True).frame)


def fitted(model, frame):
    return model.fit(frame.drop(columns="target"), frame["target"])


MODELS = {
    "calibrated": (MKLClassifier([RBF(1.0), Linear()], calibration="auto"), CANCER),
    "logistic": (MKLClassifier([RBF(30.0)], loss="logistic"), WINE),
    "metric": (MetricKernelClassifier(), WINE),
    "combined": (CombinedClassifier(), CANCER),
    "rules": (RuleEnsembleClassifier(max_length=2, calibration="auto"), CANCER),
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), WINE),
}


@pytest.mark.parametrize("name", MODELS)
def test_classes_as_scikit_learn_scores_them(name):
    """Scores and curves are those of scikit-learn on the same predictions."""
    model, (train, new) = MODELS[name]
    model = fitted(model, train)
    found = evaluate_table(model, new, "target")
    X, y = new.drop(columns="target"), new["target"].to_numpy()
    p, predicted = model.predict_proba(X), model.predict(X)
    two = p.shape[1] == 2
    own, score = (y, p[:, 1]) if two else (np.eye(p.shape[1])[y], p)
    wanted = {
        "log_loss": metrics.log_loss(y, p),
        "roc_auc": metrics.roc_auc_score(own, score),
        "average_precision": metrics.average_precision_score(own, score),
        "accuracy": metrics.accuracy_score(y, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted),
        "f1": metrics.f1_score(y, predicted, average="binary" if two else "macro"),
        "brier": metrics.brier_score_loss(y, score),
    }
    assert {s.name: s.value for s in found.scores} == pytest.approx(wanted, abs=1e-10)
    assert found.main == ("roc_auc" if two else "accuracy")
    assert np.array_equal(found.confusion, metrics.confusion_matrix(y, predicted))
    areas = [curve.area for curve in found.roc]
    assert np.mean(areas) == pytest.approx(wanted["roc_auc"], abs=1e-10)
    areas = [curve.area for curve in found.precision_recall]
    assert np.mean(areas) == pytest.approx(wanted["average_precision"], abs=1e-10)
    for score in found.scores:
        assert score.gain[0] > 0  # these models are better than a constant
        if score.value < 1:  # else all resamples are the same
            low, high = score.interval
            assert low <= score.value <= high
    assert found.score("accuracy").exact


def test_numbers_as_scikit_learn_scores_them():
    """Scores of a regression, its residuals and its intervals."""
    train, new = DIABETES
    model = fitted(MetricKernelRegressor(), train)
    found = evaluate_table(model, new, "target")
    X, y = new.drop(columns="target"), new["target"].to_numpy()
    predicted = model.predict(X)
    wanted = {
        "r2": metrics.r2_score(y, predicted),
        "rmse": metrics.root_mean_squared_error(y, predicted),
        "mean_absolute_error": metrics.mean_absolute_error(y, predicted),
        "median_absolute_error": metrics.median_absolute_error(y, predicted),
    }
    assert {s.name: s.value for s in found.scores} == pytest.approx(wanted, rel=1e-10)
    assert found.score().constant == pytest.approx(0.0, abs=1e-12)
    assert found.residuals.mean == pytest.approx((y - predicted).mean())
    worst = found.residuals.largest(1)[0]
    assert abs(y - predicted).argmax() == worst
    ends = model.predict_interval(X, 0.9)
    part = next(c for c in found.coverage if c.asked == 0.9)
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    assert part.reached == pytest.approx(inside.mean())
    assert part.low < part.reached < part.high
    assert part.size == pytest.approx((ends[:, 1] - ends[:, 0]).mean())


def test_quantiles():
    """Pinball losses, shares below each quantile, and the median as a guess."""
    train, new = DIABETES
    model = MKLRegressor([RBF(0.2)], loss="quantile", quantile=(0.1, 0.5, 0.9), C=10.0)
    found = evaluate_table(fitted(model, train), new, "target")
    predicted = model.predict(new.drop(columns="target"))
    y = new["target"].to_numpy()
    losses = [
        metrics.mean_pinball_loss(y, f, alpha=q)
        for q, f in zip(model.quantile, predicted.T, strict=True)
    ]
    assert found.kind == "quantiles"
    assert found.score().value == pytest.approx(np.mean(losses))
    assert found.score("r2").value == pytest.approx(metrics.r2_score(y, predicted[:, 1]))
    shares = {c.asked: c.reached for c in found.coverage if c.kind == "quantile"}
    assert shares == pytest.approx({0.1: 0.1, 0.5: 0.5, 0.9: 0.9}, abs=0.1)
    assert np.array_equal(found.residuals.predicted, predicted[:, 1])


def test_several_targets_and_labels():
    """Scores are means; each target has an evaluation of its own."""
    train, new = DIABETES
    train, new = (frame.assign(other=-frame["target"] + frame["bmi"]) for frame in (train, new))
    columns = [c for c in train.columns if c not in ("target", "other")]
    names = ["target", "other"]
    model = MKLRegressor([RBF(0.2)], loss="square").fit(train[columns], train[names])
    found = evaluate_table(model, new, names)
    wanted = metrics.r2_score(new[names], model.predict(new[columns]))
    assert found.score().value == pytest.approx(wanted)
    parts = [found.outputs[name].score().value for name in names]
    assert np.mean(parts) == pytest.approx(wanted)
    with pytest.raises(InputError, match="the model predicts 2 targets, but 1 column"):
        evaluate_table(model, new, "target")
    labels = {name: (frame > frame.median()).astype(int) for name, frame in train[names].items()}
    train = train.assign(**labels)
    new = new.assign(**{n: (new[n] > new[n].median()).astype(int) for n in names})
    model = MKLClassifier([RBF(0.2)], loss="logistic").fit(train[columns], train[names])
    found = evaluate_table(model, new, names)
    p = model.predict_proba(new[columns])
    assert found.kind == "labels"
    assert found.score("roc_auc").value == pytest.approx(metrics.roc_auc_score(new[names], p))
    assert set(found.outputs) == set(names)


def test_decisions_without_probabilities():
    """A model without probabilities is scored by its ranks, and a note says how to get them."""
    train, new = CANCER
    model = fitted(MKLClassifier([Linear()]), train)
    found = evaluate_table(model, new, "target")
    decision = model.decision_function(new.drop(columns="target"))
    assert found.score("roc_auc").value == metrics.roc_auc_score(new["target"], decision)
    assert "log_loss" not in [s.name for s in found.scores]
    assert "the model has no probabilities" in found.notes[-1]
    assert found.reliability is None


def test_positive_class():
    """Precision and recall refer to the class that is asked for."""
    train, new = CANCER
    model = fitted(MKLClassifier([Linear()], calibration="auto"), train)
    X, y = new.drop(columns="target"), new["target"]
    found = evaluate_table(model, new, "target", positive=0)
    assert found.positive == 0
    assert found.score("f1").value == metrics.f1_score(y, model.predict(X), pos_label=0)
    p = model.predict_proba(X)[:, 0]
    expected = metrics.average_precision_score(y == 0, p)
    assert found.score("average_precision").value == pytest.approx(expected)
    assert found.score("roc_auc").value == pytest.approx(metrics.roc_auc_score(y == 0, p))
    with pytest.raises(InputError, match=r"--positive: must be a class of the model \(0, 1\)"):
        evaluate_table(model, new, "target", positive="ill")


def test_weights_are_copies():
    """A row of weight two counts as two rows; intervals are then by resamples."""
    train, new = CANCER
    model = fitted(MKLClassifier([Linear()], calibration="auto"), train)
    counts = np.random.default_rng(0).integers(0, 3, len(new))
    heavy = evaluate_table(model, new.assign(w=counts), "target", weight="w")
    copies = evaluate_table(model, new.iloc[np.repeat(np.arange(len(new)), counts)], "target")
    values = {s.name: s.value for s in copies.scores}
    assert {s.name: s.value for s in heavy.scores} == pytest.approx(values)
    assert np.array_equal(heavy.confusion, copies.confusion)
    for name in ("recall", "precision"):
        shares = [getattr(part, name) for part in copies.class_scores]
        assert [getattr(part, name) for part in heavy.class_scores] == pytest.approx(shares)
    assert heavy.n_rows == (counts > 0).sum()
    assert not heavy.score("accuracy").exact
    assert heavy.notes == (f"{(counts == 0).sum()} row(s) of weight 0 are left out",)
    with pytest.raises(DataError, match="--weight: 'w' must hold numbers that are not negative"):
        evaluate_table(model, new.assign(w=-1.0), "target", weight="w")


class Odds(ClassifierMixin, BaseEstimator):
    """Knows the log-odds, which are column x, up to a factor."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y):
        self.classes_, self.feature_names_in_ = np.array([0, 1]), np.array(["x"], dtype=object)
        return self

    def predict_proba(self, X):
        p = expit(self.factor * X["x"].to_numpy())
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return (X["x"].to_numpy() > 0).astype(int)


def test_calibration():
    """Right probabilities are within chance; sharper ones are too sure, flatter ones not enough."""
    random = np.random.default_rng(0)
    x = random.normal(0, 2, size=2000)
    frame = pd.DataFrame({"x": x, "y": (random.random(2000) < expit(x)).astype(int)})
    found = {f: evaluate_table(Odds(f).fit(None, None), frame, "y") for f in (0.5, 1.0, 2.0)}
    bins = found[1.0].reliability
    assert bins.error <= bins.tolerated
    assert bins.counts.tolist() == [200] * 10
    assert ((bins.low <= bins.observed) & (bins.observed <= bins.high)).all()
    assert ((bins.low <= bins.predicted) & (bins.predicted <= bins.high)).sum() >= 8
    assert bins.predicted @ bins.counts == pytest.approx(expit(x).sum())
    for factor, sign in ((0.5, -1), (2.0, 1)):
        bins = found[factor].reliability
        assert bins.error > bins.tolerated
        assert sign * bins.excess > 0.02


def test_tolerated_error_is_exceeded_by_one_sample_in_twenty():
    """The bound of the calibration error is one, where probabilities are right."""
    random = np.random.default_rng(1)
    n, worse = 120, 0
    for _ in range(200):
        x = random.normal(0, 2, size=n)
        p, y = expit(x), (random.random(n) < expit(x)).astype(int)
        table = np.column_stack([1 - p, p])
        made = Classes(y, (x > 0).astype(int), (0, 1), 1, table, table)
        bins = reliability(made, np.ones(n), 0)
        worse += bins.error > bins.tolerated
    assert 2 <= worse <= 20


def test_sets():
    """The coverage of sets is measured, with the sizes of the sets."""
    train, new = CANCER
    model = fitted(MKLClassifier([Linear()], calibration="auto"), train)
    found = evaluate_table(model, new, "target")
    X, y = new.drop(columns="target"), new["target"].to_numpy()
    for part in found.coverage:
        sets = model.predict_set(X, part.asked)
        assert part.reached == pytest.approx(sets[np.arange(len(y)), y].mean())
        assert part.size == pytest.approx(sets.sum(axis=1).mean())
        assert part.empty == (sets.sum(axis=1) == 0).mean()
        assert part.low < part.reached < part.high


def test_groups():
    """Groups have the scores of their rows; small ones are marked, numbers are cut in ranges."""
    train, new = CANCER
    model = fitted(MKLClassifier([Linear()], calibration="auto"), train)
    site = np.array(["A", "B"])[np.arange(len(new)) % 2].astype(object)
    site[:7], site[7] = "few", None
    found = evaluate_table(model, new.assign(site=site), "target", by="site")
    assert [(g.name, g.few) for g in found.groups] == [
        ("A", False),
        ("B", False),
        ("few", True),
        ("(missing)", True),
    ]
    alone = evaluate_table(model, new[site == "A"], "target")
    own = next(g for g in found.groups if g.name == "A")
    assert [s.value for s in own.scores] == [s.value for s in alone.scores]
    assert sum(g.n_rows for g in found.groups) == len(new)
    found = evaluate_table(model, new, "target", by="mean area")
    assert len(found.groups) == 4
    assert sum(g.n_rows for g in found.groups) == len(new)


def test_two_models():
    """The better one is better, also where smaller scores are; a model does not differ from itself.

    The interval of the difference is by the same resamples, so it is narrower than that of either.
    """
    train, new = CANCER
    good = fitted(MKLClassifier([Linear()], calibration="auto"), train)
    bad = fitted(make_pipeline(StandardScaler(), LogisticRegression(C=1e-4)), train)
    found = evaluate_table(good, new, "target", against=bad)
    other = evaluate_table(bad, new, "target")
    differences = {d.name: d for d in found.differences}
    assert differences["log_loss"].better is True
    assert differences["log_loss"].interval[1] < 0
    for score in other.scores:
        assert differences[score.name].other == pytest.approx(score.value)
    ends = differences["log_loss"].interval
    assert ends[1] - ends[0] < np.diff(found.score("log_loss").interval)[0]
    turned = evaluate_table(bad, new, "target", against=good)
    assert {d.name: d.better for d in turned.differences}["log_loss"] is False
    same = evaluate_table(good, new, "target", against=good)
    assert {d.better for d in same.differences} == {None}
    regressor = MKLRegressor([Linear()]).fit(train.drop(columns="target"), train["target"])
    with pytest.raises(
        InputError, match="one of the models predicts classes and the other numbers"
    ):
        evaluate_table(good, new, "target", against=regressor)


def test_sources():
    """A view that carries the target is missed, one of noise is not; nothing is fitted again."""
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 4))
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        target=(X[:, 0] + X[:, 1] + 0.3 * random.normal(size=600) > 0).astype(int)
    )
    train, new = halves(frame)
    kernels = [views({"signal": ["a", "b"], "noise": ["c", "d"]}, [Linear()])]
    model = fitted(MKLClassifier(kernels, norm=2.0, loss="logistic"), train)
    before = model.decision_function(new[list("abcd")])
    found = evaluate_table(model, new, "target", sources=True)
    assert [s.name for s in found.sources] == ["signal", "noise"]
    assert found.sources[0].columns == ("a", "b")
    assert found.sources[0].loss > 0.3
    assert found.sources[0].interval[0] > 0.2
    assert found.sources[1].loss < 0.02
    assert found.sources[0].value == pytest.approx(found.score().value - found.sources[0].loss)
    assert np.array_equal(before, model.decision_function(new[list("abcd")]))
    single = fitted(MKLClassifier([Linear()], loss="logistic"), train)
    assert {s.name for s in evaluate_table(single, new, "target", sources=True).sources} == set(
        "abcd"
    )


def test_columns_without_names():
    """A model of an array takes the columns that are no target."""
    train, new = CANCER
    model = MKLClassifier([Linear()]).fit(train.drop(columns="target").to_numpy(), train["target"])
    shown = new.assign(site="A")
    found = evaluate_table(model, shown, "target", by="site", sources=True)
    assert found.n_rows == len(new)
    assert {s.name for s in found.sources} == {"mean area", "mean texture"}
    with pytest.raises(DataError, match="was fitted to 2 columns of numbers without names"):
        evaluate_table(model, shown, "target")


def test_one_class_and_gaps():
    """One class has no AUC, which is said; rows without a target are left out, which is said."""
    train, new = CANCER
    model = fitted(MKLClassifier([Linear()], calibration="auto"), train)
    found = evaluate_table(model, new[new["target"] == 1], "target")
    assert np.isnan(found.score("roc_auc").value)
    assert found.score("roc_auc").interval is None
    assert found.score("log_loss").interval is not None
    assert "AUC and average precision are undefined" in found.notes[0]
    assert found.roc == ()
    gaps = new.astype({"target": float})
    gaps.loc[:4, "target"] = np.nan
    found = evaluate_table(model, gaps, "target")
    assert found.n_rows == len(new) - 5
    assert found.notes == ("5 row(s) without a value of 'target' are left out",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="target"), "The table has no column 'target'"),
        (lambda f: f.drop(columns="mean area"), "lacks the column 'mean area' that the model"),
        (lambda f: f.assign(target=7), "has the value 7 in 284 row.s., which is no class"),
        (lambda f: f.assign(target=np.nan), "The column 'target' has no values"),
        (lambda f: f.head(0), "The table has no rows"),
    ],
)
def test_bad_tables(change, message):
    """One sentence for each mistake."""
    train, new = CANCER
    model = fitted(MKLClassifier([Linear()]), train)
    with pytest.raises(DataError, match=message):
        evaluate_table(model, change(new), "target")


def test_bad_numbers_and_models():
    """Text in place of numbers, infinite numbers, and models without a target or predictions."""
    train, new = DIABETES
    model = fitted(MKLRegressor([Linear()]), train)
    with pytest.raises(DataError, match="'target' must hold numbers, but has 'high'"):
        evaluate_table(model, new.assign(target="high"), "target")
    with pytest.raises(DataError, match="'target' must have finite values"):
        evaluate_table(model, new.assign(target=np.inf), "target")
    with pytest.raises(InputError, match="--target: this model does not know the name"):
        evaluate_table(model, new)
    with pytest.raises(InputError, match="A StandardScaler predicts neither classes nor numbers"):
        evaluate_table(StandardScaler().fit(train[["age"]]), new[["age", "target"]], "target")
    with pytest.raises(InputError, match="name: must be one of r2"):
        evaluate_table(model, new, "target").score("accuracy")


def test_models_of_fit():
    """Models that fit writes know their target, take the raw table and have everything."""
    train, new = WINE
    found = evaluate_table(fit_table(train, "target", seconds=1.0).model, new)
    assert found.targets == ("target",)
    assert found.reliability is not None
    assert [c.asked for c in found.coverage] == [0.8, 0.9, 0.95]
    again = evaluate_table(fit_table(train, "target", seconds=1.0).model, new)
    assert again.scores == found.scores  # the same seed, the same intervals
