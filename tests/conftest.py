"""Threads of the workers; the quick run tries few examples of some properties, the slow run all."""

import os

import pytest

import quick

# Workers share the cores. Threads of BLAS that wait for a core busily would take most of the time.
if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
    threads = max(1, (os.cpu_count() or 1) // int(workers))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(threads))


def pytest_configure(config):
    quick.is_quick = "not slow" in config.option.markexpr


@pytest.hookimpl(tryfirst=True)  # before tests are deselected by their marks
def pytest_collection_modifyitems(config, items):
    if config.option.markexpr == "slow":
        for item in items:
            if hasattr(getattr(item, "obj", None), "quick_examples"):
                item.add_marker(pytest.mark.slow)
