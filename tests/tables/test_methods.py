"""Methods and the estimators that they offer."""

from kernelweave import estimators
from kernelweave.tables import METHODS


def test_estimators_declare_the_methods_that_offer_them():
    for name, method in METHODS.items():
        for kind in filter(None, (method.classifier, method.regressor)):
            assert getattr(estimators, kind)._declaration.method == name
