"""The kernels that an estimator was given, with its rule for missing values."""

from __future__ import annotations

from typing import Any

from kernelweave._validation import StrOptions
from kernelweave.kernels import mixed_ladder
from kernelweave.kernels.base import MISSING
from kernelweave.kernels.given import encodes_gaps, takes_sparse, with_missing

# Of the parameters of all estimators that take kernels.
CONSTRAINTS: dict[str, Any] = {
    "kernels": "no_validation",  # kernels check themselves, with the name of the wrong item
    "missing": [StrOptions({*MISSING, "complete"}), None],
}


class GivenKernels:
    """Mixin for estimators with the parameters ``kernels`` and ``missing``."""

    kernels: Any
    missing: str | None = None

    def _default_kernels(self) -> Any:
        return mixed_ladder()

    def _given_kernels(self) -> Any:
        """Return the kernels as given, or the default ones, with the rule for missing values."""
        kernels = self._default_kernels() if self.kernels is None else self.kernels
        return with_missing(kernels, self.missing)

    def _takes_gaps(self) -> bool:
        if self.missing is None:
            return encodes_gaps(self._given_kernels())
        return self.missing != "refuse"

    def _takes_sparse(self) -> bool:
        return takes_sparse(self._given_kernels())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.allow_nan = self._takes_gaps()  # else each kernel refuses them
        return tags
