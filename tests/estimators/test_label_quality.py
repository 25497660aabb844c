"""Suspects and the quality of labels."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    suspects,
)
from wrong_labels import NOISY, blobs, fitted


@pytest.mark.parametrize("mode", ["auto", "class", "symmetric"])
def test_quality_follows_the_margin(mode):
    model = fitted(mode=mode)
    signs = np.where(NOISY == 1, 1, -1)
    order = np.argsort(signs * (model.loo_scores_ - model.threshold_))
    assert (np.diff(model.label_quality_[order]) > 0).all()
    assert ((model.label_quality_ > 0) & (model.label_quality_ < 1)).all()
    wrong = model.wrong_label_probability_
    assert ((wrong >= 0) & (wrong <= 1)).all()
    assert model.noise_level_ == pytest.approx(wrong.mean())


def test_suspects_are_the_flipped_labels():
    X, y, noisy = blobs(200, rates=(0.1, 0.2))
    model = fitted(X, np.array(["no", "yes"])[noisy])
    found = model.suspects()
    assert len(set(found.index) ^ set(np.flatnonzero(y != noisy))) <= 3
    assert found.given[0] != found.suggested[0]
    assert (np.diff(found.quality) >= 0).all()
    assert len(model.suspects(limit=3)) == 3
    piped = make_pipeline(StandardScaler(), clone(model)).fit(X, noisy)
    assert len(set(suspects(piped).index) ^ set(found.index)) <= 3
