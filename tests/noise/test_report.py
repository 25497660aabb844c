"""Reports of label quality."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from kernelweave import RBF, Linear, estimate_noise
from kernelweave.banks import make_bank
from kernelweave.banks import row_source as source
from kernelweave.banks.nystroem import build as large
from kernelweave.noise import assess_labels, assess_rows
from noisy_blobs import NOISY, WRONG, X, three


def test_a_report_of_a_bank():
    for normalize in ("trace", "diagonal", None):
        bank = make_bank([RBF(1.0), Linear(), RBF(4.0)], X, normalize=normalize)
        report = assess_labels(bank, NOISY, 2)
        assert roc_auc_score(WRONG, -report.label_quality) > 0.95
        assert report.noise_level == pytest.approx(report.wrong_label_probability.mean())
        assert report.noise_level == pytest.approx(WRONG.mean(), abs=0.08)
        np.testing.assert_allclose(report.rates.sum(axis=1), 1)
        assert report.scores.shape == (300,)
        assert ((report.suggested != NOISY) == (report.label_quality < 0.5)).all()
    # each kernel counts the same whatever its scale
    plain = assess_labels(make_bank([RBF(1.0), Linear()], X, normalize=None), NOISY, 2)
    scaled = assess_labels(make_bank([RBF(1.0), 9 * Linear()], X, normalize=None), NOISY, 2)
    np.testing.assert_allclose(plain.scores, scaled.scores, atol=1e-7)


def test_a_report_of_several_classes():
    X, y, noisy = three()
    report = assess_labels(make_bank([RBF(2.0), Linear()], X), noisy, 3)
    assert roc_auc_score(y != noisy, -report.label_quality) > 0.95
    assert report.scores.shape == (300, 3)
    assert ((report.suggested != noisy) == (report.label_quality < 0.5)).all()
    assert ((report.wrong_label_probability >= 0) & (report.wrong_label_probability <= 1)).all()


def test_labels_of_large_tables_are_assessed_in_passes(monkeypatch):
    kernels = [RBF(2.0), Linear()]
    exact = estimate_noise(X, NOISY, kernels, random_state=0)
    report = assess_labels(make_bank(kernels, X), NOISY, 2)
    monkeypatch.setattr(large, "PASS_ROWS", 10)
    monkeypatch.setattr(source, "WORK_ROWS", 70)
    found = estimate_noise(X, NOISY, kernels, random_state=0)
    assert found.level == pytest.approx(exact.level, abs=1e-5)
    np.testing.assert_allclose(found.interval, exact.interval, atol=1e-5)
    passed = assess_rows(kernels, X, NOISY, 2)
    np.testing.assert_allclose(passed.label_quality, report.label_quality, atol=1e-5)
    shares = assess_rows([Linear()], np.ones((300, 1)), NOISY, 2)  # no kernel tells anything
    np.testing.assert_allclose(shares.label_quality, np.bincount(NOISY)[NOISY] / 300)
