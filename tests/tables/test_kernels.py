"""Kernels follow the kinds of the columns."""

import numpy as np
import pandas as pd

from kernelweave.tables import make_problem, offer_kernels

N = 40
RANDOM = np.random.default_rng(0)
SENTENCES = [" ".join(RANDOM.choice(list("abcdefgh"), 5)) for _ in range(N)]


def test_kernels_follow_the_kinds():
    frame = pd.DataFrame({"x": RANDOM.normal(size=N), "t": SENTENCES, "c": list("uv") * (N // 2)})
    frame["y"] = list("pq") * (N // 2)
    problem = make_problem(frame, "y", grams={"photo": np.eye(N)})
    names = [str(kernel) for kernel in offer_kernels(problem)]
    assert names == ["mixed_ladder on 2 columns (x, c)", "words on t", "photo"]
    assert problem.X["photo"].tolist() == list(range(N))
