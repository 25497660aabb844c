"""Summaries of models as text."""

import re

from kernelweave.cli.console import certificate, warn_unless_converged
from kernelweave.cli.fit import fit as fit_command


def test_every_hint_names_an_option_of_its_command(patients, capsys):
    """Hints after a fit are printed by fit, so it must have the options that they name."""
    known = {option for param in fit_command.params for option in param.opts}
    base = {"converged": False, "relative_gap": 0.1, "inner_solves": 5}
    for limit, full in ((5, True), (5, False), (200, True), (None, True)):
        warn_unless_converged({**base, "max_iter": limit, "searched_in_full": full})
        named = re.findall(r"--[\w-]+", capsys.readouterr().err)
        assert named
        assert set(named) <= known


def test_the_certificate_of_landmarks():
    told = {"objective": 2.0, "tol": 1e-3, "converged": True, "relative_gap": 0.19}
    vacuous = {**told, "relative_landmark_gap": 2e-4}
    nystroem = "approximate kernels, not certified: within 2.0e-04 of the optimum of the Nystroem"
    assert certificate(vacuous)[1] == f"2, {nystroem} problem (tol 0.001)"
    useful = {**vacuous, "relative_gap": 9e-3}
    assert certificate(useful)[1].endswith("(tol 0.001), 9.0e-03 of that of the exact kernels")
    assert certificate(useful)[1].startswith(f"2, {nystroem}")
    stopped = {**vacuous, "converged": False}
    assert certificate(stopped)[1] == f"2, {nystroem} problem (tol 0.001, not reached)"
    exact = {**vacuous, "relative_gap": 9e-4}
    assert certificate(exact)[1] == "2, certified within 9.0e-04 of the optimum (tol 0.001)"
    # An objective at rounding counts as reached, whatever its gap.
    rounding = {**told, "relative_landmark_gap": None, "objective": 1e-30, "relative_gap": 1.0}
    assert "within 1.0e+00 of the optimum, which is rounding error (tol" in certificate(rounding)[1]
