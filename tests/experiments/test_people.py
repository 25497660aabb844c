"""The experiment on labels that people gave: the run, its page, and a review on built-in data."""

import numpy as np

from experiments import people
from experiments.people_data import People, _agree, _models, flipped
from experiments.people_protocol import PARTS, measure
from experiments.people_report import to_markdown


def test_results_are_kept_and_the_page_is_written(tmp_path, monkeypatch, capsys):
    calls = []

    def fake(part, data, method, seed):
        calls.append((part, data, method, seed))
        if "cleanlab" in method:
            raise ImportError("no cleanlab")
        return {"needed": 10.0 if method == "ours" else 20.0}

    monkeypatch.setattr(people, "measure", fake)
    words = ["--parts", "review", "--draws", "1", "--output", str(tmp_path), "--data", "digits"]
    assert people.main(words) == 0
    assert len(calls) == len(PARTS["review"].methods)
    page = (tmp_path / "people.md").read_text(encoding="utf-8")
    assert "| random | 0.50 | 0.50 |" in page
    assert "is left out. no cleanlab" in capsys.readouterr().err
    calls.clear()
    assert people.main(words) == 0
    assert {method for _, _, method, _ in calls} == {
        m for m in PARTS["review"].methods if "clean" in m
    }


def test_a_page_shows_means_and_errors():
    records = [
        {"part": "answers", "data": "music all", "method": "kernel EM", "seed": s, "truth": 80 + s}
        for s in range(3)
    ]
    assert "| kernel EM | 81.0 ± 0.6 |" in to_markdown(records)
    assert to_markdown([]) == ""


def test_a_page_shows_differences_on_the_same_draws():
    values = {"kernel EM": [80.0, 81.0, 85.0], "majority + SVC": [70.0, 82.0, 79.0]}
    records = [
        {"part": "answers", "data": "music all", "method": name, "seed": s, "truth": value}
        for name, own in values.items()
        for s, value in enumerate(own)
    ]
    page = to_markdown([*records, records[0] | {"seed": 9}])  # one draw of one method alone
    assert "| majority + SVC | +5.0 ± 3.2 (2/1) |" in page


def test_a_page_shows_how_accuracy_rises_with_review():
    records = [
        {"part": "review", "data": "digits flipped", "method": "ours", "seed": s, "needed": 20.0}
        | {"target": 90.0, "curve": [60.0, 70.0 + s, 80.0, 91.0]}
        for s in range(2)
    ]
    page = to_markdown(records)
    assert "digits flipped (90.0):" in page
    assert "|  | 0% | 10% | 20% | 30% | 40% |" in page
    assert "| ours | 60.0 | 80.0 | 91.0 | 91.0 | 91.0 |" in page


def test_a_review_ends_when_the_accuracy_is_reached():
    found = measure("review", "tumours flipped", "random", 0)
    assert 0 < found["needed"] <= 100
    assert found["curve"][-1] >= found["target"] > found["curve"][0]
    data, labels = flipped("tumours", 0)
    assert 0.1 < np.mean(labels != data.gold) < 0.3


def test_the_random_order_does_not_know_which_labels_are_flipped():
    """With the stream that flips labels it would review wrong rows first, and need the fewest."""
    found = [measure("review", "tumours flipped", "random", seed)["needed"] for seed in range(3)]
    assert min(found) > 20


def test_rows_that_are_not_taken_are_tested_on():
    answers = np.array([[0, -1], [-1, 1], [1, 1]])
    data = People(np.eye(3), np.array([0, 1, 1]), answers, np.zeros((1, 3)), np.array([0]))
    some = data.take(np.array([0]))
    assert some.answers.shape == (1, 1)
    assert len(some.X_test) == 3
    assert some.gold_test.tolist() == [0, 1, 1]


def test_model_numbers_agree_where_one_is_part_of_the_other():
    assert _models("Sony PS-LX350H Turntable 33 - PSLX350H/B") == {"pslx350h"}
    assert _agree({"pslx350h"}, {"x", "pslx350hb"})
    assert not _agree({"pslx350h"}, set())
    assert not _agree({"ab12"}, {"ab13"})
