"""Kernels some of which share their columns."""

from kernelweave.kernels import RBF, Laplacian, Linear, Polynomial

KERNELS = [
    RBF(width=0.5),
    Linear(),
    RBF(width=1.0),
    RBF(width=2.0, columns=[0]),
    Laplacian(width=1.0),
    Polynomial(degree=2),
    RBF(width=1.0, columns=[0]),
]
