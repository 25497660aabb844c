"""The pieces of a kernel model add up to it, and their parts to each piece."""

import numpy as np
import pytest

from kernelweave import RBF, Linear, MKLRegressor, Polynomial
from kernelweave.inspection.game import Players
from kernelweave.inspection.pieces import make_pieces
from kernelweave.kernels import Cosine

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(30, 4))
Y = X[:, 0] * X[:, 1] + X[:, 2]
NEW = RANDOM.normal(size=(6, 4))
PLAYERS = Players(("pair", "third"), ((0, 1), (2,)))
CASES = {
    "products": ([RBF(1.5)], (1, 0, 0)),
    "sums": ([Linear()], (0, 1, 0)),
    "powers": ([Linear() * Linear() * Polynomial(2, 0.0)], (0, 1, 0)),
    "both": ([RBF(1.0, columns=[0, 2]) * Linear()], (1, 1, 0)),
    "opaque": ([Cosine(Linear())], (0, 0, 1)),
    "opaque of one player": ([Cosine(Linear(columns=[0, 1]))], (1, 0, 0)),
}


@pytest.fixture(params=CASES)
def case(request):
    kernels, kinds = CASES[request.param]
    model = MKLRegressor(kernels).fit(X, Y)
    terms = model._terms()
    return model, kinds, terms, make_pieces(terms, NEW, X, PLAYERS)


def test_pieces_add_up(case):
    model, kinds, terms, pieces = case
    for piece in pieces:
        assert (len(piece.products), len(piece.sums), len(piece.opaque)) == kinds
    total = sum((p.values([a.rows for a in p.atoms]) for p in pieces), terms.intercept)
    np.testing.assert_allclose(total[:, 0], model.predict(NEW), atol=1e-9)


def test_parts_of_players(case):
    for piece in case[3]:
        for bound in (*piece.products, *(atom for atom, _ in piece.sums)):
            parts = [bound.part(bound.rows, player, slice(None)) for player in (*piece.players, 9)]
            whole = bound.atom.whole(bound.rows, bound.terms)
            if bound.atom.kind == "sum":
                found = (bound.atom.constant + np.sum(parts, axis=0)) ** bound.atom.power
            else:
                found = np.prod(parts, axis=0)
            np.testing.assert_allclose(found, whole, atol=1e-12)


def test_columns_of_nobody_are_one_more_player():
    terms = MKLRegressor([RBF(1.0)]).fit(X, Y)._terms()
    (piece,) = make_pieces(terms, NEW, X, PLAYERS)
    assert piece.players == [0, 1, 2]
    assert {p: len(c) for p, c in piece.products[0].columns.items()} == {0: 2, 1: 1, 2: 1}
    assert not piece.signed
    assert piece.name == piece.products[0].atom.name
