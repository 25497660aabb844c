"""Kernels follow the kinds of the columns."""

import numpy as np
import pandas as pd

from kernelweave.kernels import expand_kernels
from kernelweave.tables import make_problem, offer_kernels
from source_table import SOURCES, source_table

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


def test_sources_have_kernels_of_their_own():
    frame = source_table()
    for missing in ("fill", "off", "complete"):
        sources = {**SOURCES, "lab": ["hdl", "ldl", "remark"]}
        problem = make_problem(frame, "ill", sources=sources, missing=missing)
        names = [str(kernel) for kernel in expand_kernels(offer_kernels(problem), problem.X)]
        views = {name.partition(": ")[0] for name in names if ": " in name}
        assert views == {"scan", "lab"}
        assert "lab: remark: words" in names
        assert ("scan: known" in names) == (missing != "fill")
        assert any(name.endswith("on age") for name in names)  # in no source
    problem = make_problem(frame.drop(columns="remark"), "ill", missing="off")
    assert [str(kernel) for kernel in offer_kernels(problem)] == [
        "mixed_ladder on 6 columns (scan_0, scan_1, scan_2, hdl, ldl, ...)"
    ]
    assert offer_kernels(problem)[0].missing == "off"
