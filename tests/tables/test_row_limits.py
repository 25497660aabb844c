"""Tables with more rows than a fit with all kernels can take."""

import numpy as np
import pandas as pd
import pytest

from kernelweave.banks.nystroem import build as large
from kernelweave.banks.nystroem.build import count_features, make_feature_bank
from kernelweave.kernels import RBF, Linear, Overlap, Precomputed
from kernelweave.tables import fit_table
from kernelweave.tables import row_limits as many_rows

N, PART, OUT = 700, 200, 175
RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(N, 2))
TABLE = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": RANDOM.choice(list("pq"), N)})
SIGNAL = np.sin(2 * X[:, 0]) + 0.5 * (TABLE["kind"] == "p") + 0.2 * RANDOM.normal(size=N)
TABLE["ill"] = np.where(SIGNAL > 0, "yes", "no")
TABLE["level"] = SIGNAL


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Let hundreds of rows be many."""
    monkeypatch.setattr(many_rows, "_MANY_ROWS", PART)
    monkeypatch.setattr(large, "MANY_ROWS", PART)
    monkeypatch.setattr(large, "TOO_MANY_ROWS", 500)
    monkeypatch.setattr(large, "ON_DEMAND_ROWS", 0)


def fit(target="ill", **options):
    other = "level" if target == "ill" else "ill"
    return fit_table(TABLE, target, **{"C": 1.0, "ignore": [other], "test_share": 0} | options)


@pytest.mark.parametrize("target", ["ill", "level"])
def test_all_rows_are_fitted_to(target):
    found = fit(target, test_share=OUT / N)
    estimator = found.model[-1]
    (note,) = (text for text in found.notes if "drawn at random" in text)
    assert found.n_rows == N
    assert note.startswith(f"all rows are fitted to {len(estimator.kernels_)} of 11 kernels")
    assert f"that carry 95% of a fit to {PART} rows drawn at random" in note
    # The gap is finite where the engine for many rows was at work.
    assert estimator.landmark_gap_ <= estimator.tol * estimator.objective_
    assert found.choice.ranking[0].rows == OUT
    assert next(iter(found.choice.ranking[0].scores.values())) > 0.85


def test_a_part_of_the_rows_where_all_would_take_long(monkeypatch):
    monkeypatch.setattr(many_rows, "_WORK", 1.0)
    found = fit()
    assert found.n_rows == PART
    assert any(text.startswith(f"{PART} of {N} rows are fitted to") for text in found.warnings)
    assert np.isnan(found.model[-1].landmark_gap_)


@pytest.mark.parametrize("target", ["ill", "level"])
def test_kernels_on_demand_fit_all_rows_and_tell_the_time_before(target, monkeypatch):
    monkeypatch.setattr(many_rows, "_WORK", 1.0)
    monkeypatch.setattr(large, "ON_DEMAND_ROWS", N)
    told = []
    found = fit(target, announce=lambda what, done: told.append(what))
    estimator = found.model[-1]
    assert found.n_rows == N
    assert estimator.converged_
    assert np.isnan(estimator.landmark_gap_)  # the gap is that of the exact kernels
    assert f"fitting to all {N} rows, about 1 s" in told
    monkeypatch.setattr(many_rows, "_SECONDS", 0.0)
    found = fit(target)
    assert found.n_rows == PART
    (warning,) = (text for text in found.warnings if "are fitted to" in text)
    assert "would take long, about 1 s (" in warning


def test_a_matrix_has_no_features():
    yes = (TABLE["ill"] == "yes").to_numpy()
    found = fit(grams={"lab": (yes[:, None] == yes).astype(float)})
    assert found.n_rows == PART


def test_a_number_of_rows_is_kept_to():
    found = fit(max_rows=300)
    assert found.n_rows == 300
    assert not any("all rows are fitted to" in text for text in found.notes)


def test_the_number_of_features(monkeypatch):
    kernels = [RBF(1.0, columns="a"), Linear(columns=["a", "b"]), Overlap(columns="kind")]
    rows = TABLE[["a", "b", "kind"]]
    bank = make_feature_bank(kernels, rows)
    found = count_features(kernels, rows)
    assert found == [item.rank for item in bank.landmarks]
    assert found[1:] == [2, 2]
    monkeypatch.setattr(large, "_MOST_LANDMARKS", 50)
    narrow = RBF(0.01, columns=["a", "b"])
    assert count_features([narrow], rows) == [50]
    assert count_features([narrow], rows.head(300)) == [300]  # it would be a Gram matrix
    assert count_features(kernels, rows.head(PART - 1)) is None
    assert count_features([Precomputed(X @ X.T)], np.arange(N)[:, None]) is None
