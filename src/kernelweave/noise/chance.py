"""Constants of the worst case over wrong labels, from probabilities.

`NoisyLabelMKLClassifier` has a slack and a cap. Its publication derives both from probabilities:
the slack from the level of a chance constraint, the cap from the share of wrong labels and how sure
it is for so many rows. A bound on the expected loss on right labels follows.

References
----------
Yang, Mahdavi, Jin, Zhang and Zhou (2012), Multiple kernel learning from noisy labels by stochastic
programming, ICML: Proposition 1, Lemma 1 and Theorem 1. Our copy has lost the constants; they are
derived again. Lemma 1 needs labels that are wrong independently of each other, though the paper
states that it does not.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelweave._types import Floats
from kernelweave._validation import Interval
from kernelweave.errors import InputError
from kernelweave.weights.complexity import group_complexity


def chance_slack(probability: float) -> float:
    """Return the slack that keeps a chance constraint (Lemma 1).

    Let ``xi_i`` say whether label i is right, independently with probability ``p_i``. With a slack
    of ``sqrt(ln(1 / probability) / 2)`` the mean of ``xi_i loss_i`` exceeds
    ``1/n sum_i (p_i + slack) loss_i`` at most with the given probability.

    From a probability of 0.135 downwards the slack is above one, so that every loss counts in full:
    the constraint is then at least as strict as taking all labels for right. The slack cannot be
    made small by a meaningful probability; the publication tunes it.

    Parameters
    ----------
    probability : float
        In (0, 1): how often the constraint may be violated.

    Returns
    -------
    slack : float
        For the parameter `slack` of `NoisyLabelMKLClassifier`. A fit with it has the classifier of
        a fit without slack, with ``cap`` replaced by ``(cap + slack) / (1 + slack)`` and ``lam`` by
        ``lam / (1 + slack)``.

    Examples
    --------
    >>> from kernelweave.noise import chance_slack
    >>> round(chance_slack(0.05), 3)
    1.224
    """
    _check("probability", probability, Interval(Real, 0, 1, closed="neither"))
    return float(np.sqrt(np.log(1.0 / probability) / 2.0))


def noise_cap(noise_level: float, n_samples: int, probability: float = 0.05) -> float:
    """Return the cap that the share of right labels exceeds only rarely (Proposition 1).

    The mean of the probabilities that labels of independent rows are right is above
    ``1 - noise_level + sqrt(ln(1 / probability) / (2 n))`` at most with the given probability.

    Parameters
    ----------
    noise_level : float
        In [0, 0.5): expected share of wrong labels.
    n_samples : int
        Number of rows.
    probability : float
        In (0, 1): how often the cap may be too small.

    Returns
    -------
    cap : float
        For the parameter `cap` of `NoisyLabelMKLClassifier`; at most one.

    Examples
    --------
    >>> from kernelweave.noise import noise_cap
    >>> round(noise_cap(0.2, 200), 3), round(noise_cap(0.2, 20000), 3)
    (0.887, 0.809)
    """
    _check("noise_level", noise_level, Interval(Real, 0, 0.5, closed="left"))
    _check("n_samples", n_samples, Interval(Integral, 1, None, closed="left"))
    _check("probability", probability, Interval(Real, 0, 1, closed="neither"))
    return float(min(1.0, 1.0 - noise_level + np.sqrt(np.log(1.0 / probability) / (2 * n_samples))))


def expected_loss_bound(
    losses: Floats, bounds: Floats, lam: float, noise_level: float, probability: float = 0.05
) -> float:
    """Bound the expected hinge loss on rightly labelled rows (Theorem 1, constants derived again).

    At most the share `noise_level` of the n labels is wrong, and the others belong to independent
    rows of the distribution without wrong labels. With ``N`` the number of right labels, B the
    largest value of a kernel at ``(x, x)`` and r the largest norm that a fit can have,
    ``sqrt(2 / lam)``, the expected loss is at most::

        1/N (sum of the N largest losses) + 2 complexity + (1 + r sqrt(B)) sqrt(ln(1/p) / (2 N))

    except with probability p; the complexity is `weights.complexity.group_complexity` of norm r.
    The bound holds for any function of this norm, so also for standard multiple kernel learning. It
    is above one, and so says nothing, unless n or lam is large: a bound below one needs thousands
    of rows at ``lam = 0.1``.

    Parameters
    ----------
    losses : ndarray of shape (n_samples,)
        Hinge losses of the training rows.
    bounds : ndarray of shape (n_kernels,)
        Largest value of each (normalised) kernel at ``(x, x)`` for any x, the constant kernel among
        them where there is a bias.
    lam : float
        Of the fit, without slack.
    noise_level : float
        In [0, 0.5): largest share of wrong labels.
    probability : float
        In (0, 1): how often the bound may be violated.

    Returns
    -------
    bound : float
        Of the expected hinge loss, which is at least the rate of errors.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.noise import expected_loss_bound
    >>> losses = np.full(100_000, 0.2)
    >>> round(expected_loss_bound(losses, np.ones(10), lam=1.0, noise_level=0.1), 3)
    0.24
    """
    _check("lam", lam, Interval(Real, 0, None, closed="neither"))
    _check("noise_level", noise_level, Interval(Real, 0, 0.5, closed="left"))
    _check("probability", probability, Interval(Real, 0, 1, closed="neither"))
    losses = np.asarray(losses, dtype=np.float64)
    if losses.ndim != 1 or not len(losses) or not np.isfinite(losses).all() or (losses < 0).any():
        raise InputError("losses: must be one finite number, not negative, for each row.")
    n_right = int(np.ceil(len(losses) * (1.0 - noise_level) - 1e-9))
    worst = np.sort(losses)[-n_right:].mean()
    # The objective is at most one at the zero function, so lam / 2 norm^2 is at most one.
    radius = np.sqrt(2.0 / lam)
    bounds = np.asarray(bounds, dtype=np.float64)
    complexity = group_complexity(n_right * bounds, radius, n_right)
    spread = (1.0 + radius * np.sqrt(bounds.max())) * np.sqrt(
        np.log(1.0 / probability) / (2.0 * n_right)
    )
    return float(worst + 2.0 * complexity + spread)


def _check(name: str, value: Any, allowed: Interval) -> None:
    if not allowed.is_satisfied_by(value):
        raise InputError(f"{name}: must be {allowed}, got {value!r}.")
