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


@pytest.mark.parametrize("name", NAMES)
def test_files_of_earlier_versions_load(name):
    model = load(FILES / f"{name.replace(' ', '_')}.kw")
    fresh, rows, _ = fitted(name)
    assert model.get_params().keys() == fresh.get_params().keys()
    if "loss" in model.get_params():  # not the default of today where it has changed since
        assert model.loss == fresh.loss
    if name == "clusters":
        np.testing.assert_array_equal(model.labels_, fresh.labels_)
    elif name.endswith("pairs"):
        np.testing.assert_allclose(model.transform(rows), fresh.transform(rows), atol=1e-6)
    elif fresh.__sklearn_tags__().classifier_tags is None:
        np.testing.assert_allclose(model.predict(rows), fresh.predict(rows), atol=1e-6)
    else:
        expected = fresh.decision_function(rows)
        atol = 1e-6
        if name == "lattice":  # whose search has changed since: the optimum is in both intervals
            assert model.objective_ - model.duality_gap_ <= fresh.objective_
            assert fresh.objective_ - fresh.duality_gap_ <= model.objective_
            # A gap g leaves the function open by a norm of sqrt(2 g), as the problem is strongly
            # convex, and so each value by that times the root of the kernel's diagonal.
            open_by = np.sqrt(2 * model.duality_gap_) + np.sqrt(2 * fresh.duality_gap_)
            atol = min(5e-3, float(open_by * np.sqrt(fresh.kernel(rows).diagonal().max())))
        np.testing.assert_allclose(model.decision_function(rows), expected, atol=atol)
        np.testing.assert_array_equal(model.predict(rows), fresh.predict(rows))
