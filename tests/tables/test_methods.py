"""Methods and the estimators that they offer."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import estimators
from kernelweave.errors import InputError
from kernelweave.tables import METHODS, Settings, make_problem
from kernelweave.tables.methods import check_sources, choose_method, make_model, make_preparer
from source_table import SOURCES, source_table


def test_estimators_declare_the_methods_that_offer_them():
    for name, method in METHODS.items():
        for kind in filter(None, (method.classifier, method.regressor)):
            assert getattr(estimators, kind)._declaration.method == name


def test_sources_are_for_methods_that_encode_the_table():
    problem = make_problem(source_table(), "ill", sources=SOURCES)
    assert choose_method(problem) == "mkl"
    for name in ("rules", "noisy", "structure", "metric", "annotators"):
        with pytest.raises(InputError, match=f"method {name}: it has no kernels of sources"):
            check_sources(problem, name)
    with pytest.raises(InputError, match="method rules: it has no kernels of sources"):
        choose_method(problem, "rules")
    check_sources(make_problem(source_table(), "ill"), "rules")


def test_preparers_keep_gaps_of_sources_and_refuse_where_asked():
    frame = source_table()
    problem = make_problem(frame, "ill", sources={"note": ["remark"]}, missing="off")
    X = problem.X.assign(remark=None)
    preparer = make_preparer(problem, "frame").fit(problem.X)
    assert preparer.transform(X)["remark"].isna().all()
    full = frame.fillna(0.0)
    for form in ("frame", "columns", "rules"):
        problem = make_problem(full, "ill", missing="refuse")
        preparer = make_preparer(problem, form).fit(problem.X)
        with pytest.raises(InputError, match=r"Values are missing .* in 'scan_0'"):
            preparer.transform(frame)


def test_rules_choose_on_folds_of_whole_groups():
    x = np.random.default_rng(0).normal(size=60)
    table = pd.DataFrame({"x": x, "who": np.arange(60) // 6})
    problem = make_problem(table.assign(y=np.arange(60) % 2), "y", groups="who")
    folds = make_model(problem, "rules", Settings())[-1].cv
    assert len(folds) == 5
    for train, test in folds:
        assert not set(table["who"][train]) & set(table["who"][test])
    assert make_model(make_problem(table, "x"), "rules", Settings())[-1].cv == 5


def test_rules_need_two_rows_of_a_class():
    table = pd.DataFrame({"x": np.arange(40) % 7, "y": np.arange(40) == 3})
    with pytest.raises(InputError, match="the class 'True' has one row only"):
        make_model(make_problem(table, "y"), "rules", Settings())
