"""The experiment on labels that people gave: the run, its page, and a review on built-in data."""

import numpy as np

from experiments import people, people_data
from experiments.people_data import People, _agree, _models, division, flipped
from experiments.people_pictures import draw, mean_curve
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


def test_curves_of_reviews_are_drawn(tmp_path):
    assert mean_curve([[60.0, 70.0], [50.0, 60.0, 90.0]]) == [55.0, 65.0, 80.0]
    assert draw([], tmp_path / "none.png") is None
    record = {"part": "review", "data": "digits flipped", "seed": 0, "target": 90.0}
    records = [record | {"method": "ours", "curve": [60.0, 91.0]}]
    path = draw(records, tmp_path / "curves.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_answers_may_be_copied_shifted_kept_or_have_columns_of_noise(monkeypatch):
    rng = np.random.default_rng(0)
    answers = rng.integers(-1, 3, size=(50, 6))
    answers[:, 2] = rng.integers(0, 3, 50)  # the annotator with most answers
    data = People(rng.normal(size=(50, 4)), rng.integers(0, 3, 50), answers, np.ones((3, 4)), [0])
    monkeypatch.setattr(people_data, "load_people", lambda name: data)
    rows = np.random.default_rng(1000).permutation(50)[:40]
    plain, copy, shift = (division("music", 0, how) for how in ("all", "copy", "shift"))
    np.testing.assert_array_equal(plain.answers, answers[rows])
    np.testing.assert_array_equal(copy.answers, answers[rows][:, [*range(6), 2]])
    np.testing.assert_array_equal(shift.answers[:, 2], (plain.answers[:, 2] + 1) % 3)
    np.testing.assert_array_equal(shift.answers[:, 3], plain.answers[:, 3])
    noise = division("music", 0, "noise-1")
    np.testing.assert_array_equal(noise.answers, plain.answers)
    assert abs(np.corrcoef(noise.X.ravel(), plain.X.ravel())[0, 1]) < 0.3
    two, other = division("music", 0, "two"), division("music", 0, "two-1")
    assert ((two.answers >= 0).sum(axis=1) <= 2).all()
    assert (two.answers != other.answers).any()


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
