"""Bad input of the radius-margin classifiers gets one clear sentence; odd input a finite model."""

import faulthandler
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from kernelweave import (
    ARD,
    RBF,
    FromCallable,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    RadiusKernelClassifier,
    RadiusMKLClassifier,
    rbf_ladder,
)
from kernelweave.errors import InputError, InputTypeError, MemoryBudgetError
from quick import every, first

N = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
LABELS = (X[:, 0] > 0).astype(int)
ROWS = np.arange(N)[:, None]
FRAME = pd.DataFrame(X, columns=["age", "bmi", "dose"])
CONSTANT = Precomputed(np.full((N, N), 2.0))
ZERO = Precomputed(np.zeros((N, N)))
GRAM = Precomputed(RBF(1.0)(X))


@pytest.fixture(autouse=True)
def no_hang(monkeypatch):
    """End the run, with the place, if something does not come back; one thread is faster here."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    faulthandler.dump_traceback_later(60, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


def spoiled(value, row=3, column=1):
    table = X.copy()
    table[row, column] = value
    return table


def gram(i, j, value):
    matrix = np.eye(N)
    matrix[i, j] = matrix[j, i] = value
    return matrix


def weigh(kernels=None, table=X, y=LABELS, sample_weight=None, **options):
    return lambda: RadiusMKLClassifier(kernels, **options).fit(table, y, sample_weight)


def widths(family="width", table=X, y=LABELS, sample_weight=None, **options):
    return lambda: RadiusKernelClassifier(family, **options).fit(table, y, sample_weight)


def predict(new, learner=RadiusMKLClassifier, *, kernels=None, table=X):
    model = learner() if kernels is None else learner(kernels)
    return lambda: model.fit(table, LABELS).predict(new)


def asymmetric():
    matrix = np.eye(N)
    matrix[0, 1] = 0.5
    return Precomputed(matrix)


def assert_sentence(error):
    text = str(error)
    assert isinstance(error, ValueError | TypeError)
    assert "\n" not in text
    assert 10 < len(text) < 300
    assert "Traceback" not in text


REFUSED = {
    # rows
    "one class": (weigh(y=np.zeros(N)), InputError, "two classes or more.*one class only: 0"),
    "one class for widths": (widths(y=["a"] * N), InputError, "one class only: 'a'"),
    "one class of positive weight": (
        weigh(sample_weight=LABELS),
        InputError,
        "one class only: 1 among the rows of positive weight",
    ),
    "one row": (weigh(table=X[:1], y=LABELS[:1]), ValueError, "1 sample.*minimum of 2"),
    "one row for widths": (widths(table=X[:1], y=LABELS[:1]), ValueError, "1 sample.*minimum of 2"),
    "one row of a frame": (widths(table=FRAME[:1], y=LABELS[:1]), InputError, "1 row"),
    "no rows": (weigh(table=X[:0], y=LABELS[:0]), ValueError, "0 sample"),
    "no columns": (widths(table=X[:, :0]), ValueError, "0 feature"),
    "nan": (weigh([Linear()], table=spoiled(np.nan)), ValueError, "X.*NaN.*row 3, column 1"),
    "inf": (widths("ard", table=spoiled(np.inf)), ValueError, "X.*infinit.*row 3, column 1"),
    "nan in a frame": (
        widths(table=FRAME.assign(bmi=np.nan)),
        InputError,
        "'bmi' has a missing or infinite value in row 0",
    ),
    "text in a frame": (widths(table=FRAME.assign(town="A")), InputError, "not numeric: town"),
    "nan at prediction": (predict(spoiled(np.nan), kernels=[Linear()]), ValueError, "X.*NaN"),
    "nan at prediction of widths": (
        predict(spoiled(np.nan), RadiusKernelClassifier),
        ValueError,
        "X.*NaN",
    ),
    "fewer columns at prediction": (
        predict(X[:, :2], RadiusKernelClassifier),
        ValueError,
        "2 features.*expecting 3",
    ),
    "fewer labels": (weigh(y=LABELS[:-1]), ValueError, r"inconsistent.*\[30, 29\]"),
    "nan label": (widths(y=np.where(LABELS, 1.0, np.nan)), ValueError, "y.*NaN"),
    "no labels": (weigh(y=None), InputError, "requires y"),
    "continuous labels": (widths(y=X[:, 0]), ValueError, "Unknown label type"),
    "sparse rows for widths": (
        widths(table=sp.csr_array(X)),
        InputTypeError,
        r"sparse X cannot be used; pass X.toarray\(\)",
    ),
    "sparse rows at prediction": (
        predict(sp.csr_array(X), RadiusKernelClassifier),
        InputTypeError,
        "sparse X cannot be used",
    ),
    "sparse rows in a Laplacian": (
        weigh([Laplacian()], table=sp.csr_array(X)),
        InputTypeError,
        r"sparse X cannot be used; pass X.toarray\(\)",
    ),
    "negative weight": (weigh(sample_weight=LABELS - 0.5), ValueError, "sample_weight"),
    "nan weight": (widths(sample_weight=np.full(N, np.nan)), ValueError, "sample_weight.*NaN"),
    "negative class weight": (weigh(class_weight={0: -1.0}), ValueError, "class_weight"),
    # kernels
    "matrix not square": (lambda: Precomputed(np.ones((3, 4))), InputError, r"square.*\(3, 4\)"),
    "asymmetric matrix": (asymmetric, InputError, "not symmetric"),
    "indefinite matrix": (
        lambda: Precomputed(gram(0, 1, 5.0)),
        InputError,
        "not positive semi-definite",
    ),
    "slightly indefinite matrix": (
        lambda: Precomputed(gram(0, 1, 1.0 + 1e-5)),
        InputError,
        "not positive semi-definite",
    ),
    "nan in the matrix": (lambda: Precomputed(gram(4, 5, np.nan)), InputError, r"gram\[4, 5\]"),
    "row numbers beyond the matrix": (
        weigh([Precomputed(np.eye(10))], table=ROWS),
        InputError,
        "row numbers from 0 to 9, but row 10 has 10",
    ),
    "row number at prediction": (
        predict([[N]], kernels=[GRAM], table=ROWS),
        InputError,
        "row numbers from 0 to 29",
    ),
    "function not a kernel": (
        weigh([FromCallable(lambda A, B: -(A @ B.T))]),
        InputError,
        "not a valid kernel",
    ),
    "function not symmetric": (
        weigh([FromCallable(lambda A, B: A[:, :1] - B[:, :1].T + 9)]),
        InputError,
        "not symmetric",
    ),
    "constant kernels only": (
        weigh([CONSTANT, ZERO], table=ROWS),
        InputError,
        "every kernel is constant on the training rows",
    ),
    "equal rows": (
        weigh([Linear(), RBF()], table=np.ones((N, 3))),
        InputError,
        "every kernel is constant",
    ),
    "a gap, where no rule can be given": (
        widths(table=np.where(X == X[0], np.nan, X)),
        ValueError,
        r"SimpleImputer\.$",
    ),
    "equal rows of zeros": (weigh([Linear()], table=np.zeros((N, 3))), InputError, "constant"),
    "equal rows for a width": (widths(table=np.ones((N, 3))), InputError, "all rows are equal"),
    "equal rows for a mixture": (
        widths("mixture", table=np.ones((N, 3))),
        InputError,
        "all rows are equal",
    ),
    "equal rows for widths": (
        widths("ard", table=np.ones((N, 3))),
        InputError,
        "every column is constant",
    ),
    "equal rows of positive weight": (
        widths(
            table=np.vstack([np.ones((28, 3)), X[:2]]), sample_weight=np.repeat([1, 0], [28, 2])
        ),
        InputError,
        "all rows are equal",
    ),
    "empty list": (weigh([]), InputError, "kernels: the list is empty"),
    "number in the list": (weigh([RBF(), 3]), InputTypeError, r"kernels\[1\].*got int"),
    # combinations of parameters
    "no norm with do": (
        weigh(criterion="do"),
        InputError,
        "norm=None: criterion='do'.*use norm=1 or norm=2",
    ),
    "no norm with the literal criterion": (
        weigh(criterion="chapelle_literal"),
        InputError,
        "norm=None: criterion='chapelle_literal'.*use norm=1 or norm=2",
    ),
    **{
        f"uniform with {criterion}": (
            weigh(criterion=criterion, norm="uniform"),
            InputError,
            "norm='uniform': only criterion='radius'",
        )
        for criterion in ("chapelle", "chapelle_literal", "do")
    },
    **{
        f"{radius} with {criterion}": (
            weigh(criterion=criterion, norm=1, radius=radius),
            InputError,
            f"radius='{radius}'.*use radius='exact'",
        )
        for radius in ("upper", "trace")
        for criterion in ("chapelle", "chapelle_literal", "do")
    },
    "bound with uniform weights": (
        weigh(norm="uniform", radius="upper"),
        InputError,
        "radius='upper'.*learned weights only",
    ),
    # parameters
    "C of zero": (weigh(C=0), ValueError, "'C'.*Got 0"),
    "negative C": (widths(C=-1.0), ValueError, "'C'.*Got -1"),
    "infinite C": (weigh(C=np.inf), ValueError, "'C'.*Got inf"),
    "C not a number": (widths(C=np.nan), ValueError, "'C'.*Got nan"),
    "norm of three": (weigh(norm=3), ValueError, "'norm'.*Got 3"),
    "broken norm": (weigh(norm=1.5), ValueError, "'norm'.*Got 1.5"),
    "norm by name": (weigh(norm="l1"), ValueError, "'norm'.*'uniform'.*Got 'l1'"),
    "unknown criterion": (weigh(criterion="margin"), ValueError, "'criterion'.*Got 'margin'"),
    "unknown solver": (weigh(solver="newton"), ValueError, "'solver'.*Got 'newton'"),
    "unknown radius": (weigh(radius="lower"), ValueError, "'radius'.*Got 'lower'"),
    "unknown normalisation": (weigh(normalize="l2"), ValueError, "'normalize'.*Got 'l2'"),
    "tol of zero": (widths(tol=0), ValueError, "'tol'.*Got 0"),
    "no iterations": (weigh(max_iter=0), ValueError, "'max_iter'.*Got 0"),
    "unknown family": (widths("gauss"), ValueError, "'family'.*Got 'gauss'"),
    "no Gaussians": (widths("mixture", n_widths=0), ValueError, "'n_widths'.*Got 0"),
    "no starts": (widths(n_starts=0), ValueError, "'n_starts'.*Got 0"),
    "six starts": (widths(n_starts=6), ValueError, "'n_starts'.*Got 6"),
    "no threads": (widths(n_jobs=0), ValueError, "n_jobs"),
    "little memory": (weigh(memory_limit=1000), MemoryBudgetError, "limit is 1.0 kB"),
    "little memory for widths": (
        lambda: RadiusKernelClassifier("ard", memory_limit="2kB").fit(X, LABELS),
        MemoryBudgetError,
        "need .* limit is 2.0 kB. Hint: use fewer rows, or memory_limit=",
    ),
    "memory in unknown units, for widths": (
        lambda: RadiusKernelClassifier(memory_limit="lots").fit(X, LABELS),
        InputError,
        "memory_limit='lots'",
    ),
    "no costs on a path": (
        lambda: RadiusMKLClassifier().fit_path(X, LABELS, []),
        InputError,
        "Cs: must be one or more finite numbers > 0",
    ),
    "negative cost on a path": (
        lambda: RadiusKernelClassifier().fit_path(X, LABELS, [1.0, -1.0]),
        InputError,
        "Cs: must be one or more finite numbers > 0",
    ),
    # widths by column
    "one width": (lambda: ARD(2.0), InputTypeError, r"ARD\(widths=2.0\).*list of numbers"),
    "no widths": (lambda: ARD(()), InputTypeError, "list of numbers, one per column"),
    "widths of text": (lambda: ARD("12"), InputTypeError, "list of numbers"),
    "zero width": (lambda: ARD((1.0, 0.0)), InputError, r"widths\[1\] must be a number > 0"),
    "negative width": (lambda: ARD([-1.0]), InputError, r"widths\[0\].*got -1.0"),
    "width not a number": (lambda: ARD((np.nan,)), InputError, r"widths\[0\].*got nan"),
    "a word as width": (lambda: ARD((1.0, "wide")), InputError, r"widths\[1\].*got 'wide'"),
    "a truth as width": (lambda: ARD((True,)), InputError, r"widths\[0\].*got True"),
    "table of widths": (lambda: ARD(np.ones((2, 2))), InputError, r"widths\[0\]"),
    "fewer widths than columns": (
        weigh([ARD((1.0, 2.0))]),
        InputError,
        "there are 2 widths for 3 columns",
    ),
    "sparse rows for widths by column": (
        weigh([ARD((1.0, 2.0, 3.0))], table=sp.csr_array(X)),
        InputTypeError,
        r"sparse X cannot be used; pass X.toarray\(\)",
    ),
}


@pytest.mark.parametrize(("act", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_one_sentence(act, error, message):
    with pytest.raises(error, match=message) as caught:
        act()
    assert_sentence(caught.value)


@pytest.mark.parametrize("learner", [RadiusMKLClassifier, RadiusKernelClassifier])
def test_nothing_works_before_fit(learner):
    for name in ("predict", "kernel", "to_frame", "decision_function"):
        with pytest.raises(NotFittedError, match="not fitted yet") as caught:
            getattr(learner(), name)(*([X] if name != "to_frame" else []))
        assert_sentence(caught.value)


@pytest.mark.parametrize("kernels", [[GRAM, CONSTANT], [ZERO, GRAM]])
@pytest.mark.parametrize("options", [{}, {"norm": "uniform"}, {"radius": "trace"}])
def test_one_constant_kernel_is_a_warning(kernels, options):
    place = [k is GRAM for k in kernels].index(False)
    with pytest.warns(UserWarning, match=rf"without weight: kernels\[{place}\] = ") as caught:
        model = RadiusMKLClassifier(kernels, **options).fit(ROWS, LABELS)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.weights_[place] == 0
    assert model.weights_[1 - place] > 0
    alone = RadiusMKLClassifier(GRAM, **options).fit(ROWS, LABELS)
    np.testing.assert_array_equal(model.decision_function(ROWS), alone.decision_function(ROWS))


# Odd input that has an answer


MKL_OPTIONS = {
    "radius": {},
    "projection": {"solver": "projection"},
    "uniform": {"norm": "uniform"},
    "upper": {"radius": "upper"},
    "trace": {"radius": "trace", "normalize": None},
    "chapelle": {"criterion": "chapelle"},
    "literal": {"criterion": "chapelle_literal", "norm": 1},
    "do": {"criterion": "do", "norm": 2},
}
PLAIN = [rbf_ladder(), Linear()]
MODELS = {name: RadiusMKLClassifier(PLAIN, **options) for name, options in MKL_OPTIONS.items()}
MODELS |= {family: RadiusKernelClassifier(family) for family in ("width", "ard", "mixture")}


CONSTANT_ROWS = "Constant on the training rows"


def fits(model, table, y, *, warned="", **options):
    """Fit to a finite model; the only warnings are an open gap and the one expected."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = model.set_params(**options).fit(table, y)
    gaps = [w for w in caught if w.category is ConvergenceWarning]
    assert len(gaps) == (not model.converged_)
    others = [str(w.message) for w in caught if w not in gaps]
    assert len(others) == bool(warned)
    assert all(warned in text for text in others)
    parts = [getattr(model, f"{name}_") for name in ("weights", "dual_coef", "intercept", "scales")]
    parts += [model.objective_, model.contributions_, model.decision_function(table)]
    assert all(np.isfinite(part).all() for part in parts)
    assert model.weights_.min() >= 0
    assert 0 < model.squared_radius_ < np.inf
    assert model.duality_gap_ >= 0
    if model.converged_ and np.isfinite(model.duality_gap_):
        assert model.duality_gap_ <= model.tol * model.objective_ * (1 + 1e-9)
    return model


def is_refused(model, table, y, message, **options):
    model = model.set_params(**options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", CONSTANT_ROWS, UserWarning)
        with pytest.raises(InputError, match=message) as caught:
            model.fit(table, y)
    assert_sentence(caught.value)


ODD = {
    "constant column": (X * [1, 0, 1] + [0, 5, 0], LABELS),
    "equal rows, opposite labels": (np.repeat(X[: N // 2], 2, axis=0), np.tile([0, 1], N // 2)),
    "two rows": (X[np.argsort(LABELS)[[0, -1]]], np.array([0, 1])),
    "fewer rows than kernels": (X[:4], np.array([0, 1, 0, 1])),
    "one row of a class": (X, (np.arange(N) == 7).astype(int)),
    "three classes": (X, np.digitize(X[:, 0], [-0.5, 0.5])),
    "noise": (X, RNG.integers(0, 2, N)),
    "bits": ((X > 0).astype(float), LABELS),
    "an outlier": (np.vstack([X[:-1], 1e3 * X[-1:]]), LABELS),
    "an offset": (X + 1e4, LABELS),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("name", every(2, ODD))
def test_odd_tables_fit(name, model):
    table, labels = ODD[name]
    fits(model, table, labels)


def test_values_of_odd_tables():
    table, labels = ODD["two rows"]
    assert MODELS["radius"].fit(table, labels).objective_ == pytest.approx(0.5, rel=1e-6)
    assert MODELS["ard"].fit(table, labels).objective_ == pytest.approx(0.5, rel=1e-6)
    table, labels = ODD["equal rows, opposite labels"]  # nothing to learn: every pair costs 2 C
    for name in ("radius", "uniform", "upper", "width", "ard", "mixture"):
        assert MODELS[name].fit(table, labels).objective_ == pytest.approx(N, rel=1e-3)


SCALES = [1e-300, 1e-160, 1e-150, 1e-8, 1e8, 1e150, 1e160, 1e300]
OVERFLOW = "linear: some values overflow; rescale the columns first"
# What stands in the way of a fit to columns of a scale, by default and of kernels without scale.
REFUSALS = {
    1e-160: r"linear: its values underflow",
    1e160: OVERFLOW,
    1e300: OVERFLOW,
}
REFUSALS_AS_THEY_ARE = {
    1e-300: "every kernel is constant on the training rows",
    1e-160: "linear: its values underflow",
    1e-150: "values are too small or too large to compare with the radius",
    1e150: r"polynomial\(degree=2, coef0=1\): some values overflow",
    1e160: OVERFLOW,
    1e300: OVERFLOW,
}


@pytest.mark.parametrize("name", ["radius", "uniform", "upper", "chapelle", "do"])
@pytest.mark.parametrize("scale", SCALES)
def test_extreme_columns(name, scale):
    if scale in REFUSALS:
        is_refused(MODELS[name], X * scale, LABELS, REFUSALS[scale])
        return
    small = scale == 1e-300  # whose products are all zero
    model = fits(MODELS[name], X * scale, LABELS, warned=CONSTANT_ROWS if small else "")
    assert model.converged_
    if not small:
        objective = model.objective_
        plain = fits(MODELS[name], X, LABELS)
        assert objective == pytest.approx(plain.objective_, rel=5e-3)


@pytest.mark.parametrize("name", ["radius", "uniform", "upper", "chapelle", "do"])
@pytest.mark.parametrize("scale", SCALES)
def test_extreme_columns_as_they_are(name, scale):
    model = RadiusMKLClassifier([Linear(), Polynomial(2)])
    options = {**MKL_OPTIONS[name], "normalize": None, "max_iter": 20}
    if scale in REFUSALS_AS_THEY_ARE:
        is_refused(model, X * scale, LABELS, REFUSALS_AS_THEY_ARE[scale], **options)
        return
    # Products of 1e-16 vanish beside the constant of the polynomial.
    fits(model, X * scale, LABELS, warned=CONSTANT_ROWS if scale < 1 else "", **options)


@pytest.mark.parametrize("name", ["width", "ard"])
@pytest.mark.parametrize("scale", SCALES)
def test_extreme_columns_of_a_learned_width(name, scale):
    if scale in (1e-8, 1e8):
        model = fits(MODELS[name], X * scale, LABELS)
        assert model.converged_
        objective = model.objective_
        assert objective == pytest.approx(fits(MODELS[name], X, LABELS).objective_, rel=5e-3)
        return
    message = "its distances are too large or too small for a Gaussian; rescale the columns first"
    is_refused(MODELS[name], X * scale, LABELS, message)


@pytest.mark.parametrize("name", ["radius", "uniform", "upper", "chapelle", "do", "width", "ard"])
@pytest.mark.parametrize("C", first(2, [1e-12, 1e12, 1e-6, 1e6]))
def test_extreme_costs(name, C):
    model = type(MODELS[name])(**MODELS[name].get_params())
    for labels in (LABELS, np.random.default_rng(1).permutation(LABELS)):
        fitted = fits(model, X, labels, C=C, max_iter=40)
        if C == 1e6 and labels is LABELS:
            assert fitted.score(X, labels) == 1
