"""The search over C on the page of a rule ensemble."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from kernelweave import RuleEnsembleClassifierCV
from kernelweave._summary import count_rules
from kernelweave.report import to_html
from kernelweave.report.rules import _search
from report_pages import parse, rows


def test_one_value_of_C_is_no_search():
    found = {name: np.ones(1) for name in ("C", "mean_score", "std_score", "n_rules")}
    assert _search(SimpleNamespace(cv_results_=found, C_=1.0)) is None


def test_linear_terms_are_on_the_page():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"<age>": rng.normal(50, 10, 200), "dose": rng.normal(size=200)})
    y = (X["<age>"] > 50 + 5 * rng.normal(size=200)).to_numpy()
    model = RuleEnsembleClassifierCV(Cs=[1.0, 10.0], cv=3).fit(X, y)
    page = parse(to_html(model, X, y))
    (term, *_) = model.linear_terms_
    (part,) = page.find("section", id="rules")
    tables = [rows(page, "rules", k) for k in range(len(part.find("table")))]
    titles = ["column", "from", "to", "mean", "per unit"]
    (lines,) = (found for found in tables if found[0] == titles)
    ends = [f"{value:.4g}" for value in (term.low, term.high, term.mean)]
    assert [term.feature, *ends, f"{term.weight:+.3g}"] in lines[1:]
    assert f"{count_rules(model)}. A score begins at the base score" in part.text()
    assert "A linear term adds its weight times the distance" in part.text()
    assert "Whole points in place of weights" in part.text()
