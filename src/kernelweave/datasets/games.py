"""Public data sets that follow from a rule, so that no file is needed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_random_state

from kernelweave.datasets.registry import REGISTRY
from kernelweave.datasets.synthetic import check_count, check_noise
from kernelweave.datasets.tables import Dataset, need_pandas
from kernelweave.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_ROWS, _COLUMNS = ("top", "middle", "bottom"), ("left", "middle", "right")
_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
_MONK_VALUES = {
    "head_shape": 3,
    "body_shape": 3,
    "is_smiling": 2,
    "holding": 3,
    "jacket_color": 4,
    "has_tie": 2,
}


def make_tic_tac_toe() -> Dataset:
    """Make every board on which a game of tic-tac-toe can end, x having begun.

    These are the 958 rows of the public data set, in its order: 626 boards that x has won
    ("positive"), then 316 that o has won and 16 draws ("negative").

    Returns
    -------
    dataset : Dataset
        Nine categorical columns with the values x, o and b (blank).

    Examples
    --------
    >>> from kernelweave.datasets import make_tic_tac_toe
    >>> boards = make_tic_tac_toe()
    >>> boards.X.shape, boards.y.value_counts().to_dict()
    ((958, 9), {'positive': 626, 'negative': 332})
    """
    need_pandas()
    X, y = tic_tac_toe_table()
    return _dataset("tic_tac_toe", X.astype("category"), y)


def tic_tac_toe_table() -> tuple[pd.DataFrame, pd.Series[str]]:
    """Return boards and results as text."""
    import pandas as pd

    ends: dict[str, str] = {}
    seen: set[str] = set()

    def play(board: str, player: str) -> None:
        seen.add(board)
        for i in range(9):
            if board[i] != "b":
                continue
            after = board[:i] + player + board[i + 1 :]
            if any(all(after[j] == player for j in line) for line in _LINES):
                ends[after] = player
            elif "b" not in after:
                ends[after] = "nobody"
            elif after not in seen:
                play(after, "o" if player == "x" else "x")

    play("b" * 9, "x")
    letters, results = str.maketrans("xob", "012"), ("x", "o", "nobody")
    boards = sorted(ends, key=lambda board: (results.index(ends[board]), board.translate(letters)))
    columns = [f"{row}_{column}_square" for row, column in product(_ROWS, _COLUMNS)]
    frame = pd.DataFrame([list(board) for board in boards], columns=columns)
    won = ["positive" if ends[board] == "x" else "negative" for board in boards]
    return frame, pd.Series(won, name="target")


def make_balance_scale() -> Dataset:
    """Make every state of a balance with weights and distances from 1 to 5.

    These are the 625 rows of the public data set, in its order. The balance tips to the left (L)
    or right (R), where weight times distance is larger, or stays balanced (B).

    Returns
    -------
    dataset : Dataset
        Four columns of whole numbers.

    Examples
    --------
    >>> from kernelweave.datasets import make_balance_scale
    >>> make_balance_scale().y.value_counts().to_dict()
    {'R': 288, 'L': 288, 'B': 49}
    """
    need_pandas()
    return _dataset("balance_scale", *balance_scale_table())


def balance_scale_table() -> tuple[pd.DataFrame, pd.Series[str]]:
    """Return weights and distances, and the side that goes down."""
    import pandas as pd

    states = np.array(list(product(range(1, 6), repeat=4)))
    tips = np.sign(states[:, 0] * states[:, 1] - states[:, 2] * states[:, 3])
    columns = ["left_weight", "left_distance", "right_weight", "right_distance"]
    sides = np.array(["R", "B", "L"])[tips + 1]
    return pd.DataFrame(states, columns=columns), pd.Series(sides.tolist(), name="target")


def make_monks(
    problem: int = 1,
    *,
    n_samples: int | None = None,
    noise: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> Dataset:
    """Make one of the three Monk's problems: robots with six attributes, some of them of a kind.

    1. The head has the shape of the body, or the jacket is red (1).
    2. Exactly two of the six attributes have their first value.
    3. The jacket is green (3) and a sword (1) is held, or the jacket is not blue (4) and the body
       not an octagon (3).

    Parameters
    ----------
    problem : {1, 2, 3}, default=1
        Which of the three.
    n_samples : int, default=None
        How many of the 432 robots, drawn at random without repetition and in their usual order;
        None takes all. The public training sets have 124, 169 and 122.
    noise : float, default=0.0
        Share of the labels that are turned round; the public third training set has about 0.05.
    random_state : int, RandomState or None, default=None
        Seed for both.

    Returns
    -------
    dataset : Dataset
        Six categorical columns and the classes "0" and "1".

    References
    ----------
    Thrun et al., "The MONK's problems: a performance comparison of different learning
    algorithms", CMU-CS-91-197 (1991).

    Examples
    --------
    >>> from kernelweave.datasets import make_monks
    >>> train = make_monks(3, n_samples=122, noise=0.05, random_state=0)
    >>> train.X.shape, make_monks(3).y.value_counts().to_dict()
    ((122, 6), {'1': 228, '0': 204})
    """
    check_count("problem", problem, 1, 3)
    need_pandas()
    X, y = monks_table(problem)
    X = X.astype("category")  # before rows are drawn: all samples then have the same categories
    if n_samples is not None:
        check_count("n_samples", n_samples, 1, len(y))
    check_noise(noise)
    if noise > 1:
        raise InputError(f"noise is a share of the labels, from 0 to 1, got {noise!r}.")
    random = check_random_state(random_state)
    if n_samples is not None:
        rows = np.sort(random.permutation(len(y))[:n_samples])
        X, y = X.iloc[rows].reset_index(drop=True), y.iloc[rows].reset_index(drop=True)
    turned = random.permutation(len(y)) < round(noise * len(y))
    y = y.mask(turned, y.map({"0": "1", "1": "0"}))
    return _dataset(f"monks{problem}", X, y)


def monks_table(problem: int) -> tuple[pd.DataFrame, pd.Series[str]]:
    """Return all robots and their true classes as text."""
    import pandas as pd

    robots = list(product(*(range(1, count + 1) for count in _MONK_VALUES.values())))
    frame = pd.DataFrame(robots, columns=list(_MONK_VALUES)).astype(str)
    kinds = ["1" if _is_of_the_kind(problem, robot) else "0" for robot in robots]
    return frame, pd.Series(kinds, name="target")


def _is_of_the_kind(problem: int, robot: Sequence[int]) -> bool:
    head, body, _, holding, jacket, _ = robot
    if problem == 1:
        return head == body or jacket == 1
    if problem == 2:
        return list(robot).count(1) == 2
    return (jacket == 3 and holding == 1) or (jacket != 4 and body != 3)


def _dataset(name: str, X: pd.DataFrame, y: pd.Series[str]) -> Dataset:
    known = REGISTRY.get(name)
    description = known.description if known else f"Monk's problem {name[-1]}."
    categorical = tuple(str(column) for column in X.select_dtypes("category"))
    return Dataset(X, y, name, None, f"{description} Source: made by its rule.", categorical)
