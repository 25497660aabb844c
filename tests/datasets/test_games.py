"""Data sets made by their rule, beside the public files where these are at hand."""

import os
import sys

import pandas as pd
import pytest

from kernelweave.datasets import (
    load_dataset,
    make_balance_scale,
    make_monks,
    make_tic_tac_toe,
)
from kernelweave.errors import DataError, InputError, InputTypeError

needs_files = pytest.mark.skipif(
    not os.environ.get("KERNELWEAVE_DATA"),
    reason="KERNELWEAVE_DATA names no folder with the real data sets",
)

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def wins(board, player):
    return sum(all(board[i] == player for i in line) for line in LINES)


class TestTicTacToe:
    def test_boards_are_ends_of_games_that_x_began(self):
        data = make_tic_tac_toe()
        boards = list(data.X.astype(str).itertuples(index=False, name=None))
        assert len(set(boards)) == 958
        for board, result in zip(boards, data.y, strict=True):
            ahead = board.count("x") - board.count("o")
            x, o = wins(board, "x"), wins(board, "o")
            assert not (x and o)
            assert ahead == (0 if o else 1)
            assert x or o or "b" not in board
            assert result == ("positive" if x else "negative")

    def test_counts(self):
        data = make_tic_tac_toe()
        boards = data.X.astype(str).itertuples(index=False, name=None)
        drawn = sum(not wins(board, "x") and not wins(board, "o") for board in boards)
        assert data.y.value_counts().to_dict() == {"positive": 626, "negative": 332}
        assert drawn == 16
        assert data.categorical == tuple(data.X.columns)
        assert data.X["top_left_square"].cat.categories.tolist() == ["b", "o", "x"]


class TestBalanceScale:
    def test_counts_and_order(self):
        data = make_balance_scale()
        assert data.X.iloc[[0, 1, 5, -1]].to_numpy().tolist() == [
            [1, 1, 1, 1],
            [1, 1, 1, 2],
            [1, 1, 2, 1],
            [5, 5, 5, 5],
        ]
        assert data.y.value_counts().to_dict() == {"L": 288, "R": 288, "B": 49}
        assert data.y.iloc[[0, 1]].tolist() == ["B", "R"]
        assert data.categorical == ()


class TestMonks:
    @pytest.mark.parametrize(("problem", "n_positive"), [(1, 216), (2, 142), (3, 228)])
    def test_sizes_as_published(self, problem, n_positive):
        data = make_monks(problem)
        assert data.X.shape == (432, 6)
        assert not data.X.duplicated().any()
        assert (data.y == "1").sum() == n_positive
        assert data.name == f"monks{problem}"

    def test_concepts(self):
        one, two, three = (make_monks(k) for k in (1, 2, 3))
        X = one.X.astype(int)
        first = (X.head_shape == X.body_shape) | (X.jacket_color == 1)
        third = ((X.jacket_color == 3) & (X.holding == 1)) | (
            (X.jacket_color != 4) & (X.body_shape != 3)
        )
        assert ((one.y == "1") == first).all()
        assert ((two.y == "1") == ((X == 1).sum(axis=1) == 2)).all()
        assert ((three.y == "1") == third).all()

    def test_a_sample_with_noise(self):
        data = make_monks(3, n_samples=122, noise=0.05, random_state=0)
        truth = make_monks(3)
        rows = truth.X.astype(str).agg("".join, axis=1).reset_index().set_index(0)["index"]
        drawn = rows[data.X.astype(str).agg("".join, axis=1)].tolist()
        assert drawn == sorted(set(drawn))
        assert len(drawn) == 122
        assert (truth.y.iloc[drawn].to_numpy() != data.y.to_numpy()).sum() == 6
        assert data.X.index.tolist() == data.y.index.tolist() == list(range(122))
        pd.testing.assert_series_equal(data.X.dtypes, truth.X.dtypes)

    def test_the_seed_decides(self):
        same = [make_monks(2, n_samples=50, noise=0.2, random_state=7) for _ in range(2)]
        other = make_monks(2, n_samples=50, noise=0.2, random_state=8)
        pd.testing.assert_frame_equal(same[0].X, same[1].X)
        pd.testing.assert_series_equal(same[0].y, same[1].y)
        assert not same[0].X.equals(other.X)
        assert (make_monks(1, noise=1.0).y != make_monks(1).y).all()

    @pytest.mark.parametrize(
        ("arguments", "error", "match"),
        [
            ({"problem": 4}, InputError, "problem must be from 1 to 3, got 4"),
            ({"problem": "1"}, InputTypeError, "problem must be a whole number from 1 to 3"),
            ({"n_samples": 433}, InputError, "n_samples must be from 1 to 432, got 433"),
            ({"n_samples": 0}, InputError, "n_samples must be from 1 to 432, got 0"),
            ({"noise": 1.5}, InputError, "noise is a share of the labels, from 0 to 1"),
            ({"noise": -0.1}, InputError, "noise must be finite and not negative"),
            ({"noise": "5%"}, InputTypeError, "noise must be a number"),
        ],
    )
    def test_bad_input(self, arguments, error, match):
        with pytest.raises(error, match=match):
            make_monks(**arguments)


MAKERS = {
    "tic_tac_toe": make_tic_tac_toe,
    "balance_scale": make_balance_scale,
    "monks3_test": lambda: make_monks(3),
}


@pytest.mark.parametrize("name", MAKERS)
def test_load_dataset_needs_no_file(name, monkeypatch):
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    loaded, made = load_dataset(name), MAKERS[name]()
    pd.testing.assert_frame_equal(loaded.X, made.X)
    pd.testing.assert_series_equal(loaded.y, made.y)
    assert loaded.categorical == made.categorical
    assert loaded.description.endswith("Source: made by its rule.")


@needs_files
@pytest.mark.parametrize("name", MAKERS)
def test_equal_to_the_public_file_row_by_row(name):
    loaded, made = load_dataset(name), MAKERS[name]()
    assert "csv.gz" in loaded.description
    pd.testing.assert_frame_equal(loaded.X, made.X)
    pd.testing.assert_series_equal(loaded.y, made.y)


@pytest.mark.parametrize("make", MAKERS.values())
def test_pandas_is_asked_for(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(DataError, match="Tables need pandas"):
        make()
