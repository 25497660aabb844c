"""Pairs and their labels are checked."""

import numpy as np
import pytest

from kernelweave.errors import InputError
from kernelweave.pairs.constraints import check_pairs


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([[0, 30]], "pairs: row numbers must lie between 0 and 29, but pair 0 is .0, 30."),
        ([[0, 1], [-1, 2]], "pairs: row numbers must lie between 0 and 29, but pair 1 is .-1, 2."),
        ([[0, 1], [3, 3]], "pairs: a pair needs two rows, but pair 1 is .3, 3."),
        ([[0, np.nan]], "pairs: must be row numbers of shape"),
        ([[0, np.inf]], "pairs: must be row numbers of shape"),
        ([[0, 1.5]], "pairs: must be row numbers of shape"),
        ([["a", "b"]], "pairs: must be row numbers of shape"),
        ([[0, 1], [2]], "pairs: must be row numbers of shape"),
        ([0, 1], "pairs: must be row numbers of shape"),
        ([[0, 1, 2]], "pairs: must be row numbers of shape"),
        (np.empty((0, 2), int), "pairs: must be row numbers of shape"),
    ],
)
def test_bad_pairs(pairs, sentence):
    with pytest.raises(InputError, match=sentence):
        check_pairs(pairs, [1] * len(pairs), 30)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([1, 0], "labels: must be .1 .same. or -1 .different. for each of the 2 pairs"),
        ([1, np.nan], "labels: must be .1"),
        (["same", "different"], "labels: must be .1"),
        ([1], "labels: must be .1"),
        (None, "labels: must be .1"),
        ([1, 1], "labels: no pair is labelled different, -1; both kinds are needed"),
        ([-1, -1], "labels: no pair is labelled same, .1; both kinds are needed"),
    ],
)
def test_bad_labels(labels, sentence):
    with pytest.raises(InputError, match=sentence):
        check_pairs([[0, 1], [1, 2]], labels, 30)


def test_whole_floats_are_row_numbers():
    pairs, signs = check_pairs([[0.0, 1.0], [1.0, 2.0]], [True, -1], 30)
    assert pairs.dtype == np.intp
    assert signs.tolist() == [1.0, -1.0]


def test_repeats_are_kept_and_contradictions_reported():
    pairs, signs = check_pairs([[0, 1], [1, 0], [2, 3]], [1, 1, -1], 30)
    assert len(pairs) == len(signs) == 3
    with pytest.warns(UserWarning, match=r"labels: 1 pair\(s\) are labelled both \+1 and -1"):
        check_pairs([[0, 1], [1, 0], [2, 3]], [1, -1, -1], 30)
