"""The real files, where they are at hand: sizes, classes and the rows the papers use."""

import os

import pytest

from kernelweave.datasets import list_datasets, load_dataset
from kernelweave.datasets.registry import REGISTRY

pytestmark = pytest.mark.skipif(
    not os.environ.get("KERNELWEAVE_DATA"),
    reason="KERNELWEAVE_DATA names no folder with the real data sets",
)

# shape, rows with missing values, rows of each class
FILES = {
    "balance_scale": ((625, 4), 0, {"B": 49, "L": 288, "R": 288}),
    "blood_transfusion": ((748, 4), 0, {"0": 570, "1": 178}),
    "breast_cancer_ljubljana": (
        (286, 9),
        9,
        {"no-recurrence-events": 201, "recurrence-events": 85},
    ),
    "breast_cancer_wisconsin": ((699, 9), 16, {"benign": 458, "malignant": 241}),
    "car": ((1728, 6), 0, {"acc": 384, "good": 69, "unacc": 1210, "vgood": 65}),
    "citeseer": (
        (3312, 3703),
        0,
        {"AI": 249, "Agents": 596, "DB": 701, "HCI": 508, "IR": 668, "ML": 590},
    ),
    "cmc": ((1473, 9), 0, {"1": 629, "2": 333, "3": 511}),
    "colon_cancer": ((62, 2000), 0, {"normal": 22, "tumor": 40}),
    "cora": (
        (2708, 1433),
        0,
        {
            "Case_Based": 298,
            "Genetic_Algorithms": 418,
            "Neural_Networks": 818,
            "Probabilistic_Methods": 426,
            "Reinforcement_Learning": 217,
            "Rule_Learning": 180,
            "Theory": 351,
        },
    ),
    "ecoli": (
        (336, 7),
        0,
        {"cp": 143, "im": 77, "imL": 2, "imS": 2, "imU": 35, "om": 20, "omL": 5, "pp": 52},
    ),
    "fourclass": ((862, 2), 0, {"-1": 555, "1": 307}),
    "german_numer": ((1000, 24), 0, {"-1": 700, "1": 300}),
    "glass": (
        (214, 9),
        0,
        {
            "build wind float": 70,
            "build wind non-float": 76,
            "containers": 13,
            "headlamps": 29,
            "tableware": 9,
            "vehic wind float": 17,
        },
    ),
    "haberman": ((306, 3), 0, {"1": 225, "2": 81}),
    "heart_c_weka": ((303, 13), 7, {"<50": 165, ">50_1": 138}),
    "heart_cleveland": ((303, 13), 6, {"0": 164, "1": 55, "2": 36, "3": 35, "4": 13}),
    "heart_statlog": ((270, 13), 0, {"absent": 150, "present": 120}),
    "ionosphere": ((351, 34), 0, {"b": 126, "g": 225}),
    "iris": ((150, 4), 0, {"Iris-setosa": 50, "Iris-versicolor": 50, "Iris-virginica": 50}),
    "liver_bupa": ((345, 6), 0, {"1": 145, "2": 200}),
    "lymph": ((148, 18), 0, {"fibrosis": 4, "malign_lymph": 61, "metastases": 81, "normal": 2}),
    "mammographic_mass": ((961, 5), 131, {"0": 516, "1": 445}),
    "monks3_test": ((432, 6), 0, {"0": 204, "1": 228}),
    "monks3_train": ((122, 6), 0, {"0": 62, "1": 60}),
    "musk1": ((476, 166), 0, {"0": 269, "1": 207}),
    "pima_diabetes": ((768, 8), 0, {"tested_negative": 500, "tested_positive": 268}),
    "sonar": ((208, 60), 0, {"Mine": 111, "Rock": 97}),
    "splice_test": ((2175, 60), 0, {"-1": 1044, "1": 1131}),
    "splice_train": ((1000, 60), 0, {"-1": 483, "1": 517}),
    "splice_uci": ((3190, 60), 0, {"EI": 767, "IE": 768, "N": 1655}),
    "tae": ((151, 5), 0, {"1": 49, "2": 50, "3": 52}),
    "tic_tac_toe": ((958, 9), 0, {"negative": 332, "positive": 626}),
    "vote": ((435, 16), 203, {"democrat": 267, "republican": 168}),
    "wdbc": ((569, 30), 0, {"B": 357, "M": 212}),
    "wpbc": ((198, 33), 4, {"N": 151, "R": 47}),
    "yeast": (
        (1484, 8),
        0,
        {
            "CYT": 463,
            "ERL": 5,
            "EXC": 35,
            "ME1": 44,
            "ME2": 51,
            "ME3": 163,
            "MIT": 244,
            "NUC": 429,
            "POX": 20,
            "VAC": 30,
        },
    ),
    "zoo": (
        (101, 16),
        0,
        {
            "amphibian": 4,
            "bird": 20,
            "fish": 13,
            "insect": 8,
            "invertebrate": 10,
            "mammal": 41,
            "reptile": 5,
        },
    ),
}

# rows and class counts the papers print, where they differ from the file's
PAPER = {
    "breast_cancer_ljubljana": (277, (81, 196)),
    "ecoli": (332, None),
    "heart_c_weka": (296, (136, 160)),
    "lymph": (146, None),
    "mammographic_mass": (829, (402, 427)),
    "vote": (232, (108, 124)),
    "wpbc": (194, None),
}


def test_every_data_set_is_checked():
    assert sorted(FILES) == list_datasets()


@pytest.mark.parametrize("name", FILES)
def test_whole_file(name):
    shape, n_missing, classes = FILES[name]
    data = load_dataset(name, rows="all")
    assert data.X.shape == shape == REGISTRY[name].shape
    counts = {c: int((data.y == c).sum()) for c in set(data.y)}
    assert counts == classes
    if not REGISTRY[name].graph:
        assert data.X.isna().any(axis=1).sum() == n_missing
        assert set(data.X.select_dtypes("category")) == set(data.categorical)
        assert len(load_dataset(name, rows="complete").y) == shape[0] - n_missing


@pytest.mark.parametrize("name", FILES)
def test_rows_of_the_papers(name):
    data = load_dataset(name)
    n_rows, counts = PAPER.get(name, (FILES[name][0][0], None))
    assert data.X.shape == (n_rows, FILES[name][0][1])
    if counts:
        assert sorted(data.y.value_counts()) == sorted(counts)


@pytest.mark.parametrize(
    ("name", "n_all", "n_paper", "n_ones"),
    [("cora", 5429, 5429, 49216), ("citeseer", 4715, 4591, 105165)],
)
def test_links(name, n_all, n_paper, n_ones):
    assert len(load_dataset(name, rows="all").edges) == n_all
    assert len(load_dataset(name).edges) == n_paper
    assert load_dataset(name).X.nnz == n_ones
