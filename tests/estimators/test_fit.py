"""A fit that is interrupted or refused leaves every attribute as it was, in every estimator."""

import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import kernelweave
from kernelweave import _core, _threads, baselines, io, noise
from kernelweave.errors import InputError, ModelFileError
from kernelweave.estimators.fit import quiet_overflow
from kernelweave.io import TablePreparer
from model_files import packed, unpacked

N = 40
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 3))
QUANTITY = X[:, 0] + 0.1 * RANDOM.normal(size=N)
LABELS = (QUANTITY > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
# What three annotators said, each of two rows out of three.
ANSWERS = FRAME.gt(0).astype(float).mask(np.arange(3) == np.arange(N)[:, None] % 3)
FEW = {"Cs": [0.1, 1.0], "cv": 2}
OPTIONS = {
    "MKLClassifierCV": FEW,
    "MKLRegressorCV": FEW,
    "RuleEnsembleClassifierCV": FEW,
    "RuleEnsembleRegressorCV": FEW,
    "HKLTwoStageClassifier": FEW,
    "KernelSpectralClustering": {"n_clusters": 2},
    "MPCKMeans": {"n_clusters": 2},
    "SpectralKernelLearner": {"n_clusters": 2},
    "NonParametricKernel": {"max_iter": 20},
    "EnderClassifier": {"threshold": 0.0},
    "SlipperClassifier": {"threshold": 0.0},
    "RuleFitClassifier": {"n_trees": 5},
    "RuleFitRegressor": {"n_trees": 5},
}
NAMES = [name for name in kernelweave.__all__ if hasattr(getattr(kernelweave, name), "fit")]
KINDS = [getattr(kernelweave, name) for name in NAMES]
KINDS += [getattr(baselines, name) for name in baselines.__all__]
PACKAGE = str(Path(kernelweave.__file__).parent)
# Interrupted in the slow run.
LATER = {*baselines.__all__, *(name for name, options in OPTIONS.items() if options is FEW)}
SHARES = (0.02, 0.3, 0.6, 0.9, 0.98)  # of the calls of a fit, after which it is interrupted


def make(kind):
    usual = clone(kind()).get_params()
    # Calls are counted in the main thread: with others, their number is not the same every time.
    options = {"n_jobs": 1} | OPTIONS.get(kind.__name__, {})
    chosen = {k: v for k, v in options.items() if k in usual}
    return kind(**chosen, **({"random_state": 0} if "random_state" in usual else {}))


def target_of(model, n=N):
    return (QUANTITY if "Regressor" in type(model).__name__ else LABELS)[:n]


def rows_of(model):
    """Return rows for a fit: a table of answers where there are no other columns."""
    return ANSWERS.to_numpy() if isinstance(model, baselines.DawidSkene) else X


def other_rows_of(model):
    """Return fewer rows and columns, with names; of answers all columns, or few rounds are left."""
    return ANSWERS[:30] if isinstance(model, baselines.DawidSkene) else FRAME.iloc[:30, :2]


def quietly(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data)


def interrupted(model, *data, after):
    """Fit until so many functions of the package were called; return how many were."""
    count = 0

    def watch(frame, event, argument):
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)
        if count >= after:
            raise KeyboardInterrupt

    libraries = [item for some in _threads._blas_libraries() for item in some]
    before = [item.get_num_threads() for item in libraries], _core.get_threads()
    sys.setprofile(watch)
    try:
        quietly(model, *data)
    finally:
        sys.setprofile(None)
        # An error that a profiler raises where a generator goes on skips its last steps, unlike
        # one from a signal: what they would put back is put back here.
        _threads._holders = 0
        _threads._limit(libraries, before[0])
        _core.set_threads(before[1])
    return count


def assert_untouched(model, before):
    assert list(vars(model)) == list(before)
    assert all(value is before[name] for name, value in vars(model).items())


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.slow) if k.__name__ in LATER else k for k in KINDS],
    ids=lambda kind: kind.__name__,
)
def test_interrupted(kind):
    model = make(kind)
    rows, y = rows_of(model), target_of(model)
    total = interrupted(clone(model), rows, y, after=np.inf)
    total = interrupted(clone(model), rows, y, after=np.inf)  # all is imported now
    for share in SHARES:
        before = dict(vars(model))
        with pytest.raises(KeyboardInterrupt):
            interrupted(model, rows, y, after=share * total)
        assert_untouched(model, before)
    quietly(model, rows, y)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):  # other rows and columns, so that all would change
        interrupted(model, other_rows_of(model), target_of(model, 30), after=0.2 * total)
    assert_untouched(model, before)


def refused(model):
    """Return data that a fit has to refuse, each for another reason."""
    if isinstance(model, baselines.DawidSkene):  # one row is enough for it, and it takes no labels
        answers = rows_of(model)
        return {
            "no columns": (answers[:, :0],),
            "three dimensions": (answers[None],),
            "no answers": (np.full((4, 2), np.nan),),
            "quantities": (X,),
        }
    spoiled = X.copy()
    spoiled[3, 1] = np.nan
    y = target_of(model)
    cases = {
        "one row": (X[:1, :2], y[:1]),
        "no columns": (X[:, :0], y),
        "three dimensions": (X[None], y),
        "fewer labels": (X[:, :2], y[:-3]),
    }
    if not type(model).__name__.startswith("Rule") and type(model).__name__ not in LEARN_GAPS:
        cases["a missing value"] = (spoiled[:, :2], y)
    if type(model).__name__ in ("KernelSpectralClustering", "Propositions"):
        del cases["fewer labels"]  # which they do not look at
    if type(model).__name__ == "Propositions":
        del cases["one row"]  # which has propositions, if few
    return cases


LEARN_GAPS = {
    "Propositions",
    "EnderClassifier",
    "SlipperClassifier",
    "HKLTwoStageClassifier",
    "HierarchicalMKLClassifier",
    "HierarchicalMKLRegressor",
    "MetricKernelClassifier",
    "MetricKernelRegressor",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLRegressor",
    "MKLRegressorCV",
    "NoisyLabelMKLClassifier",
    "RadiusMKLClassifier",
    "SumProductMKLClassifier",
}


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_refused(kind, fitted):
    model = make(kind)
    if fitted:
        quietly(model, rows_of(model), target_of(model))
    for data in refused(model).values():
        before = dict(vars(model))
        with pytest.raises((ValueError, TypeError)):
            quietly(model, *data)
        assert_untouched(model, before)


def test_a_table_that_cannot_be_prepared():
    model = TablePreparer(missing="refuse").fit(FRAME)
    before = dict(vars(model))
    with pytest.raises(InputError, match="missing"):
        model.fit(FRAME.assign(a=np.nan)[["a", "b"]])
    assert_untouched(model, before)


THREADED = [kind for kind in KINDS if "n_jobs" in kind().get_params()]


@pytest.mark.parametrize("kind", THREADED, ids=lambda kind: kind.__name__)
def test_no_threads(kind):
    model = make(kind).set_params(n_jobs=0)
    with pytest.raises(ValueError, match=r"'n_jobs' parameter of .*\[1, inf\).*Got 0 instead"):
        model.fit(X, target_of(model))
    for n_jobs in (1, -1):
        quietly(model.set_params(n_jobs=n_jobs), X, target_of(model))


@pytest.mark.parametrize("estimate", [noise.estimate_noise, noise.estimate_rates])
def test_no_threads_for_an_estimate(estimate):
    with pytest.raises(InputError, match="n_jobs: must be None or a whole number other than 0"):
        estimate(X, LABELS, n_jobs=0)


@pytest.mark.parametrize("kind", [kernelweave.MKLClassifier, kernelweave.RuleEnsembleClassifier])
def test_a_file_without_threads_is_refused(kind, tmp_path):
    path = tmp_path / "model.kw"
    members = unpacked(io.save(make(kind).set_params(n_jobs=1).fit(X, LABELS), path).read_bytes())
    assert members["model.json"].count(b'"n_jobs": 1') == 1
    members["model.json"] = members["model.json"].replace(b'"n_jobs": 1', b'"n_jobs": 0')
    path.write_bytes(packed(members))
    with pytest.raises(ModelFileError, match="is damaged: The 'n_jobs' parameter"):
        io.load(path)


@pytest.mark.parametrize("place", [b'"estimator": "', b'"trace', b'"norm": '])
def test_damage_is_told_in_a_line(place, tmp_path):
    path = tmp_path / "model.kw"
    model = kernelweave.MKLClassifier(normalize="trace").fit(X, LABELS)
    members = unpacked(io.save(model, path).read_bytes())
    assert place in members["model.json"]
    wrong = place + b"\\u001b[31m" + b"x" * 300_000
    if place.endswith(b" "):
        wrong = place + b'"' + b"\\u001b[31m" + b"x" * 300_000 + b'", "none": '
    members["model.json"] = members["model.json"].replace(place, wrong, 1)
    path.write_bytes(packed(members))
    with pytest.raises(ModelFileError, match="is damaged: ") as caught:
        io.load(path)
    assert len(str(caught.value)) < 300 + len(str(path))
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("part", ["weights", "dual_coef", "intercept"])
def test_a_result_that_overflowed_is_refused(part, monkeypatch):
    learn = kernelweave.MKLClassifier._learn

    def overflow(self, *arguments):
        result = learn(self, *arguments)
        return replace(result, **{part: getattr(result, part) * 1e308 * 1e308 - np.inf})

    model = make(kernelweave.MKLClassifier).fit(X, LABELS)
    before = dict(vars(model))
    monkeypatch.setattr(kernelweave.MKLClassifier, "_learn", overflow)
    with pytest.raises(InputError, match="coefficients overflow"):
        model.fit(X, LABELS)
    assert_untouched(model, before)


def test_threads_of_a_fit_do_not_warn_of_overflow():
    with quiet_overflow(), _threads.threads(2):
        values = _threads.run_each(lambda i: np.array([1e308]) * (10.0 + i), range(8))
    assert np.isinf(values).all()
