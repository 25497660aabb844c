"""Random problems: any shape, scale, container and option, all of them from one integer."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.base import BaseEstimator

import kernelweave as kw
from kernelweave.errors import KernelweaveError
from kernelweave.kernels import Cosine

N_NEW = 5  # rows that are drawn with the others and left out of the fit
WORDS = "apple pear plum river stone cloud seven eight green amber north quiet".split()


@dataclass
class Instance:
    """An estimator that is not fitted yet, and what to fit it to."""

    seed: int
    model: Any
    fit: dict[str, Any]  # arguments of `fit` by name
    new: Any  # rows that `fit` does not see
    traits: list[str] = field(default_factory=list)  # what was drawn, for the reader of a finding
    plain: Any = None  # a structure as the conic solver reads it
    oracle: bool = False  # whether a conic solver is asked for the optimum
    repeat: bool = False  # whether the fit is repeated, bit by bit

    @property
    def name(self):
        return type(self.model).__name__

    @property
    def n_rows(self):
        return self.fit["X"].shape[0]


@dataclass
class Rows:
    """Numbers, and the container that the estimator sees them in."""

    Z: np.ndarray  # (n_rows, n_columns) with the new rows last
    X: Any
    new: Any
    kind: str
    unit: float  # a typical difference between two entries of a column
    numeric: Any  # columns that numeric kernels may be given: None is all of them
    gaps: bool = False  # whether values are missing, so that kernels need a rule


def draw(seed, only=None) -> Instance:
    """Draw the instance of a seed; ``only`` is the name of an estimator in place of a drawn one."""
    from .further import FURTHER  # draws that are made of those of this module

    known = ESTIMATORS | FURTHER
    rng = np.random.default_rng(seed)
    names = list(known)
    share = np.array([known[name][0] for name in names], dtype=float)
    name = str(rng.choice(names, p=share / share.sum()))
    oracle, repeat = rng.random() < 0.25, rng.random() < 0.25
    traits: list[str] = []
    instance = known[only or name][1](rng, traits)
    instance.seed, instance.traits = seed, traits
    instance.oracle, instance.repeat = oracle, repeat
    _draw_rule(np.random.default_rng([seed, 1]), instance)  # all else stays as it was drawn
    return instance


def _draw_rule(rng, instance):
    """Give the rule for gaps to the estimator, for kernels that have none: the default ones."""
    asked = "missing" in instance.model.get_params(deep=False)
    if asked and "gaps" in instance.traits and chance(rng, 0.4):
        rule = str(rng.choice(["off", "fill", "expected"]))
        instance.model.set_params(missing=rule)
        instance.traits.append(f"missing={rule}")


# Rows


def chance(rng, share):
    return rng.random() < share


def power(rng, low, high):
    """Draw a number whose logarithm is uniform."""
    return float(10.0 ** rng.uniform(low, high))


def draw_size(rng, many=False):
    """Draw how many rows there are: few, some hundreds, or enough for Nystroem features.

    Between these, systems of smooth losses are solved by conjugate gradients.
    """
    rare = rng.random() if many else 0.5
    if rare < 0.003:
        return int(rng.integers(3001, 3500))
    if rare > 0.996:
        return int(power(rng, np.log10(400), np.log10(1800)))
    if chance(rng, 0.1):
        return int(power(rng, np.log10(60), np.log10(300)))
    return int(rng.integers(4, 60))


def _column(rng, n, kind):
    match kind:
        case "uniform":
            return rng.uniform(-1, 1, n)
        case "cauchy":
            return rng.standard_cauchy(n)
        case "cauchy cubed":
            return rng.standard_cauchy(n) ** 3
        case "lognormal":
            return rng.lognormal(0, rng.choice([1.0, 3.0]), n)
        case "integers":
            return rng.integers(0, 4, n).astype(float)
        case "clusters":
            return rng.normal(size=n) + power(rng, 0, 10) * rng.integers(0, 2, n)
    return rng.normal(size=n)


def draw_numbers(rng, traits, n, d):
    """Draw ``n`` rows, in one of the ways in which real columns are unpleasant."""
    kinds = ["normal", "uniform", "cauchy", "cauchy cubed", "lognormal", "integers", "clusters"]
    shares = [0.55, 0.1, 0.08, 0.05, 0.07, 0.1, 0.05]
    drawn = rng.choice(kinds, size=d, p=shares)
    Z = np.column_stack([_column(rng, n, kind) for kind in drawn])
    traits += sorted(set(drawn) - {"normal"})
    if chance(rng, 0.1):
        traits.append("outlier")
        Z[rng.integers(n), rng.integers(d)] = rng.choice([-1, 1]) * power(rng, 1, 12)
    if chance(rng, 0.15):
        traits.append("duplicates")
        Z = Z[rng.integers(max(1, n // 2), size=n)]
    if chance(rng, 0.06):
        traits.append("constant column")
        Z[:, rng.integers(d)] = rng.normal()
    if d > 1 and chance(rng, 0.06):
        traits.append("equal columns")
        Z[:, 0] = Z[:, -1]
    unit = _unit(Z)
    if chance(rng, 0.1):
        offset = power(rng, 0, 8)
        traits.append(f"offset {offset:.0e}")
        Z += offset * unit
    if chance(rng, 0.3):
        scale = power(rng, -150, 150) if chance(rng, 0.25) else power(rng, -4, 4)
        traits.append(f"scale {scale:.0e}")
        Z, unit = Z * scale, unit * scale
    return Z, unit


def _unit(Z):
    spread = np.subtract(*np.quantile(Z, [0.75, 0.25], axis=0))
    spread = spread[spread > 0]
    return float(np.median(spread)) if len(spread) else 1.0


def draw_rows(
    rng, traits, n, kinds=("array", "sparse", "pandas", "polars", "numbers"), gaps=True
) -> Rows:
    """Draw rows in a container; "numbers" are row numbers for precomputed kernels."""
    d = int(rng.integers(1, 7)) if chance(rng, 0.9) else int(rng.integers(7, 21))
    Z, unit = draw_numbers(rng, traits, n + N_NEW, d)
    shares = {"array": 0.76, "sparse": 0.06, "pandas": 0.06, "polars": 0.06, "numbers": 0.06}
    share = np.array([shares[kind] for kind in kinds])
    kind = str(rng.choice(kinds, p=share / share.sum()))
    numeric: Any = None
    if kind == "sparse":
        Z = Z * (rng.random(Z.shape) < 0.5)
        X = sparse.csr_array(Z) if chance(rng, 0.5) else sparse.csr_matrix(Z)
    elif kind == "numbers":
        X = np.arange(len(Z))[:, None]
    elif kind == "array":
        X = Z
        if unit < 1e30 and chance(rng, 0.05):
            X = Z = Z.astype(np.float32).astype(np.float64)
            X = X.astype(np.float32)
        if chance(rng, 0.1):
            X = np.asfortranarray(X)
        if gaps and chance(rng, 0.04):
            traits.append("gaps")
            X = np.where(rng.random(X.shape) < 0.15, np.nan, X)
    else:
        numeric = [f"x{k}" for k in range(d)]
        columns: dict[str, Any] = dict(zip(numeric, Z.T, strict=True))
        columns["colour"] = rng.choice(["red", "green", "blue", "black"], len(Z))
        columns["note"] = [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(len(Z))]
        X = pd.DataFrame(columns) if kind == "pandas" else pl.DataFrame(columns)
        if chance(rng, 0.08):
            traits.append("gap")
            X = _with_gap(X, rng.integers(n))
        elif gaps and chance(rng, 0.25):
            traits.append("gaps")
            frame = pd.DataFrame(columns)
            frame = frame.mask(rng.random(frame.shape) < 0.15)
            if kind == "polars":
                frame = pl.DataFrame({k: frame[k].tolist() for k in frame}, strict=False)
                frame = frame.with_columns(pl.col(pl.Float64).fill_nan(None))
            X = frame
    if kind != "array":
        traits.append(kind)
    return Rows(Z, X[:n], X[n:], kind, unit, numeric, "gaps" in traits)


def _with_gap(X, row):
    if isinstance(X, pd.DataFrame):
        X = X.copy()
        X.loc[row, "x0"] = np.nan
        return X
    return X.with_columns(
        pl.when(pl.int_range(pl.len()) == row).then(None).otherwise(pl.col("x0")).alias("x0")
    )


# Kernels


def bounded(A, B):
    """A kernel from a function: inner products of squashed columns."""
    return np.arctan(A) @ np.arctan(B).T


def draw_kernel(rng, rows: Rows):
    """Draw one kernel that the rows can be given to."""
    if rows.kind == "numbers":
        return _draw_precomputed(rng, rows)
    d = rows.Z.shape[1]
    columns = rows.numeric
    if chance(rng, 0.3):
        some = np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False)).tolist()
        columns, d = [columns[k] if columns else k for k in some], len(some)
    width = rows.unit * power(rng, -0.7, 1.3) * np.sqrt(d)
    if rows.kind in ("pandas", "polars") and chance(rng, 0.35):
        return kw.Overlap(columns="colour") if chance(rng, 0.5) else kw.Words(columns="note")
    match rng.integers(12 if rows.kind != "sparse" else 6):
        case 0 | 1 | 2:
            return kw.RBF(width, columns=columns)
        case 3:
            return kw.Linear(columns=columns)
        case 4:
            coef0 = float(rng.choice([0.0, 1.0, rows.unit**2]))
            return kw.Polynomial(int(rng.integers(1, 4)), coef0, columns=columns)
        case 5:
            return Cosine(kw.Linear(columns=columns))
        case 6 | 7:
            return kw.Laplacian(width, columns=columns)
        case 8:
            return kw.ARD(tuple(width * 10 ** rng.uniform(-1, 1, d)), columns=columns)
        case 9:
            return kw.Additive(tuple(width * 10 ** rng.uniform(-1, 1, d)), columns=columns)
        case 10:
            return kw.FromCallable(bounded, columns=columns)
    return kw.RBF(1e12 * width, columns=columns)  # all but constant


def _draw_precomputed(rng, rows: Rows):
    Z = (rows.Z - np.median(rows.Z, axis=0)) / rows.unit
    kind = rng.integers(4)
    if kind == 0:  # rank one
        gram = np.multiply.outer(Z[:, 0], Z[:, 0])
    elif kind == 1:
        gram = Z @ Z.T
    else:
        squares = ((Z[:, None] - Z) ** 2).sum(axis=2)
        gram = np.exp(-0.5 * squares / power(rng, -1, 2))
    gram = gram * power(rng, -2, 2)
    return kw.Precomputed((gram + gram.T) / 2)


def draw_kernels(rng, traits, rows: Rows):
    """Draw what the parameter ``kernels`` is given."""
    if rows.kind != "numbers" and chance(rng, 0.15):
        return None
    kernels = [draw_kernel(rng, rows) for _ in range(rng.choice([1, 2, 3, 5, 8]))]
    if chance(rng, 0.15):
        kernels.append(kernels[0])  # two equal kernels
    if len(kernels) > 1 and chance(rng, 0.15):
        kernels.append(kernels[0] + kernels[1])
    if len(kernels) > 1 and chance(rng, 0.15):
        kernels.append(kernels[0] * kernels[1])
    if chance(rng, 0.1):
        kernels.append(power(rng, -6, 6) * kernels[0])
    if rows.kind != "numbers":
        kernels += _draw_families(rng, rows)
    if rows.gaps:
        kernels = [_with_rule(rng, kernel) for kernel in kernels]
    traits.append(f"{len(kernels)} kernels")
    return kernels if len(kernels) > 1 or chance(rng, 0.5) else kernels[0]


def _with_rule(rng, kernel):
    """Return a kernel with a rule for missing values, where it knows one."""
    rule = str(rng.choice(["off", "fill", "expected"]))
    try:
        return kernel.with_missing(rule)
    except KernelweaveError:
        return kernel


def _draw_families(rng, rows: Rows):
    columns = rows.numeric
    if chance(rng, 0.08):
        widths = None if chance(rng, 0.5) else [rows.unit, 2 * rows.unit]
        return [kw.rbf_ladder(widths, columns=columns, per_feature=chance(rng, 0.5))]
    if chance(rng, 0.05):
        return [kw.polynomial_ladder([1, 2], columns=columns, per_feature=chance(rng, 0.5))]
    if chance(rng, 0.05):
        return [kw.complete_ladder(columns=columns)]
    if chance(rng, 0.05):
        first = "x0" if columns else 0
        return [kw.views({"first": [first], "all": columns or slice(None)})]
    return []


# Targets


def draw_signal(rng, rows: Rows):
    """Return a signal for all rows, new ones included, from the ranks of their entries."""
    ranks = np.argsort(np.argsort(rows.Z, axis=0), axis=0) / len(rows.Z) - 0.5
    signal = np.sin(5 * ranks[:, 0]) + 3 * ranks[:, -1] * ranks[:, ranks.shape[1] // 2]
    return signal + rng.choice([0.05, 0.5, 5.0]) * rng.normal(size=len(signal))


def draw_labels(rng, traits, rows: Rows, most=5):
    n = len(rows.Z) - N_NEW
    count = 2 if chance(rng, 0.7) else int(rng.integers(2, most + 1))
    signal = draw_signal(rng, rows)[:n]
    edges = np.quantile(signal, np.sort(rng.uniform(0.1, 0.9, count - 1)))
    codes = np.searchsorted(edges, signal)
    if len(np.unique(codes)) < 2:
        codes[0] = (codes[0] + 1) % count
    if count > 2:
        traits.append(f"{count} classes")
    kind = rng.integers(4)
    if kind == 0:
        return np.array([f"class {code}" for code in codes])
    if kind == 1 and count == 2:
        return codes.astype(bool)
    return codes.astype(float) if kind == 2 else codes


def draw_targets(rng, traits, rows: Rows):
    n = len(rows.Z) - N_NEW
    outputs = 1 if chance(rng, 0.85) else int(rng.integers(2, 4))
    y = np.column_stack([draw_signal(rng, rows)[:n] for _ in range(outputs)])
    if chance(rng, 0.05):
        traits.append("constant target")
        y[:, 0] = rng.normal()
    if chance(rng, 0.06):
        traits.append("heavy target")
        y *= np.abs(rng.standard_cauchy(n))[:, None]
    if chance(rng, 0.1):
        traits.append("target offset")
        y += power(rng, 0, 7)
    if chance(rng, 0.2):
        scale = power(rng, -100, 100) if chance(rng, 0.1) else power(rng, -4, 4)
        traits.append(f"target scale {scale:.0e}")
        y *= scale
    if outputs > 1:
        traits.append(f"{outputs} targets")
    return y if outputs > 1 else y[:, 0]


def draw_weight(rng, traits, n):
    if chance(rng, 0.7):
        return None
    weight = rng.uniform(0.1, 2, n)
    match rng.integers(4):
        case 0:
            traits.append("weights with zeros")
            weight *= rng.random(n) < 0.7
        case 1:
            traits.append("uneven weights")
            weight = 10.0 ** rng.uniform(-5, 5, n)
        case 2:
            weight = rng.integers(1, 4, n).astype(float)
    return weight


def draw_cost(rng):
    return power(rng, -8, 8) if chance(rng, 0.2) else power(rng, -2, 3)


def draw_tol(rng, least=8):
    return float(10.0 ** -rng.choice(np.arange(2, least + 1), p=_tol_shares(least)))


def _tol_shares(least):
    shares = np.array([2.0, 6.0, *([1.0] * (least - 3))])
    return shares / shares.sum()


def draw_class_weight(rng, y):
    if chance(rng, 0.8):
        return None
    if chance(rng, 0.5):
        return "balanced"
    return {label: power(rng, -1, 1) for label in np.unique(y).tolist()}


# Estimators


def draw_norm(rng):
    return rng.choice([1.0, 1.0, 1.0, 1.1, 1.5, 2.0, 4.0]).item() if chance(rng, 0.9) else "uniform"


def draw_normalize(rng):
    return [None, "trace", "trace", "trace", "diagonal", "cosine", "radius"][rng.integers(7)]


def _flat_options(rng, traits, rows):
    options = {
        "kernels": draw_kernels(rng, traits, rows),
        "norm": draw_norm(rng),
        "normalize": draw_normalize(rng),
        "C": draw_cost(rng),
        "tol": draw_tol(rng),
        "fit_intercept": chance(rng, 0.8),
        "n_jobs": 2 if chance(rng, 0.05) else 1,
    }
    if rows.Z.shape[0] > 1000:  # the many rows of a small share of the fits: no hard problems
        options |= {"C": power(rng, -2, 1), "tol": 1e-3}
    return options


def _mkl_classifier(rng, traits):
    rows = draw_rows(rng, traits, draw_size(rng, many=True))
    y = draw_labels(rng, traits, rows)
    options = _flat_options(rng, traits, rows) | {"class_weight": draw_class_weight(rng, y)}
    weight = draw_weight(rng, traits, len(y))
    fit = {"X": rows.X, "y": y, "sample_weight": weight}
    options["loss"] = str(rng.choice(["hinge", "squared_hinge", "logistic", "logistic"]))
    return Instance(0, kw.MKLClassifier(**options), fit, rows.new)


def _loss_options(rng, y):
    size = float(np.std(y)) or 1.0
    return {
        "loss": str(rng.choice(["epsilon_insensitive", "square", "huber"])),
        "epsilon": size * power(rng, -3, 0.5) if chance(rng, 0.8) else 0.1,
    }


def _in_units(rng, options):
    """Return the options with targets in their own units, or in units of their spread."""
    if chance(rng, 0.5):
        return options | {"target_scale": None}
    return options | {"epsilon": power(rng, -3, 0.5)}


def _mkl_regressor(rng, traits):
    rows = draw_rows(rng, traits, draw_size(rng, many=True))
    y = draw_targets(rng, traits, rows)
    options = _in_units(rng, _flat_options(rng, traits, rows) | _loss_options(rng, y))
    weight = draw_weight(rng, traits, len(y))
    fit = {"X": rows.X, "y": y, "sample_weight": weight}
    if chance(rng, 0.3):
        levels = np.unique(np.round(rng.uniform(0.02, 0.98, size=3), 3)).tolist()
        options |= {"loss": "quantile", "quantile": levels[0] if chance(rng, 0.5) else levels}
    return Instance(0, kw.MKLRegressor(**options), fit, rows.new)


def _classification(rng, traits, most=5, **rows_options):
    """Draw rows, labels and weights, and the parameters that all kernel classifiers share."""
    rows = draw_rows(rng, traits, draw_size(rng), **rows_options)
    y = draw_labels(rng, traits, rows, most)
    options = {
        "tol": draw_tol(rng, 6),
        "fit_intercept": chance(rng, 0.8),
        "class_weight": draw_class_weight(rng, y),
        "n_jobs": 1,
    }
    fit = {"X": rows.X, "y": y, "sample_weight": draw_weight(rng, traits, len(y))}
    return rows, options, fit


def _radius(rng, traits):
    rows, options, fit = _classification(rng, traits, 3)
    options |= {
        "kernels": draw_kernels(rng, traits, rows),
        "norm": [None, 1, 2, "uniform"][rng.integers(4)],
        "normalize": draw_normalize(rng),
        "criterion": str(rng.choice(["radius"] * 5 + ["chapelle", "chapelle_literal", "do"])),
        "solver": "lbfgs" if chance(rng, 0.8) else "projection",
        "radius": str(rng.choice(["exact", "exact", "upper", "trace"])),
        "C": draw_cost(rng),
    }
    if options["criterion"] != "radius":
        options |= {"radius": "exact", "norm": int(rng.integers(1, 3))}
    if options["norm"] == "uniform":
        options["radius"] = "exact"
    return Instance(0, kw.RadiusMKLClassifier(**options), fit, rows.new)


def _radius_kernel(rng, traits):
    rows, options, fit = _classification(rng, traits, 3, kinds=("array",))
    options |= {
        "family": str(rng.choice(["width", "ard", "mixture"])),
        "n_starts": 1,
        "C": draw_cost(rng),
        "tol": draw_tol(rng, 4),
    }
    return Instance(0, kw.RadiusKernelClassifier(**options), fit, rows.new)


def _noisy(rng, traits):
    rows, options, fit = _classification(rng, traits, 4)
    options |= {
        "kernels": draw_kernels(rng, traits, rows),
        "noise_level": "auto" if chance(rng, 0.2) else float(rng.choice([0.0, 0.1, 0.3])),
        "lam": power(rng, -6, 3) if chance(rng, 0.3) else power(rng, -3, 0),
        "cap": None if chance(rng, 0.5) else float(rng.uniform(0.05, 1)),
        "slack": 0.0 if chance(rng, 0.7) else power(rng, -2, 0),
        "uncertainty": "relaxed" if chance(rng, 0.7) else "exact",
        "robust": "worst" if chance(rng, 0.85) else "best",
        "solver": str(rng.choice(["fast", "fast", "fast", "paper", "vi"])),
        "normalize": draw_normalize(rng),
    }
    if options["solver"] != "fast":
        options |= {"tol": 1e-2, "max_iter": 60}
    return Instance(0, kw.NoisyLabelMKLClassifier(**options), fit, rows.new)


def _noise_tolerant(rng, traits):
    rows, options, fit = _classification(rng, traits, 4)
    del fit["sample_weight"]
    options = {
        "kernels": draw_kernels(rng, traits, rows),
        "mode": str(rng.choice(["auto", "class", "symmetric"])),
        "average": str(rng.choice(["models", "models", "kernels"])),
        "n_jobs": 1,
    }
    if options["mode"] == "class" and chance(rng, 0.3):
        options["final"] = "svm"
    return Instance(0, kw.NoiseTolerantKernelClassifier(**options), fit, rows.new)


def _metric(rng, traits, kind):
    rows = draw_rows(rng, traits, draw_size(rng), kinds=("array", "pandas", "polars"))
    draw_y = draw_labels if kind is kw.MetricKernelClassifier else draw_targets
    y = draw_y(rng, traits, rows)
    options = {"n_steps": int(rng.integers(0, 4)), "shrink": float(rng.random()), "n_jobs": 1}
    if chance(rng, 0.3):
        options |= {"max_exact": 0, "metric_rows": 40, "n_landmarks": int(rng.integers(1, 60))}
        options["max_full"] = int(rng.choice([0, 20000]))
    if chance(rng, 0.2):
        options["select"] = "cv"
    if kind is kw.MetricKernelClassifier:
        options["class_weight"] = draw_class_weight(rng, y)
    fit = {"X": rows.X, "y": y, "sample_weight": draw_weight(rng, traits, len(y))}
    return Instance(0, kind(**options), fit, rows.new)


def draw_structure(rng, rows):
    """Draw an expression, and the same as tuples of numbers of its kernels."""
    kernels = [draw_kernel(rng, rows) for _ in range(4)]
    a, b, c, d = kernels
    leaves = [("leaf", k) for k in range(4)]
    match rng.integers(5):
        case 0:
            return kernels[:3], ("sum", [_product(leaf) for leaf in leaves[:3]])
        case 1:
            return a * b + c, ("sum", [_product(*leaves[:2]), _product(leaves[2])])
        case 2:
            inner = _product(("sum", [_product(leaves[0]), _product(leaves[1])]))
            return (
                kw.group(a, b) * c + d,
                (
                    "sum",
                    [_product(inner, leaves[2]), _product(leaves[3])],
                ),
            )
        case 3:
            return (a + b) * c, None
    return (a + b) * (c + d), None


def _product(*parts):
    return ("product", list(parts))


def _sum_product(rng, traits):
    rows, options, fit = _classification(rng, traits, 3)
    structure, plain = draw_structure(rng, rows)
    options |= {
        "structure": None if rows.kind != "numbers" and chance(rng, 0.1) else structure,
        "lam": power(rng, -3, 2),
        "p": float(rng.choice([1.0, 1.0, 1.5, 2.0, 0.5])),
        "normalize": draw_normalize(rng),
        "C": draw_cost(rng),
        "solver": "newton" if chance(rng, 0.8) else "projected",
    }
    instance = Instance(0, kw.SumProductMKLClassifier(**options), fit, rows.new)
    if options["structure"] is structure:
        instance.plain = plain
    return instance


def _graph_options(rng, traits, rows):
    options = {
        "rho": float(rng.choice([1.1, 1.5, 2.0])),
        "normalize": draw_normalize(rng),
        "C": draw_cost(rng) if chance(rng, 0.5) else power(rng, 0, 2),
        "tol": draw_tol(rng, 6),
        "solver": "alternate" if chance(rng, 0.85) else "mirror",
        "certificate": "tight" if chance(rng, 0.8) else "paper",
        "fit_intercept": chance(rng, 0.8),
        "n_jobs": 1,
    }
    if rows.kind != "numbers" and chance(rng, 0.35):
        return options | {"kernels": None}
    count = int(rng.integers(1, 7))
    options["kernels"] = {f"node {k}": draw_kernel(rng, rows) for k in range(count)}
    options["parents"] = {
        f"node {k}": [f"node {v}" for v in range(k) if chance(rng, 0.4)] for k in range(count)
    }
    if chance(rng, 0.3):
        options["node_cost"] = float(rng.choice([1.0, 1.5, 4.0]))
    return options


def _hierarchical_classifier(rng, traits):
    rows, options, fit = _classification(rng, traits, 4)
    options |= _graph_options(rng, traits, rows)
    return Instance(0, kw.HierarchicalMKLClassifier(**options), fit, rows.new)


def _hierarchical_regressor(rng, traits):
    rows = draw_rows(rng, traits, draw_size(rng))
    y = draw_targets(rng, traits, rows)
    options = _in_units(rng, _graph_options(rng, traits, rows) | _loss_options(rng, y))
    fit = {"X": rows.X, "y": y, "sample_weight": draw_weight(rng, traits, len(y))}
    return Instance(0, kw.HierarchicalMKLRegressor(**options), fit, rows.new)


def _rule_options(rng, traits, rows):
    options = {
        "rho": float(rng.choice([1.1, 1.5, 2.0])),
        "base": float(rng.choice([1.5, 2.0, 3.0])),
        "n_cuts": int(rng.integers(1, 4)),
        "threshold": float(rng.choice([0.0, 1e-3])),
        # All conjunctions of many columns take minutes to search, as the guide says.
        "max_length": None if rows.Z.shape[1] <= 4 else int(rng.integers(1, 4)),
        "tol": draw_tol(rng, 5),
        "fit_intercept": chance(rng, 0.85),
        "n_jobs": 1,
    }
    if rows.kind == "array" and chance(rng, 0.5):
        traits.append("given propositions")
        options["propositions"] = "given"
        d = min(5, rows.Z.shape[1])
        rows.X = (rows.X[:, :d] > np.median(rows.X[:, :d], axis=0)).astype(float)
        rows.new = (rows.new[:, :d] > np.median(rows.Z[:, :d], axis=0)).astype(float)
    return options


def _further_rules(rng, rows, losses):
    """Draw what makes rules short, and what constrains them; most often nothing of it."""
    options = {}
    if chance(rng, 0.4):
        options |= {"rho": 1.0, "loss": str(rng.choice(losses))}
    if chance(rng, 0.4):
        options["refit"] = True
    if chance(rng, 0.3):
        options["max_rules"] = int(rng.integers(1, 12))
    if chance(rng, 0.05):
        options |= {"n_resamples": 3, "random_state": 0}
    columns = rows.numeric or range(rows.X.shape[1])
    some = [columns[k] for k in np.flatnonzero(rng.random(len(columns)) < 0.5)]
    if some and chance(rng, 0.2):
        options[str(rng.choice(["forbidden", "required"]))] = some
    if options.get("rho") == 1.0 and chance(rng, 0.3):
        options["max_columns"] = int(rng.integers(1, 4))
    if some and options.get("rho") == 1.0 and chance(rng, 0.3):
        options["monotone"] = {column: int(rng.choice([-1, 1])) for column in some}
    return options


def _with_linear_terms(rng, options):
    """Draw whether columns of numbers have linear terms, where they may."""
    if options["rho"] == 1.0 and options.get("propositions") != "given" and chance(rng, 0.5):
        return options | {"linear_terms": True}
    return options


def _rule_classifier(rng, traits, cv=False):
    rows = draw_rows(rng, traits, draw_size(rng), kinds=("array", "pandas", "polars"))
    y = draw_labels(rng, traits, rows, 4)
    options = _rule_options(rng, traits, rows) | {"class_weight": draw_class_weight(rng, y)}
    fit = {"X": rows.X, "y": y, "sample_weight": draw_weight(rng, traits, len(y))}
    options |= {"C": power(rng, -3, 3)} | _further_rules(rng, rows, ["logistic"])
    if "loss" not in options and chance(rng, 0.3):
        options["loss"] = "logistic"
    if cv:
        del options["C"]
        options = {"rho": 1.0, "loss": "logistic"} | options if chance(rng, 0.5) else options
        options = _with_linear_terms(rng, options)
        model = kw.RuleEnsembleClassifierCV(**options, Cs=[0.1, 10.0], cv=2)
    else:
        model = kw.RuleEnsembleClassifier(**_with_linear_terms(rng, options))
    return Instance(0, model, fit, rows.new)


def _rule_regressor(rng, traits, cv=False):
    rows = draw_rows(rng, traits, draw_size(rng), kinds=("array", "pandas", "polars"))
    y = draw_targets(rng, traits, rows)
    options = _rule_options(rng, traits, rows) | _loss_options(rng, y)
    fit = {"X": rows.X, "y": y, "sample_weight": draw_weight(rng, traits, len(y))}
    options |= {"C": power(rng, -3, 3)} | _further_rules(rng, rows, ["square"])
    if cv:
        del options["C"]
        options = _with_linear_terms(rng, options)
        model = kw.RuleEnsembleRegressorCV(**options, Cs=[0.1, 10.0], cv=2)
    else:
        model = kw.RuleEnsembleRegressor(**_with_linear_terms(rng, options))
    return Instance(0, model, fit, rows.new)


def _pairwise(rng, traits):
    rows = draw_rows(rng, traits, draw_size(rng), kinds=("array", "sparse", "pandas"))
    n = len(rows.Z) - N_NEW
    pairs = rng.integers(n, size=(int(rng.integers(4, 200)), 2))
    pairs[:, 1] = np.where(pairs[:, 0] == pairs[:, 1], (pairs[:, 1] + 1) % n, pairs[:, 1])
    labels = np.where(chance(rng, 0.5) ^ (pairs[:, 0] % 2 == pairs[:, 1] % 2), 1, -1)
    options = {
        "kernels": draw_kernels(rng, traits, rows),
        "lam": None if chance(rng, 0.3) else power(rng, -6, 3),
        "correction": str(rng.choice(["naive", "naive", "noise", "nonneg"])),
        "fit_intercept": chance(rng, 0.5),
        "random_state": 0,
    }
    if options["correction"] != "naive" and chance(rng, 0.8):
        options["reliability"] = tuple(rng.uniform(0.6, 1.0, 2).tolist())
    if chance(rng, 0.2):
        options |= {"method": "shrink", "kernels": None, "n_clusters": 2, "n_resample": 2}
        options["correction"] = "noise"
        rows.X = abs(rows.X) if rows.kind != "pandas" else rows.X[["x0"]].abs()
    fit = {"X": rows.X, "pairs": pairs, "labels": labels}
    return Instance(0, kw.PairwiseKernelLearner(**options), fit, rows.new)


def _clustering(rng, traits):
    rows = draw_rows(rng, traits, draw_size(rng), kinds=("array", "sparse"), gaps=False)
    count = int(rng.integers(1, 5))
    model = kw.KernelSpectralClustering(count, n_init=2, random_state=0)
    return Instance(0, model, {"X": rows.X}, rows.new)


class Ball(BaseEstimator):
    """`enclosing_ball` as an estimator."""

    def __init__(self, kernel=None, tol=1e-8):
        self.kernel, self.tol = kernel, tol

    def fit(self, X):
        self.gram = self.kernel(X)
        ball = kw.enclosing_ball(self.gram, tol=self.tol)
        self.squared_radius_, self.centre_, self.gap_ = ball.squared_radius, ball.centre, ball.gap
        return self


def _ball(rng, traits):
    rows = draw_rows(rng, traits, draw_size(rng), gaps=False)
    model = Ball(draw_kernel(rng, rows), 10.0 ** -rng.integers(3, 9))
    return Instance(0, model, {"X": rows.X}, rows.new)


ESTIMATORS = {  # how often each is drawn, and how
    "MKLClassifier": (22, _mkl_classifier),
    "MKLRegressor": (22, _mkl_regressor),
    "RadiusMKLClassifier": (8, _radius),
    "RadiusKernelClassifier": (3, _radius_kernel),
    "NoisyLabelMKLClassifier": (10, _noisy),
    "NoiseTolerantKernelClassifier": (5, _noise_tolerant),
    "MetricKernelClassifier": (4, partial(_metric, kind=kw.MetricKernelClassifier)),
    "MetricKernelRegressor": (4, partial(_metric, kind=kw.MetricKernelRegressor)),
    "SumProductMKLClassifier": (8, _sum_product),
    "HierarchicalMKLClassifier": (6, _hierarchical_classifier),
    "HierarchicalMKLRegressor": (6, _hierarchical_regressor),
    "RuleEnsembleClassifier": (6, _rule_classifier),
    "RuleEnsembleRegressor": (6, _rule_regressor),
    "RuleEnsembleClassifierCV": (1, partial(_rule_classifier, cv=True)),
    "RuleEnsembleRegressorCV": (1, partial(_rule_regressor, cv=True)),
    "PairwiseKernelLearner": (4, _pairwise),
    "KernelSpectralClustering": (2, _clustering),
    "Ball": (3, _ball),
}
