"""Kernels in use, in words."""

import numpy as np
import pytest

from kernelweave.report.kernels import in_words, section
from kernelweave.report.subject import Subject
from report_models import fitted


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([0.85, 0.1, 0.03, 0.02, 0.0], "4 of 5 kernels are in use; the heaviest carries 85%"),
        ([0.5, 0.4, 0.06, 0.04], "All 4 kernels are in use; the 2 heaviest carry 80%"),
        ([0.0, 1.0, 0.0], "1 of 3 kernels is in use."),
    ],
)
def test_kernels_in_use_are_counted_in_words(weights, said):
    weights = np.array(weights)
    text = in_words("kernel", int(np.count_nonzero(weights)), len(weights), weights)
    assert text.startswith(said)


@pytest.mark.parametrize(
    ("name", "title"), [("metric", "Metric weights"), ("mkl", "Kernel weights")]
)
def test_weights_of_a_metric_are_called_so(name, title):
    assert section(Subject(fitted(name)[0])).title == title
