"""Registry of the data sets: column types, row selections and OpenML copies."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One data set; the file is ``<name>.csv.gz``, or ``<name>.npz`` for a graph."""

    shape: tuple[int, int]  # all rows; a table from OpenML must have it too
    description: str
    openml: int | None = None
    verified: bool = True  # False: the id is from memory, or its columns are
    openml_target: str | None = None  # where OpenML's own choice of target is another column
    openml_extra: tuple[str, ...] = ()  # columns that only OpenML's copy carries
    categorical: tuple[str, ...] | None = ()  # None: every column that is not in `numeric`
    numeric: tuple[str, ...] = ()
    complete: bool = False  # recipe: rows with missing values are left out
    without: tuple[tuple[str, tuple[str, ...]], ...] = ()  # recipe: (column, values left out)
    graph: bool = False  # recipe of every graph: links from a paper to itself are left out

    def categorical_columns(self, columns: list[str]) -> tuple[str, ...]:
        """Return the columns that hold categories, in the order of ``columns``."""
        if self.categorical is None:
            return tuple(c for c in columns if c not in self.numeric)
        return self.categorical


_HEART_NUMERIC = ("age", "trestbps", "chol", "thalach", "oldpeak", "ca")

# Sets without an id: no copy is known (fourclass, german_numer, splice_train, splice_test,
# mammographic_mass, the graphs), or the one known is another problem: OpenML 191 is wpbc as a
# regression on time, 335 is monks3 with both halves in one table.
REGISTRY: dict[str, Entry] = {
    "balance_scale": Entry((625, 4), "Which way a balance tips, from weights and distances.", 11),
    "blood_transfusion": Entry(
        (748, 4), "Whether a blood donor gave again; 0 (did not) is the papers' positive.", 1464
    ),
    "breast_cancer_ljubljana": Entry(
        (286, 9),
        "Recurrence of breast cancer (M. Zwitter and M. Soklic, Ljubljana).",
        13,
        categorical=None,
        complete=True,
    ),
    "breast_cancer_wisconsin": Entry(
        (699, 9), "Benign or malignant, from nine cytology grades; 16 rows lack one.", 15
    ),
    "car": Entry((1728, 6), "Acceptability of a car.", 40975, categorical=None),
    "citeseer": Entry(
        (3312, 3703), "Subject of computer science papers: words and citations.", graph=True
    ),
    "cmc": Entry(
        (1473, 9),
        "Contraceptive method choice.",
        23,
        categorical=None,
        numeric=("wifes_age", "number_of_children_ever_born"),
    ),
    "colon_cancer": Entry(
        (62, 2000),
        "Tumour or normal tissue from 2000 raw gene expressions (OpenML: normalised).",
        1432,
    ),
    "cora": Entry(
        (2708, 1433), "Subject of machine learning papers: words and citations.", graph=True
    ),
    "ecoli": Entry(
        (336, 7),
        "Where a protein of E. coli is found in the cell.",
        39,
        without=(("target", ("imL", "imS")),),
    ),
    "fourclass": Entry((862, 2), "Two interleaved classes in the plane."),
    "german_numer": Entry((1000, 24), "Credit risk, the form with 24 numbers; 1 is bad credit."),
    "glass": Entry((214, 9), "Kind of glass from its chemistry.", 41),
    "haberman": Entry(
        (306, 3),
        "Survival after breast cancer surgery.",
        43,
        categorical=("patients_year_of_operation",),
    ),
    "heart_c_weka": Entry(
        (303, 13),
        "Heart disease, Cleveland, two classes.",
        49,
        categorical=None,
        numeric=_HEART_NUMERIC,
        complete=True,
    ),
    "heart_cleveland": Entry(
        (303, 13),
        "Heart disease, Cleveland, five grades; 0 is healthy.",
        194,
        verified=False,
        categorical=None,
        numeric=_HEART_NUMERIC,
    ),
    "heart_statlog": Entry(
        (270, 13),
        "Heart disease, Statlog form.",
        53,
        categorical=(
            "sex",
            "chest",
            "fasting_blood_sugar",
            "resting_electrocardiographic_results",
            "exercise_induced_angina",
            "thal",
        ),
    ),
    "ionosphere": Entry((351, 34), "Good or bad radar returns; column a02 is constant.", 59),
    "iris": Entry((150, 4), "Species of iris; scikit-learn's copy corrects rows 35 and 38.", 61),
    "liver_bupa": Entry(
        (345, 6),
        "Liver disorders, BUPA; the target is the selector field the papers used.",
        8,
        openml_target="selector",
    ),
    "lymph": Entry(
        (148, 18),
        "Lymphography (M. Zwitter and M. Soklic, Ljubljana).",
        10,
        categorical=None,
        numeric=("lym_nodes_dimin", "lym_nodes_enlar", "no_of_nodes_in"),
        without=(("target", ("normal",)),),
    ),
    "mammographic_mass": Entry(
        (961, 5),
        "Severity of a mammographic mass.",
        categorical=None,
        numeric=("age",),
        complete=True,
        without=(("bi_rads", ("55",)),),  # no grade: they end at 6
    ),
    "monks3_test": Entry((432, 6), "Third Monk's problem, the given test rows.", categorical=None),
    "monks3_train": Entry(
        (122, 6), "Third Monk's problem, the given training rows, 5 % noise.", categorical=None
    ),
    "musk1": Entry(
        (476, 166),
        "Musk or not, one row per shape of a molecule; 1 is musk.",
        40665,
        verified=False,
        openml_extra=("id", "molecule_name", "conformation_name"),
    ),
    "pima_diabetes": Entry(
        (768, 8), "Diabetes among Pima women; zeros in five columns hide missing values.", 37
    ),
    "sonar": Entry((208, 60), "Mine or rock from sonar returns.", 40),
    "splice_test": Entry((2175, 60), "Splice junctions, LIBSVM test rows, bases as numbers."),
    "splice_train": Entry((1000, 60), "Splice junctions, LIBSVM training rows, bases as numbers."),
    "splice_uci": Entry(
        (3190, 60),
        "Splice junctions, bases as letters, three classes.",
        46,
        openml_extra=("instance_name",),
        categorical=None,
    ),
    "tae": Entry(
        (151, 5),
        "Rating of teaching assistants.",
        48,
        categorical=None,
        numeric=("class_size",),
    ),
    "tic_tac_toe": Entry((958, 9), "Final boards; positive is a win for x.", 50, categorical=None),
    "vote": Entry(
        (435, 16), "Party from 16 votes, US House 1984.", 56, categorical=None, complete=True
    ),
    "wdbc": Entry((569, 30), "Benign (B) or malignant (M), 30 shape measurements.", 1510),
    "wpbc": Entry((198, 33), "Whether breast cancer recurs; time is a column.", complete=True),
    "yeast": Entry((1484, 8), "Where a protein of yeast is found in the cell.", 181),
    "zoo": Entry((101, 16), "Class of an animal.", 62, openml_extra=("animal",), categorical=None),
}
