"""The program on the page."""

import ast

import numpy as np

from kernelweave import RBF, Linear, MKLClassifier
from kernelweave.report.reproduce import program, wrap
from kernelweave.report.subject import Subject

X = np.random.default_rng(0).normal(size=(20, 2))


def test_long_code_is_broken_and_stays_the_same_code():
    code = f"f([{', '.join(['RBF(width=1.5)'] * 9)}], {{'a': (1, 2)}}, name='{'x' * 60}')"
    tree = ast.parse(code, mode="eval").body
    broken = wrap(tree, indent=0)
    assert max(map(len, broken.splitlines())) < 100
    assert ast.dump(ast.parse(broken, mode="eval").body) == ast.dump(tree)


def test_the_program_runs_and_gives_the_parameters():
    model = MKLClassifier([RBF(1.5), Linear()], C=3.0).fit(X, X[:, 0] > 0)
    scope = {"X": X, "y": X[:, 0] > 0}
    exec(program(Subject(model)), scope)
    assert repr(scope["model"]) == repr(model)
    np.testing.assert_array_equal(scope["model"].dual_coef_, model.dual_coef_)
