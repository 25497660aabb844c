"""Rule ensembles: a whole search for C beside RuleFit, and growth with rows."""

from __future__ import annotations

from benchmarks.measure import Case, Run, ratio
from benchmarks.tables import Table, megabytes, number, power, seconds

from . import Session

_OURS = "kernelweave, rho = 1.1"
_METHODS = {
    _OURS: ("rules:ours", {}),
    "kernelweave, rho = 1.5": ("rules:ours", {"rho": 1.5}),
    "kernelweave, rho = 2": ("rules:ours", {"rho": 2.0}),
    "imodels RuleFit, 7 penalties x 3 folds": ("rules:rulefit", {}),
    "imodels RuleFit, its own choice": ("rules:rulefit", {"search": "own"}),
}
_LIMIT_SEARCH, _LIMIT_ROWS = 10.0, 600.0  # seconds
_LIMIT_MEMORY, _LIMIT_BLOCKS = 4e9, 8e9
_COLUMNS = ["wall s", "CPU s", "MB added", "GB peak", "gap", "rules", "active", "solves", "acc."]


def run(session: Session) -> None:
    """Measure the search on several divisions, then growing numbers of rows."""
    splits = (0,) if session.quick else (0, 1, 2)
    table = Table(
        "Rules: tic-tac-toe, 95 training rows, 54 propositions, the whole search, one thread",
        [
            "method",
            "split",
            "wall s",
            "CPU s",
            "times ours",
            "CPU",
            "limit s",
            "F1",
            "rules",
            "C",
            "gap",
        ],
        notes=[
            "kernelweave: seven C from 1e-3 to 1e3 by three folds, macro-averaged F1, each fit to "
            "a certified gap of one per cent over all conjunctions. RuleFit: seven alpha in "
            "the same range by the same folds and score, 100 trees in each fit; or one fit that "
            "chooses among 100 penalties by itself, with 30 rules at most. Times ours: against "
            "rho = 1.1, measured in turns, also in CPU seconds. Rules include linear terms."
        ],
    )
    for split in splits:
        _search(session, table, split)
    session.tables.append(table)
    rows = (2000, 4000) if session.quick else (12_500, 25_000, 50_000, 100_000)
    for C in (1.0,) if session.quick else (1.0, 10.0):
        session.tables.append(_grow(session, rows, C))
    session.tables.append(_blocks(session))


def _search(session: Session, table: Table, split: int) -> None:
    cases = {
        name: Case(task, {"split": split, **options}) for name, (task, options) in _METHODS.items()
    }
    runs = session.measure(f"rules, tic-tac-toe split {split}", cases, repeats=_few(session))
    for name, found in runs.items():
        if not found.ok:
            table.add(name, split, found.problem)
            continue
        table.add(
            name,
            split,
            seconds(found.wall),
            seconds(found.cpu),
            "" if name == _OURS else ratio(found, runs[_OURS]),
            "" if name == _OURS else ratio(found, runs[_OURS], cpu=True),
            f"{_LIMIT_SEARCH:g}" if name == _OURS else "",
            number(found.fact("score"), ".3f"),
            found.fact("rules"),
            number(found.fact("chosen"), "g"),
            number(found.fact("gap"), ".4f"),
        )


def _grow(session: Session, rows: tuple[int, ...], C: float) -> Table:
    table = Table(
        f"Rules: growth with rows, 60 propositions, rho = 1.1, C = {C:g}, gap 1 %, one thread",
        ["n", *_COLUMNS],
        notes=[
            "Fifteen normal columns cut in two places each; three conjunctions decide the label, "
            "and one label in twenty is wrong. Limits for 100 000 rows: "
            f"{_LIMIT_ROWS:g} s and {_LIMIT_MEMORY / 1e9:g} GB. The last row is the exponent of a "
            "power law through the rows above."
        ],
    )
    walls, cpus, peaks = [], [], []
    for n in rows:
        case = Case("rules:many_rows", {"n": n, "C": C}, timeout=2 * _LIMIT_ROWS)
        title = f"rules, C = {C:g}, n = {n}"
        found: Run = session.measure(title, {"fit": case}, repeats=_few(session))["fit"]
        if not found.ok:
            table.add(n, found.problem)
            continue
        walls.append((n, found.wall))
        cpus.append((n, found.cpu))
        peaks.append((n, found.added))
        table.add(n, *_cells(found))
    table.add("exponent", power(walls), power(cpus), power(peaks))
    return table


def _blocks(session: Session) -> Table:
    n = 20_000 if session.quick else 1_000_000
    table = Table(
        f"Rules: {n} rows that come in blocks, rho = 1.1, C = 1, gap 1 %, one thread",
        ["columns", *_COLUMNS],
        notes=[
            "Blocks of 50 000 rows are made when they are asked for, and only packed propositions "
            "are kept: forty columns of truth values, nearly all rows different, or ten normal "
            "columns cut in two places each, at quantiles of about 50 000 rows. Two conjunctions "
            "decide the label, and one label in twenty is wrong. Times include making the blocks "
            f"anew in each pass. Limit of memory: {_LIMIT_BLOCKS / 1e9:g} GB."
        ],
    )
    for name, kind in (("40 truth values", "given"), ("10 normal", "auto")):
        case = Case("rules:row_blocks", {"n": n, "propositions": kind}, timeout=2 * _LIMIT_ROWS)
        found = session.measure(f"rules in blocks, {name}", {"fit": case}, repeats=1)["fit"]
        table.add(name, *(_cells(found) if found.ok else [found.problem]))
    return table


def _cells(found: Run) -> list[str]:
    return [
        seconds(found.wall),
        seconds(found.cpu),
        megabytes(found.added),
        number(found.peak / 1e9, ".2f"),
        number(found.fact("gap"), ".4f"),
        found.fact("rules"),
        found.fact("nodes"),
        found.fact("solves"),
        number(found.fact("accuracy"), ".3f"),
    ]


def _few(session: Session) -> int:
    return min(3, session.repeats)
