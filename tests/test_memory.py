"""Limits of memory are understood, and the peak of a fit in a fresh process stays within them."""

import re
import subprocess
import sys

import pytest

from kernelweave._memory import check_memory, parse_bytes
from kernelweave.errors import InputError, MemoryBudgetError

PRELUDE = """
import re, warnings
import numpy as np
import scipy.sparse as sp
from kernelweave import *
from kernelweave.errors import MemoryBudgetError
from kernelweave.kernels import *

warnings.simplefilter("ignore")
SHRINK = dict(method="shrink", shape="diag", gamma=0.0, rho=1.0, steps=1, random_state=0)
RBFS = [RBF(width=w) for w in (0.5, 1.0, 2.0, 4.0)]

def table(n):
    X = rng.normal(size=(n, 4))
    target = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, target, (target > 0).astype(int)

def resident(key):
    status = open("/proc/self/status").read()
    return 1024 * int(re.search(key + r":\\s+(\\d+)", status)[1])

def fit(model, n, task):
    global rng
    rng = np.random.default_rng(0)  # the same rows every time
    X, target, labels = table(n)
    if "pairs" in task:
        X, pairs = rng.normal(size=(n, 50)), rng.integers(n, size=(40 * n, 2))
        if task != "pairs":
            X = sp.csr_array(np.maximum(X, 0.0)) if task == "sparse pairs" else abs(X)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        return model.fit(X, pairs=pairs, labels=np.where(rng.random(len(pairs)) < 0.5, 1, -1))
    return model.fit(X, target if task == "regression" else labels)

def check(model, n, task):
    fit(model, 60, task)  # modules and buffers that every fit needs
    try:  # so little that it is refused, with a hint that must do
        fit(model.set_params(memory_limit="100kB"), n, task)
        raise AssertionError("not refused")
    except MemoryBudgetError as error:
        limit = re.search(r"memory_limit='([0-9.]+)MB'", str(error))[1]
    model.set_params(memory_limit=limit + "MB")
    open("/proc/self/clear_refs", "w").write("5")  # begin the peak anew
    before = resident("VmRSS")
    fit(model, n, task)
    peak = resident("VmHWM") - before
    assert peak <= 1.1e6 * float(limit), (peak / 1e6, limit)
    assert peak >= 0.2e6 * float(limit), (peak / 1e6, limit)
"""

ROUTES = {
    "hinge": "MKLClassifier(RBFS), 1500, 'classes'",
    "hinge at a large C": "MKLClassifier(RBFS, C=1000, tol=1e-5), 1500, 'classes'",
    "stored matrices": "MKLClassifier([Polynomial(4), Polynomial(5) * RBF(1.0)]), 1500, 'classes'",
    "square": "MKLRegressor(RBFS, loss='square'), 1500, 'regression'",
    "square, uniform": "MKLRegressor(RBFS, loss='square', norm='uniform'), 1500, 'regression'",
    "noisy labels": "NoisyLabelMKLClassifier(RBFS), 1200, 'classes'",
    "Nystroem features": "MKLClassifier(RBFS, tol=0.01), 20_000, 'classes'",
    "noisy labels, Nystroem features": "NoisyLabelMKLClassifier(RBFS, tol=0.01), 20_000, 'classes'",
    "pairs": "PairwiseKernelLearner(), 2000, 'pairs'",
    "shrink": "PairwiseKernelLearner(**SHRINK, alpha=1.0), 2000, 'dense pairs'",
    "shrink, pairs drawn": "PairwiseKernelLearner(**SHRINK, alpha=0.1), 1000, 'dense pairs'",
    "shrink, sparse": "PairwiseKernelLearner(**SHRINK, alpha=0.1), 1000, 'sparse pairs'",
}


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("route", ROUTES)
def test_a_fit_stays_within_the_limit_that_its_refusal_suggests(route):
    code = f"{PRELUDE}\ncheck({ROUTES[route]})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("short", [1.0, 1e3, 1e5])
def test_what_is_needed_and_the_limit_are_told_apart(short):
    def refusal(limit):
        with pytest.raises(MemoryBudgetError) as caught:
            check_memory("This needs", {"a matrix": 1e8}, limit, "use less")
        return str(caught.value)

    message = refusal(1e8 - short)
    need, limit = re.match(r"This needs (.*) \(.* limit is (.*)\. Hint", message).groups()
    assert need != limit
    check_memory("This needs", {"a matrix": 1e8}, message.split("'")[1], "use less")


@pytest.mark.parametrize("need", [1.0, 3e5, 1e8 + 1, 3e8, 7.7777e8, 1.1e9, 2.3e12])
def test_the_limit_that_is_suggested_will_do(need):
    with pytest.raises(MemoryBudgetError) as caught:
        check_memory("This needs", {"a matrix": need}, 0.5, "use less")
    check_memory("This needs", {"a matrix": need}, str(caught.value).split("'")[1], "use less")


@pytest.mark.parametrize(
    ("limit", "n_bytes"),
    [
        ("8GB", 8e9),
        ("500 MB", 5e8),
        ("1e9", 1e9),
        (1e9, 1e9),
        ("0.5g", 5e8),
        ("100000kB", 1e8),
        ("1TB", 1e12),
        (10**9, 1e9),
    ],
)
def test_limits_that_are_understood(limit, n_bytes):
    assert parse_bytes(limit) == n_bytes


@pytest.mark.parametrize("limit", ["", "lots", "-1GB", 0, "0", float("nan"), "GB", "8 ZB"])
def test_limits_that_are_not(limit):
    with pytest.raises(InputError, match=r"memory_limit=.*positive number of bytes.*8GB"):
        parse_bytes(limit)
