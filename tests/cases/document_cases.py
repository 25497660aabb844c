"""Documents of three classes with links."""

import numpy as np

from kernelweave.pairs.graphs import read_links


def make_documents(seed=0, n=60, m=25, classes=3):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    rate = np.where(np.arange(m)[None] % (classes + 1) == y[:, None], 0.5, 0.1)
    X = (random.random((n, m)) < rate).astype(float)
    X[:, 0] = 1.0  # in every row: its idf is zero
    drawn = random.integers(n, size=(8 * n, 2))
    same = y[drawn[:, 0]] == y[drawn[:, 1]]
    links, _ = read_links(drawn[same | (random.random(len(drawn)) < 0.1)][: 2 * n], n)
    return X, y, links
