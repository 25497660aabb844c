"""The quick run tries few examples of some properties, and the slow run all of them."""

import pytest

import quick


def pytest_configure(config):
    quick.is_quick = "not slow" in config.option.markexpr


@pytest.hookimpl(tryfirst=True)  # before tests are deselected by their marks
def pytest_collection_modifyitems(config, items):
    if config.option.markexpr == "slow":
        for item in items:
            if hasattr(getattr(item, "obj", None), "quick_examples"):
                item.add_marker(pytest.mark.slow)
