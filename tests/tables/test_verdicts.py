"""Sentences about a choice."""

from types import SimpleNamespace

from kernelweave.tables.verdicts import describe_choice


def ranked(name, r2, behind, *, written=True):
    return SimpleNamespace(
        name=name, scores={"r2": r2}, behind=behind, written=written, chosen_score=None, rows=90
    )


def choice(*others, interval=(0.4, 0.6)):
    return SimpleNamespace(
        scoring=SimpleNamespace(shows=["r2"]),
        ranking=[ranked("first", 0.5, (0.0, 0.0)), *others],
        members=[SimpleNamespace(logarithm=None)],
        interval=interval,
        constant={"r2": 0.0},
    )


def test_the_answer_comes_first_and_better_models_are_said():
    near = ranked("near", 0.49, (0.01, 0.02))
    trees = ranked("trees", 0.9, (-0.4, 0.05), written=False)
    said = describe_choice(choice(near, trees))
    assert said[0].startswith("Chosen: first. ")
    assert "95% interval" in said[0]
    assert said[1].startswith("Next best: near, ")
    assert said[1].endswith("(but not significantly worse).")
    assert said[2].startswith("Better here: trees, ")
    assert said[2].endswith("(significantly better), which kernelweave cannot write.")
    assert len(said) == 3


def test_a_better_model_has_one_line():
    said = describe_choice(choice(ranked("near", 0.6, (-0.1, 0.2))))
    assert [line.split(":")[0] for line in said] == ["Chosen", "Better here"]


def test_no_better_than_a_constant():
    assert "constant prediction" in describe_choice(choice(interval=(-0.1, 0.6)))[-1]
