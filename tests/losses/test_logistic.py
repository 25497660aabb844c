"""The logistic loss keeps its digits at all margins."""

from decimal import Decimal, getcontext

import numpy as np

from kernelweave.losses import Logistic


def test_small_and_large_margins_keep_their_digits():
    getcontext().prec = 380  # digits of 1 + exp(-700)
    margins = np.concatenate([np.linspace(-700, 700, 57), [1e-9, -1e-9, 37.5, -37.5]])[:, None]
    one = np.ones_like(margins)
    losses = Logistic(False).row_losses(margins, one, one)[:, 0]
    dual_coef = Logistic(False).tangent(margins, one, one).dual_coef
    for m, loss, u in zip(margins[:, 0], losses, dual_coef[:, 0], strict=True):
        exact = (1 + (-Decimal(float(m))).exp()).ln()
        assert abs(Decimal(float(loss)) / exact - 1) < Decimal("1e-15")
        exact_u = 1 / (1 + Decimal(float(m)).exp())
        assert abs(Decimal(float(u)) / exact_u - 1) < Decimal("1e-13")
        # The entropy of the coefficient as it is stored.
        v = Decimal(float(u))
        entropy = -sum(p * p.ln() for p in (v, 1 - v) if p > 0)
        found = Logistic(False).linear(np.array([[u]]), one[:1], one[:1])
        assert abs(Decimal(found) - entropy) <= Decimal("1e-15") * max(entropy, Decimal("1e-3"))


def test_an_output_of_one_class_is_bounded():
    """The best bias is infinite; a large one is as good."""
    Y = np.ones((5, 1))
    value, bias = Logistic().value(np.zeros((5, 1)), Y, Y)
    assert value < 1e-15
    assert np.isfinite(bias).all()
    assert not Logistic().tangent(np.zeros((5, 1)), Y, Y).dual_coef.any()
