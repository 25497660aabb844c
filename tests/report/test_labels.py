"""Rates of wrong labels on the page."""

from types import SimpleNamespace

import numpy as np

from kernelweave.report.labels import _rates


def model(rates):
    declaration = SimpleNamespace(saved=("rates_",))
    return SimpleNamespace(rates_=rates, classes_=np.array(["no", "yes"]), _declaration=declaration)


def test_two_rates_are_a_matrix():
    table = _rates(model(np.array([0.1, 0.3])))
    assert [column.title for column in table.columns] == [
        "true class",
        "labelled no",
        "labelled yes",
    ]
    texts = [[cell.text for _, cell in row] for row in table.rows]
    assert texts == [["no", "90.0%", "10.0%"], ["yes", "30.0%", "70.0%"]]
    matrix = _rates(model(np.array([[0.9, 0.1], [0.3, 0.7]])))
    assert matrix.values == table.values


def test_no_rates_no_table():
    other = SimpleNamespace(_declaration=SimpleNamespace(saved=()))
    assert _rates(other) is None
