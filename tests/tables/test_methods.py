"""Methods and the estimators that they offer."""

from kernelweave.tables import METHODS


def test_estimators_declare_the_methods_that_offer_them():
    for name, method in METHODS.items():
        for kind in filter(None, (method.classifier, method.regressor)):
            assert kind._declaration.method == name
