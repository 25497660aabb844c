"""Bad input gets one clear sentence; odd input gets a finite model."""

import faulthandler
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from kernelweave import (
    RBF,
    FromCallable,
    Laplacian,
    Linear,
    MKLClassifier,
    MKLRegressor,
    Overlap,
    Polynomial,
    Precomputed,
    polynomial_ladder,
    rbf_ladder,
    views,
)
from kernelweave.errors import InputError, InputTypeError, MemoryBudgetError
from quick import every, first

N = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
LABELS = (X[:, 0] > 0).astype(int)
TARGET = X[:, 0] + 0.1 * RNG.normal(size=N)
NOISE = np.random.default_rng(1).permutation(LABELS)
ROWS = np.arange(N)[:, None]
FRAME = pd.DataFrame(X, columns=["age", "bmi", "dose"])


def spoiled(value, row=3, column=1):
    table = X.copy()
    table[row, column] = value
    return table


def gram(i, j, value):
    matrix = np.eye(N)
    matrix[i, j] = value
    return matrix


def classify(kernels=None, table=X, y=LABELS, sample_weight=None, **options):
    return lambda: MKLClassifier(kernels, **options).fit(table, y, sample_weight=sample_weight)


def regress(kernels=None, table=X, y=TARGET, sample_weight=None, **options):
    return lambda: MKLRegressor(kernels, **options).fit(table, y, sample_weight=sample_weight)


def predict(new, kernels=None, table=X):
    return lambda: MKLClassifier(kernels).fit(table, LABELS).predict(new)


def assert_sentence(error):
    text = str(error)
    assert isinstance(error, ValueError | TypeError)
    assert "\n" not in text
    assert 10 < len(text) < 300
    assert "Traceback" not in text


PLAIN = [rbf_ladder(), Linear()]
REFUSED = {
    # tables
    "nan": (classify(PLAIN, table=spoiled(np.nan)), ValueError, "X.*NaN"),
    "inf": (classify(PLAIN, table=spoiled(np.inf)), ValueError, "X.*infinit"),
    "minus inf": (regress(PLAIN, table=spoiled(-np.inf)), ValueError, "X.*infinit"),
    "nan in regression": (regress(PLAIN, table=spoiled(np.nan)), ValueError, "X.*NaN"),
    "nan in a frame": (
        classify(PLAIN, table=FRAME.assign(bmi=np.nan)),
        InputError,
        "'bmi' has a missing or infinite value in row 0",
    ),
    "nan in sparse rows": (
        classify([Linear()], table=sp.csr_array(spoiled(np.nan))),
        ValueError,
        "X.*NaN",
    ),
    "missing category": (
        classify([Overlap(columns="t")], table=FRAME.assign(t=["a", None] * 15)),
        InputError,
        "'t' has a missing value in row 1",
    ),
    "nan at prediction": (predict(spoiled(np.nan), PLAIN), ValueError, "X.*NaN"),
    "one row": (classify(table=X[:1], y=LABELS[:1]), ValueError, "1 sample.*minimum of 2"),
    "one row of a frame": (classify(table=FRAME[:1], y=LABELS[:1]), InputError, "1 row"),
    "one row in regression": (regress(table=X[:1], y=TARGET[:1]), ValueError, "1 sample"),
    "no rows": (classify(table=X[:0], y=LABELS[:0]), ValueError, "0 sample"),
    "no columns": (classify(table=X[:, :0]), ValueError, "0 feature"),
    "no columns in a frame": (classify(table=FRAME[[]]), InputError, "no column"),
    "no rows at prediction": (predict(X[:0]), ValueError, "0 sample"),
    "one dimension": (classify(table=X[:, 0]), ValueError, "2D array.*1D array"),
    "three dimensions": (classify(table=X[None]), ValueError, "2D array, got a 3D array"),
    "one dimension at prediction": (predict(X[0]), ValueError, "2D array.*1D array"),
    "fewer columns at prediction": (predict(X[:, :2]), ValueError, "2 features.*expecting 3"),
    "more columns at prediction": (
        predict(np.column_stack([X, X])),
        ValueError,
        "6 features.*expecting 3",
    ),
    "two columns of one name": (
        classify(table=pd.DataFrame(X[:, :2], columns=["a", "a"])),
        InputError,
        "two columns of the same name",
    ),
    "lazy frame": (
        classify(table=pl.LazyFrame({"a": X[:, 0]})),
        (InputError, InputTypeError),
        "lazy frame",
    ),
    # targets
    "fewer labels": (classify(y=LABELS[:-1]), ValueError, r"inconsistent.*\[30, 29\]"),
    "fewer labels than frame rows": (
        classify(table=FRAME, y=LABELS[:-1]),
        ValueError,
        r"inconsistent.*\[30, 29\]",
    ),
    "more targets": (regress(y=np.zeros(31)), ValueError, r"inconsistent.*\[30, 31\]"),
    "no labels": (classify(y=None), InputError, "requires y"),
    "no targets": (regress(y=None), InputError, "requires y"),
    "nan label": (classify(y=np.where(LABELS, 1.0, np.nan)), ValueError, "y.*NaN"),
    "infinite label": (classify(y=np.where(LABELS, 1.0, np.inf)), ValueError, "y.*infinit"),
    "nan target": (regress(y=np.where(LABELS, 1.0, np.nan)), ValueError, "y contains NaN"),
    "infinite target": (regress(y=np.where(LABELS, 1.0, np.inf)), ValueError, "y contains infinit"),
    "continuous labels": (classify(y=TARGET), ValueError, "Unknown label type: continuous"),
    "labels in two columns": (
        classify(y=np.column_stack([LABELS, 2 * LABELS])),
        ValueError,
        "zero or one",
    ),
    "one class": (classify(y=np.zeros(N)), InputError, r"two classes or more.*one class only: 0"),
    "one class by name": (classify(y=["a"] * N), InputError, "one class only: 'a'"),
    "one class of positive weight": (
        classify(sample_weight=LABELS),
        InputError,
        "one class only: 1 among the rows of positive weight",
    ),
    # kernels
    "empty list": (classify([]), InputError, "kernels: the list is empty"),
    "number in the list": (classify([RBF(), 3]), InputTypeError, r"kernels\[1\].*got int"),
    "name in the list": (classify(["rbf"]), InputTypeError, r"kernels\[0\].*got str"),
    "name for a list": (classify("rbf"), InputTypeError, "kernels: must be a kernel.*got str"),
    "class in the list": (classify([RBF]), InputTypeError, r"RBF\(\) with parentheses"),
    "matrix in the list": (classify([np.eye(N)]), InputTypeError, r"Precomputed\(gram\)"),
    "indefinite matrix": (
        lambda: Precomputed(gram(0, 1, 5.0) + gram(1, 0, 5.0)),
        InputError,
        "not positive semi-definite",
    ),
    "asymmetric matrix": (lambda: Precomputed(gram(0, 1, 0.5)), InputError, "not symmetric"),
    "negative diagonal": (lambda: Precomputed(gram(2, 2, -1.0)), InputError, r"gram\[2, 2\] is -1"),
    "nan in the matrix": (lambda: Precomputed(gram(4, 5, np.nan)), InputError, r"gram\[4, 5\]"),
    "matrix not square": (lambda: Precomputed(np.ones((3, 4))), InputError, r"square.*\(3, 4\)"),
    "matrix of text": (lambda: Precomputed([["a"]]), InputError, "real numbers"),
    "function not symmetric": (
        classify([FromCallable(lambda A, B: A[:, :1] - B[:, :1].T + 9)]),
        InputError,
        "not symmetric",
    ),
    "function not a kernel": (
        classify([FromCallable(lambda A, B: -(A @ B.T))]),
        InputError,
        "not a valid kernel",
    ),
    "function without numbers": (
        classify([FromCallable(lambda A, B: np.full((len(A), len(B)), np.nan))]),
        InputError,
        "not finite",
    ),
    "function of another shape": (
        classify([FromCallable(lambda A, B: np.ones(3))]),
        InputError,
        r"shape \(30, 30\)",
    ),
    "zero width": (lambda: RBF(0), InputError, r"RBF\(width=0.0\): width must be"),
    "negative width": (lambda: RBF(-1.0), InputError, "width must be a finite number > 0"),
    "width not a number": (lambda: RBF(np.nan), InputError, "width must be a finite number > 0"),
    "width of text": (lambda: RBF("wide"), InputTypeError, "width must be a finite number > 0"),
    "negative Laplacian width": (lambda: Laplacian(-2), InputError, "Laplacian.*width must be"),
    "zero in a ladder": (lambda: rbf_ladder([1.0, 0.0]), InputError, "width must be"),
    "zero degree": (lambda: Polynomial(0), InputError, "degree must be a whole number >= 1"),
    "broken degree": (lambda: polynomial_ladder([1.5]), InputTypeError, "degree must be"),
    "no views": (lambda: views({}), InputError, "at least one view"),
    "unknown column": (
        classify([RBF(columns="agee")], table=FRAME),
        InputError,
        "no column 'agee', did you mean 'age'",
    ),
    "named column of an array": (classify([RBF(columns="age")]), InputError, "no column names"),
    "column out of range": (classify([RBF(columns=7)]), InputError, "position 7 is out of range"),
    "text in a Gaussian": (
        classify([RBF()], table=FRAME.assign(town="A")),
        InputError,
        "not numeric: town",
    ),
    "row number too large": (
        classify([Precomputed(np.eye(10))], table=ROWS),
        InputError,
        "row numbers from 0 to 9, but row 10 has 10",
    ),
    "negative row number": (
        classify([Precomputed(np.eye(N))], table=ROWS - 2),
        InputError,
        "row 0 has -2",
    ),
    "broken row number": (
        classify([Precomputed(np.eye(N))], table=ROWS + 0.5),
        InputError,
        "row 0 has 0.5",
    ),
    "row number too large at prediction": (
        predict([[N]], [Precomputed(np.eye(N))], ROWS),
        InputError,
        "row numbers from 0 to 29",
    ),
    "sparse rows in a Laplacian": (
        classify([Laplacian()], table=sp.csr_array(X)),
        InputTypeError,
        r"sparse X cannot be used; pass X.toarray\(\)",
    ),
    # weights
    "negative weight": (classify(sample_weight=LABELS - 0.5), ValueError, "sample_weight"),
    "no weight": (classify(sample_weight=np.zeros(N)), ValueError, "(?i)sample.weight"),
    "nan weight": (classify(sample_weight=np.full(N, np.nan)), ValueError, "sample_weight.*NaN"),
    "infinite weight": (classify(sample_weight=np.full(N, np.inf)), ValueError, "sample_weight"),
    "fewer weights": (regress(sample_weight=np.ones(29)), ValueError, r"\(29,\)"),
    "weights in two columns": (regress(sample_weight=np.ones((N, 2))), ValueError, "1D"),
    "negative class weight": (classify(class_weight={0: -1.0}), ValueError, "class_weight"),
    "nan class weight": (classify(class_weight={0: np.nan}), ValueError, "class_weight"),
    "unknown class": (classify(class_weight={7: 2.0}), ValueError, "class_weight"),
    "unknown class weight": (classify(class_weight="heavy"), ValueError, "'class_weight'"),
    # parameters
    "tol of zero": (classify(tol=0), ValueError, "'tol'.*Got 0"),
    "tol below rounding": (classify(tol=1e-12), ValueError, "'tol'.*1e-09"),
    "tol of one": (regress(tol=1.0), ValueError, "'tol'"),
    "tol not a number": (classify(tol=np.nan), ValueError, "'tol'"),
    "C of zero": (classify(C=0), ValueError, "'C'.*Got 0"),
    "negative C": (regress(C=-1.0), ValueError, "'C'.*Got -1"),
    "infinite C": (classify(C=np.inf), ValueError, "'C'.*Got inf"),
    "C of text": (classify(C="1"), ValueError, "'C'.*Got '1'"),
    "norm below one": (classify(norm=0.5), ValueError, "'norm'.*Got 0.5"),
    "infinite norm": (classify(norm=np.inf), ValueError, "'norm'.*Got inf"),
    "unknown norm": (classify(norm="l1"), ValueError, "'norm'.*'uniform'.*Got 'l1'"),
    "no iterations": (classify(max_iter=0), ValueError, "'max_iter'.*Got 0"),
    "half an iteration": (classify(max_iter=2.5), ValueError, "'max_iter'"),
    "unknown normalisation": (classify(normalize="l2"), ValueError, "'normalize'.*Got 'l2'"),
    "unknown loss": (regress(loss="l1"), ValueError, "'loss'.*Got 'l1'"),
    "negative epsilon": (regress(epsilon=-0.1), ValueError, "'epsilon'"),
    "no threshold": (regress(loss="huber", epsilon=0), InputError, "epsilon.*must be > 0"),
    "no threads": (classify(n_jobs=0), ValueError, r"'n_jobs'.*\[1, inf\).*Got 0"),
    "little memory in bytes": (classify(memory_limit=1000), MemoryBudgetError, "limit is 1.0 kB"),
    "little memory in words": (
        classify(memory_limit="2kB"),
        MemoryBudgetError,
        "need .* limit is 2.0 kB. Hint: .*memory_limit=",
    ),
    "memory in unknown units": (classify(memory_limit="lots"), InputError, "memory_limit='lots'"),
    "negative memory": (classify(memory_limit=-5), ValueError, "'memory_limit'"),
    "negative memory in words": (classify(memory_limit="-5GB"), InputError, "'-5GB'"),
    "no costs on a path": (
        lambda: MKLClassifier().fit_path(X, LABELS, []),
        InputError,
        "Cs: must be one or more finite numbers > 0",
    ),
    "negative cost on a path": (
        lambda: MKLRegressor().fit_path(X, TARGET, [1.0, -1.0]),
        InputError,
        "Cs: must be",
    ),
    "one number for a path": (
        lambda: MKLClassifier().fit_path(X, LABELS, 3.0),
        (InputError, InputTypeError),
        "Cs: must be",
    ),
    "text for a path": (
        lambda: MKLClassifier().fit_path(X, LABELS, "abc"),
        (InputError, InputTypeError),
        "Cs: must be",
    ),
}


@pytest.mark.parametrize(("act", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_one_sentence(act, error, message):
    with pytest.raises(error, match=message) as caught:
        act()
    assert_sentence(caught.value)


@pytest.mark.parametrize("learner", [MKLClassifier, MKLRegressor])
def test_nothing_works_before_fit(learner):
    model = learner()
    methods = {"predict", "kernel", "to_frame"} | {"decision_function"} & set(dir(model))
    for name in methods:
        with pytest.raises(NotFittedError, match="not fitted yet") as caught:
            getattr(model, name)(*([X] if name != "to_frame" else []))
        assert_sentence(caught.value)


def test_memory_hint_helps():
    with pytest.raises(MemoryBudgetError) as caught:
        MKLClassifier(memory_limit=1000).fit(X, LABELS)
    hint = str(caught.value).split("memory_limit='")[1].split("'")[0]
    assert MKLClassifier(memory_limit=hint).fit(X, LABELS).converged_


@pytest.fixture
def no_hang():
    """End the run, with the place, if something does not come back."""
    faulthandler.dump_traceback_later(60, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


def values_of(model, table):
    return model.decision_function(table) if hasattr(model, "classes_") else model.predict(table)


def assert_finite(model, table):
    parts = [getattr(model, f"{name}_") for name in ("weights", "dual_coef", "intercept", "scales")]
    parts += [model.objective_, model.duality_gap_, model.contributions_, values_of(model, table)]
    assert all(np.isfinite(part).all() for part in parts)
    assert model.weights_.min() >= 0
    assert model.duality_gap_ >= 0


LISTS = {
    "default": None,
    "linear": [Linear()],
    "gaussian": [RBF(1.0)],
    "polynomial": [Polynomial(3)],
    "homogeneous": [Polynomial(2, 0.0)],
    "laplacian": [Laplacian(1.0)],
    "overlap": [Overlap()],
    "ladder": [rbf_ladder(per_feature=True)],
    "mixed": [RBF(1.0), Linear(), Polynomial(2), RBF(1.0) * Linear()],
    "views": views({"left": [0], "right": [1, 2]}),
}
ODD_TABLES = {
    "constant column": X * [1, 0, 1] + [0, 5, 0],
    "equal rows": np.ones((N, 3)),
    "zeros": np.zeros((N, 3)),
    "equal rows, opposite labels": np.repeat(X[: N // 2], 2, axis=0),
    "two rows": X[np.argsort(LABELS)[[0, -1]]],
    "fewer rows than kernels": X[:5],
}
ODD_LABELS = {
    "equal rows, opposite labels": np.tile([0, 1], N // 2),
    "two rows": np.array([0, 1]),
    "fewer rows than kernels": np.array([0, 1, 0, 1, 0]),
}


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("norm", first(1, [1.0, 2.0, "uniform"]))
@pytest.mark.parametrize("kernels", every(4, LISTS.values()), ids=LISTS)
@pytest.mark.parametrize("name", ODD_TABLES)
@pytest.mark.filterwarnings("ignore:X. no column to learn from")
def test_odd_tables_fit(name, kernels, norm):
    table = ODD_TABLES[name]
    labels = ODD_LABELS.get(name, LABELS)
    for normalize in ("trace", "cosine", None):
        fits(MKLClassifier(kernels, norm=norm, normalize=normalize), table, labels)
    for loss in ("epsilon_insensitive", "square", "huber"):
        fits(MKLRegressor(kernels, norm=norm, loss=loss), table, TARGET[: len(table)])


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "square", "huber"])
@pytest.mark.parametrize("value", [0.0, 3.0, -1e6])
def test_a_constant_target_is_the_bias(value, loss, norm):
    model = MKLRegressor(norm=norm, loss=loss).fit(X, np.full(N, value))
    assert_finite(model, X)
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X + 1), value, rtol=1e-9)
    assert model.kernel(X).shape == (N, N)


def test_targets_inside_the_tube_need_no_support():
    model = MKLRegressor(epsilon=100.0).fit(X, TARGET)
    assert len(model.support_) == 0
    assert model.dual_coef_.shape == (1, 0)
    assert np.ptp(model.predict(X)) == 0
    assert model.objective_ == 0


def test_equal_rows_give_the_majority():
    y = np.array([0] * 10 + [1] * 20)
    with pytest.warns(UserWarning, match="no column to learn from"):
        model = MKLClassifier().fit(np.ones((N, 3)), y)
    assert (model.predict(np.ones((4, 3))) == 1).all()
    assert model.objective_ == pytest.approx(20.0, rel=1e-3)


def test_one_column():
    for kernels in (None, [RBF(1.0), Linear()], [rbf_ladder(per_feature=True)]):
        model = MKLClassifier(kernels).fit(X[:, :1], LABELS)
        assert model.score(X[:, :1], LABELS) > 0.9


def test_many_more_kernels_than_rows():
    family = rbf_ladder(np.logspace(-1, 1, 30), per_feature=True)
    for norm in (1.0, 2.0, "uniform"):
        model = MKLClassifier([family], norm=norm).fit(X[:6], [0, 1, 0, 1, 0, 1])
        assert len(model.weights_) == 90
        assert_finite(model, X)


def test_no_weight_on_a_class_but_one():
    # Two rows left, one of either class.
    weight = np.zeros(N)
    weight[[LABELS.argmin(), LABELS.argmax()]] = 1.0
    model = MKLClassifier().fit(X, LABELS, sample_weight=weight)
    assert_finite(model, X)
    assert set(model.support_) == set(np.flatnonzero(weight))


def loss_of(model, values, y):
    """Return the sum of losses of predictions, in the model's units."""
    if hasattr(model, "classes_"):
        return np.maximum(0.0, 1.0 - np.where(y == model.classes_[1], 1.0, -1.0) * values).sum()
    residual, epsilon = np.abs(y - values), model.epsilon * model.target_scale_
    if model.loss == "square":
        return 0.5 * (residual**2).sum()
    outside = np.maximum(0.0, residual - epsilon)
    if model.loss == "epsilon_insensitive":
        return model.target_scale_ * outside.sum()
    return np.where(outside > 0, epsilon * (residual - 0.5 * epsilon), 0.5 * residual**2).sum()


def best_constant(model, y):
    """Return the loss of the best constant, the zero function of any kernel."""
    if hasattr(model, "classes_"):
        return 2.0 * min(np.bincount(y))
    epsilon = model.epsilon * model.target_scale_
    places = np.concatenate([[y.mean()], y, y - epsilon, y + epsilon])
    if model.loss == "huber":  # somewhere between two kinks, where it is smooth
        places = np.linspace(y.min(), y.max(), 10_001)
    return min(loss_of(model, np.full(len(y), place), y) for place in places)


def squared_norm(model, table):
    """Return the squared norm of the function, with the best weights for its parts."""
    rows, alpha = np.asarray(table)[model.support_], model.dual_coef_[0]
    weights = model.weights_ * model.scales_
    quadratic_forms = [
        alpha @ kernel(rows) @ alpha if len(rows) else 0.0 for kernel in model.kernels_
    ]
    squares = (
        weights * model.weights_ * np.maximum(quadratic_forms, 0.0)
    )  # of the norm of every part
    if model.norm == "uniform" or len(squares) == 1:
        return (squares / np.where(model.weights_ > 0, model.weights_, 1.0)).sum()
    p = float(model.norm)
    return (squares ** (p / (p + 1))).sum() ** ((p + 1) / p)


def check_certificate(model, table, y, rounding=1e-6):
    """Check the objective by its definition, and the bounds by the zero function."""
    assert_finite(model, table)
    objective = 0.5 * squared_norm(model, table) + model.C * loss_of(
        model, values_of(model, table), y
    )
    zero = model.C * best_constant(model, y)
    assert objective == pytest.approx(model.objective_, rel=rounding, abs=1e-9 * zero)
    lower = model.objective_ - model.duality_gap_
    assert lower <= zero * (1 + 1e-9)
    assert model.objective_ <= zero * (1 + model.tol)  # nor is the model worse than that function
    if model.converged_:
        small = model.objective_ <= 1e-12 * zero  # rounding error, which may be all of the gap
        assert small or model.duality_gap_ <= model.tol * model.objective_ * (1 + 1e-9)


def fits(model, table, y):
    """Fit to the tolerance without any warning, with a certificate that holds."""
    model.fit(table, y)
    assert model.converged_
    check_certificate(model, table, y)
    return model


def fits_or_warns(model, table, y, rounding=1e-6):
    """Fit to the tolerance, or warn with the gap that was reached; the certificate holds."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table, y)
    assert [w.category for w in caught] == ([] if model.converged_ else [ConvergenceWarning])
    if caught:
        gap = model.duality_gap_ / model.objective_
        assert f"relative duality gap of {gap:.1e}" in str(caught[0].message)
        assert gap > model.tol
    check_certificate(model, table, y, rounding)
    return model


def is_refused(model, table, y, message):
    with pytest.raises(InputError, match=message) as caught:
        model.fit(table, y)
    assert_sentence(caught.value)


OVERFLOW = "some values overflow; rescale the columns first"
EXTREME = {
    "classes": (MKLClassifier(), LABELS, False),
    "quantity": (MKLRegressor(norm=2.0), TARGET, False),
    "classes, one column small and one large": (MKLClassifier(), LABELS, True),
    "quantity, one column small and one large": (MKLRegressor(loss="square"), TARGET, True),
}


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("normalize", first(2, ["trace", None, "diagonal", "cosine"]))
@pytest.mark.parametrize("kernels", LISTS)
@pytest.mark.parametrize("scale", [1e-150, 1e150], ids=str)
@pytest.mark.parametrize("name", EXTREME)
def test_extreme_columns(name, scale, kernels, normalize):
    given, y, mixed = EXTREME[name]
    table = X * ([1.0, scale, 1 / scale] if mixed else scale)
    model = clone(given).set_params(kernels=LISTS[kernels], normalize=normalize)
    if kernels in ("polynomial", "homogeneous", "mixed") and (mixed or scale > 1):
        is_refused(model, table, y, rf"polynomial\(degree=\d, coef0=\d\): {OVERFLOW}")
    elif normalize is not None:
        fits(model, table, y)
    else:  # numbers as they come may be beyond what can be solved; then the gap must say so
        large = scale > 1 and kernels in ("default", "linear", "views")  # products of 1e300
        fits_or_warns(model.set_params(max_iter=5), table, y, 0.05 if large else 1e-6)


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
def test_gaussians_do_not_mind_the_scale_of_columns(scale):
    family = [rbf_ladder()]
    plain = MKLClassifier(family, tol=1e-6).fit(X, LABELS)
    scaled = MKLClassifier(family, tol=1e-6).fit(X * scale, LABELS)
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    np.testing.assert_allclose(
        scaled.decision_function(X * scale), plain.decision_function(X), atol=5e-3
    )


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(1e-300),
        RBF(1e-170),
        Laplacian(1e-300),
        Laplacian(1e-170),
    ],
    ids=str,
)
def test_widths_below_all_distances(kernel):
    model = fits(MKLClassifier([kernel, Linear()]), X, LABELS)
    unit = fits(MKLClassifier([Overlap(), Linear()]), X, LABELS)
    assert model.objective_ == pytest.approx(unit.objective_, rel=2e-3)


@pytest.mark.parametrize("kind", [RBF, Laplacian])
@pytest.mark.parametrize("width", [1e170, 1e300])
def test_widths_above_all_distances(kind, width):
    model = fits(MKLClassifier([kind(width), Linear()]), X, LABELS)
    assert model.weights_.tolist() == [0.0, 1.0]  # a constant kernel is of no use
    linear = fits(MKLClassifier([Linear()]), X, LABELS)
    assert model.objective_ == pytest.approx(linear.objective_, rel=2e-3)


def test_columns_at_the_small_end_of_the_numbers():
    plain = MKLClassifier([rbf_ladder(per_feature=True)]).fit(X, LABELS)
    model = fits(MKLClassifier([rbf_ladder(per_feature=True)]), X * 1e-300, LABELS)
    assert model.objective_ == pytest.approx(plain.objective_, rel=2e-3)
    fits(MKLClassifier(), X * 1e-300, LABELS)
    model = fits(MKLClassifier([Linear()]), X * 1e-300, LABELS)  # products underflow to zero
    assert model.objective_ == pytest.approx(2 * min(np.bincount(LABELS)), rel=1e-3)


def test_columns_at_the_large_end_of_the_numbers():
    plain = MKLClassifier([rbf_ladder(per_feature=True)]).fit(X, LABELS)
    model = fits(MKLClassifier([rbf_ladder(per_feature=True)]), X * 1e300, LABELS)
    assert model.objective_ == pytest.approx(plain.objective_, rel=2e-3)
    fits(MKLClassifier(), X * 1e300, LABELS)  # encoded
    for kernels in (PLAIN, [Linear()]):
        is_refused(MKLClassifier(kernels), X * 1e300, LABELS, f"linear: {OVERFLOW}")


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1e12, 1e99])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "square", "huber"])
@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_extreme_targets(norm, loss, scale):
    model = MKLRegressor(loss=loss, norm=norm, max_iter=30)
    fits_or_warns(model, X, TARGET * scale)


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_errors_that_cost_nothing(norm):
    options = {"C": 1e-12, "norm": norm, "max_iter": 30}
    fits(MKLClassifier(**options), X, LABELS)
    fits(MKLClassifier([Linear(), RBF(3.0)], **options), X, NOISE)
    for loss in ("epsilon_insensitive", "square", "huber"):
        model = fits(MKLRegressor(loss=loss, **options), X, TARGET)
        assert np.abs(model.predict(X) - model.intercept_).max() < 1e-6


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
def test_errors_that_cost_all(norm):
    options = {"C": 1e12, "norm": norm, "max_iter": 30}
    assert fits_or_warns(MKLClassifier(**options), X, LABELS).score(X, LABELS) == 1.0
    fits_or_warns(MKLClassifier([Linear(), RBF(3.0)], **options), X, NOISE)
    for loss in ("epsilon_insensitive", "square", "huber"):
        model = fits_or_warns(MKLRegressor(loss=loss, target_scale=None, **options), X, TARGET)
        assert np.abs(model.predict(X) - TARGET).max() < (0.11 if loss[0] == "e" else 1e-3)


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("norm", [1.0, 2.0, "uniform"])
@pytest.mark.parametrize("C", [1e8, 1e12, 1e15])
def test_converged_means_a_small_gap(C, norm):
    # The objective of separable rows does not grow with C, so it is not small beside the gap.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MKLClassifier(C=C, norm=norm, max_iter=30).fit(X, LABELS)
    assert model.objective_ > 1
    assert not model.converged_ or model.duality_gap_ <= model.tol * model.objective_


def test_weights_that_are_all_zero_are_named():
    for weight in (np.zeros(6), [0] * 6, pd.Series(np.zeros(6))):
        with pytest.raises(InputError, match=r"^sample_weight: at least one weight"):
            MKLClassifier().fit(np.arange(12.0).reshape(6, 2), [0, 1] * 3, sample_weight=weight)
