"""The classifier for wrong labels: invariants, modes, other tables, and what it refuses."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from kernelweave import (
    RBF,
    Linear,
    NoiseTolerantKernelClassifier,
    Precomputed,
    complete_ladder,
    rbf_ladder,
)
from kernelweave.cli import main
from kernelweave.errors import InputError, KernelweaveError, ModelFileError
from kernelweave.io import load, save
from kernelweave.plots import plot_history
from quick import first
from wrong_labels import NEW, NOISY, TRUE, X, blobs, fitted


def three(n=240, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 3)) + 3.0 * np.eye(3)[y]
    flipped = rng.random(n) < noise
    return X, y, np.where(flipped, (y + rng.integers(1, 3, n)) % 3, y)


def arrays(model):
    return {k: v for k, v in vars(model).items() if isinstance(v, np.ndarray | float)}


@pytest.mark.parametrize("mode", ["auto", "class", "symmetric"])
def test_flipped_labels_give_the_mirror_image(mode):
    one, other = fitted(mode=mode), fitted(y=1 - NOISY, mode=mode)
    np.testing.assert_allclose(other.loo_scores_, -one.loo_scores_, atol=1e-12)
    assert other.threshold_ == pytest.approx(-one.threshold_, abs=1e-12)
    np.testing.assert_allclose(other.label_quality_, one.label_quality_, atol=1e-12)
    np.testing.assert_allclose(other.rates_, one.rates_[::-1], atol=1e-12)
    np.testing.assert_allclose(other.decision_function(NEW), -one.decision_function(NEW), atol=1e-9)


@pytest.mark.parametrize("mode", ["auto", "class"])
def test_the_order_of_rows_and_kernels_does_not_matter(mode):
    kernels = [RBF(1.0), RBF(4.0), Linear()]
    one = fitted(kernels=kernels, mode=mode)
    rows = np.random.default_rng(1).permutation(len(X))
    other = fitted(X[rows], NOISY[rows], kernels=kernels[::-1], mode=mode)
    np.testing.assert_allclose(other.label_quality_, one.label_quality_[rows], atol=1e-8)
    np.testing.assert_allclose(other.weights_, one.weights_[::-1], atol=1e-8)
    np.testing.assert_allclose(other.decision_function(NEW), one.decision_function(NEW), atol=1e-7)


def test_multiples_and_constants_of_gram_matrices_change_nothing():
    rows = np.arange(len(X))[:, None]
    grams = [RBF(1.0)(X), Linear()(X)]
    one = fitted(rows, kernels=[Precomputed(K) for K in grams])
    other = fitted(rows, kernels=[Precomputed(7.0 * K + 3.0) for K in grams])
    np.testing.assert_allclose(other.loo_scores_, one.loo_scores_, atol=1e-9)
    np.testing.assert_allclose(
        other.decision_function(rows), one.decision_function(rows), atol=1e-8
    )


def test_weights_are_shares_with_a_floor():
    model = fitted(floor=0.5)
    assert model.weights_.sum() == pytest.approx(1)
    assert (model.weights_ >= 0.5 / 12 - 1e-12).all()
    np.testing.assert_allclose(model.ridge_weights_.sum(axis=1), model.weights_)
    assert model.contributions_.sum() == pytest.approx(1)
    assert model.objective_ == model.loo_error_ > 0
    assert np.isnan(model.duality_gap_)
    assert (model.n_iter_, model.converged_, model.history_) == (1, True, [])


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_blobs_with_one_sided_noise(seed):
    X, y, noisy = blobs(seed=seed, rates=(0.1, 0.35))
    new, true, _ = blobs(seed=100 + seed)
    model = fitted(X, noisy, mode="class")
    np.testing.assert_allclose(model.rates_, (0.1, 0.35), atol=0.1)
    assert model.score(new, true) >= 0.98
    X, y, noisy = blobs(seed=seed, rates=(0.1, 0.45))
    assert fitted(X, noisy, mode="class").score(new, true) >= 0.98
    assert fitted(X, noisy, mode="symmetric").score(new, true) < 0.93
    assert fitted(X, y).noise_level_ < 0.01


def test_a_kernel_of_noise_changes_little():
    X, _, noisy = blobs(300, seed=4, rates=(0.2, 0.2), apart=2.5)
    new, true, _ = blobs(500, seed=5, apart=2.5)
    junk = np.random.default_rng(6).normal(size=(800, 4))
    tables = np.hstack([X, junk[:300]]), np.hstack([new, junk[300:]])
    ladder = complete_ladder(columns=range(5))
    plain = fitted(tables[0], noisy, kernels=ladder)
    more = fitted(tables[0], noisy, kernels=[ladder, RBF(1.0, columns=range(5, 9))])
    assert abs(plain.score(tables[1], true) - more.score(tables[1], true)) < 0.01


@pytest.mark.parametrize("seed", range(3))
def test_random_labels_are_reported(seed):
    rng = np.random.default_rng(seed)
    with pytest.warns(UserWarning, match="predict these labels no better than chance"):
        model = fitted(rng.normal(size=(200, 5)), rng.integers(0, 2, 200))
    assert model.noise_level_ > 0.33


def test_where_nothing_is_learned_the_larger_class_is_predicted():
    """Not about half of each class, as a threshold at the mean of the labels would."""
    rng = np.random.default_rng(0)
    table, labels = rng.normal(size=(200, 5)), (rng.random(200) < 0.7).astype(int)
    with pytest.warns(UserWarning, match="predict these labels no better than chance"):
        model = fitted(table, labels, ridges=[1e4])
    assert np.ptp(model.loo_scores_) < 0.04
    assert (model.predict(rng.normal(size=(50, 5))) == 1).all()
    middle = np.quantile(model.loo_scores_, [0.05, 0.95]).mean()
    assert model.threshold_ == pytest.approx(0.7 * middle)


@pytest.mark.parametrize("options", [{}, {"mode": "symmetric"}, {"mode": "class", "final": "svm"}])
def test_several_classes(options):
    X, y, noisy = three()
    new, true, _ = three(seed=1)
    names = np.array(["a", "b", "c"])
    model = fitted(X, names[noisy], **options)
    assert model.score(new, names[true]) > 0.9
    assert model.decision_function(new).shape == (240, 3)
    assert model.rates_.shape == (3, 3)
    np.testing.assert_allclose(model.rates_.sum(axis=1), 1)
    assert 0.05 < model.noise_level_ < 0.25
    flipped = set(np.flatnonzero(y != noisy))
    assert len(flipped & set(model.suspects().index)) > 0.8 * len(flipped)
    probabilities = model.predict_proba(new)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(new))
    assert (model.label_quality_ < 0.5).sum() == len(model.suspects())


def test_known_rates_of_several_classes():
    X, _, noisy = three()
    rates = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    np.testing.assert_array_equal(fitted(X, noisy, rates=rates).rates_, rates)


def test_probabilities_of_several_classes_are_calibrated():
    X, _, noisy = three(600)
    model = fitted(X, noisy)
    new, true, _ = three(600, seed=1)
    chosen = model.predict_proba(new)[np.arange(600), true]
    assert -np.log(chosen).mean() < 0.5


def test_probabilities_follow_the_decision():
    model = fitted()
    p, f = model.predict_proba(NEW), model.decision_function(NEW)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert ((p[:, 1] > 0.5) == (f > 0)).all()
    assert p.min() == pytest.approx(0.02)


@pytest.mark.parametrize("options", [{}, {"mode": "class"}, {"average": "kernels"},
                                     {"mode": "class", "final": "svm"}])  # fmt: skip
def test_threads_do_not_change_a_bit(options):
    one, two = fitted(n_jobs=1, **options), fitted(n_jobs=2, **options)
    for name, value in arrays(one).items():
        np.testing.assert_array_equal(value, arrays(two)[name], err_msg=name)
    np.testing.assert_array_equal(one.decision_function(NEW), two.decision_function(NEW))


@pytest.mark.parametrize("options", [{}, {"mode": "class"}, {"average": "kernels"},
                                     {"mode": "class", "final": "svm"}])  # fmt: skip
def test_pickles_clones_and_model_files(options, tmp_path):
    X, _, noisy = three(120)
    for table, y in ((X, noisy), (X[noisy < 2], noisy[noisy < 2])):
        model = fitted(table, y, **options)
        for again in (
            pickle.loads(pickle.dumps(model)),
            clone(model).fit(table, y),
            load(save(model, tmp_path / "model.kw")),
        ):
            np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
            np.testing.assert_array_equal(again.suspects().index, model.suspects().index)
            for name, value in arrays(model).items():
                np.testing.assert_array_equal(arrays(again)[name], value, err_msg=name)
        assert load(tmp_path / "model.kw").get_params() == model.get_params()


def test_grid_search_and_precomputed_kernels():
    rows = np.arange(len(X))[:, None]
    model = NoiseTolerantKernelClassifier([Precomputed(RBF(2.0)(X)), Precomputed(Linear()(X))])
    search = GridSearchCV(model, {"mode": ["auto", "symmetric"]}, cv=3).fit(rows, NOISY)
    direct = fitted(kernels=[RBF(2.0), Linear()], mode=search.best_params_["mode"])
    np.testing.assert_allclose(
        search.best_estimator_.decision_function(rows), direct.decision_function(X), atol=1e-7
    )


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_with_categories(make):
    towns = np.array(["Ulm", "Bonn", "Kiel"])[np.random.default_rng(0).integers(0, 3, len(X))]
    labels = NOISY ^ (towns == "Kiel")
    frame = make({"a": X[:, 0], "b": X[:, 1], "town": towns})
    model = fitted(frame, labels)
    assert list(model.feature_names_in_) == ["a", "b", "town"]
    truth = TRUE ^ (towns == "Kiel")
    assert model.score(frame, truth) > 0.8
    words = make({"town": towns, "other": towns[::-1]})
    assert fitted(words, np.where(towns == "Kiel", "x", "y")).score(
        words, np.where(towns == "Kiel", "x", "y")
    ) == pytest.approx(1.0)


def test_sparse_rows_are_those_of_the_array():
    kernels = [rbf_ladder([1.0, 3.0]), Linear()]
    one, other = fitted(kernels=kernels), fitted(sp.csr_array(X), kernels=kernels)
    np.testing.assert_allclose(
        other.decision_function(sp.csr_array(NEW)), one.decision_function(NEW), atol=1e-7
    )
    assert fitted(sp.csr_array(X)).score(sp.csr_array(X), TRUE) > 0.85  # the default ladder


def test_the_learned_kernel_and_the_table():
    model = fitted(kernels=[RBF(1.0), Linear()])
    K = model.kernel(NEW, X)
    expected = sum(
        w * s * k(NEW, X)
        for w, s, k in zip(model.weights_, model.scales_, model.kernels_, strict=True)
    )
    np.testing.assert_allclose(K, expected, atol=1e-10)
    assert list(model.to_frame().columns) == ["kernel", "weight", "contribution"]
    found = sum(
        model.scales_[j] * k(NEW, X[model.support_]) @ model.dual_coef_[j].T
        for j, k in enumerate(model.kernels_)
    )
    np.testing.assert_allclose(
        (found + model.intercept_).ravel(), model.decision_function(NEW), atol=1e-9
    )


def test_progress_goes_to_the_terminal(capsys):
    fitted(kernels=[RBF(1.0), Linear()], verbose=1)
    assert "2 of 2 kernels" in capsys.readouterr().err


def test_a_refused_refit_leaves_the_old_model():
    model = fitted()
    expected = model.predict(NEW)
    with pytest.raises(InputError):
        model.fit(X[:, :2], np.zeros(len(X)))
    np.testing.assert_array_equal(model.predict(NEW), expected)


def test_two_rows_are_enough():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted([[0.0], [1.0]], ["a", "b"])
    assert np.isfinite(model.decision_function([[0.0], [2.0]])).all()


def test_equal_rows_with_different_labels():
    table = np.repeat(X[:30], 2, axis=0)
    y = np.tile([0, 1], 30)
    with pytest.warns(UserWarning, match="chance"):
        model = fitted(table, y)
    assert np.isfinite(model.label_quality_).all()


REFUSED = {
    "mode": ({"mode": "fast"}, "'mode'"),
    "shift": ({"shift": 1.5}, "'shift'"),
    "temperature": ({"temperature": 0}, "'temperature'"),
    "floor": ({"floor": -0.1}, "'floor'"),
    "tail": ({"tail": 0.5}, "'tail'"),
    "class_prior": ({"class_prior": 1.0}, "'class_prior'"),
    "average": ({"average": True}, "'average'"),
    "final": ({"final": "tree"}, "'final'"),
    "final without class": ({"final": "svm"}, "final='svm'.*mode='class'"),
    "rates of one number": ({"rates": [0.2]}, "rates: must be two numbers"),
    "rates of text": ({"rates": ["a", "b"]}, "rates: must be two numbers"),
    "rates too large": ({"rates": (0.5, 0.6)}, "rates: together they must be below 1"),
    "negative rates": ({"rates": (-0.1, 0.2)}, "rates: must be two numbers"),
    "rates as counts": ({"rates": [[9, 1], [2, 8]]}, "rows are probabilities"),
    "rates and prior": ({"rates": (0.1, 0.1), "class_prior": 0.5}, "class_prior.*leave one out"),
    "no ridges": ({"ridges": []}, "ridges: must be one or more"),
    "ridge zero": ({"ridges": [0.0, 1.0]}, "ridges: must be one or more"),
    "ridge infinite": ({"ridges": [np.inf]}, "ridges: must be one or more"),
    "memory": ({"memory_limit": "lots"}, "memory_limit"),
    "memory too small": ({"memory_limit": 1e5}, "limit is"),
    "constant kernels": ({"kernels": [RBF(1e9)]}, "constant"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_options_get_one_sentence(options, message):
    with pytest.raises(ValueError, match=message) as refused:
        fitted(**options)
    assert "\n" not in str(refused.value)
    if not message.startswith("'"):  # those are scikit-learn's own words
        assert isinstance(refused.value, KernelweaveError)


def test_bad_data_gets_one_sentence():
    X3, _, y3 = three()
    with pytest.raises(InputError, match="class_prior: is for two classes, but y has 3"):
        fitted(X3, y3, class_prior=0.2)
    with pytest.raises(InputError, match=r"rates: must be a matrix of shape \(3, 3\)"):
        fitted(X3, y3, rates=(0.1, 0.2))
    with pytest.raises(InputError, match="two classes or more"):
        fitted(y=np.zeros(len(X)))
    with pytest.raises(TypeError, match="sample_weight"):
        NoiseTolerantKernelClassifier().fit(X, NOISY, sample_weight=np.ones(len(X)))
    with pytest.raises(NotFittedError):
        NoiseTolerantKernelClassifier().suspects()


def test_what_others_say_of_it(tmp_path, capsys):
    model = fitted()
    path = save(model, tmp_path / "model.kw")
    assert main(["info", str(path)]) == 0
    told = capsys.readouterr().out
    assert "leave-one-out error" in told
    assert f"labels that look wrong  {model.noise_level_:.1%}" in told
    with pytest.raises(InputError, match="closed form and has no history"):
        plot_history(model)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dual_coef_", np.zeros((1, 3))),
        ("_given", np.array([0, 7])),
        ("label_quality_", [0.5]),
        ("rates_", np.zeros(3)),
        ("_slope", "steep"),
        ("ridge_weights_", np.zeros(2)),
    ],
)
def test_a_damaged_model_file_is_refused(tmp_path, name, value):
    model = fitted()
    setattr(model, name, value)
    with pytest.raises(ModelFileError, match=name):
        load(save(model, tmp_path / "model.kw"))


def test_rows_are_read_in_passes_where_eigenvectors_do_not_fit(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(rng.random(300) < 0.2, X[:, 0] < 0, X[:, 0] > 0)
    kernels = [RBF(w, columns=[c]) for w in (1.0, 2.0) for c in range(3)]
    plenty = NoiseTolerantKernelClassifier(kernels).fit(X, y)
    monkeypatch.setattr("kernelweave.ridge.nystroem.DENSE_ROWS", 100)
    short = NoiseTolerantKernelClassifier(kernels, memory_limit="3MB").fit(X, y)
    assert plenty._function is None
    assert short._function is not None
    np.testing.assert_allclose(short.loo_scores_, plenty.loo_scores_, atol=1e-6)
    np.testing.assert_allclose(short.decision_function(X), plenty.decision_function(X), atol=1e-6)
    sparse = NoiseTolerantKernelClassifier(kernels, memory_limit="3MB").fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.loo_scores_, plenty.loo_scores_, atol=1e-6)


def test_balanced_decisions_of_several_classes():
    """Labels of one class often say another: "class" predicts it more often than "auto"."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 2)) + 1.5 * np.column_stack([y == 1, y == 2])
    noisy = np.where((y == 2) & (rng.random(300) < 0.6), 1, y)
    plain = NoiseTolerantKernelClassifier(mode="auto").fit(X, noisy)
    model = NoiseTolerantKernelClassifier(mode="class").fit(X, noisy)
    assert (model.predict(X) == 2).sum() > (plain.predict(X) == 2).sum()
    assert model.score(X, y) > plain.score(X, y)
    # Probabilities are calibrated ones of the labels, divided by their shares.
    shares = np.bincount(noisy) / 300
    labels = model.predict_proba(X) * shares
    labels /= labels.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(labels.mean(axis=0), shares, atol=0.05)


@pytest.mark.parametrize(("n_classes", "mode"), [(2, "auto"), (2, "class"), (3, "auto")])
def test_labels_that_were_checked_count_as_certain(n_classes, mode):
    rng = np.random.default_rng(1)
    y = rng.integers(0, n_classes, 150)
    X = rng.normal(size=(150, 2)) + 3.0 * np.eye(n_classes, 2)[y]
    noisy = np.where(rng.random(150) < 0.25, (y + 1) % n_classes, y)
    known = np.full(150, None, dtype=object)
    known[:60] = y[:60]
    model = NoiseTolerantKernelClassifier(mode=mode).fit(X, noisy, known=known)
    assert (model.label_quality_[:60] == 1.0).all()
    assert (model.wrong_label_probability_[:60] == 0.0).all()
    assert (model.suspects().index >= 60).all()
    assert np.array_equal(model.classes_[model._given[:60]], y[:60])
    merged = np.concatenate([y[:60], noisy[60:]])
    alone = NoiseTolerantKernelClassifier(mode=mode).fit(X, merged)
    # The first fit is that to the corrected labels; certain ones enter the second fit as they are.
    assert np.array_equal(model.ridge_weights_, alone.ridge_weights_)
    assert np.array_equal(model.loo_scores_, alone.loo_scores_) == (
        mode == "auto" and n_classes == 2
    )
    with pytest.raises(InputError, match="an entry for each of the 150 rows"):
        NoiseTolerantKernelClassifier().fit(X, noisy, known=[1])


def test_probabilities_of_several_classes_follow_quality():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    rows = rng.normal(size=(200, 2)) + 3.0 * np.eye(3, 2)[y]
    noisy = np.where(rng.random(200) < 0.2, rng.integers(0, 3, 200), y)
    for mode in ("auto", "class"):
        model = NoiseTolerantKernelClassifier(mode=mode).fit(rows, noisy)
        order = np.argsort(model.label_quality_, kind="stable")
        assert (np.diff(model.wrong_label_probability_[order]) <= 0).all()


def rare_class(seed, gap):
    """Return a table of which 10 % are of one class, with 10 % of the labels flipped."""
    rng = np.random.default_rng(seed)
    y = (rng.random(800) < 0.1).astype(int)
    rows = rng.normal(size=(800, 4))
    rows[:, 0] += gap * y
    return rows[:400], np.where(rng.random(800) < 0.1, 1 - y, y)[:400], rows[400:], y[400:]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_rare_class_that_overlaps_is_not_taken_for_noise(seed):
    rows, noisy, new, truth = rare_class(seed, 1.5)
    with pytest.warns(UserWarning, match="mode='class' corrects nothing here"):
        model = NoiseTolerantKernelClassifier(mode="class").fit(rows, noisy)
    assert model.score(new, truth) > (truth == 0).mean() - 0.02
    plain = NoiseTolerantKernelClassifier(mode="symmetric").fit(rows, noisy)
    assert np.array_equal(model.predict(new), plain.predict(new))


@pytest.mark.parametrize("flip", [1, -1])
@pytest.mark.parametrize("seed", [2, 4, 11])
def test_a_rare_class_of_which_few_rows_are_sure_is_corrected_in_part(seed, flip):
    """Both rates are 0.1; the range of scores says 0.02 and 0.4 to 0.5."""
    rng = np.random.default_rng(seed)
    rows, y = make_classification(
        700, 10, n_informative=4, weights=[0.9], flip_y=0, class_sep=0.6, random_state=seed
    )
    noisy = np.where(rng.random(700) < 0.1, 1 - y, y)[:350]
    y, noisy = y * flip, noisy * flip
    with pytest.warns(UserWarning, match="corrects no more than mode='auto' here: few rows"):
        model = NoiseTolerantKernelClassifier(mode="class").fit(rows[:350], noisy)
    auto = NoiseTolerantKernelClassifier().fit(rows[:350], noisy)
    np.testing.assert_array_equal(model.predict(rows), auto.predict(rows))
    assert model.score(rows[350:], y[350:]) > (y[350:] == 0).mean() - 0.02


def test_weak_kernels_of_frequent_classes_are_corrected():
    """No row is surely of the class that noise hits, but that class is not rare."""
    rng = np.random.default_rng(2)
    y = (rng.random(600) < 0.45).astype(int)
    rows = rng.normal(size=(600, 4))
    rows[:, 0] += 1.3 * y
    noisy = np.where(rng.random(600) < np.where(y == 1, 0.45, 0.05), 1 - y, y)[:200]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NoiseTolerantKernelClassifier(mode="class").fit(rows[:200], noisy)
    plain = NoiseTolerantKernelClassifier(mode="symmetric").fit(rows[:200], noisy)
    assert model.score(rows[200:], y[200:]) > plain.score(rows[200:], y[200:]) + 0.1


def test_a_rare_class_that_is_seen_clearly_is_corrected():
    rows, noisy, new, truth = rare_class(0, 4.0)
    model = NoiseTolerantKernelClassifier(mode="class").fit(rows, noisy)
    assert model.score(new, truth) > 0.95


@pytest.mark.filterwarnings(
    "ignore:NoiseTolerantKernelClassifier. the kernels predict these labels no better"
)
def test_coefficients_are_in_the_order_of_a_model_file():
    """Sums in another order have other last digits, and a loaded model is the saved one."""
    model = NoiseTolerantKernelClassifier(mode="class", final="svm").fit(X, np.arange(len(X)) % 3)
    assert model.dual_coef_.flags.c_contiguous


@pytest.mark.filterwarnings("ignore:NoiseTolerant")
@pytest.mark.parametrize("seed", [2, 4, 8])
def test_an_svm_without_support_rows(tmp_path, seed):
    """On pure noise expected labels may all be of the frequent class, and the SVM a constant."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(40, 3)), (random.random(40) < 0.2).astype(int)
    model = NoiseTolerantKernelClassifier(mode="class", final="svm").fit(X, y)
    assert not model.support_.size
    assert np.isfinite(model.decision_function(X)).all()
    assert len(np.unique(model.decision_function(X))) == 1
    again = load(save(model, tmp_path / "m.kw"))
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))


def test_the_level_by_counts_stands_beside_that_of_the_range():
    """Confident rows of the other class are counted, as `estimate_noise` does."""
    for seed in range(3):
        features, true, labels = three(400, seed, noise=0.25)
        model = NoiseTolerantKernelClassifier().fit(features, labels)
        assert model.counted_noise_level_ == pytest.approx(np.mean(true != labels), abs=0.06)
    known = np.where(np.arange(400) < 300, true.astype(object), None)
    checked = NoiseTolerantKernelClassifier().fit(features, labels, known=known)
    assert checked.counted_noise_level_ < model.counted_noise_level_ - 0.05
