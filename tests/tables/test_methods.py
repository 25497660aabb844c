"""Methods and the estimators that they offer."""

import pytest

from kernelweave import estimators
from kernelweave.errors import InputError
from kernelweave.tables import METHODS, make_problem
from kernelweave.tables.methods import check_sources, choose_method, make_preparer
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
