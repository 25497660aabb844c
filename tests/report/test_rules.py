"""The search over C on the page of a rule ensemble."""

from types import SimpleNamespace

import numpy as np

from kernelweave.report.rules import _search


def test_one_value_of_C_is_no_search():
    found = {name: np.ones(1) for name in ("C", "mean_score", "std_score", "n_rules")}
    assert _search(SimpleNamespace(cv_results_=found, C_=1.0)) is None
