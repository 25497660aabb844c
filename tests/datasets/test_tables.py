"""Reading, recipes and fallbacks, on small made-up files of the documented form."""

import dataclasses
import gzip
import sys
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch

from kernelweave.datasets import Dataset, load_dataset
from kernelweave.errors import DataError, InputError, InputTypeError

MAMMOGRAPHIC = """\
bi_rads,age,shape,margin,density,target
5,67,3,5,3,1
4,43,1,1,,1
55,46,4,5,3,1
,50,2,1,2,0
4,28.5,None,1,3,0
"""


@pytest.fixture(autouse=True)
def _no_outside_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise URLError("no network in tests")

    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return path


def write_graph(folder: Path, **changes: object) -> None:
    arrays = {
        "indptr": [0, 2, 3, 3],
        "indices": [0, 3, 1],
        "shape": [3, 4],
        "labels": ["AI", "DB", "AI"],
        "edges": np.array([[0, 1], [2, 2], [1, 0]], dtype=np.int32),
    }
    np.savez(folder / "citeseer.npz", **{**arrays, **changes})


class TestTables:
    def test_types_follow_the_registry_not_the_looks(self, tmp_path):
        write(tmp_path, "mammographic_mass", MAMMOGRAPHIC)
        data = load_dataset("mammographic_mass", rows="all", data_home=tmp_path)
        assert data.X.shape == (5, 5)
        assert data.categorical == ("bi_rads", "shape", "margin", "density")
        assert data.X["age"].tolist() == [67, 43, 46, 50, 28.5]
        assert list(data.X["bi_rads"].cat.categories) == ["4", "5", "55"]
        assert data.X["density"].isna().tolist() == [False, True, False, False, False]
        assert data.y.tolist() == ["1", "1", "1", "0", "0"]
        assert data.y.name == "target"
        assert data.edges is None

    def test_only_an_empty_cell_is_missing(self, tmp_path):
        write(tmp_path, "mammographic_mass", MAMMOGRAPHIC)
        data = load_dataset("mammographic_mass", rows="all", data_home=tmp_path)
        assert data.X["shape"].tolist() == ["3", "1", "4", "2", "None"]

    @pytest.mark.parametrize(
        ("rows", "ages"), [("all", [67, 43, 46, 50, 28.5]), ("complete", [67, 46, 28.5])]
    )
    def test_rows(self, tmp_path, rows, ages):
        write(tmp_path, "mammographic_mass", MAMMOGRAPHIC)
        data = load_dataset("mammographic_mass", rows=rows, data_home=tmp_path)
        assert data.X["age"].tolist() == ages
        assert data.X.index.tolist() == data.y.index.tolist() == list(range(len(ages)))

    def test_paper_rows_are_complete_and_without_listed_values(self, tmp_path):
        write(tmp_path, "mammographic_mass", MAMMOGRAPHIC)
        data = load_dataset("mammographic_mass", data_home=tmp_path)
        assert data.X["age"].tolist() == [67, 28.5]
        assert list(data.X["bi_rads"].cat.categories) == ["4", "5"]

    def test_paper_rows_without_classes(self, tmp_path):
        header = "mcg,gvh,lip,chg,aac,alm1,alm2,target\n"
        cells = "0.5,0.25,0.48,0.5,0.5,0.25,,"
        write(tmp_path, "ecoli", header + "".join(f"{cells}{c}\n" for c in ("cp", "imL", "imS")))
        assert load_dataset("ecoli", data_home=tmp_path).y.tolist() == ["cp"]
        assert load_dataset("ecoli", data_home=tmp_path).X["alm2"].isna().all()
        assert len(load_dataset("ecoli", rows="all", data_home=tmp_path).y) == 3
        assert len(load_dataset("ecoli", rows="complete", data_home=tmp_path).y) == 0

    def test_data_home_comes_before_the_variable(self, tmp_path, monkeypatch):
        near, far = tmp_path / "near", tmp_path / "far"
        near.mkdir(), far.mkdir()
        write(near, "fourclass", "x1,x2,target\n1,2,-1\n")
        write(far, "fourclass", "x1,x2,target\n3,4,1\n")
        write(far, "wdbc", "radius_mean,target\n5,M\n")
        monkeypatch.setenv("KERNELWEAVE_DATA", str(far))
        assert load_dataset("fourclass").y.tolist() == ["1"]
        assert load_dataset("fourclass", data_home=str(near)).y.tolist() == ["-1"]
        assert load_dataset("wdbc", data_home=near).X.shape == (1, 1)

    def test_a_dataset_is_frozen_prints_short_and_names_its_source(self, tmp_path):
        write(tmp_path, "fourclass", "x1,x2,target\n1,2,-1\n")
        data = load_dataset("fourclass", data_home=tmp_path)
        assert isinstance(data, Dataset)
        assert "Source: fourclass.csv.gz." in data.description
        assert "DataFrame" not in repr(data)
        with pytest.raises(dataclasses.FrozenInstanceError):
            data.name = "other"


class TestGraphs:
    def test_words_labels_and_links(self, tmp_path):
        write_graph(tmp_path)
        data = load_dataset("citeseer", rows="all", data_home=tmp_path)
        assert data.X.format == "csr"
        np.testing.assert_array_equal(
            data.X.toarray(), [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]], strict=False
        )
        assert data.y.tolist() == ["AI", "DB", "AI"]
        assert data.edges.tolist() == [[0, 1], [2, 2], [1, 0]]
        assert data.categorical == ()

    def test_paper_links_have_no_loops(self, tmp_path):
        write_graph(tmp_path)
        assert load_dataset("citeseer", data_home=tmp_path).edges.tolist() == [[0, 1], [1, 0]]

    @pytest.mark.parametrize(
        "changes",
        [
            {"labels": ["AI"]},
            {"edges": np.array([[0, 3]])},
            {"edges": np.array([0, 1])},
            {"indices": [0, 9, 1]},
            {"shape": [3]},
            {"labels": np.array([object()] * 3)},
        ],
    )
    def test_a_broken_graph_is_refused(self, tmp_path, changes):
        write_graph(tmp_path, **changes)
        with pytest.raises(DataError, match="cannot be read as a graph") as caught:
            load_dataset("citeseer", data_home=tmp_path)
        assert caught.value.__cause__ is not None

    def test_no_copy_elsewhere(self):
        with pytest.raises(DataError, match=r"KERNELWEAVE_DATA to a folder that holds cora\.npz"):
            load_dataset("cora")

    def test_works_without_pandas(self, tmp_path, monkeypatch):
        write_graph(tmp_path)
        monkeypatch.setitem(sys.modules, "pandas", None)
        assert load_dataset("citeseer", data_home=tmp_path).X.shape == (3, 4)


class TestErrors:
    def test_unknown_name_lists_near_ones(self):
        with pytest.raises(DataError, match="'heart_statlog'"):
            load_dataset("heart-statlog")
        with pytest.raises(DataError, match="list_datasets"):
            load_dataset("qqqqqq")
        with pytest.raises(InputTypeError, match="name must be a string"):
            load_dataset(["iris"])

    def test_rows_and_folders_are_checked(self, tmp_path, monkeypatch):
        with pytest.raises(InputError, match="rows must be 'paper', 'all' or 'complete'"):
            load_dataset("iris", rows="some")
        with pytest.raises(DataError, match="data_home must name a folder"):
            load_dataset("iris", data_home=tmp_path / "nowhere")
        with pytest.raises(InputTypeError, match="data_home must be a path"):
            load_dataset("iris", data_home=3)
        monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path / "nowhere"))
        with pytest.raises(DataError, match=r"\$KERNELWEAVE_DATA must name a folder"):
            load_dataset("iris")

    @pytest.mark.parametrize(
        ("text", "match"),
        [
            ("x1,x2,label\n1,2,-1\n", "must be 'target'"),
            ("x1,x2,target\n1,two,-1\n", "'x2' of fourclass.csv.gz must hold numbers"),
            ("x1,x2,target\n1,2,\n", "a row without a target"),
            ("", "cannot be read as a table"),
        ],
    )
    def test_a_wrong_file_is_explained(self, tmp_path, text, match):
        write(tmp_path, "fourclass", text)
        with pytest.raises(DataError, match=match):
            load_dataset("fourclass", data_home=tmp_path)

    def test_a_cut_off_file_is_explained(self, tmp_path):
        path = write(tmp_path, "fourclass", "x1,x2,target\n" + "1,2,-1\n" * 50)
        path.write_bytes(path.read_bytes()[:-12])
        with pytest.raises(DataError, match="cannot be read as a table"):
            load_dataset("fourclass", data_home=tmp_path)

    def test_a_lacking_categorical_column_is_named(self, tmp_path):
        write(tmp_path, "haberman", "age,target\n30,1\n")
        with pytest.raises(DataError, match="lacks the column 'patients_year_of_operation'"):
            load_dataset("haberman", data_home=tmp_path)

    def test_pandas_is_asked_for(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(DataError, match=r'pip install "kernelweave\[io\]"') as caught:
            load_dataset("iris")
        assert isinstance(caught.value.__cause__, ImportError)


class TestFallbacks:
    def test_scikit_learn_serves_iris_and_wdbc(self):
        iris, wdbc = load_dataset("iris"), load_dataset("wdbc")
        assert iris.X.columns.tolist() == "sepallength sepalwidth petallength petalwidth".split()
        assert iris.y.value_counts().to_dict() == dict.fromkeys(
            ("Iris-setosa", "Iris-versicolor", "Iris-virginica"), 50
        )
        assert wdbc.y.value_counts().to_dict() == {"B": 357, "M": 212}
        assert wdbc.X["concave_points_worst"].iloc[0] == 0.2654
        assert "scikit-learn" in wdbc.description

    def test_without_network_the_error_says_what_to_set(self):
        with pytest.raises(
            DataError, match=r"set data_home .* holds ionosphere\.csv\.gz"
        ) as caught:
            load_dataset("ionosphere")
        assert isinstance(caught.value.__cause__, URLError)

    def test_without_an_id_the_error_says_what_to_set(self):
        with pytest.raises(DataError, match="OpenML is not known to have it; set data_home"):
            load_dataset("fourclass")

    def test_openml_names_and_codes_are_brought_to_the_form_of_the_files(self, monkeypatch):
        n = 306
        frame = pd.DataFrame(
            {
                "Age_of_patient_at_time_of_operation": np.arange(n),
                "Patients-year_of_operation": np.full(n, 64.0),
                "Number_of_positive_axillary_nodes_detected": np.zeros(n),
            }
        )
        asked = {}

        def fetch_openml(**arguments: object) -> Bunch:
            asked.update(arguments)
            return Bunch(data=frame, target=pd.Series(["1", "2"] * (n // 2), dtype="category"))

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
        data = load_dataset("haberman")
        assert asked["data_id"] == 43
        assert asked["target_column"] == "default-target"
        assert list(data.X["patients_year_of_operation"].cat.categories) == ["64"]
        assert set(data.y) == {"1", "2"}
        assert "Source: OpenML 43." in data.description

    def test_openml_own_columns_are_dropped(self, monkeypatch):
        columns = ["Animal", *(f"f{i}" for i in range(16))]
        frame = pd.DataFrame("true", index=range(101), columns=columns)
        answer = Bunch(data=frame, target=np.array(["fish"] * 101))
        monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: answer)
        assert load_dataset("zoo").X.columns.tolist() == columns[1:]

    def test_sparse_openml_data_and_numeric_labels(self, monkeypatch):
        names = [f"X{i}" for i in range(2000)]
        answer = Bunch(
            data=csr_matrix((62, 2000)), target=np.repeat([-1.0, 1.0], 31), feature_names=names
        )
        monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: answer)
        data = load_dataset("colon_cancer")
        assert data.X.shape == (62, 2000)
        assert set(data.y) == {"-1", "1"}

    def test_another_target_is_asked_for(self, monkeypatch):
        def fetch_openml(**arguments: object) -> Bunch:
            assert arguments["target_column"] == "selector"
            return Bunch(data=pd.DataFrame(np.ones((345, 6))), target=pd.Series([1.0] * 345))

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
        assert load_dataset("liver_bupa").y.iloc[0] == "1"

    def test_a_table_of_another_size_is_refused(self, monkeypatch):
        answer = Bunch(data=pd.DataFrame(np.ones((3, 34))), target=pd.Series(["g"] * 3))
        monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: answer)
        with pytest.raises(DataError, match="OpenML 59 is not the expected ionosphere"):
            load_dataset("ionosphere")
