"""Wrong arguments get a TypeError or a ValueError, never a crash or a silent copy."""

import numpy as np
import pytest

from kernelweave import _core

N = 5
ONE, ZERO, INDEX = np.ones(N), np.zeros(N), np.arange(N)
D = np.zeros((N, N))
V = np.ones((N, 2))
RATES = np.ones(2)
Y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])


def smo(kind=_core.SmoDouble, **changes):
    arguments = {
        "target": Y,
        "lower": np.minimum(0, Y),
        "upper": np.maximum(0, Y),
        "ridge": ZERO,
        "diagonal": ONE,
        "dead_zone": 0.0,
        "intercept": True,
    }
    return kind(**(arguments | changes))


def factor(column, diagonal=ONE, tol=1e-6, max_rank=N):
    return _core.factor_by_columns(diagonal, column, tol, max_rank)


def bias(**changes):
    arguments = {
        "fitted": ZERO,
        "target": Y,
        "lower": np.minimum(0, Y),
        "upper": np.maximum(0, Y),
        "ridge": ZERO,
        "dead_zone": 0.0,
    }
    return _core.best_bias(**(arguments | changes))


def ints(*values):
    return np.array(values, dtype=np.int64)


def read_only(array):
    out = array.copy()
    out.setflags(write=False)
    return out


TYPE_ERRORS = {
    "forms: integer distances": lambda: _core.ladder_forms(D.astype(int), RATES, INDEX, V),
    "forms: Fortran order": lambda: _core.ladder_forms(np.ones((N, N)).T[::-1], RATES, INDEX, V),
    "forms: single rates": lambda: _core.ladder_forms(D, RATES.astype(np.float32), INDEX, V),
    "forms: float index": lambda: _core.ladder_forms(D, RATES, INDEX * 1.0, V),
    "forms: small integers": lambda: _core.ladder_forms(D, RATES, INDEX.astype(np.int32), V),
    "forms: one vector": lambda: _core.ladder_forms(D, RATES, INDEX, ONE),
    "forms: a list": lambda: _core.ladder_forms(D.tolist(), RATES, INDEX, V),
    "forms: None": lambda: _core.ladder_forms(None, RATES, INDEX, V),
    "forms: complex": lambda: _core.ladder_forms(D.astype(complex), RATES, INDEX, V),
    "products: one-dimensional": lambda: _core.ladder_products(ONE, RATES, INDEX, INDEX, V),
    "rows: read only": lambda: _core.ladder_combine_rows(D, RATES, RATES, INDEX, read_only(D)),
    "rows: narrowing": lambda: _core.ladder_combine_rows(
        D, RATES, RATES, INDEX, np.zeros((N, N), dtype=np.float32)
    ),
    "upper: read only": lambda: _core.ladder_combine_upper(D, RATES, RATES, read_only(D)),
    "upper: strided": lambda: _core.ladder_combine_upper(
        D, RATES, RATES, np.zeros((N, 2 * N))[:, ::2]
    ),
    "grams: narrow weights": lambda: _core.gram_combine_upper(
        [D, D], RATES.astype(np.float32), np.zeros((N, N))
    ),
    "grams: read only": lambda: _core.gram_combine_rows([D], ONE[:1], INDEX, read_only(D)),
    "grams: mixed": lambda: _core.gram_combine_upper([D, D.astype(np.float32)], RATES, D.copy()),
    "model: Fortran order": lambda: _core.solve_bundle_model(
        ONE[:2], np.asfortranarray(V.T[:, :3]), np.eye(3), ONE[:3]
    ),
    "mirror: integers": lambda: _core.mirror_upper(np.zeros((2, 2), dtype=int)),
    "distances: read only": lambda: _core.finish_squared_distances(
        read_only(D), D, D, ONE, ONE, ONE, False
    ),
    "absolute: single input": lambda: _core.absolute_distances(
        D.astype(np.float32), D.astype(np.float32), np.zeros((N, N))
    ),
    "plan: list": lambda: _core.ladder_plan([1.0, 2.0]),
    "factor: not callable": lambda: factor(3),
    "factor: negative rank": lambda: factor(lambda i: ONE, max_rank=-1),
    "factor: text": lambda: factor(lambda i: "text"),
    "factor: table": lambda: factor(lambda i: np.eye(N)),
    "factor: single column": lambda: factor(lambda i: ONE.astype(np.float32)),
    "factor: None": lambda: factor(lambda i: None),
    "gaussians: single view": lambda: _core.factor_gaussians(
        [np.ones((1, 3), dtype=np.float32)], ONE[:1], 1e-6, ints(3)
    ),
    "gaussians: None": lambda: _core.factor_gaussians([None], ONE[:1], 1e-6, ints(3)),
    "gaussians: small integers": lambda: _core.factor_gaussians(
        [np.ones((1, 3))], ONE[:1], 1e-6, np.array([3], dtype=np.int32)
    ),
    "smo: single target": lambda: smo(target=Y.astype(np.float32)),
    "smo: table": lambda: smo(target=V),
    "smo: None": lambda: smo(ridge=None),
    "lend: single rows": lambda: smo().lend(INDEX, np.eye(N, dtype=np.float32)),
    "lend: double rows": lambda: smo(_core.SmoFloat).lend(INDEX, np.eye(N)),
    "lend: Fortran order": lambda: smo().lend(INDEX[:4], np.asfortranarray(np.ones((4, N)))),
    "lend: text": lambda: smo().lend(INDEX, "rows"),
    "lend: None": lambda: smo().lend(INDEX, None),
    "start: single": lambda: smo().start(ONE.astype(np.float32), ONE),
    "wanted: negative": lambda: smo().wanted(-1),
    "run: mixed": lambda: _core.run_smo([smo(), smo(_core.SmoFloat)], 1e-3, 0.0, 10),
    "run: text": lambda: _core.run_smo(["x"], 1e-3, 0.0, 10),
    "run: not a list": lambda: _core.run_smo(smo(), 1e-3, 0.0, 10),
    "run: float limit": lambda: _core.run_smo([smo()], 1e-3, 0.0, 1.5),
    "bias: integers": lambda: bias(fitted=INDEX),
    "simplex: list": lambda: _core.project_simplex([1.0, 2.0]),
    "simplex: table": lambda: _core.project_simplex(D),
    "box: strided": lambda: _core.project_capped_box(np.ones(10)[::2], ONE, 1.0),
    "ball: text": lambda: _core.project_lp_ball(ONE, "two"),
    "threads: text": lambda: _core.set_threads("many"),
}


@pytest.mark.parametrize("call", TYPE_ERRORS.values(), ids=TYPE_ERRORS)
def test_wrong_types(call):
    with pytest.raises(TypeError):
        call()


VALUE_ERRORS = {
    "forms: rows of V": (lambda: _core.ladder_forms(D, RATES, INDEX[:2], V), "V needs one row"),
    "forms: not square": (lambda: _core.ladder_forms(D[:3], RATES, ints(0), V[:1]), "square"),
    "forms: row -1": (lambda: _core.ladder_forms(D, RATES, ints(-1), V[:1]), "in range"),
    "forms: row n": (lambda: _core.ladder_forms(D, RATES, ints(N), V[:1]), "in range"),
    "forms: negative rate": (lambda: _core.ladder_forms(D, -RATES, INDEX, V), "rates"),
    "forms: rate not a number": (lambda: _core.ladder_forms(D, np.nan * RATES, INDEX, V), "rates"),
    "grams: weights": (lambda: _core.gram_combine_upper([D], RATES, D.copy()), "same length"),
    "grams: size": (lambda: _core.gram_combine_upper([D], ONE[:1], np.eye(3)), "one size"),
    "grams: not square": (
        lambda: _core.gram_combine_upper([D], ONE[:1], np.zeros((N, 3))),
        "must be square",
    ),
    "grams: rows": (lambda: _core.gram_combine_rows([D], ONE[:1], ints(0), D.copy()), "one row"),
    "grams: row n": (
        lambda: _core.gram_combine_rows([D], ONE[:1], ints(N), np.zeros((1, N))),
        "in range",
    ),
    "grams: block": (lambda: _core.gram_combine_block([D], ONE[:1], ints(0), D.copy()), "shape"),
    "grams: column n": (
        lambda: _core.gram_combine_block([D], ONE[:1], ints(N), np.zeros((1, 1))),
        "in range",
    ),
    "model: nothing": (
        lambda: _core.solve_bundle_model(ONE[:0], np.zeros((0, 2)), np.eye(2), ONE[:2]),
        "at least one",
    ),
    "model: slopes": (
        lambda: _core.solve_bundle_model(ONE[:1], np.zeros((2, 2)), np.eye(2), ONE[:2]),
        "slopes",
    ),
    "model: M": (
        lambda: _core.solve_bundle_model(ONE[:1], np.zeros((1, 2)), np.eye(3), ONE[:2]),
        "M must",
    ),
    "products: rows of V": (
        lambda: _core.ladder_products(D, RATES, INDEX, INDEX, V[:2]),
        "V needs one row",
    ),
    "products: row n": (lambda: _core.ladder_products(D, RATES, ints(N), INDEX, V), "in range"),
    "products: column n": (
        lambda: _core.ladder_products(D, RATES, INDEX, ints(N), V[:1]),
        "in range",
    ),
    "products: infinite rate": (
        lambda: _core.ladder_products(D, np.array([np.inf]), INDEX, INDEX, V),
        "rates",
    ),
    "rows: weights": (
        lambda: _core.ladder_combine_rows(D, RATES, ONE, INDEX, D.copy()),
        "same length",
    ),
    "rows: out": (
        lambda: _core.ladder_combine_rows(D, RATES, RATES, INDEX[:2], D.copy()),
        "wrong shape",
    ),
    "rows: row n": (
        lambda: _core.ladder_combine_rows(D, RATES, RATES, ints(N), D[:1].copy()),
        "in range",
    ),
    "upper: weights": (lambda: _core.ladder_combine_upper(D, RATES, ONE, D.copy()), "same length"),
    "upper: out": (
        lambda: _core.ladder_combine_upper(D, RATES, RATES, np.zeros((3, 3))),
        "wrong shape",
    ),
    "upper: not square": (
        lambda: _core.ladder_combine_upper(D[:3], RATES, RATES, D[:3].copy()),
        "square",
    ),
    "block: weights": (
        lambda: _core.ladder_combine_block(D, RATES, ONE, INDEX, D.copy()),
        "same length",
    ),
    "block: out": (
        lambda: _core.ladder_combine_block(D, RATES, RATES, INDEX[:2], D.copy()),
        "wrong shape",
    ),
    "block: row n": (
        lambda: _core.ladder_combine_block(D, RATES, RATES, ints(N), np.zeros((1, 1))),
        "in range",
    ),
    "gaussian products: features": (
        lambda: _core.gaussian_products(D, D[:3], RATES, RATES, V),
        "same number",
    ),
    "gaussian products: V": (
        lambda: _core.gaussian_products(D, D, RATES, RATES, V[:3]),
        "one row per",
    ),
    "gaussian products: weights": (
        lambda: _core.gaussian_products(D, D, RATES, ONE, V),
        "same length",
    ),
    "gaussian products: rates": (
        lambda: _core.gaussian_products(D, D, -RATES, RATES, V),
        "rates",
    ),
    "mirror: not square": (lambda: _core.mirror_upper(np.zeros((2, 3))), "square"),
    "distances: norms": (
        lambda: _core.finish_squared_distances(D.copy(), D, D, ONE, ONE[:2], ONE, False),
        "one squared",
    ),
    "distances: columns": (
        lambda: _core.finish_squared_distances(D.copy(), D, D, ONE[:2], ONE, ONE, False),
        "same columns",
    ),
    "distances: products": (
        lambda: _core.finish_squared_distances(np.zeros((N, 3)), D, D, ONE, ONE, ONE, False),
        "wrong shape",
    ),
    "distances: upper": (
        lambda: _core.finish_squared_distances(
            np.zeros((N, 2)), D, D[:2].copy(), ONE, ONE, ONE[:2], True
        ),
        "first rows of B",
    ),
    "absolute: columns": (
        lambda: _core.absolute_distances(D, D[:, :2].copy(), D.copy()),
        "same number",
    ),
    "absolute: out": (lambda: _core.absolute_distances(D, D, np.zeros((2, 2))), "wrong shape"),
    "factor: column length": (lambda: factor(lambda i: ONE[:3].copy()), "wrong length"),
    "gaussians: rates": (
        lambda: _core.factor_gaussians([D], ONE, 1e-6, ints(3)),
        "same length",
    ),
    "gaussians: limits": (
        lambda: _core.factor_gaussians([D], ONE[:1], 1e-6, ints(3, 3)),
        "same length",
    ),
    "gaussians: rate": (
        lambda: _core.factor_gaussians([D], -ONE[:1], 1e-6, ints(3)),
        "rates",
    ),
    "smo: lengths": (lambda: smo(upper=ONE[:2]), "one length"),
    "smo: short diagonal": (lambda: smo(diagonal=ONE[:2]), "one entry per row"),
    "smo: long diagonal": (lambda: smo(diagonal=np.ones(9)), "one entry per row"),
    "smo: box": (lambda: smo(lower=ONE), "contain zero"),
    "smo: empty box": (lambda: smo(upper=-ONE), "contain zero"),
    "smo: target": (lambda: smo(target=np.nan * Y), "finite"),
    "smo: infinite box": (lambda: smo(upper=np.inf * ONE), "finite"),
    "smo: box not a number": (lambda: smo(upper=np.nan * ONE), "contain zero|finite"),
    "smo: ridge": (lambda: smo(ridge=-ONE), "not negative"),
    "smo: diagonal not a number": (lambda: smo(diagonal=np.nan * ONE), "diagonal"),
    "smo: negative diagonal": (lambda: smo(diagonal=-ONE), "diagonal"),
    "smo: dead zone": (lambda: smo(dead_zone=-1.0), "dead_zone"),
    "smo: dead zone not a number": (lambda: smo(dead_zone=np.nan), "dead_zone"),
    "lend: shape": (lambda: smo().lend(INDEX, np.eye(4)), "wrong shape"),
    "lend: count": (lambda: smo().lend(INDEX[:2], np.eye(N)), "wrong shape"),
    "lend: row n": (lambda: smo().lend(ints(7), np.ones((1, N))), "in range"),
    "start: length": (lambda: smo().start(ONE[:2], ONE), "one entry per row"),
    "start: not a number": (lambda: smo().start(np.nan * ONE, ONE), "finite"),
    "start: fitted": (lambda: smo().start(ZERO, np.inf * ONE), "finite"),
    "run: None": (lambda: _core.run_smo([None], 1e-3, 0.0, 10), "None"),
    "run: tol": (lambda: _core.run_smo([smo()], np.nan, 0.0, 10), "numbers"),
    "run: floor": (lambda: _core.run_smo([smo()], 1e-3, np.nan, 10), "numbers"),
    "bias: length": (lambda: bias(fitted=ONE[:2]), "one entry"),
    "bias: box": (lambda: bias(lower=ONE), "contain zero"),
    "bias: fitted not a number": (lambda: bias(fitted=np.nan * ONE), "finite"),
    "bias: fitted infinite": (lambda: bias(fitted=np.inf * ONE), "finite"),
    "simplex: empty": (lambda: _core.project_simplex(np.empty(0)), "empty"),
    "simplex: radius": (lambda: _core.project_simplex(ONE, 0.0), "radius"),
    "simplex: radius not a number": (lambda: _core.project_simplex(ONE, np.nan), "radius"),
    "simplex: not a number": (lambda: _core.project_simplex(np.nan * ONE), "finite"),
    "box: length": (lambda: _core.project_capped_box(ONE, ONE[:2], 1.0), "same length"),
    "box: negative": (lambda: _core.project_capped_box(ONE, -ONE, 1.0), "upper"),
    "box: cap": (lambda: _core.project_capped_box(ONE, ONE, -1.0), "cap"),
    "box: not a number": (lambda: _core.project_capped_box(np.nan * ONE, ONE, 1.0), "finite"),
    "ball: exponent": (lambda: _core.project_lp_ball(ONE, 0.5), "p must"),
    "ball: infinite exponent": (lambda: _core.project_lp_ball(ONE, np.inf), "p must"),
    "ball: radius": (lambda: _core.project_lp_ball(ONE, 2.0, -1.0), "radius"),
    "ball: not a number": (lambda: _core.project_lp_ball(np.nan * ONE, 2.0), "finite"),
    "ball: infinite": (lambda: _core.project_lp_ball(np.inf * ONE, 1.5), "finite"),
}


@pytest.mark.parametrize(("call", "message"), VALUE_ERRORS.values(), ids=VALUE_ERRORS)
def test_wrong_values(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_one_solver_twice():
    solver = smo()
    with pytest.raises(ValueError, match="twice"):
        _core.run_smo([solver, solver], 1e-3, 0.0, 10)


def test_an_error_in_a_column_passes_through():
    def column(i):
        raise KeyError("lost column")

    with pytest.raises(KeyError, match="lost column"):
        factor(column)


def test_refused_outputs_are_untouched():
    out = np.full((N, N), 7.0)
    with pytest.raises(ValueError, match="same length"):
        _core.ladder_combine_upper(D, RATES, ONE, out)
    assert (out == 7).all()
