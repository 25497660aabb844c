"""Banks of given Gram matrices."""

import numpy as np

from kernelweave.banks import make_bank
from kernelweave.kernels import Precomputed


def bank_of(grams, **options):
    """Return a bank of Gram matrices that are not normalised."""
    index = np.arange(len(grams[0]))[:, None]
    return make_bank([Precomputed(gram) for gram in grams], index, normalize=None, **options)


def kernel_of(gram):
    """Return the operator of one Gram matrix."""
    return bank_of([gram]).combine(np.ones(1))
