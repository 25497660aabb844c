"""Record many varied fits, and compare them with those of another version of the library.

    python -m tests.golden record fits.npz
    python -m tests.golden compare fits.npz

A change of the code that should not change a model is checked by recording before it and comparing
after it: weights, objectives, gaps and predictions to 1e-10, numbers of inner solves exactly.
"""

import argparse
import io
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

import kernelweave as kw
from kernelweave import RBF, Additive, Laplacian, Linear, Overlap, Polynomial, Precomputed
from kernelweave.io import load, save

CLOSE = 1e-10
COMPARED = (
    "weights_ objective_ duality_gap_ intercept_ scales_ squared_radius_ block_norms_".split()
)
EXACT = "n_iter_ converged_".split()

RANDOM = np.random.default_rng(7)


def rows(n, columns=6):
    return RANDOM.normal(size=(n, columns))


X = rows(150)
SCORE = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * RANDOM.normal(size=150)
TWO = np.where(SCORE > 0, "yes", "no")
THREE = np.digitize(SCORE, [-0.6, 0.6])
WEIGHT = RANDOM.uniform(0.1, 2.0, size=150) * (RANDOM.random(150) > 0.1)
MANY = rows(3500, 5)
MANY_SCORE = MANY[:, 0] ** 2 - MANY[:, 1] + 0.5 * RANDOM.normal(size=3500)
MANY_TWO = (MANY_SCORE > 0.5).astype(int)
FRAME = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(
    kind=np.array(["u", "v", "w"])[RANDOM.integers(0, 3, 150)]
)
BINARY = (X > 0.3).astype(float)
GRAM = X @ X.T
FLIPPED = np.where(RANDOM.random(150) < 0.15, np.where(TWO == "yes", "no", "yes"), TWO)
SPARSE = sparse.csr_array(np.where(np.abs(X) > 0.8, X, 0.0))
GROUPS = np.arange(150) % 3
GROUPED = rows(150) + 1.5 * np.eye(3, 6)[GROUPS]
ALL_PAIRS = RANDOM.integers(0, 150, size=(400, 2))
PAIRS = ALL_PAIRS[ALL_PAIRS[:, 0] != ALL_PAIRS[:, 1]]
LABELS = np.where(GROUPS[PAIRS[:, 0]] == GROUPS[PAIRS[:, 1]], 1, -1)
LABELS = np.where(RANDOM.random(len(PAIRS)) < 0.1, -LABELS, LABELS)
SOME = [
    Linear(),
    RBF(1.0),
    RBF(3.0),
    Laplacian(2.0, columns=[0, 1]),
    Polynomial(2),
    Additive([1.0] * 6),
]
LEFT, RIGHT = RBF(1.0, columns=[0]), RBF(1.0, columns=[1])
PLAIN = [kw.rbf_ladder(), Linear()]
NODES = {"l": LEFT, "r": RIGHT, "both": LEFT * RIGHT}
EDGES = {"both": ["l", "r"]}


def fits():
    """Yield names, unfitted models, arguments of their fit, and rows to predict."""
    for norm in (1.0, 1.5, 4.0, "uniform"):
        for normalize in ("trace", "cosine", "radius", None):
            model = kw.MKLClassifier(SOME, norm=norm, normalize=normalize, C=3.0)
            yield f"mkl norm {norm} {normalize}", model, (X, TWO), X
        for loss in ("epsilon_insensitive", "square", "huber"):
            model = kw.MKLRegressor(SOME, norm=norm, loss=loss, target_scale=None)
            yield f"regression norm {norm} {loss}", model, (X, SCORE), X
        for loss in ("squared_hinge", "logistic"):
            model = kw.MKLClassifier(SOME, norm=norm, loss=loss)
            yield f"mkl norm {norm} {loss}", model, (X, TWO), X
        quantiles = kw.MKLRegressor(
            SOME, norm=norm, loss="quantile", quantile=(0.1, 0.5, 0.9), target_scale=None
        )
        yield f"regression norm {norm} quantiles", quantiles, (X, SCORE), X
    yield "softmax", kw.MKLClassifier(SOME, loss="logistic"), (X, THREE, WEIGHT), X
    yield "labels, logistic", kw.MKLClassifier(SOME, loss="logistic"), (X, BINARY[:, :3]), X
    yield "defaults", kw.MKLClassifier(PLAIN), (X, TWO), X
    yield "three classes", kw.MKLClassifier(PLAIN), (X, THREE), X
    yield "tight", kw.MKLClassifier(SOME, tol=1e-7, C=50.0), (X, TWO), X
    yield "small C", kw.MKLClassifier(SOME, C=1e-3), (X, TWO), X
    yield "no intercept", kw.MKLClassifier(SOME, fit_intercept=False), (X, TWO), X
    yield "balanced", kw.MKLClassifier(PLAIN, class_weight="balanced"), (X, THREE), X
    yield "weights", kw.MKLClassifier(SOME), (X, TWO, WEIGHT), X
    yield (
        "weights of a regression",
        kw.MKLRegressor(PLAIN, target_scale=None),
        (X, SCORE, WEIGHT),
        X,
    )
    yield (
        "two targets",
        kw.MKLRegressor(SOME, target_scale=None),
        (X, np.column_stack([SCORE, X[:, 3]])),
        X,
    )
    yield "sparse", kw.MKLClassifier([Linear(), RBF(2.0)]), (SPARSE, TWO), SPARSE
    mixed = [kw.rbf_ladder(columns=["a", "b"]), Overlap(columns=["kind"])]
    yield "frame", kw.MKLClassifier(mixed), (FRAME, TWO), FRAME
    index = np.arange(150)[:, None]
    given = [Precomputed(GRAM), Precomputed(GRAM**2)]
    yield "given", kw.MKLClassifier(given), (index, TWO), index
    yield "complete", kw.MKLClassifier(kw.complete_ladder()), (X, TWO), X
    few = MANY[:300]
    for name, model, y in (
        ("features", kw.MKLClassifier(PLAIN), MANY_TWO),
        ("features, lp", kw.MKLClassifier(PLAIN, norm=2.0), MANY_TWO),
        ("features, square", kw.MKLRegressor(PLAIN, loss="square"), MANY_SCORE),
        ("features, tube", kw.MKLRegressor(PLAIN, target_scale=None), MANY_SCORE),
        ("features, logistic", kw.MKLClassifier(PLAIN, loss="logistic"), MANY_TWO),
        ("single precision", kw.MKLClassifier([RBF(1.0), RBF(2.0), Laplacian(1.0)]), MANY_TWO),
        ("labels, features", kw.NoisyLabelMKLClassifier(PLAIN), MANY_TWO),
    ):
        yield name, model, (MANY, y), few
    yield "on a Dask table", kw.MKLClassifier(PLAIN), ("dask", MANY_TWO), few
    for criterion in ("radius", "do"):
        model = kw.RadiusMKLClassifier(SOME, criterion=criterion, norm=1.0)
        yield f"radius {criterion}", model, (X, TWO), X
    yield "radius, norm 2", kw.RadiusMKLClassifier(SOME, norm=2.0), (X, TWO), X
    yield "radius, widths", kw.RadiusKernelClassifier(), (X, TWO), X
    yield "labels", kw.NoisyLabelMKLClassifier(SOME), (X, FLIPPED), X
    capped = kw.NoisyLabelMKLClassifier(SOME, noise_level=0.1, lam=0.1)
    yield "labels, known level", capped, (X, FLIPPED), X
    yield "labels, three classes", kw.NoisyLabelMKLClassifier(SOME), (X, THREE), X
    for mode in ("auto", "class", "symmetric"):
        model = kw.NoiseTolerantKernelClassifier(mode=mode)
        yield f"tolerant {mode}", model, (X, FLIPPED), X
    structure = (RBF(1.0) + RBF(3.0)) * (LEFT + Linear())
    for p in (1.0, 2.0, 3.0):
        model = kw.SumProductMKLClassifier(structure, p=p, C=10.0)
        yield f"structure p {p}", model, (X, TWO), X
    published = kw.SumProductMKLClassifier(structure, p=2.0, solver="projected")
    yield "structure, published", published, (X, TWO), X
    for rho in (1.1, 1.5, 2.0):
        model = kw.HierarchicalMKLClassifier(NODES, parents=EDGES, rho=rho, C=30.0)
        yield f"graph rho {rho}", model, (X, TWO), X
    options = {"parents": EDGES, "C": 30.0}
    mirror = kw.HierarchicalMKLClassifier(NODES, solver="mirror", rho=2.0, **options)
    yield "graph, published", mirror, (X, TWO), X
    paper = kw.HierarchicalMKLClassifier(NODES, certificate="paper", **options)
    yield "graph, paper", paper, (X, TWO), X
    yield (
        "lattice",
        kw.HierarchicalMKLRegressor(C=30.0, target_scale=None),
        (X[:, :4], SCORE),
        X[:, :4],
    )
    tasks = kw.HierarchicalMKLClassifier(NODES, task_correlation=1.0, **options)
    yield "graph, tasks", tasks, (X, THREE), X
    for max_length in (1, 3):
        model = kw.RuleEnsembleClassifier(max_length=max_length, C=5.0)
        yield f"rules {max_length}", model, (X, TWO), X
    yield "rules given", kw.RuleEnsembleClassifier(propositions="given"), (BINARY, TWO), BINARY
    yield "rules, regression", kw.RuleEnsembleRegressor(max_length=2), (X, SCORE), X
    yield "rules, frame", kw.RuleEnsembleClassifier(max_length=2), (FRAME, THREE), FRAME
    paper = {"loss": "hinge", "n_cuts": 4, "max_rules": None, "refit": False, "tol": 1e-2}
    search = kw.RuleEnsembleClassifierCV(
        1.1, Cs=7, cv=3, scoring="accuracy", selection="best", max_length=2, **paper
    )
    yield "rules, CV", search, (X, TWO), X
    related = kw.RuleEnsembleRegressor(max_length=2, task_correlation=1.0)
    yield "rules, tasks", related, (X, np.column_stack([SCORE, X[:, 3]])), X
    for correction in ("naive", "noise"):
        model = kw.PairwiseKernelLearner(SOME, correction=correction, random_state=0)
        yield f"pairs {correction}", model, {"X": GROUPED, "pairs": PAIRS, "labels": LABELS}, None
    shrink = kw.PairwiseKernelLearner(method="shrink", n_clusters=3, random_state=0)
    positive = np.abs(GROUPED)
    yield "pairs shrink", shrink, {"X": positive, "pairs": PAIRS, "labels": LABELS}, None
    clusters = kw.KernelSpectralClustering(3, random_state=0)
    yield "clusters", clusters, {"X": GROUPED}, None


def values(model, new):
    """Return what is compared of a fitted model."""
    out = {}
    for name in (*COMPARED, *EXACT):
        value = getattr(model, name, None)
        if value is not None:
            out[name] = np.atleast_1d(np.asarray(value, dtype=float))
    if hasattr(model, "labels_"):
        out["labels_"] = np.asarray(model.labels_, dtype=float)
    if new is not None:
        predict = getattr(model, "decision_function", None) or model.predict
        out["predictions"] = np.asarray(predict(new), dtype=float)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.kw"
            save(model, path)
            again = load(path)
            predict = getattr(again, "decision_function", None) or again.predict
            out["of its file"] = np.asarray(predict(new), dtype=float)
    return out


def run():
    """Fit everything; return the values by name of fit and attribute."""
    out = {}
    for name, model, arguments, new in fits():
        if isinstance(arguments, tuple) and isinstance(arguments[0], str):
            import dask.array as da

            arguments = (da.from_array(MANY, chunks=(1000, 5)), *arguments[1:])
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if isinstance(arguments, dict):
                model.fit(**arguments)
            else:
                model.fit(*arguments)
            found = values(model, new)
        print(f"{name:32s} {time.process_time() - began:7.2f} s", flush=True)
        out |= {f"{name}/{key}": value for key, value in found.items()}
    return out


def compare(old, new):
    """Print what differs; return how many values do."""
    wrong = 0
    for key in sorted({*old, *new}):
        if key not in old or key not in new or old[key].shape != new[key].shape:
            print(f"{key}: missing, or of another shape")
            wrong += 1
            continue
        same = (old[key] == new[key]) | (np.isnan(old[key]) & np.isnan(new[key]))
        if same.all():
            continue
        size = max(float(np.abs(old[key]).max(initial=0.0)), 1e-300)
        with np.errstate(invalid="ignore"):
            error = float(np.where(same, 0.0, np.abs(old[key] - new[key])).max(initial=0.0)) / size
        if error > 0.0 and key.endswith(
            "duality_gap_"
        ):  # relative to the objective, as the tolerance is
            objective = old.get(key.replace("duality_gap_", "objective_"), np.ones(1))
            error *= size / max(float(np.abs(objective).max()), size, 1e-300)
        if not error <= (0.0 if key.rsplit("/", 1)[1] in EXACT else CLOSE):
            print(f"{key}: differs by {error:.1e}")
            wrong += 1
    print(f"{len(old)} values, {wrong} differ")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    found = run()
    if options.action == "record":
        stream = io.BytesIO()
        np.savez_compressed(stream, **found)
        options.file.write_bytes(stream.getvalue())
        return 0
    with np.load(options.file) as recorded:
        return 1 if compare(dict(recorded), found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
