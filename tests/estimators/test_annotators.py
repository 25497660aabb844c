"""The classifier for rows that several annotators labelled."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from kernelweave import RBF, AnnotatorKernelClassifier, Linear, answers_from_triples, suspects
from kernelweave.banks import make_bank
from kernelweave.baselines import DawidSkene
from kernelweave.errors import InputError
from kernelweave.io import load, save
from kernelweave.ridge import average_ridges

KERNELS = [RBF(1.0), RBF(3.0), Linear()]


def blobs(seed=0, n=150, n_classes=3, n_annotators=6, asked=0.4, distance=2.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 2)) + distance * np.column_stack([truth == 1, truth == 2])
    wrong = rng.random((n, n_annotators)) < np.linspace(0.1, 0.7, n_annotators)
    said = np.where(wrong, rng.integers(0, n_classes, (n, n_annotators)), truth[:, None])
    table = said.astype(float)
    table[rng.random(table.shape) > asked] = np.nan
    return X, truth, table


def test_columns_and_annotators_together_beat_each_alone():
    X, truth, table = blobs(asked=0.3, n=300)
    model = AnnotatorKernelClassifier(KERNELS).fit(X, table)
    alone = DawidSkene(kappa=3.0).fit(table)
    assert (model.labels_ == truth).mean() > (alone.labels_ == truth).mean() + 0.03
    fresh, labels, _ = blobs(1)
    assert model.score(fresh, labels) > 0.75
    assert model.converged_
    assert model.changes_[-1] <= model.tol


def test_leave_one_out_map_is_that_of_the_average_and_ignores_a_row_itself():
    X, _, _ = blobs()
    rng = np.random.default_rng(3)
    Y = rng.random((len(X), 3))
    average = average_ridges(make_bank(KERNELS, X), Y, power=1)
    scores = average.loo_map()
    others = np.array([np.delete(Y, i, axis=0).mean(axis=0) for i in range(len(Y))])
    np.testing.assert_allclose(scores(Y), average.loo(Y) - others, atol=1e-10)
    other = Y.copy()
    other[7] = rng.random(3)
    assert (scores(other)[7] == scores(Y)[7]).all()  # to the last bit


def test_columns_of_noise_do_no_harm():
    """Useless kernels predict the mean of the other rows, which gives a row's own class away."""
    gains = []
    for seed in range(4):
        _, truth, table = blobs(seed, n=200, n_classes=5, asked=0.5)
        X = np.random.default_rng(seed).normal(size=(200, 30))
        model = AnnotatorKernelClassifier().fit(X, table)
        alone = DawidSkene(kappa=3.0, max_iter=300).fit(table)
        gains.append((model.labels_ == truth).mean() - (alone.labels_ == truth).mean())
    assert np.mean(gains) > -0.01


def test_decision_values_are_calibrated_ridge_models():
    X, _, table = blobs()
    model = AnnotatorKernelClassifier(KERNELS).fit(X, table)
    bank = make_bank(KERNELS, X, tol=1e-4)
    average = average_ridges(bank, model.truth_, power=1)
    np.testing.assert_allclose(model.ridge_weights_, average.ridge_weights, atol=1e-10)
    dual_coef, shift, _ = average.coefficients(model.truth_ - model.truth_.mean(axis=0))
    fresh = blobs(1)[0]
    f = shift
    for scale, kernel, part in zip(bank.scales, bank.kernels, dual_coef, strict=True):
        f = f + scale * kernel(fresh, X[average.support()]) @ part.T
    expected = f @ model.calibration_[:-1] + model.calibration_[-1]
    np.testing.assert_allclose(model.decision_function(fresh), expected, atol=1e-8)
    probabilities = model.predict_proba(fresh)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (probabilities.argmax(axis=1) == model.predict(fresh)).all()


def test_two_classes_have_one_decision_value():
    X, _, table = blobs(n_classes=2)
    model = AnnotatorKernelClassifier(KERNELS).fit(X, np.where(table == 1, "yes", "no"))
    decision = model.decision_function(X)
    assert decision.shape == (len(X),)
    np.testing.assert_allclose(
        model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-decision)), rtol=1e-12
    )
    assert set(model.predict(X)) <= {"yes", "no"}


def test_the_order_of_annotators_and_the_form_of_answers_do_not_matter():
    X, _, table = blobs()
    model = AnnotatorKernelClassifier(KERNELS).fit(X, table)
    order = [3, 1, 5, 0, 2, 4]
    other = AnnotatorKernelClassifier(KERNELS).fit(X, table[:, order])
    np.testing.assert_allclose(model.truth_, other.truth_, atol=1e-9)
    rows, who = np.nonzero(~np.isnan(table))
    triples = answers_from_triples(rows, who, table[rows, who], len(X))
    same = AnnotatorKernelClassifier(KERNELS).fit(X, triples)
    np.testing.assert_array_equal(model.truth_, same.truth_)
    np.testing.assert_array_equal(model.answer_quality_, same.answer_quality_)


def test_an_annotator_whose_answers_are_all_shifted_costs_little():
    costs = []
    for seed in range(3):
        X, truth, table = blobs(seed, n=300, asked=0.5)
        plain = AnnotatorKernelClassifier(KERNELS).fit(X, table)
        table[:, 0] = (table[:, 0] + 1) % 3  # the best of them; gaps stay gaps
        shifted = AnnotatorKernelClassifier(KERNELS).fit(X, table)
        assert (np.diagonal(shifted.confusions_[0], offset=1) > 0.6).all()
        costs.append((plain.labels_ == truth).mean() - (shifted.labels_ == truth).mean())
    assert np.mean(costs) < 0.01


def test_threads_do_not_change_the_model():
    X, _, table = blobs()
    one = AnnotatorKernelClassifier(KERNELS, n_jobs=1).fit(X, table)
    two = AnnotatorKernelClassifier(KERNELS, n_jobs=2).fit(X, table)
    np.testing.assert_array_equal(one.truth_, two.truth_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_a_known_prior_raises_a_rare_class():
    X, _, table = blobs(distance=1.0, n=90)
    shares = AnnotatorKernelClassifier(KERNELS).fit(X, table).predict_proba(X).mean(axis=0)
    prior = [0.8, 0.1, 0.1]
    moved = AnnotatorKernelClassifier(KERNELS, class_prior=prior).fit(X, table)
    assert moved.predict_proba(X).mean(axis=0)[0] > shares[0] + 0.1
    assert moved.truth_.mean(axis=0)[0] > shares[0]


def test_suspects_are_answers():
    X, truth, table = blobs(n=300)
    model = AnnotatorKernelClassifier(KERNELS).fit(X, table)
    found = suspects(model)
    frame = found.to_frame()
    assert list(frame) == ["index", "annotator", "quality", "given", "suggested"]
    given = table[frame["index"], frame["annotator"]]
    np.testing.assert_array_equal(given, frame["given"])
    assert (frame["given"] != frame["suggested"]).all()
    rows, who = np.nonzero(~np.isnan(table))
    wrong = table[rows, who] != truth[rows]
    assert roc_auc_score(wrong, 1 - model.answer_quality_) > 0.9
    assert abs(model.noise_level_ - wrong.mean()) < 0.1
    assert "answers look wrong" in repr(found)
    assert " by " in repr(found)


def test_annotators_are_ranked_by_accuracy():
    X, truth, table = blobs(n=400, asked=0.7)
    model = AnnotatorKernelClassifier(KERNELS).fit(X, table)
    known = ~np.isnan(table)
    right = [(table[known[:, j], j] == truth[known[:, j]]).mean() for j in range(table.shape[1])]
    np.testing.assert_allclose(model.annotator_accuracy_, right, atol=0.07)
    assert model.to_frame()["accuracy"].is_monotonic_increasing
    assert model.n_answers_.tolist() == known.sum(axis=0).tolist()


def test_a_model_file_keeps_everything(tmp_path):
    X, _, table = blobs()
    model = AnnotatorKernelClassifier(KERNELS).fit(X, table)
    save(model, tmp_path / "m.kw")
    loaded = load(tmp_path / "m.kw")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    for name in ("truth_", "confusions_", "answer_quality_", "labels_", "calibration_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    assert repr(loaded.suspects()) == repr(model.suspects())


def test_large_n_uses_landmarks(monkeypatch):
    X, _, table = blobs(n=600)
    exact = AnnotatorKernelClassifier(KERNELS).fit(X, table)
    monkeypatch.setattr("kernelweave.banks.nystroem.build.PASS_ROWS", 500)
    model = AnnotatorKernelClassifier(KERNELS).fit(X, table)
    assert len(model.support_) <= 600
    assert (model.labels_ == exact.labels_).mean() > 0.98
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=0.05)


def test_what_cannot_be_learned_is_refused_in_a_sentence():
    X, _, table = blobs(n=30)
    with pytest.raises(InputError, match="X has 30, the answers have 20"):
        AnnotatorKernelClassifier().fit(X, table[:20])
    with pytest.raises(InputError, match="one class only"):
        AnnotatorKernelClassifier().fit(X, np.zeros((30, 2)))
    with pytest.raises(InputError, match="3 positive shares that sum to 1"):
        AnnotatorKernelClassifier(class_prior=[0.5, 0.5]).fit(X, table)
    with pytest.raises(InputError, match="ridges"):
        AnnotatorKernelClassifier(ridges=[-1.0]).fit(X, table)


def test_warnings_say_what_the_answers_cannot_tell():
    X, _, table = blobs(n=60)
    few = table.copy()
    few[:, 1:] = np.nan
    few[0, 1:], few[1, 1:] = 0, 1
    with pytest.warns(UserWarning, match="fewer than 5 answers"):
        AnnotatorKernelClassifier(KERNELS).fit(X, few)
    same = np.column_stack([table, np.ones(len(X))])
    with pytest.warns(UserWarning, match=r"of 7 annotators say nothing .* 6\."):
        AnnotatorKernelClassifier(KERNELS, kappa=0.0).fit(X, same)
    with pytest.warns(UserWarning, match="stopped after 1 rounds"):
        AnnotatorKernelClassifier(KERNELS, max_iter=1).fit(X, table)


PEOPLE = Path(os.environ.get("KERNELWEAVE_DATA", "../shared/data")) / "people"


@pytest.mark.slow
@pytest.mark.skipif(not (PEOPLE / "music.npz").exists(), reason="needs the data people/music.npz")
@pytest.mark.parametrize(
    ("keep", "prior", "truth", "test"), [(None, None, 0.795, 0.66), (2, "equal", 0.76, 0.645)]
)
def test_real_mistakes_on_music(keep, prior, truth, test):
    data = np.load(PEOPLE / "music.npz", allow_pickle=False)
    scaler = StandardScaler().fit(data["X_train"])
    found = []
    for seed in range(2):
        rng = np.random.default_rng(1000 + seed)
        order = rng.permutation(700)
        rows, rest = order[:560], order[560:]
        table = data["answers"][rows].astype(float)
        table[table < 0] = np.nan
        for i in range(len(table) if keep else 0):
            asked = np.flatnonzero(~np.isnan(table[i]))
            table[i, rng.permutation(asked)[keep:]] = np.nan
        model = AnnotatorKernelClassifier(class_prior=prior)
        model.fit(scaler.transform(data["X_train"][rows]), table)
        X = scaler.transform(np.vstack([data["X_train"][rest], data["X_test"]]))
        y = np.concatenate([data["gold_train"][rest], data["gold_test"]])
        found.append([(model.labels_ == data["gold_train"][rows]).mean(), model.score(X, y)])
    assert (np.mean(found, axis=0) >= [truth, test]).all()


def test_known_classes_are_certain_and_show_the_annotators():
    """An annotator who is wrong on every row is found out by known rows, whatever others say."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 120)
    X = rng.normal(size=(120, 2))  # columns that carry no information
    answers = np.column_stack([1 - truth, 1 - truth, truth]).astype(float)  # two liars
    without = AnnotatorKernelClassifier().fit(X, answers)
    assert (without.labels_ == truth).mean() < 0.1
    known = np.full(120, None, dtype=object)
    known[:30] = truth[:30]
    model = AnnotatorKernelClassifier().fit(X, answers, known=known)
    assert (model.truth_[np.arange(30), truth[:30]] == 1.0).all()
    assert model.annotator_accuracy_[2] > model.annotator_accuracy_[0]
    assert (model.labels_ == truth).mean() > 0.9
    known[5] = 7
    with pytest.raises(InputError, match="row 5 has the class 7, which no annotator"):
        AnnotatorKernelClassifier().fit(X, answers, known=known)
