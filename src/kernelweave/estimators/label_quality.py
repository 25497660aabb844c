"""Mixin of the classifiers that score the quality of their training labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave._types import Floats, Indices
from kernelweave.noise import Suspects, rank_suspects


class LabelQuality:
    """Mixin for classifiers whose `fit` leaves a quality for every training label."""

    classes_: np.ndarray[Any, Any]
    label_quality_: Floats
    _given: Indices  # codes of the training labels
    _suggested: Indices  # codes of the labels that the model would have given

    def suspects(self, limit: int | None = None) -> Suspects:
        """Return the training examples whose label looks wrong, the most suspicious first.

        Parameters
        ----------
        limit : int, optional
            Maximum number of labels to return.

        Returns
        -------
        suspects : Suspects
            With `index`, `quality`, `given`, `suggested` and `to_frame`.
        """
        check_is_fitted(self)
        return rank_suspects(
            self.label_quality_,
            self.classes_[self._given],
            self.classes_[self._suggested],
            limit,
        )
