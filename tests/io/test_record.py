"""Records of fits in model files."""

import json
import zipfile

import numpy as np
import pytest

from kernelweave import MKLClassifier
from kernelweave.errors import InputTypeError, ModelFileError
from kernelweave.io import FitRecord, Importance, ScoredModel, describe, load, save

MODEL = MKLClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
RECORD = FitRecord(
    (
        ScoredModel("this model", {"accuracy": 0.93}, 200),
        ScoredModel("SVM", {"accuracy": float("nan")}, 100, (0.1, 0.02), 0.9),
    ),
    "on 200 rows held out",
    (0.9, 0.95),
    "log_loss",
    {"accuracy": 0.5},
    "A remark.",
    ("A warning.",),
    ("A note.",),
    {"file": "a.csv"},
    {"n_rows": 200, "roc": [{"x": np.linspace(0, 1, 5)}], "classes": ["a", 3, True, None]},
    np.arange(4),
    Importance(("age", "town"), (0.5, 0.25), (0.1, 0.0), 7, 40, 30, True, "decision"),
)


IMPORTANCE = {
    "names": {"tuple": ["age"]},
    "means": {"tuple": [0.5]},
    "errors": {"tuple": [0.1]},
    "n_columns": 1,
    "n_rows": 3,
    "n_background": 3,
}


def rewritten(path, change):
    """Write the file again with another document."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(parts["model.json"])
    change(document)
    parts["model.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def test_a_record_comes_back(tmp_path):
    path = save(MODEL, tmp_path / "m.kw", record=RECORD)
    found = describe(path)["record"]
    np.testing.assert_equal(found.to_dict(), RECORD.to_dict())
    assert found.measure == "accuracy"
    assert load(path).predict([[2.5]]) == [1]


def test_files_without_a_record(tmp_path):
    path = save(MODEL, tmp_path / "m.kw")
    assert describe(path)["record"] is None
    empty = save(MODEL, tmp_path / "n.kw", record=FitRecord((), ""))
    assert describe(empty)["record"].measure is None


@pytest.mark.parametrize(
    ("behind", "verdict"),
    [
        (None, ""),
        ((0.0, 0.0), "about the same"),
        ((0.1, 0.06), "about the same"),
        ((0.1, 0.04), "worse"),
        ((-0.1, 0.04), "better"),
    ],
)
def test_verdicts(behind, verdict):
    assert ScoredModel("SVM", {"r2": 0.5}, 10, behind).verdict == verdict


def test_only_records_are_kept(tmp_path):
    with pytest.raises(InputTypeError, match=r"record: must be a .*FitRecord, got dict"):
        save(MODEL, tmp_path / "m.kw", record={})


@pytest.mark.parametrize(
    "damage",
    [
        {"models": 3},
        {"models": [3]},
        {"models": [{"dict": [["name", 3], ["scores", {"dict": []}], ["rows", 3]]}]},
        {"models": [{"dict": [["name", "a"], ["scores", {"dict": [["r2", "x"]]}], ["rows", 3]]}]},
        {"measured": 3},
        {"interval": {"tuple": [1]}},
        {"interval": {"tuple": ["a", "b"]}},
        {"warnings": "abc"},
        {"warnings": {"tuple": [3]}},
        {"facts": {"dict": [["file", 3]]}},
        {"evaluation": 3},
        {"row_hashes": "abc"},
        {"importance": 3},
        {"importance": {"dict": [["names", {"tuple": ["age"]}]]}},
        *(
            {"importance": {"dict": list((IMPORTANCE | {name: value}).items())}}
            for name, value in [
                ("names", {"tuple": [3]}),
                ("names", "a"),
                ("means", {"tuple": []}),
                ("errors", {"tuple": ["x"]}),
                ("n_rows", "x"),
            ]
        ),
        {"other": 3},
    ],
)
def test_damaged_records_are_one_sentence(tmp_path, damage):
    path = save(MODEL, tmp_path / "m.kw", record=RECORD)

    def change(document):
        values = dict(document["record"]["dict"]) | damage
        document["record"] = {"dict": list(values.items())}

    rewritten(path, change)
    with pytest.raises(ModelFileError, match=r"is damaged: .*\.$"):
        describe(path)
    load(path)  # the model itself is sound
