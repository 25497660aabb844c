"""A loaded model is the saved model, and a bad file is one sentence."""

import io
import json
import os
import stat
import zipfile
from dataclasses import dataclass

import narwhals.selectors as ncs
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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
from kernelweave.errors import InputError, InputTypeError, KernelweaveError, ModelFileError
from kernelweave.io import TablePreparer, describe, load, save
from kernelweave.kernels import Cosine
from model_files import changed, forged, npy, packed, refused, same, unpacked
from quick import examples

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3))
SCORE = X[:, 0] + np.sin(2 * X[:, 1])
SIGNS = np.where(SCORE > 0, 1, -1)
THREE = np.array(["low", "middle", "high"])[np.digitize(SCORE, [-0.5, 0.5])]
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
    town=np.where(X[:, 2] > 0, "Köln", "Ulm"),
    size=pd.Categorical(np.where(X[:, 0] > 0.5, "L", "S")),
)
GRAM = Linear()(X) + 0.5 * RBF(1.5)(X)
ROWS = np.arange(40)[:, None]


def check_same_model(model, again, X):
    assert type(again) is type(model)
    for name, value in vars(model).items():
        if name == "_support_views":
            same(value.keys, again._support_views.keys)
            same(value.rows, again._support_views.rows)
        elif name != "kernels":
            same(value, getattr(again, name))
    assert set(vars(model)) == set(vars(again))
    same(model.predict(X), again.predict(X))
    same(model.kernel(X), again.kernel(X))
    if hasattr(model, "decision_function"):
        same(model.decision_function(X), again.decision_function(X))
    pd.testing.assert_frame_equal(model.to_frame(), again.to_frame(), check_exact=True)


def is_parameter(model, again, name="kernels"):
    same(getattr(model, name), getattr(again, name))


def round_trip(model, path, X):
    again = load(save(model, path))
    check_same_model(model, again, X)
    return again


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the bytes of a small model and the table it predicts for."""
    model = MKLClassifier([rbf_ladder(), Linear(columns=[0])]).fit(X, THREE)
    return save(model, tmp_path_factory.mktemp("io") / "model.kw").read_bytes()


LABELS = {
    "ints": SIGNS,
    "small ints": SIGNS.astype(np.int8),
    "bools": SIGNS > 0,
    "strings": THREE,
    "objects": THREE.astype(object),
    "two strings": np.where(SIGNS > 0, "yes", "no"),
    "floats": SIGNS.astype(float),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_classes_of_any_type(tmp_path, labels):
    model = MKLClassifier([rbf_ladder(), Linear(columns=0)]).fit(X, labels)
    is_parameter(model, round_trip(model, tmp_path / "m.kw", X))


@pytest.mark.parametrize(
    "parameters",
    [
        {"norm": 2, "C": np.float32(0.3), "max_iter": np.int64(99)},
        {"norm": "uniform", "normalize": None, "fit_intercept": False},
        {"normalize": "cosine", "memory_limit": "1GB", "class_weight": {"low": 2.0, "high": 1}},
        {"class_weight": "balanced", "warm_start": True, "n_jobs": 1},
    ],
)
def test_parameters(tmp_path, parameters):
    model = MKLClassifier([rbf_ladder([1, 2]), Linear()], **parameters).fit(X, THREE)
    again = round_trip(model, tmp_path / "m.kw", X)
    for name in model.get_params():
        is_parameter(model, again, name)


def test_refit_and_clone(tmp_path):
    model = MKLClassifier([rbf_ladder(per_feature=True)], warm_start=True).fit(X, SIGNS)
    again = round_trip(model, tmp_path / "m.kw", X)
    fresh = clone(again)
    assert not hasattr(fresh, "weights_")
    same(fresh.set_params(warm_start=False).fit(X, SIGNS).weights_, model.weights_)
    assert again.fit(X, SIGNS).n_iter_ <= model.n_iter_  # it starts where the saved one ended
    same(again.weights_, model.fit(X, SIGNS).weights_)


@pytest.mark.parametrize("targets", [SCORE, SCORE[:, None], np.column_stack([SCORE, X[:, 2]])])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "square", "huber"])
def test_regression(tmp_path, targets, loss):
    model = MKLRegressor([rbf_ladder(), Linear()], loss=loss).fit(X, targets)
    round_trip(model, tmp_path / "m.kw", X)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_no_support_rows(tmp_path):
    model = MKLRegressor(epsilon=100.0).fit(X, SCORE)
    assert model.support_.size == 0
    round_trip(model, tmp_path / "m.kw", X)


def test_not_converged(tmp_path):
    with pytest.warns(ConvergenceWarning):
        model = MKLClassifier([rbf_ladder(per_feature=True)], tol=1e-8, max_iter=2).fit(X, SIGNS)
    assert not round_trip(model, tmp_path / "m.kw", X).converged_


KERNELS = {
    "every class": [
        RBF(0.1 + 0.2),
        Laplacian(2.0, columns=[0, 2]),
        Linear(columns=1),
        Polynomial(3, 0.5, name="cubic ½"),
        Cosine(Polynomial(2)),
    ],
    "expressions": [
        2 * RBF(columns=[0]) + Linear() * RBF(3.0),
        (RBF(1.0) + Linear()).renamed("inner") + Linear(columns=2),
        0.1 * (Linear() * Linear(columns=slice(0, 2))),
    ],
    "slices and masks": [
        Linear(columns=slice(None, 2)),
        RBF(columns=slice(0, 3, 2)),
        RBF(columns=[True, False, True]),
        RBF(columns=[-1]),
    ],
    "families": [
        rbf_ladder(per_feature=True),
        rbf_ladder([0.5, np.float64(1.5)], columns=[0, 1]),
        polynomial_ladder([1, 2], coef0=0.3, per_feature=True),
        views({"left": [0, 1], "right": (2, [Linear(), rbf_ladder([1.0])])}),
        Linear(),
    ],
    "one kernel": RBF(2.0),
    "one family": rbf_ladder(),
    "a tuple": (RBF(2.0), Linear()),
    "default": None,
}


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS.keys())
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_kernels(tmp_path, kernels, norm):
    model = MKLClassifier(kernels, norm=norm).fit(X, SIGNS)
    is_parameter(model, round_trip(model, tmp_path / "m.kw", X))


@pytest.mark.parametrize("kernels", [None, [Overlap(), 2 * Overlap(columns=[1]) + RBF()]])
def test_arrays_of_categories(tmp_path, kernels):
    codes = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.5, X[:, 2] > 0]).astype(int)
    round_trip(MKLClassifier(kernels).fit(codes, SIGNS), tmp_path / "m.kw", codes)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "kernels",
    [
        None,
        [Overlap(columns=["town", "size"]), RBF(columns=["a", "b"])],
        [Overlap(columns="town") * RBF(columns=slice("a", "c")) + 1.5 * Linear(columns=["b"])],
        [rbf_ladder(columns=slice("a", "c"), per_feature=True), Overlap(columns="size")],
    ],
)
def test_frames(tmp_path, library, kernels):
    frame = FRAME if library == "pandas" else pl.from_pandas(FRAME)
    model = MKLClassifier(kernels, norm=2.0).fit(frame, SIGNS)
    again = round_trip(model, tmp_path / "m.kw", frame)
    same(again.feature_names_in_, np.array(list(FRAME.columns), dtype=object))
    is_parameter(model, again)


@pytest.mark.parametrize(
    "values",
    [
        pd.date_range("2020-01-01", periods=4).repeat(10),
        pd.date_range("2020-01-01", periods=4, tz="Europe/Berlin").repeat(10),
        [1, 2, 3, 4] * 10,
        [(1, "x"), (2, "y")] * 20,
        [True, False] * 20,
        ["½", '"quoted"'] * 20,
    ],
)
def test_categories_of_other_types(tmp_path, values):
    frame = pd.DataFrame({"x": pd.Series(values, dtype=None), "a": X[:, 0]})
    kernels = [Overlap(columns="x"), RBF(columns="a")]
    model = MKLClassifier(kernels, norm="uniform").fit(frame, SIGNS)
    again = load(save(model, tmp_path / "m.kw"))
    same(model.decision_function(frame), again.decision_function(frame))


def test_categories_that_cannot_be_stored(tmp_path):
    frame = pd.DataFrame({"x": [1 + 2j, 3j] * 20})
    model = MKLClassifier([Overlap()]).fit(frame.astype(object), [0, 1] * 20)
    with pytest.raises(ModelFileError, match=r"type complex cannot be stored.*use strings"):
        save(model, tmp_path / "m.kw")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrap", [sp.csr_array, sp.csc_matrix])
def test_sparse(tmp_path, wrap):
    rows = wrap(np.where(np.abs(X) > 0.5, X, 0))
    model = MKLClassifier([rbf_ladder([1.0, 2.0]), Linear(), Linear() * RBF()], norm=2)
    round_trip(model.fit(rows, THREE), tmp_path / "m.kw", rows)


def test_precomputed(tmp_path):
    first = Precomputed(GRAM, name="first")
    single = Precomputed(RBF(1.0)(X).astype(np.float32))
    kernels = [first, single, 2 * first + single, Precomputed(GRAM[::-1, ::-1]), Precomputed(GRAM)]
    model = MKLClassifier(kernels, norm=2).fit(ROWS[:30], SIGNS[:30])
    again = round_trip(model, tmp_path / "m.kw", ROWS)  # also of rows that were not trained on
    assert again.kernels[0] is again.kernels_[0]
    assert again.kernels_[2].parts[0].kernel is again.kernels_[0]
    assert np.shares_memory(again.kernels_[0].gram, again.kernels_[4].gram)
    assert not again.kernels_[0].gram.flags.writeable
    with zipfile.ZipFile(tmp_path / "m.kw") as archive:
        large = [info for info in archive.infolist() if info.file_size >= 40 * 40 * 4]
    assert len(large) == 3  # each matrix once


@pytest.mark.parametrize(
    "kernels",
    [
        [RBF(columns=ncs.numeric()), Overlap(columns=lambda frame: ["town", "size"])],
        [views({"numbers": ncs.numeric()}), Overlap(columns="town")],
        [rbf_ladder(columns=ncs.numeric(), per_feature=True)],
        [RBF(columns=ncs.numeric()) + Overlap(columns=ncs.string())],
    ],
)
def test_selectors_become_what_they_picked(tmp_path, kernels):
    model = MKLClassifier(kernels).fit(FRAME, SIGNS)
    again = round_trip(model, tmp_path / "m.kw", FRAME)
    assert again.kernels == again.kernels_ == model.kernels_
    same(clone(again).fit(FRAME, SIGNS).weights_, model.weights_)


def test_pipeline_with_preparer(tmp_path):
    labels = pd.Series(THREE, name="height")
    for standardize in (True, False):
        pipeline = make_pipeline(TablePreparer(standardize=standardize), MKLClassifier())
        pipeline.fit(FRAME, labels)
        again = load(save(pipeline, tmp_path / "m.kw"))
        assert [name for name, _ in again.steps] == ["tablepreparer", "mklclassifier"]
        same(vars(pipeline[0]), vars(again[0]))
        check_same_model(pipeline[1], again[1], pipeline[0].transform(FRAME))
        same(pipeline.decision_function(FRAME), again.decision_function(FRAME))
        assert again[0].target_ == "height"
        clone(again).fit(FRAME, labels)


def test_files_are_the_same_for_the_same_model(tmp_path, saved):
    again = MKLClassifier([rbf_ladder(), Linear(columns=[0])]).fit(X, THREE)
    assert save(again, tmp_path / "b.kw").read_bytes() == saved
    (tmp_path / "a.kw").write_bytes(saved)
    assert save(load(tmp_path / "a.kw"), tmp_path / "c.kw").read_bytes() == saved


def test_describe(tmp_path, saved):
    (tmp_path / "m.kw").write_bytes(saved)
    about = describe(tmp_path / "m.kw")
    assert about["version"] == 1
    assert about["estimator"] == "MKLClassifier"
    assert about["bytes"] == len(saved)
    assert set(about["made_by"]) == {"kernelweave", "numpy", "scikit-learn"}


def test_written_whole_or_not_at_all(tmp_path, saved, monkeypatch):
    path = tmp_path / "m.kw"
    path.write_bytes(saved)
    model = load(path)

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ModelFileError, match=r"m\.kw cannot be written: No space left on device\."):
        save(model, path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.kw"]
    assert path.read_bytes() == saved


def test_written_with_the_usual_rights_and_through_links(tmp_path, saved):
    (tmp_path / "m.kw").write_bytes(saved)
    (tmp_path / "plain").touch()
    (tmp_path / "link").symlink_to(tmp_path / "new.kw")
    save(load(str(tmp_path / "m.kw")), str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new.kw").read_bytes() == saved
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "new.kw")}
    assert len(modes) == 1


def test_paths_that_cannot_be_used(tmp_path, saved):
    (tmp_path / "m.kw").write_bytes(saved)
    model = load(tmp_path / "m.kw")
    with pytest.raises(ModelFileError, match=r"absent/m\.kw cannot be written: No such file"):
        save(model, tmp_path / "absent" / "m.kw")
    with pytest.raises(ModelFileError, match="cannot be written: it is a folder"):
        save(model, tmp_path)
    with pytest.raises(ModelFileError, match=r"absent\.kw cannot be read: No such file"):
        load(tmp_path / "absent.kw")
    with pytest.raises(ModelFileError, match="cannot be read: Is a directory"):
        load(tmp_path)
    with pytest.raises(InputTypeError, match="path must be a string or a path, got 3"):
        load(3)


@dataclass(frozen=True, eq=False, repr=False)
class Own(RBF):
    pass


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MKLClassifier(), "This MKLClassifier is not fitted yet; call fit before save."),
        (StandardScaler(), "A model of type StandardScaler cannot be saved, only Annotator"),
        (type("Sub", (MKLClassifier,), {})(), "A model of type Sub cannot be saved"),
        (make_pipeline(StandardScaler(), MKLClassifier()), "This MKLClassifier is not fitted yet"),
        (
            MKLClassifier([FromCallable(lambda A, B: A @ B.T), Linear()]).fit(X, SIGNS),
            "the code of its function cannot be stored; use Precomputed",
        ),
        (
            MKLClassifier([Own(2.0)]).fit(X, SIGNS),
            "only kernelweave's own kernels can be stored",
        ),
    ],
)
def test_models_that_cannot_be_saved(tmp_path, model, message):
    with pytest.raises(ModelFileError, match=message) as caught:
        save(model, tmp_path / "m.kw")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_files_that_are_something_else(tmp_path, saved):
    path = tmp_path / "m.kw"
    refused(path, b"", "is not a kernelweave model")
    refused(path, b"age,height\n3,4\n", "is not a kernelweave model")
    refused(path, saved[: len(saved) // 2], "is damaged: its end is missing")
    refused(path, packed({"a.txt": "hello"}), "is a zip, but not a kernelweave model")
    refused(path, packed({"model.json": '{"format": "x"}'}), "is a zip, but not a kernelweave")
    refused(path, packed({"model.json": "[1]"}), "is a zip, but not a kernelweave model")
    refused(path, packed({"model.json": "{"}), "is damaged: Expecting property name")
    refused(path, packed({"model.json": "[" * 100_000}), "is damaged: RecursionError")
    refused(path, packed(unpacked(saved), compression=zipfile.ZIP_DEFLATED), "is compressed")


def test_damaged_members(tmp_path, saved):
    path, members = tmp_path / "m.kw", unpacked(saved)
    lost = {name: content for name, content in members.items() if name != "0.npy"}
    refused(path, packed(lost), r"the member '0\.npy' is missing")
    content = npy(np.array([{"a": 1}], dtype=object))  # a pickle
    refused(path, packed(members | {"0.npy": content}), "holds values of type object")
    header = npy(np.zeros(6)).replace(b"(6,)", b"(99999999999,)")
    refused(path, packed(members | {"0.npy": header}), "does not have the size its header says")
    refused(path, packed(members | {"0.npy": npy(np.zeros(6))[:-8]}), "size its header says")
    refused(
        path, packed(members | {"0.npy": npy(np.zeros(5))}), r"weights_ .* \(6,\), got .*\(5,\)"
    )
    refused(path, packed(members | {"0.npy": npy(np.zeros(6))}), "weights_ must not .* all zero")
    refused(path, packed(members | {"0.npy": npy(np.full(6, np.nan))}), "are not finite")
    refused(path, packed(members | {"0.npy": npy(np.ones(6, np.float32))}), "must hold float64")
    refused(path, packed(members | {"0.npy": b"nonsense"}), "is damaged")
    flipped = saved.replace(npy(load_array(members["0.npy"])), npy(np.ones(6)))
    refused(path, flipped, "Bad CRC-32")


def load_array(content):
    return np.lib.format.read_array(io.BytesIO(content))


def test_sizes_that_cannot_be(tmp_path, saved):
    # The directory at the end says where members are and how large; 0xFFFFFF0 is 256 MB.
    at = saved.index(b"PK\x01\x02")
    large = (0xFFFFFF0).to_bytes(4, "little")
    refused(
        tmp_path / "m.kw",
        saved[: at + 20] + large + large + saved[at + 28 :],
        "declared larger than the file is|Overlapped entries",
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 3}, "has format 3, but this kernelweave reads up to format 2; update"),
        ({"version": "1"}, "its version is '1'"),
        ({"estimator": "SVC"}, "there is no estimator 'SVC'"),
        ({"estimator": "MKLRegressor"}, "is damaged"),
        ({"kernels/0/kernel/0": "Danger"}, "there is no kernel 'Danger'"),
        ({"kernels/0/kernel/0": "FromCallable"}, "there is no kernel 'FromCallable'"),
        ({"kernels/0/kernel/1/width": -1.0}, "width must be a finite number > 0"),
        ({"kernels/0/kernel/1/depth": 1.0}, "is damaged: TypeError"),
        ({"kernels/0/kernel/1/columns": {"tuple": [7]}}, "is damaged"),
        ({"kernels/0": 3}, "an item of kernels_ is a int"),
        ({"kernels": []}, "weights_ must be an array of shape"),
        ({"kernels/0": {"eval": "1"}}, "a value of kind 'eval' is not known"),
        ({"kernels/0": {"a": 1, "b": 2}}, "an object with the keys"),
        ({"kernels/0": {"kernel": ["Sum", {"parts": []}]}}, "parts must not be empty"),
        ({"parameters/kernels/0": {"family": ["Ladder", {}]}}, "there is no family"),
        ({"parameters/C": -1.0}, "C.* must be a float"),
        ({"parameters/surprise": 1}, "is damaged: TypeError"),
        ({"parameters/C": {"float": "1"}}, "a value of kind 'float'"),
        ({"parameters/C": {"numpy": ["O", 1]}}, "a number of type 'O' is not known"),
        ({"fitted/weights_": [1.0]}, "weights_ is a list"),
        ({"fitted/predict": 1}, "the fitted attributes are"),
        ({"fitted/n_features_in_": 1}, "is damaged"),
        ({"fitted/n_features_in_": "3"}, "n_features_in_ is a str"),
        ({"fitted/converged_": 1}, "converged_ is a int"),
        ({"fitted/objective_": "low"}, "objective_ is a str"),
        ({"fitted/history_": [1]}, "an item of history_ is a int"),
        ({"fitted/history_": [{"step": [1.0, 1.0, 1, 1, "x"]}]}, "a number in history_ is a str"),
        ({"fitted/classes_": ["a", "b", "c"]}, "classes_ is a list"),
        ({"fitted/classes_": {"objects": [[2], ["a", "b"]]}}, "number of outputs cannot be 3"),
        ({"fitted/classes_": {"objects": [[9], ["a"]]}}, "cannot reshape"),
        ({"fitted/_last": {"tuple": [1, 2, 3]}}, "weights to start from must be an array"),
        ({"fitted/feature_names_in_": {"objects": [[2], ["a", "b"]]}}, "does not have"),
        ({"support_rows": []}, "support rows do not belong to the kernels in use"),
        ({"support_rows/0": {"array": "0.npy"}}, "support rows must be an array of shape"),
        ({"support_rows/0": {"csr": [[1.0], [99], [0, 1], [1, 3]]}}, "is damaged"),
        ({"preprocess": {}, "steps": ["a", "b"]}, "is damaged: KeyError"),
    ],
)
def test_contents_that_do_not_belong_together(tmp_path, saved, changes, message):
    refused(tmp_path / "m.kw", changed(saved, changes), message)


def test_rows_outside_the_matrix(tmp_path):
    model = MKLClassifier([Precomputed(GRAM)]).fit(ROWS, SIGNS)
    content = save(model, tmp_path / "m.kw").read_bytes()
    document = json.loads(unpacked(content)["model.json"])
    name = document["support_rows"][0]["array"]
    rows = npy(np.full(model.support_.size, 40))
    refused(tmp_path / "m.kw", packed(unpacked(content) | {name: rows}), "not in the matrix")


def test_constants_that_are_not_json(tmp_path, saved):
    content = unpacked(saved)
    text = content["model.json"].replace(b'"version": 1', b'"version": NaN')
    refused(tmp_path / "m.kw", packed(content | {"model.json": text}), "NaN is not JSON")


fuzzing = examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def loads_or_is_refused(path, content):
    path.write_bytes(content)
    try:
        model = load(path)
    except ModelFileError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    try:
        with np.errstate(all="ignore"):
            model.predict(X)
    except KernelweaveError:
        pass  # a file may be in order and yet not about these rows
    except ValueError as error:
        assert "features" in str(error)  # noqa: PT017


@fuzzing
@given(
    cut=st.none() | st.floats(0, 1),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=4),
)
def test_damaged_bytes(tmp_path, saved, cut, flips):
    content = bytearray(saved)
    for place, mask in flips:
        content[int(place * len(content))] ^= mask
    loads_or_is_refused(
        tmp_path / "m.kw", bytes(content[: None if cut is None else int(cut * len(saved))])
    )


@fuzzing
@given(
    member=st.integers(0, 100),
    place=st.floats(0, 1, exclude_max=True),
    new=st.binary(max_size=12),
    keep=st.booleans(),
)
def test_forged_members(tmp_path, saved, member, place, new, keep):
    """Change members under a right checksum."""
    members = unpacked(saved)
    name = sorted(members)[member % len(members)]
    old = members[name]
    at = int(place * len(old))
    members[name] = old[:at] + new + old[at + (len(new) if keep else 0) :]
    loads_or_is_refused(tmp_path / "m.kw", packed(members))


@fuzzing
@given(data=st.data())
def test_forged_documents(tmp_path, saved, data):
    loads_or_is_refused(tmp_path / "m.kw", forged(saved, data))


@pytest.mark.parametrize("library", [pd, pl])
def test_preparer_takes_columns_by_name(library):
    train = library.DataFrame({"age": [1, 2, 3], "big": [True, False, True], "town": list("xyx")})
    preparer = TablePreparer().fit(train)
    assert preparer.numeric_.tolist() == [True, True, False]
    new = library.DataFrame({"extra": [0], "town": [7], "big": [0.0], "age": [2.0]})
    out = preparer.transform(new)
    assert type(out) is type(train)
    assert list(out.columns) == ["age", "big", "town"] == list(preparer.get_feature_names_out())
    assert out["town"].to_list() == ["7"]
    assert out["age"].to_list() == [0.0]
    assert TablePreparer(standardize=False).fit_transform(train)["age"].to_list() == [1, 2, 3]


def test_preparer_keeps_the_order_of_rows():
    """The index of a pandas frame is no order."""
    frame = pd.DataFrame({"a": [3.0, 1.0, 2.0], "b": list("zxy")}, index=[2, 0, 1])
    out = TablePreparer(standardize=False).fit_transform(frame)
    assert out["a"].to_list() == [3.0, 1.0, 2.0]
    assert out["b"].to_list() == ["z", "x", "y"]


@pytest.mark.parametrize("values", [[None], [None, True, 3], [np.nan, True, 3.0], [pd.NA, True, 3]])
@pytest.mark.parametrize("missing", ["fill", "keep"])
def test_preparer_takes_numbers_and_gaps_as_objects(values, missing):
    """A row alone whose value is missing has no type."""
    train = pd.DataFrame({"a": [1.0, 2.0, 6.0]})
    preparer = TablePreparer(standardize=False, missing=missing).fit(train)
    out = preparer.transform(pd.DataFrame({"a": np.array(values, dtype=object)}))
    gap = 2.0 if missing == "fill" else np.nan
    np.testing.assert_array_equal(out["a"], [gap, 1.0, 3.0][: len(values)])


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ({"a": ["7", "8"], "b": [1, 2], "c": ["u", "v"]}, "'a' must hold numbers, but has '7'"),
        ({"a": [1.0]}, r"lacks the columns 'b', 'c' that the model needs; its columns are: 'a'"),
        ({"a": ["7", "x"], "b": [1, 2], "c": ["u", "v"]}, "'a' must hold numbers, but has 'x'"),
        ({"a": [1.0, None], "b": [1, 2], "c": ["u", None]}, r"in 'a' \(1 rows\), 'c' \(1 rows\)"),
        ({"a": [np.inf], "b": [1], "c": ["u"]}, r"infinite\) in 'a' \(1 rows\)"),
    ],
)
def test_preparer_refuses(new, message):
    train = pd.DataFrame({"a": [1.0, 2.0], "b": [1, 2], "c": ["u", "v"]})
    with pytest.raises(InputError, match=message):
        TablePreparer().fit(train).transform(pd.DataFrame(new))


def test_preparer_needs_a_frame_with_names():
    with pytest.raises(InputTypeError, match="X must be a data frame, got ndarray"):
        TablePreparer().fit(X)
    with pytest.raises(InputError, match="must have names that are text"):
        TablePreparer().fit(pd.DataFrame(X))
