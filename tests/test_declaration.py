"""Each estimator declares what files, reports, plots and the command line need."""

import pytest

from kernelweave import estimators
from kernelweave._declaration import declared, has_aspect
from kernelweave.tables.methods import METHODS
from report_models import MODELS, fitted

CLASSES = [getattr(estimators, name) for name in estimators.__all__]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_estimator_has_a_declaration(kind):
    declaration = declared(kind())
    assert declaration is not None
    assert not set(declaration.saved) & set(declaration.optional)
    assert set(declaration.substitutes) <= set(kind().get_params())
    assert declaration.aspects


@pytest.mark.parametrize("name", MODELS)
def test_saved_attributes_are_those_of_the_fit(name):
    model = fitted(name)[0]
    model = model[-1] if name.endswith("pipeline") else model
    declaration = declared(model)
    assert not [key for key in declaration.saved if not hasattr(model, key)]
    public = {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}
    kept_elsewhere = {"kernels_", "rates_", "statistic_", "setting_", "selection_"}
    kept_elsewhere |= {"members_"}  # each as a model of its own
    kept_elsewhere |= {"network_", "paths_"}  # derived from the structure
    assert public <= {*declaration.saved, *declaration.optional, *kept_elsewhere}


def test_methods_of_the_command_line_are_declared():
    for name, method in METHODS.items():
        for kind in filter(None, (method.classifier, method.regressor)):
            assert getattr(estimators, kind)._declaration.method == name
    offered = {kind for m in METHODS.values() for kind in (m.classifier, m.regressor)}
    assert offered - {None} == {k.__name__ for k in CLASSES if k._declaration.method}


def test_other_objects_declare_nothing():
    assert declared(3) is None
    assert not has_aspect("text", "rules")
