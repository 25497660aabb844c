"""A kernel on columns of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave._types import Floats
from kernelweave.errors import InputError

from .base import Kernel, columns_key, read_table
from .vector import inner_products, squared_norms

N_WORDS = 2**16  # numbers that words are hashed to; among a few thousand words few share one


@dataclass(frozen=True, eq=False, repr=False)
class Words(Kernel):
    """Cosine of the counts of words, for columns of sentences, notes and the like.

    Words are hashed to numbers, so nothing is learned from the data and words that were never seen
    before count as well. The texts of several columns are joined. A row without words is similar to
    none.

    Parameters
    ----------
    columns : columns, optional
        The columns this kernel looks at; see `Kernel`. None: all.
    name : str, optional
        Shown in place of the description.

    Examples
    --------
    >>> Words()([["late and damaged"], ["damaged"], ["all fine"]]).round(3)
    array([[1.   , 0.577, 0.   ],
           [0.577, 1.   , 0.   ],
           [0.   , 0.   , 1.   ]])
    """

    @property
    def view(self) -> tuple[Any, ...]:
        """The choice of columns."""
        return ("words", columns_key(self.columns))

    def prepare(self, X: Any) -> sp.csr_array[Any]:
        """Return counts of words, of unit length; missing values are refused."""
        from sklearn.feature_extraction.text import HashingVectorizer

        rows = read_table(X, str(self)).values(self.columns, str(self))
        texts = [" ".join(map(str, row)) for row in rows.tolist()]
        counts = HashingVectorizer(n_features=N_WORDS, alternate_sign=False).transform(texts)
        prepared = sp.csr_array(counts, dtype=np.float64)
        prepared.sum_duplicates()  # sorted indices make products exactly symmetric
        return prepared

    def block(self, A: sp.csr_array[Any], B: sp.csr_array[Any]) -> Floats:
        """Compare every prepared row of ``A`` with every one of ``B``."""
        if A.shape[1] != B.shape[1]:
            raise InputError(f"{self}: the two sides were not prepared by this kernel.")
        return inner_products(A, B)

    def diagonal(self, A: sp.csr_array[Any]) -> Floats:
        """Return one for every row with words, zero for others."""
        return squared_norms(A)
