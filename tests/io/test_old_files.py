"""Files saved by earlier versions still load.

The files in ``files`` hold the models of ``report_models``, saved by version 0.1.0.dev0 before
classes declared their attributes. They are never written again.
"""

from pathlib import Path

import numpy as np
import pytest

from kernelweave.io import load
from report_models import MODELS, fitted

FILES = Path(__file__).parent / "files"
NAMES = [name for name in MODELS if (FILES / f"{name.replace(' ', '_')}.kw").exists()]


def test_every_file_belongs_to_a_model():
    assert len(NAMES) == len(list(FILES.iterdir())) >= 20


def output(name, model, rows):
    """Return what a model gives for rows."""
    if name == "clusters":
        return model.labels_
    if name.endswith("pairs"):
        return model.transform(rows)
    return getattr(model, "decision_function", model.predict)(rows)


@pytest.mark.parametrize("name", NAMES)
def test_files_of_earlier_versions_load(name):
    """The values in expected.npz are those of the files, and of fits of their version."""
    model = load(FILES / f"{name.replace(' ', '_')}.kw")
    fresh, rows, _ = fitted(name)
    assert model.get_params().keys() == fresh.get_params().keys()
    if "loss" in model.get_params():  # not the default of today where it has changed since
        assert model.loss == fresh.loss
    with np.load(Path(__file__).parent / "expected.npz") as expected:
        np.testing.assert_allclose(output(name, model, rows), expected[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_fits_of_today_have_the_optimum_of_the_files(name):
    """The last digits of a fit depend on the computer, but the optimum is in both intervals."""
    model, fresh = load(FILES / f"{name.replace(' ', '_')}.kw"), fitted(name)[0]
    if name == "mkl in a pipeline":
        model, fresh = model[-1], fresh[-1]
    if not np.isfinite(getattr(model, "duality_gap_", np.inf)):
        pytest.skip("no bound is known for this method")
    assert model.objective_ - model.duality_gap_ <= fresh.objective_
    assert fresh.objective_ - fresh.duality_gap_ <= model.objective_
