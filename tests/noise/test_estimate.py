"""Levels and rates of wrong labels."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import RBF, estimate_noise, estimate_rates
from kernelweave.errors import InputError, KernelweaveError
from noisy_blobs import NOISY, WRONG, X, blobs, three


@pytest.mark.parametrize("method", ["range", "counts"])
@pytest.mark.parametrize("level", [0.0, 0.2, 0.4])
def test_levels_are_near(method, level):
    X, y, noisy = blobs(400, seed=1, rates=(level, level))
    found = estimate_noise(X, noisy, method=method, random_state=0)
    assert found.level == pytest.approx((y != noisy).mean(), abs=0.08)
    assert found.interval[0] <= found.level <= found.interval[1]
    assert list(found.other) == [{"range": "counts", "counts": "range"}[method]]
    assert 0 <= found.level <= 0.49
    assert f"by {method}" in repr(found)


def test_rates_tell_the_direction():
    X, _, noisy = blobs(400, rates=(0.05, 0.4))
    names = np.array(["no", "yes"])
    for method in ("range", "counts"):
        found = estimate_rates(X, names[noisy], method=method, random_state=0)
        np.testing.assert_allclose(found.rates.sum(axis=1), 1)
        assert found.rates[0, 1] < 0.15
        assert found.rates[1, 0] == pytest.approx(0.4, abs=0.1)
        assert (found.lower <= found.upper).all()
        assert found.classes.tolist() == ["no", "yes"]
        assert "yes: no " in repr(found)


def test_several_classes():
    X, y, noisy = three(noise=0.4)
    for method in ("range", "counts"):
        found = estimate_noise(X, noisy, method=method, random_state=0)
        assert found.level == pytest.approx((y != noisy).mean(), abs=0.1)
    assert estimate_rates(X, noisy, random_state=0).rates.shape == (3, 3)


def test_the_same_seed_gives_the_same_interval_and_more_confidence_a_wider_one():
    one = estimate_noise(X, NOISY, random_state=3)
    assert estimate_noise(X, NOISY, random_state=3, n_jobs=2).interval == one.interval
    wide = estimate_noise(X, NOISY, random_state=3, confidence=0.99)
    assert wide.interval[0] < one.interval[0]
    assert wide.interval[1] > one.interval[1]


def test_kernels_frames_and_lists():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    one = estimate_noise(frame, NOISY, RBF(2.0, columns=["a", "b"]), random_state=0)
    other = estimate_noise(X[:, :2].tolist(), NOISY.tolist(), [RBF(2.0)], random_state=0)
    assert one.level == pytest.approx(other.level)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "guess"}, "method: must be 'range' or 'counts'"),
        ({"n_bootstrap": 0}, "n_bootstrap"),
        ({"n_bootstrap": 2.5}, "n_bootstrap"),
        ({"confidence": 1.0}, "confidence: must lie between 0 and 1"),
        ({"y": None}, "y: labels are needed"),
        ({"y": np.zeros(300)}, "y: two classes or more"),
        ({"y": np.where(WRONG, np.nan, 1.0)}, "y: contains NaN"),
        ({"X": np.where(WRONG[:, None], np.nan, X)}, "missing or infinite"),
        ({"X": X[:, 0]}, "two dimensions"),
        ({"kernels": []}, "kernels: the list is empty"),
    ],
)
def test_bad_input_gets_one_sentence(options, message):
    arguments = {"X": X, "y": NOISY} | options
    for function in (estimate_noise, estimate_rates):
        with pytest.raises(InputError, match=message) as refused:
            function(**arguments)
        assert "\n" not in str(refused.value)
        assert isinstance(refused.value, KernelweaveError)
