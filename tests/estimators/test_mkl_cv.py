"""C chosen by cross-validation: targets, files and bad input."""

import numpy as np
import pytest
from sklearn.base import clone

from kernelweave import (
    RBF,
    Linear,
    MKLClassifierCV,
    MKLRegressorCV,
    RuleEnsembleClassifierCV,
    io,
)
from kernelweave.errors import InputError
from path_cases import CS, LABELS, PAIRS, TARGET, X


def test_a_number_of_values():
    model = MKLRegressorCV([Linear()], Cs=3).fit(X, TARGET)
    np.testing.assert_allclose(model.cv_results_["C"], [1e-3, 1.0, 1e3])


def test_several_targets_and_weights():
    Y = np.column_stack([TARGET, X[:, 2]])
    weight = np.where(np.arange(80) % 4, 1.0, 0.0)
    model = MKLRegressorCV([Linear(), RBF(2.0)], Cs=CS).fit(X, Y, weight)
    assert model.predict(X).shape == (80, 2)
    assert not np.isin(model.support_, np.flatnonzero(weight == 0)).any()


def test_model_files(tmp_path):
    for model, _, y in PAIRS:
        model = clone(model).fit(X, y)
        again = io.load(io.save(model, tmp_path / "model.kw"))
        assert again.C_ == again.C == model.C_
        np.testing.assert_array_equal(again.cv_results_["scores"], model.cv_results_["scores"])
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("kind", [MKLClassifierCV, RuleEnsembleClassifierCV])
def test_bad_input(kind):
    for Cs in ([], [0.0, 1.0], [1.0, np.inf], ["a"]):
        with pytest.raises(InputError, match="Cs: must be one or more finite numbers > 0"):
            kind(Cs=Cs).fit(X, LABELS)
    with pytest.raises(ValueError, match="'Cs' parameter"):
        kind(Cs=0).fit(X, LABELS)
    weight = np.zeros(80)
    weight[:20] = 1.0
    with pytest.raises(InputError, match="rows to learn from in fold 1 have weight zero"):
        kind(Cs=CS, cv=[(np.arange(20, 80), np.arange(20))]).fit(X, LABELS, weight)
    with pytest.raises(InputError, match=r"scoring: gives \[nan"):
        kind(Cs=CS, scoring=lambda *_: np.nan).fit(X, LABELS)
    with pytest.raises(InputError, match="one class only"):
        kind(Cs=CS).fit(X, ["a"] * 80)
