"""Options that a learner from pairs has compared."""

from types import SimpleNamespace

from kernelweave.report.pairs import _facts, _settings


def test_settings_come_with_their_scores():
    setting = SimpleNamespace(shape="diag", gamma=0.5, alpha=1.0, rho=2.0, steps=1)
    tried = [SimpleNamespace(setting=setting, score=0.25)]
    table = _settings(SimpleNamespace(selection_=tried))
    assert [cell.text for _, cell in table.rows[0]] == ["diag", "0.5", "1", "2", "1", "0.25"]


def test_facts_of_rates_and_bias():
    rates = SimpleNamespace(reliability=(0.9, 0.8), prior=0.25)
    model = SimpleNamespace(rates_=rates, diagnostics_={}, intercept_=1.5, setting_=None)
    assert [value for _, value in _facts(model)] == ["90.0%", "80.0%", "25.0%", "1.5"]
