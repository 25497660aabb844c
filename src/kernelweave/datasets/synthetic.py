"""Synthetic problems with a known solution."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from kernelweave._types import Floats
from kernelweave.errors import InputError, InputTypeError

_COLUMNS_PER_VIEW = 5
_ADDITIVE_COLUMNS = 5  # x0 to x4 carry the signal; the others are noise


@dataclass(frozen=True, eq=False)
class ViewsProblem:
    """Two-class data in several groups of columns.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The columns of all views side by side.
    y : ndarray of shape (n_samples,)
        Labels, -1 and 1.
    views : dict of str to slice
        The columns of each view, informative views first.
    """

    X: Floats
    y: NDArray[np.int64]
    views: dict[str, slice]


def make_views(
    n_samples: int = 300,
    *,
    n_views: int = 3,
    n_informative: int = 1,
    noise: float = 0.1,
    random_state: int | np.random.RandomState | None = None,
) -> ViewsProblem:
    """Make two-class data in several views, few of them informative.

    Every view holds five standard normal columns. Class 1 lies outside, class -1 inside: the
    label is the sign of the mean squared length of a row over the informative views, centred
    at its median and scaled to unit deviation, plus noise. No linear classifier can fit it.

    Parameters
    ----------
    n_samples : int, default=300
        Number of rows.
    n_views : int, default=3
        Number of views; they are called ``view0``, ``view1`` and so on.
    n_informative : int, default=1
        Number of views that determine the label; these come first.
    noise : float, default=0.1
        Standard deviation of the normal noise added before the sign is taken.
    random_state : int, RandomState or None, default=None
        Seed; an int gives the same data every time.

    Returns
    -------
    problem : ViewsProblem
        The arrays ``X`` and ``y``, and the columns of each view.

    Examples
    --------
    >>> from kernelweave.datasets import make_views
    >>> problem = make_views(200, n_views=4, random_state=0)
    >>> problem.X.shape, sorted(set(problem.y.tolist()))
    ((200, 20), [-1, 1])
    >>> problem.views["view1"]
    slice(5, 10, None)
    """
    check_count("n_samples", n_samples, 2)
    check_count("n_views", n_views, 1)
    check_count("n_informative", n_informative, 1, n_views)
    check_noise(noise)
    random = check_random_state(random_state)
    X = random.standard_normal((n_samples, n_views * _COLUMNS_PER_VIEW))
    score = np.square(X[:, : n_informative * _COLUMNS_PER_VIEW]).mean(axis=1)
    score = (score - np.median(score)) / score.std()
    score += noise * random.standard_normal(n_samples)
    slices = [slice(v * _COLUMNS_PER_VIEW, (v + 1) * _COLUMNS_PER_VIEW) for v in range(n_views)]
    return ViewsProblem(X, _signs(score), {f"view{v}": s for v, s in enumerate(slices)})


def make_additive(
    n_samples: int = 2000,
    n_features: int = 20,
    *,
    noise: float = 0.3,
    regression: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Floats, Floats | NDArray[np.int64]]:
    """Make data with an additive signal of five columns and one product.

    The columns are standard normal and the signal is
    ``sin 2x0 + x1^2 + 0.8 x2 x3 + 0.5 |x4|``, centred at its median.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of rows.
    n_features : int, default=20
        Number of columns, at least five; those after the first five are noise.
    noise : float, default=0.3
        Standard deviation of the normal noise added to the signal.
    regression : bool, default=False
        Return the noisy signal itself instead of its sign.
    random_state : int, RandomState or None, default=None
        Seed; an int gives the same data every time.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The columns.
    y : ndarray of shape (n_samples,)
        Labels, -1 and 1, or the noisy signal.

    Examples
    --------
    >>> from kernelweave.datasets import make_additive
    >>> X, y = make_additive(100, 8, random_state=0)
    >>> X.shape, y.shape
    ((100, 8), (100,))
    """
    check_count("n_samples", n_samples, 2)
    check_count("n_features", n_features, _ADDITIVE_COLUMNS)
    check_noise(noise)
    random = check_random_state(random_state)
    X: Floats = random.standard_normal((n_samples, n_features))
    signal: Floats = (
        np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.8 * X[:, 2] * X[:, 3] + 0.5 * np.abs(X[:, 4])
    )
    signal = signal - np.median(signal)
    signal = signal + noise * random.standard_normal(n_samples)
    return X, signal if regression else _signs(signal)


def _signs(score: Floats) -> NDArray[np.int64]:
    return np.where(score > 0, 1, -1).astype(np.int64)


def check_count(name: str, value: Any, low: int, high: int | None = None) -> None:
    """Refuse values other than whole numbers from ``low`` to ``high``."""
    allowed = f"at least {low}" if high is None else f"from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputTypeError(f"{name} must be a whole number {allowed}, got {value!r}.")
    if value < low or (high is not None and value > high):
        raise InputError(f"{name} must be {allowed}, got {value!r}.")


def check_noise(noise: Any) -> None:
    """Refuse values other than finite numbers that are not negative."""
    if isinstance(noise, bool) or not isinstance(noise, int | float | np.floating | np.integer):
        raise InputTypeError(f"noise must be a number that is not negative, got {noise!r}.")
    if not 0 <= float(noise) < np.inf:
        raise InputError(f"noise must be finite and not negative, got {noise!r}.")
