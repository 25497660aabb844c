"""Sentences about a choice."""

from types import SimpleNamespace

from kernelweave.tables.verdicts import describe_choice, name_unmeasured


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
    assert said[2].startswith("Better on rows left out: trees, ")
    assert said[2].endswith("(significantly better), which kernelweave cannot write.")
    assert len(said) == 3


def test_a_better_model_has_one_line():
    said = describe_choice(choice(ranked("near", 0.6, (-0.1, 0.2))))
    assert [line.split(":")[0] for line in said] == ["Chosen", "Better on rows left out"]


def test_models_that_are_not_significantly_better_share_a_line():
    near, trees = (
        ranked("near", 0.6, (-0.1, 0.2)),
        ranked("trees", 0.7, (-0.2, 0.3), written=False),
    )
    sure = ranked("sure", 0.9, (-0.4, 0.05))
    said = describe_choice(choice(sure, near, trees))[1:]
    assert said == [
        "Better on rows left out: sure, R2 0.900 (significantly better).",
        "Better on rows left out, but not significantly: near, R2 0.600; trees, R2 0.700, which "
        "kernelweave cannot write.",
    ]


def test_no_better_than_a_constant():
    assert "constant prediction" in describe_choice(choice(interval=(-0.1, 0.6)))[-1]


def test_models_that_were_not_measured_are_named_with_the_command():
    said = name_unmeasured("my flats.csv", "rent")
    assert all(name in said for name in ("CatBoost", "LightGBM", "xRFM"))
    assert said.endswith("kernelweave compare 'my flats.csv' --target rent")
