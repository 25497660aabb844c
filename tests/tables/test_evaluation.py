"""What an evaluation holds."""

import pytest

from kernelweave.errors import InputError
from kernelweave.tables.evaluation import Evaluation, Score


def test_the_score_to_quote_comes_first_and_others_have_names():
    scores = tuple(
        Score(name, name, value, None, False, 0.5, None)
        for name, value in (("accuracy", 0.9), ("roc_auc", 0.95))
    )
    found = Evaluation("classes", ("y",), 10, "roc_auc", scores)
    assert found.score().value == 0.95
    assert found.score("accuracy").show(0.9) == "90.0%"
    with pytest.raises(InputError, match=r"must be one of accuracy, roc_auc, got .r2."):
        found.score("r2")
