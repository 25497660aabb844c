"""Model files with random damage: a sentence, never a crash, and nothing is run.

``PYTHONPATH=tests python tests/io/test_fuzz.py 10000`` does more of it.
"""

import collections
import sys
import warnings

import numpy as np
import pandas as pd

from kernelweave import RBF, KernelSpectralClustering, Linear, MKLClassifier, MKLRegressor
from kernelweave.cli.console import summarize_clusters
from kernelweave.errors import KernelweaveError, ModelFileError
from kernelweave.io import load, save
from kernelweave.tables import METHODS, fit_table
from model_files import mutated

N = 40
RANDOM = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": np.where(RANDOM.random(N) < 0.1, np.nan, RANDOM.normal(50, 10, N)),
        "town": RANDOM.choice(["Ulm", "Bonn"], N),
        "note": [" ".join(RANDOM.choice("red blue green grey pink".split(), 4)) for _ in range(N)],
        "seen": [f"2024-{1 + i % 12:02d}-11" for i in range(N)],
    }
)
TABLE["ill"] = np.where(RANDOM.normal(size=N) + TABLE["age"].fillna(50) / 20 > 2.5, "yes", "no")
GRAM = {"lab": np.eye(N) + 0.5}
NUMBERS = TABLE[["age"]].fillna(50.0).to_numpy()

_watched = {"on": False, "events": []}
_FORBIDDEN = (
    "exec",
    "pickle.find_class",
    "os.system",
    "os.exec",
    "subprocess.Popen",
    "marshal.loads",
)


def _watch(event, arguments):
    if _watched["on"] and event in _FORBIDDEN:
        _watched["events"].append(event)


sys.addaudithook(_watch)


def make_files(folder):
    """Write a model of every method, and return the contents of the files."""
    files = {}
    for method in METHODS:
        grams = GRAM if method == "mkl" else None
        C = 1.0 if METHODS[method].cost else "auto"
        fit = fit_table(TABLE, "ill", method=method, C=C, test_share=0, grams=grams)
        files[method] = save(fit.model, folder / f"{method}.kw").read_bytes()
    model = MKLClassifier([RBF(5.0), Linear()], calibration="auto").fit(NUMBERS, TABLE["ill"])
    files["calibrated"] = save(model, folder / "calibrated.kw").read_bytes()
    model = MKLRegressor([RBF(5.0)], loss="square", intervals="jackknife+")
    model.fit(NUMBERS, np.arange(N) % 7.0)
    files["intervals"] = save(model, folder / "intervals.kw").read_bytes()
    clusters = KernelSpectralClustering(3, random_state=0).fit(GRAM["lab"])
    files["clusters"] = save(clusters, folder / "clusters.kw").read_bytes()
    return files


def outcome(path):
    """Load and use a file; return what became of it, or raise what must not be."""
    rows = TABLE.assign(lab=np.arange(N))
    _watched["on"] = True
    try:
        model = load(path)
    except ModelFileError as error:
        text = str(error)
        assert "\n" not in text
        assert text.endswith(".")
        assert str(path) in text
        return "refused"
    finally:
        _watched["on"] = False
    try:
        if hasattr(model, "labels_"):
            summarize_clusters(model)
        elif hasattr(model, "_residuals"):
            model.predict_interval(NUMBERS)
        elif hasattr(model, "calibrator_"):
            model.predict_proba(NUMBERS)
            model.predict_set(NUMBERS)
        elif hasattr(model[-1], "predict"):
            model.predict(rows)
        else:
            model[-1].score_pairs(model[0].transform(rows), np.array([[0, 1]]))
    except KernelweaveError:
        return "loaded, not usable"
    return "usable"


def fuzz(folder, n_mutations, seed):
    files, random = make_files(folder), np.random.default_rng(seed)
    path, counts = folder / "mutated.kw", collections.Counter()
    for name, content in files.items():
        path.write_bytes(content)
        assert outcome(path) == "usable", name
    _watched["events"].clear()
    for i in range(n_mutations):
        name = list(files)[i % len(files)]
        path.write_bytes(mutated(files[name], random))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a usable file may overflow when it predicts
            counts[outcome(path)] += 1
    assert not _watched["events"]
    return counts


def test_damage_is_told(tmp_path):
    counts = fuzz(tmp_path, 300, seed=1)
    assert counts["refused"] > 200


def test_the_watch_sees_code(tmp_path):
    """Without this, the test above could not fail."""
    _watched["on"] = True
    try:
        exec(compile("1 + 1", "here", "exec"))
    finally:
        _watched["on"] = False
    assert _watched["events"] == ["exec"]
    _watched["events"].clear()


if __name__ == "__main__":
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as place:
        sys.stdout.write(f"{dict(fuzz(Path(place), int(sys.argv[1]), seed=2))}\n")
