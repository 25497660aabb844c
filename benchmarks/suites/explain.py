"""What exact Shapley values cost, beside estimates of shap and the explainer of shapiq."""

from __future__ import annotations

from benchmarks.measure import Case, Run
from benchmarks.tables import Table, number, seconds

from . import Session

_ROWS = {"joint": 50, "independent": 50, "functional": 50, "functional, shapiq": 5}


def run(session: Session) -> None:
    """Measure time a row and errors beside peers, and the memory of a large model."""
    for d in (10,) if session.quick else (10, 30):
        session.tables.append(_peers(session, d, n=100 if session.quick else 500))
    session.tables.append(_memory(session, *(1000, 20, 100) if session.quick else (5000, 100, 500)))


def _peers(session: Session, d: int, n: int) -> Table:
    table = Table(
        f"Explanations: Gaussian, {n} rows, {d} columns, background of 100 rows",
        ["values", "rows", "CPU ms a row", "times ours", "largest error", "mean error"],
    )
    names = ["joint", "KernelExplainer, SVR", "KernelExplainer, MKLRegressor"]
    names += ["PermutationExplainer, SVR", "PermutationExplainer, MKLRegressor"]
    names += ["independent", "functional", "functional, shapiq"]
    cases = {
        name: Case(
            "explain:values",
            {"name": name, "n": n, "d": d, "m": 100, "rows": _ROWS.get(name, 2)},
            timeout=900.0,
        )
        for name in names
    }
    runs = session.measure(f"explanations, {d} columns", cases, repeats=2)
    for name, one in runs.items():
        if not one.ok:
            table.add(name, one.problem)
            continue
        ours = runs["functional" if name.startswith("functional") else "joint"]
        errors = [number(one.fact(f), ".1g") for f in ("largest", "mean")]
        ratio = number(_a_row(one) / _a_row(ours), ".3g") if ours.ok else ""
        table.add(name, one.fact("rows"), seconds(1000 * _a_row(one)), ratio, *errors)
    table.notes.append(
        "One thread. Peers have their default settings and explain fewer rows; times are divided "
        "by the number of rows. shap's explainers call `predict` of scikit-learn's SVR, or of "
        "MKLRegressor with the same support vectors, which is faster. Errors are relative to the "
        "largest and to the mean size of exact values. Joint values come with standard errors. "
        "The functional game is that of shapiq's product-kernel explainer, compared with ours in "
        "the same game; independent values are those of another game than joint ones."
    )
    return table


def _a_row(one: Run) -> float:
    return one.cpu / float(one.fact("rows"))


def _memory(session: Session, n: int, d: int, m: int) -> Table:
    table = Table(
        f"Explanations: memory, {n} terms, {d} columns, background of {m} rows",
        ["rows", "CPU s", "added MB", "nodes", "efficiency"],
    )
    cases = {"one row": Case("explain:large", {"n": n, "d": d, "m": m})}
    for name, one in session.measure("memory of explanations", cases, repeats=1).items():
        if not one.ok:
            table.add(name, one.problem)
            continue
        added = number(one.added / 1e6, ".0f")
        gap = number(one.fact("efficiency"), ".0e")
        table.add(name, seconds(one.cpu), added, one.fact("nodes"), gap)
    table.notes.append(
        "Factors of all pairs of terms and background rows would take "
        f"{8 * n * d * m / 1e9:.1f} GB. Efficiency: what base value and values together lack of "
        "the prediction, relative to the sum of the sizes of the coefficients."
    )
    return table
