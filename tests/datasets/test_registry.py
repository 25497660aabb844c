"""The registry of data sets is consistent."""

from urllib.error import URLError

import pytest

from kernelweave.datasets import list_datasets
from kernelweave.datasets.registry import REGISTRY


@pytest.fixture(autouse=True)
def _no_outside_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise URLError("no network in tests")

    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)


def test_registry_is_consistent():
    assert list_datasets() == sorted(REGISTRY)
    for name, entry in REGISTRY.items():
        assert entry.description.endswith("."), name
        assert entry.openml or entry.verified, name
        assert not entry.graph or entry.openml is None, name
        assert not entry.numeric or entry.categorical is None, name
        # A list of categories must not claim more columns than there are.
        assert len(entry.categorical or ()) <= entry.shape[1], name
