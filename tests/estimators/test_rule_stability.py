"""Stability of rules over half samples."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import RuleEnsembleClassifier
from kernelweave.io import load, save
from quick import first


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    return X, ((X["a"] > 0) ^ (rng.random(n) < 0.2)).astype(int)


def model(rho=1.0, **options):
    loss = "logistic" if rho == 1.0 else "hinge"
    return RuleEnsembleClassifier(rho, loss=loss, C=10.0, random_state=0, **options)


@pytest.mark.parametrize("rho", first(1, [1.0, 1.1]))
def test_true_rules_are_stable_and_chance_is_not(rho):
    X, y = table()
    fitted = model(rho, n_resamples=8, refit=True).fit(X, y)
    by_text = dict(zip([rule.text for rule in fitted.rules_], fitted.stability_, strict=True))
    assert max(share for text, share in by_text.items() if text.startswith("a ")) > 0.8
    if rho == 1.0:
        assert len(by_text) > 2
        assert min(by_text.values()) < 0.8
    assert set(fitted.stability_ * 8) <= set(range(9))
    plain = model(rho, refit=True).fit(X, y)
    assert plain.rules_ == fitted.rules_
    assert not hasattr(plain, "stability_")


def test_a_stable_set_is_a_part_of_the_rules():
    X, y = table()
    every = model(n_resamples=8, refit=True).fit(X, y)
    stable = model(n_resamples=8, refit=True, min_stability=0.8).fit(X, y)
    expected = {r.text for r, s in zip(every.rules_, every.stability_, strict=True) if s >= 0.8}
    assert {rule.text for rule in stable.rules_} == expected
    assert len(expected) < len(every.rules_)
    assert (stable.stability_ >= 0.8).all()
    assert stable.refit_gap_ <= 1e-6


def test_the_seed_decides_and_files_keep_it(tmp_path):
    X, y = table(200)
    first, second = (model(n_resamples=4).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.stability_, second.stability_)
    again = load(save(first, tmp_path / "m.kw"))
    np.testing.assert_array_equal(again.stability_, first.stability_)
    weighted = model(n_resamples=2).fit(X, y, np.linspace(0.5, 1.5, len(y)))
    assert weighted.stability_.shape == (len(weighted.rules_),)
