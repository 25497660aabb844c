"""Further estimators: banks for many rows at few rows, searches, annotators and combinations."""

from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import kernelweave as kw
from kernelweave.banks import build, on_demand, row_source
from kernelweave.banks.nystroem import build as large
from kernelweave.inner import parts, systems

from .instances import (
    WORDS,
    Instance,
    _classification,
    _flat_options,
    _in_units,
    _loss_options,
    _noisy,
    _radius,
    _sum_product,
    chance,
    draw_class_weight,
    draw_kernels,
    draw_labels,
    draw_rows,
    draw_size,
    draw_targets,
    draw_weight,
    power,
)


@contextmanager
def computed():
    """Let a few rows be so many that kernels are computed on demand, in parts of the rows."""
    few = replace(on_demand.OPTIONS, stored_rows=6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "MANY_ROWS", 4)
        patch.setattr(large, "TOO_MANY_ROWS", 4)
        patch.setattr(build, "_SMALL", 4)
        patch.setattr(large, "_some_high_rank", lambda *arguments: True)
        patch.setattr(systems, "MAX_FREE", 4)
        patch.setattr(parts, "_OPTIONS", replace(parts._OPTIONS, least=8, most=20))
        patch.setattr(on_demand, "OPTIONS", few)
        yield


@contextmanager
def landmarks():
    """Let a few rows be so many that kernels are held as Nystroem features, in several blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "MANY_ROWS", 4)
        patch.setattr(large, "_MOST_FEATURES", 1.0)
        patch.setattr(large, "_some_high_rank", lambda *arguments: False)
        patch.setattr(row_source, "_BLOCK_BYTES", 20_000)
        yield


def forced(kind, bank, name):
    """Return a class that fits as ``kind`` does with large n."""

    def fit(self, X, y, sample_weight=None):
        with bank():
            return kind.fit(self, X, y, sample_weight)

    return type(name, (kind,), {"fit": fit, "__doc__": f"`{kind.__name__}` as with large n."})


OnDemandClassifier = forced(kw.MKLClassifier, computed, "OnDemandClassifier")
OnDemandRegressor = forced(kw.MKLRegressor, computed, "OnDemandRegressor")
OnDemandRadius = forced(kw.RadiusMKLClassifier, computed, "OnDemandRadius")
OnDemandNoisy = forced(kw.NoisyLabelMKLClassifier, computed, "OnDemandNoisy")
OnDemandStructure = forced(kw.SumProductMKLClassifier, computed, "OnDemandStructure")
NystroemClassifier = forced(kw.MKLClassifier, landmarks, "NystroemClassifier")
NystroemRegressor = forced(kw.MKLRegressor, landmarks, "NystroemRegressor")


def _flat_classifier(rng, traits, kind, losses):
    rows = draw_rows(rng, traits, draw_size(rng), kinds=("array", "sparse", "pandas", "polars"))
    y = draw_labels(rng, traits, rows)
    options = _flat_options(rng, traits, rows) | {"class_weight": draw_class_weight(rng, y)}
    options["loss"] = str(rng.choice(losses))
    fit = {"X": rows.X, "y": y, "sample_weight": draw_weight(rng, traits, len(y))}
    return Instance(0, kind(**options), fit, rows.new)


def _flat_regressor(rng, traits, kind, losses):
    rows = draw_rows(rng, traits, draw_size(rng), kinds=("array", "sparse", "pandas", "polars"))
    y = draw_targets(rng, traits, rows)
    options = _in_units(rng, _flat_options(rng, traits, rows) | _loss_options(rng, y))
    options["loss"] = str(rng.choice(losses))
    if options["loss"] == "quantile":
        options["quantile"] = [0.1, 0.5, 0.9] if chance(rng, 0.5) else float(rng.random())
    fit = {"X": rows.X, "y": y, "sample_weight": draw_weight(rng, traits, len(y))}
    return Instance(0, kind(**options), fit, rows.new)


def _as_large(rng, traits, draw, kind):
    instance = draw(rng, traits)
    instance.model = kind(**instance.model.get_params(deep=False))
    return instance


def _searched(rng, traits, draw, kind, losses):
    """Draw a search over C, of the same problems."""
    instance = draw(rng, traits, getattr(kw, kind.__name__.removesuffix("CV")), losses)
    options = {k: v for k, v in instance.model.get_params(deep=False).items() if k != "warm_start"}
    del options["C"]
    Cs = sorted({power(rng, -4, 3) for _ in range(rng.integers(1, 4))})
    instance.model = kind(**options, Cs=Cs, cv=int(rng.integers(2, 4)))
    return instance


def _annotators(rng, traits):
    rows, _, fit = _classification(rng, traits, 4)
    n, count = len(fit["y"]), int(rng.integers(1, 6))
    known = np.unique(fit["y"])
    wrong = rng.random((n, count)) < rng.uniform(0, 0.6, count)
    answers = np.where(wrong, rng.choice(known, (n, count)), fit["y"][:, None]).astype(object)
    answers[rng.random((n, count)) < rng.choice([0.0, 0.3, 0.9])] = None
    if chance(rng, 0.5):
        answers = pd.DataFrame(answers, columns=[WORDS[k] for k in range(count)])
    options = {
        "kernels": draw_kernels(rng, traits, rows),
        "kappa": float(rng.choice([0.0, 0.5, 3.0, 1e6])),
        "class_prior": "equal" if chance(rng, 0.3) else None,
        "max_iter": int(rng.choice([1, 20, 300])),
        "n_jobs": 1,
    }
    traits.append(f"{count} annotators")
    return Instance(
        0, kw.AnnotatorKernelClassifier(**options), {"X": fit["X"], "y": answers}, rows.new
    )


def _combined_classifier(rng, traits):
    rows = draw_rows(rng, traits, draw_size(rng), kinds=("array", "pandas"))
    y = draw_labels(rng, traits, rows, 4)
    members = [
        ("kernels", kw.MKLClassifier(draw_kernels(rng, traits, rows), C=power(rng, -2, 2))),
        ("metric", kw.MetricKernelClassifier(n_steps=1)),
        ("logistic", kw.MKLClassifier(loss="logistic", C=power(rng, -2, 2))),
    ][: rng.integers(1, 4)]
    model = kw.CombinedClassifier(members, weights=rng.random(len(members)).tolist())
    fit = {"X": rows.X, "y": y, "sample_weight": draw_weight(rng, traits, len(y))}
    return Instance(0, model, fit, rows.new)


def _combined_regressor(rng, traits):
    rows = draw_rows(rng, traits, draw_size(rng), kinds=("array", "pandas"))
    y = draw_targets(rng, traits, rows)
    members = [
        ("metric", kw.MetricKernelRegressor(n_steps=1)),
        ("kernels", kw.MKLRegressor(draw_kernels(rng, traits, rows), C=power(rng, -2, 2))),
    ][: rng.integers(1, 3)]
    options = {"weights": rng.random(len(members)).tolist()}
    if chance(rng, 0.5):
        traits.append("logarithm")
        offset = 1.0 + float(np.ptp(y) - y.min())
        options["logarithms"] = [(offset, power(rng, -1, 1)), None][: len(members)]
    model = kw.CombinedRegressor(members, **options)
    fit = {"X": rows.X, "y": y, "sample_weight": draw_weight(rng, traits, len(y))}
    return Instance(0, model, fit, rows.new)


LABELS = ["hinge", "squared_hinge", "logistic"]
NUMBERS = ["epsilon_insensitive", "huber", "quantile", "square"]
FURTHER = {  # how often each is drawn, and how
    "OnDemandClassifier": (4, partial(_flat_classifier, kind=OnDemandClassifier, losses=LABELS)),
    "OnDemandRegressor": (4, partial(_flat_regressor, kind=OnDemandRegressor, losses=NUMBERS)),
    "OnDemandRadius": (2, partial(_as_large, draw=_radius, kind=OnDemandRadius)),
    "OnDemandNoisy": (2, partial(_as_large, draw=_noisy, kind=OnDemandNoisy)),
    "OnDemandStructure": (2, partial(_as_large, draw=_sum_product, kind=OnDemandStructure)),
    "NystroemClassifier": (
        3,
        partial(_flat_classifier, kind=NystroemClassifier, losses=LABELS),
    ),
    "NystroemRegressor": (
        3,
        partial(_flat_regressor, kind=NystroemRegressor, losses=NUMBERS),
    ),
    "MKLClassifierCV": (
        3,
        partial(_searched, draw=_flat_classifier, kind=kw.MKLClassifierCV, losses=LABELS),
    ),
    "MKLRegressorCV": (
        3,
        partial(_searched, draw=_flat_regressor, kind=kw.MKLRegressorCV, losses=NUMBERS),
    ),
    "AnnotatorKernelClassifier": (4, _annotators),
    "CombinedClassifier": (2, _combined_classifier),
    "CombinedRegressor": (2, _combined_regressor),
}
