"""The compiled games: series, threads, refusals."""

import numpy as np
import pytest

from game_oracles import product, shapley
from kernelweave import _core
from kernelweave.inspection.nodes import quadrature

STEPS = np.array([(i, j, i + j) for i in range(3) for j in range(3 - i)], dtype=np.int64)


def arguments(d=4, K=1, n_rows=3, m=5, n=40, n_outputs=2, seed=0):
    random = np.random.default_rng(seed)
    inside, outside = (
        random.standard_normal((d, K, n_rows, n)),
        random.standard_normal((d, K, m, n)),
    )
    steps = STEPS if K == 3 else np.zeros((1, 3), dtype=np.int64)
    start = np.array([1.0, 0.5, 0.125]) if K == 3 else np.ones(1)
    return [inside, outside, random.standard_normal((n, n_outputs)), start, steps, quadrature(3)]


def multiply(a, b):
    return [sum(a[i] * b[k - i] for i in range(k + 1)) for k in range(len(a))]


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("with_extra", [False, True])
def test_signed_factors_and_series(K, with_extra):
    inside, outside, coef, start, steps, rule = arguments(K=K)
    d, m = len(inside), outside.shape[2]
    random = np.random.default_rng(1)
    extra = random.standard_normal((3, m, len(coef))) if with_extra else None
    out = np.zeros((3, m, d, 2))
    _core.product_games(inside, outside, coef, start, steps, rule, out, extra)
    for row in range(3):
        for other in range(m):
            games = []
            for present in product([False, True], repeat=d):
                series = start
                for l, there in enumerate(present):
                    series = multiply(series, inside[l, :, row] if there else outside[l, :, other])
                value = np.asarray(series[-1])
                games.append((value if extra is None else value * extra[row, other]) @ coef)
            assert np.abs(shapley(np.array(games), d) - out[row, other]).max() <= 1e-12


def test_bitwise_for_any_number_of_threads():
    found = []
    for threads in (1, 2, 5):
        before = _core.get_threads()
        _core.set_threads(threads)
        try:
            given = arguments(n_rows=7, m=9)
            out, pairs = np.zeros((7, 9, 4, 2)), np.zeros((7, 6, 2))
            _core.product_games(*given, out)
            _core.product_interactions(*given, np.full(9, 1 / 9), pairs)
            found.append((out, pairs))
        finally:
            _core.set_threads(before)
    for out, pairs in found[1:]:
        assert np.array_equal(out, found[0][0])
        assert np.array_equal(pairs, found[0][1])


def test_terms_that_vanish_are_left_out():
    given = arguments(n=64)
    given[0][:, :, :, :32] *= 1e-9
    given[1][:, :, :, :32] *= 1e-9
    whole, without = np.zeros((2, 3, 5, 4, 2))
    _core.product_games(*given, whole)
    _core.product_games(*given, without, None, 1e-20)
    assert np.abs(whole - without).max() <= 1e-30
    given[2][32:] = 0.0  # only terms that vanish
    few, none = np.zeros((2, 3, 5, 4, 2))
    _core.product_games(*given, few)
    _core.product_games(*given, none, None, 1e-20)
    assert few.any()
    assert not none.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({1: np.zeros((3, 1, 5, 40))}, "same players"),
        ({2: np.zeros((39, 2))}, "one row per term"),
        ({3: np.ones(2)}, "start"),
        ({4: np.ones((1, 3), dtype=np.int64)}, "steps must lie in range"),
        ({4: np.zeros((1, 2), dtype=np.int64)}, "three columns"),
        ({5: np.zeros((3, 2))}, "quadrature"),
        ({6: np.zeros((3, 5, 4, 1))}, "out has the wrong shape"),
        ({7: np.zeros((3, 5, 1))}, "extra has the wrong shape"),
    ],
)
def test_wrong_shapes_are_refused(change, message):
    given = [*arguments(), np.zeros((3, 5, 4, 2)), None]
    for place, array in change.items():
        given[place] = array
    with pytest.raises(ValueError, match=message):
        _core.product_games(*given)
