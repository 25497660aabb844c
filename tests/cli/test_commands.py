"""The command line, as a user meets it."""

import csv
import io
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from kernelweave import RBF, MKLClassifier, MKLRegressor, Precomputed, __version__
from kernelweave.cli import main
from kernelweave.cli.commands import COMMANDS
from kernelweave.io import load, save
from quick import first

N = 120
RANDOM = np.random.default_rng(0)
NUMBERS = RANDOM.normal(size=(N, 2)) * [1.0, 100.0] + [5.0, -300.0]
TOWN = RANDOM.choice(["Ulm", "Köln", "Bonn"], N)
SCORE = NUMBERS[:, 0] - 5 + np.sin(NUMBERS[:, 1] / 50) + (TOWN == "Ulm")
TABLE = pd.DataFrame(
    {
        "age": NUMBERS[:, 0],
        "income": NUMBERS[:, 1],
        "town": TOWN,
        "code": np.where(SCORE > 0.5, "7", "x"),
        "smoker": SCORE + NUMBERS[:, 0] > 5,
        "two": np.where(SCORE > 0, "yes", "no"),
        "three": np.array(["low", "middle", "high"])[np.digitize(SCORE, [-0.5, 1.0])],
        "grade": np.digitize(SCORE, [-0.5, 1.0]),
        "amount": 1e4 * SCORE,
    }
)
TARGETS = ["two", "three", "grade", "amount"]
FIT = ("fit", "table.csv", "--target")
# Where neither the comparison with other models nor the page matters.
ALONE = ("--method", "mkl", "--C", 1, "--test-share", 0, "--no-report")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder with the table in three forms."""
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("table.csv", index=False)
    TABLE.to_csv("table.csv.gz", index=False)
    TABLE.to_parquet("table.parquet")
    return tmp_path


def run(capsys, *argv):
    """Return exit code, standard output and standard error."""
    capsys.readouterr()
    code = main([str(arg) for arg in argv])
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "Traceback" not in err
    return code, out, err


def fails(capsys, message, *argv, code=2):
    """Check for one line on standard error."""
    found, out, err = run(capsys, *argv)
    assert err.startswith("kernelweave: error: ")
    assert err.count("\n") == 1
    assert message in err
    assert found == code
    assert out == ""


def ignoring(target):
    return [arg for name in TARGETS if name != target for arg in ("--ignore", name)]


def columns(text):
    rows = list(csv.DictReader(io.StringIO(text)))
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("file", first(1, ["table.csv", "table.csv.gz", "table.parquet"]))
@pytest.mark.parametrize("target", first(3, ["two", "grade", "amount", "three"]))
def test_fit_then_predict(folder, capsys, file, target):
    code, out, err = run(capsys, "fit", file, "--target", target, *ignoring(target))
    assert (code, err) == (0, "")
    assert out.splitlines()[1].startswith("Chosen: ")
    assert "on rows left out" in out
    assert "SVM baseline" in out
    assert "gradient boosting (reference)" in out
    model = load("table.kw")
    assert type(model[-1]).__name__.startswith(("MetricKernel", "Combined", "MKLRegressor"))
    assert hasattr(model[-1], "classes_") == (target != "amount")
    assert model[0].numeric_.tolist() == [True, True, False, False, True]
    assert model[0].n_samples_seen_ == N

    code, out, err = run(capsys, "predict", "table.kw", file)
    assert (code, err) == (0, "")
    expected = model.predict(TABLE)
    assert columns(out) == {target: [str(value) for value in expected.tolist()]}
    assert model.score(TABLE, TABLE[target]) > 0.8


def test_forms_of_a_table_give_one_model(folder, capsys):
    for file in ("table.csv", "table.parquet"):
        options = ("--C", 1, "--test-share", 0, "--quiet")
        arguments = ("--target", "two", *ignoring("two"), *options)
        assert run(capsys, "fit", file, *arguments, "--out", f"{file}.kw") == (0, "", "")
    one, other = (load(f"table.{form}.kw") for form in ("csv", "parquet"))
    assert (one.decision_function(TABLE) == other.decision_function(TABLE)).all()
    assert (one[-1].weights_ == other[-1].weights_).all()


@pytest.mark.parametrize("options", first(1, [[*ALONE], []]), ids=["mkl", "chosen"])
def test_standardising_is_part_of_the_model(folder, capsys, options):
    """Units do not matter, and raw files are predicted right."""
    other = TABLE.assign(income=TABLE["income"] * 1000 + 7)
    other.to_csv("other.csv", index=False)
    for name in ("table", "other"):
        run(
            capsys,
            "fit",
            f"{name}.csv",
            "--target",
            "two",
            *ignoring("two"),
            "--quiet",
            "--tol",
            1e-7,
            *options,
        )
    decisions = [
        np.array(
            columns(run(capsys, "predict", f"{n}.kw", f"{n}.csv", "--decision")[1])["decision yes"],
            dtype=float,
        )
        for n in ("table", "other")
    ]
    # Rounding differs, so the fits differ by what a gap of tol allows: sqrt(2 tol objective k).
    np.testing.assert_allclose(*decisions, atol=1e-4)


def test_decisions_and_probabilities(folder, capsys):
    run(capsys, *FIT, "three", *ignoring("three"), "--test-share", 0.3, "--quiet", "--no-report")
    model = load("table.kw")
    code, out, _ = run(
        capsys, "predict", "table.kw", "table.csv", "--decision", "--out", "predicted.csv"
    )
    assert (code, out) == (0, "")
    table = columns((folder / "predicted.csv").read_text(encoding="utf-8"))
    assert list(table) == ["three", "decision high", "decision low", "decision middle"]
    decision = np.array([table[f"decision {label}"] for label in model.classes_], dtype=float).T
    np.testing.assert_array_equal(decision, model.decision_function(TABLE))

    _, out, _ = run(capsys, "predict", "table.kw", "table.csv", "--proba")
    table = columns(out)
    assert list(table) == ["three", "probability high", "probability low", "probability middle"]
    shares = np.array([table[f"probability {label}"] for label in model.classes_], dtype=float).T
    np.testing.assert_array_equal(shares, model.predict_proba(TABLE))


def test_a_regressor_has_no_probabilities(folder, capsys):
    run(capsys, *FIT, "amount", *ignoring("amount"), "--quiet", *ALONE)
    fails(
        capsys,
        "--proba: this model predicts numbers",
        "predict",
        "table.kw",
        "table.csv",
        "--proba",
    )


def test_options_reach_the_estimator(folder, capsys):
    arguments = "--norm 2 --C 3 --tol 0.01 --max-iter 50 --no-per-feature --seed 3".split()
    alone = ("--test-share", 0, "--no-report")
    run(capsys, "fit", "table.csv", "--target", "two", *arguments, *ignoring("two"), *alone)
    model = load("table.kw")[-1]
    assert (model.norm, model.C, model.tol, model.max_iter) == (2.0, 3.0, 0.01, 50)
    assert len(model.kernels_) == 4 + 3 + 1
    arguments = ["--target", "amount", "--norm", "uniform", "--C", 1, *ignoring("amount")]
    run(capsys, "fit", "table.csv", *arguments, *alone)
    model = load("table.kw")[-1]
    assert model.norm == "uniform"
    assert (model.C, model.epsilon) == (1.0, 0.1)
    assert model.target_scale_ == pytest.approx(TABLE["amount"].std(), rel=0.05)


def test_kernels_offered(folder, capsys):
    run(capsys, *FIT, "two", *ignoring("two"), "--quiet", *ALONE)
    names = {str(kernel).split("(")[0].split(" on ")[0] for kernel in load("table.kw")[-1].kernels_}
    assert names == {"laplacian", "rbf", "linear"}
    assert len(load("table.kw")[-1].kernels_) == 4 + 3 + 1 + 5


def test_report_as_json(folder, capsys):
    arguments = ["--target", "three", "--method", "mkl", "--C", 1, *ignoring("three")]
    code, out, err = run(capsys, "fit", "table.csv", *arguments, "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert report["rows"] == N
    assert report["classes"] == ["high", "low", "middle"]
    assert report["columns"] == ["age", "income", "town", "code", "smoker"]
    assert report["choice"]["compared"][0]["rows"] == N
    assert report["converged"]
    assert report["kernels_used"] == len(report["kernels"]) <= report["kernels_offered"]
    weights = [kernel["weight"] for kernel in report["kernels"]]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)

    code, out, err = run(capsys, "info", "table.kw", "--json")
    assert (code, err) == (0, "")
    about = json.loads(out)
    assert about["target"] == "three"
    shared = set(about) & set(report) - {"model"}
    assert {key: about[key] for key in shared} == {key: report[key] for key in shared}


def test_info_as_text(folder, capsys):
    run(capsys, *FIT, "two", *ignoring("two"), "--quiet", *ALONE)
    code, out, err = run(capsys, "info", "table.kw")
    assert (code, err) == (0, "")
    for text in ("MKLClassifier (norm 1, C ", "no, yes", "120 rows", "rbf"):
        assert text in out
    assert __version__ in out
    assert max(map(len, out.splitlines())) < 110


def test_quiet_and_without_evaluation(folder, capsys):
    arguments = [*FIT, "two", *ignoring("two"), "--C", "1", "--no-report"]
    assert run(capsys, *arguments, "--test-share", "0.3", "--quiet") == (0, "", "")
    _, out, _ = run(capsys, *arguments, "--test-share", "0")
    assert "Chosen" not in out
    assert "gradient boosting" not in out


def test_what_is_left_out_is_said(folder, capsys):
    table = TABLE[["age", "town", "two"]].assign(
        name=[f"person {i}" for i in range(N)], always=1, nothing=np.nan
    )
    table.loc[[3, 5], "two"] = None
    table.to_csv("odd.csv")  # with a column that counts the rows
    code, out, _ = run(capsys, "fit", "odd.csv", "--target", "two")
    assert code == 0
    assert "2 row(s) without a value of 'two' are left out" in out
    assert "'Unnamed: 0' is left out: it counts the rows" in out
    assert "'name' is left out: its values are all different, as of names" in out
    assert "'always' is left out: it has one value only" in out
    assert "'nothing' is left out: it is empty" in out
    assert load("odd.kw")[0].feature_names_in_.tolist() == ["age", "town"]
    assert load("odd.kw")[0].n_samples_seen_ == N - 2


def test_whole_numbers_with_gaps_stay_whole(folder, capsys):
    table = TABLE[["age", "town", "grade"]].astype({"grade": float})
    table.loc[0, "grade"] = np.nan
    table.to_csv("gaps.csv", index=False)
    run(capsys, "fit", "gaps.csv", "--target", "grade", "--quiet", *ALONE)
    assert load("gaps.kw")[-1].classes_.tolist() == [0, 1, 2]
    assert set(columns(run(capsys, "predict", "gaps.kw", "gaps.csv")[1])["grade"]) <= set("012")


def test_many_whole_numbers_are_a_quantity(folder, capsys):
    table = TABLE[["age", "town"]].assign(count=np.arange(N) % 30)
    table.to_csv("count.csv", index=False)
    arguments = ("fit", "count.csv", "--target", "count", "--quiet", *ALONE)
    run(capsys, *arguments)
    assert type(load("count.kw")[-1]) is MKLRegressor
    run(capsys, *arguments, "--task", "classification")
    assert type(load("count.kw")[-1]) is MKLClassifier


def test_booleans_and_nullable_types(folder, capsys):
    table = TABLE[["age", "town"]].assign(
        ill=pd.array(SCORE > 0, dtype="boolean"), visits=pd.array(np.arange(N) % 5, dtype="Int64")
    )
    table.to_parquet("types.parquet")
    fit = ("fit", "types.parquet", "--quiet", *ALONE, "--target")
    assert run(capsys, *fit, "ill") == (0, "", "")
    assert load("types.kw")[-1].classes_.tolist() == [False, True]
    assert set(columns(run(capsys, "predict", "types.kw", "types.parquet")[1])["ill"]) == {
        "False",
        "True",
    }
    assert run(capsys, *fit, "visits") == (0, "", "")


def test_categories_that_look_like_numbers(folder, capsys):
    """A new file may hold only the sevens of a column that had an x as well."""
    run(capsys, *FIT, "two", *ignoring("two"), "--quiet", *ALONE)
    part = TABLE[TABLE["code"] == "7"]
    part.to_csv("part.csv", index=False)
    _, out, _ = run(capsys, "predict", "table.kw", "part.csv")
    assert columns(out)["two"] == load("table.kw").predict(part).tolist()


def test_columns_in_any_order_and_more_of_them(folder, capsys):
    run(capsys, *FIT, "two", *ignoring("two"), "--quiet", *ALONE)
    _, expected, _ = run(capsys, "predict", "table.kw", "table.csv")
    TABLE[TABLE.columns[::-1]].assign(extra=np.nan).to_csv("other.csv", index=False)
    assert run(capsys, "predict", "table.kw", "other.csv") == (0, expected, "")


def test_a_class_with_one_row(folder, capsys):
    TABLE.assign(two=["maybe", *TABLE["two"][1:]]).to_csv("rare.csv", index=False)
    code, out, err = run(capsys, "fit", "rare.csv", "--target", "two", *ignoring("two"))
    assert (code, err) == (0, "")
    assert "3 classes" in out


def test_no_convergence(folder, capsys):
    arguments = [*FIT, "two", "--quiet", "--max-iter", 1, "--tol", 1e-6, *ALONE]
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (0, "")
    assert err.startswith("kernelweave: warning: stopped after ")
    assert err.endswith("raise --max-iter (now 1) or --tol.\n")
    assert run(capsys, *arguments, "--strict")[0] == 1
    assert not load("table.kw")[-1].converged_
    assert "not reached" in run(capsys, "info", "table.kw")[1]


@pytest.mark.parametrize(
    ("message", "argv"),
    [
        ("absent.csv: No such file or directory", ("fit", "absent.csv", "--target", "two")),
        (
            "must end in .csv, .tsv, .txt (or with .gz) or .parquet",
            ("fit", "table.xls", "--target", "two"),
        ),
        ("has no column 'tow'; did you mean 'town' or 'two'?", (*FIT, "tow")),
        ("has no column 'zzzz'; its columns are: age, ", (*FIT, "zzzz")),
        ("has no column 'zzzz'", (*FIT, "two", "--ignore", "zzzz")),
        ("the target 'town' must hold numbers", (*FIT, "town", "--task", "regression")),
        ("numbers with decimals, which are no classes", (*FIT, "age", "--task", "classification")),
        (
            "--out: absent/m.kw is in a folder that does not exist",
            (*FIT, "two", "--out", "absent/m.kw"),
        ),
        ("--out: . is a folder", (*FIT, "two", "--out", ".")),
        ("Missing option '--target' (see kernelweave fit --help)", ("fit", "table.csv")),
        ("must be a number >= 1 or 'uniform', got '0.5'", (*FIT, "two", "--norm", "0.5")),
        ("must be a number >= 1 or 'uniform', got 'x'", (*FIT, "two", "--norm", "x")),
        ("must be a number > 0 or 'auto', got '-1'", (*FIT, "two", "--C=-1")),
        (
            "the method noisy does not have it, got 2.0",
            (*FIT, "two", "--method", "noisy", "--norm", 2),
        ),
        ("C: the method noisy has none, got 3.0", (*FIT, "two", "--method", "noisy", "--C", 3)),
        ("must be NAME=FILE.npy, got 'x.npy'", (*FIT, "two", "--gram", "x.npy")),
        ("table.csv is not a .npy file", (*FIT, "two", "--gram", "x=table.csv")),
        ("must be a number from 0 to below 1", (*FIT, "two", "--test-share", "1")),
        ("'--seed': 'x' is not a valid integer", (*FIT, "two", "--seed", "x")),
        ("The 'max_iter' parameter", (*FIT, "two", "--max-iter", "0")),
        ("The 'tol' parameter", (*FIT, "two", "--tol", "1e-20")),
        ("'--method': 'tree' is not one of 'auto', 'metric'", (*FIT, "two", "--method", "tree")),
        ("No such command 'learn'", ("learn",)),
        ("Missing command (see kernelweave --help)", ()),
        ("Got unexpected extra argument (more)", (*FIT, "two", "more")),
        ("No such option", (*FIT, "two", "--tagret", "two")),
        ("absent.kw cannot be read: No such file", ("info", "absent.kw")),
        ("table.csv is not a kernelweave model", ("info", "table.csv")),
        ("table.csv is not a kernelweave model", ("predict", "table.csv", "table.csv")),
    ],
)
def test_mistakes(folder, capsys, message, argv):
    fails(capsys, message, *argv)
    assert not list(folder.glob("*.kw"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read as a table: No columns"),
        (b"a,y\n", "has no rows"),
        (b"a,y\n1,2\n1,2,3\n", "cannot be read as a table: Error tokenizing"),
        (b"a,y\n1,2\n\x00\x00", "cannot be read as a table: it is not a text file"),
        (b"a,y\n1,\n2,\n", "The column 'y' has no values"),
        (b"a,y\n1,p\n2,p\n", "The target 'y' has one class only: 'p'"),
        (b"y\np\nq\n", "No column is left to learn from."),
        (b"a,y\n1,p\n1,q\n", "left to learn from ('a': it has one value only)"),
        (b"a,y\n1,0.5\n3,0.5\n", "'y' must have finite and different values"),
        (b"a,y\n1,0.5\n3,inf\n", "'y' must have finite and different values"),
    ],
)
def test_tables_that_cannot_be_learned_from(folder, capsys, content, message):
    (folder / "bad.csv").write_bytes(content)
    fails(capsys, message, "fit", "bad.csv", "--target", "y", "--test-share", "0")


def test_damaged_files(folder, capsys):
    for name in ("table.csv.gz", "table.parquet"):
        (folder / name).write_bytes((folder / name).read_bytes()[:300])
        fails(capsys, f"{name} cannot be read as a table", "fit", name, "--target", "two")
    run(capsys, *FIT, "two", "--quiet", *ALONE)
    (folder / "table.kw").write_bytes((folder / "table.kw").read_bytes()[:-30])
    fails(capsys, "table.kw is damaged", "info", "table.kw")


def test_tables_that_cannot_be_predicted(folder, capsys):
    run(capsys, *FIT, "amount", *ignoring("amount"), "--quiet", *ALONE)
    predict = ("predict", "table.kw", "new.csv")
    TABLE[["age", "town", "code"]].to_csv("new.csv", index=False)
    fails(capsys, "lacks the columns 'income', 'smoker' that the model needs", *predict)
    TABLE.assign(age="old").to_csv("new.csv", index=False)
    fails(capsys, "The column 'age' must hold numbers, but has 'old'", *predict)
    fails(capsys, "this model is a regressor", *predict, "--decision")
    TABLE.to_csv("new.csv", index=False)
    fails(capsys, "absent/out.csv: No such file", *predict, "--out", "absent/out.csv")


def test_models_saved_from_python(folder, capsys):
    numbers = TABLE[["age", "income"]]
    model = MKLClassifier().fit(numbers, TABLE["two"])
    save(model, "named.kw")
    _, out, _ = run(capsys, "predict", "named.kw", "table.csv")
    assert columns(out) == {"prediction": model.predict(numbers).tolist()}
    numbers[["age"]].to_csv("age.csv", index=False)
    fails(capsys, "The table in age.csv lacks 'income'", "predict", "named.kw", "age.csv")

    targets = TABLE[["amount", "age"]].to_numpy() / 1e4
    model = MKLRegressor().fit(numbers.to_numpy(), targets)
    save(model, "plain.kw")
    numbers.to_csv("numbers.csv", index=False)
    _, out, _ = run(capsys, "predict", "plain.kw", "numbers.csv")
    expected = model.predict(numbers.to_numpy())
    found = np.array(list(columns(out).values()), dtype=float).T
    np.testing.assert_array_equal(found, expected)
    fails(capsys, "2 columns of numbers without names", "predict", "plain.kw", "table.csv")
    assert "2 columns without names" in run(capsys, "info", "plain.kw")[1]

    gram = Precomputed(RBF(1.0)(NUMBERS[:, :1]))
    save(MKLClassifier([gram], norm="uniform").fit(np.arange(N)[:, None], TABLE["two"]), "gram.kw")
    assert "norm uniform" in run(capsys, "info", "gram.kw")[1]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_an_example(capsys, command):
    code, out, err = run(capsys, *command.split(), "--help")
    assert (code, err) == (0, "")
    assert f"kernelweave {command or 'demo'}" in out.split("\n\n", 1)[1]


def test_help_loads_no_arrays():
    """What takes long to import is imported when a command runs."""
    code = (
        "import sys; from kernelweave.cli import main; main(['--help']); "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'numpy', 'scipy', 'sklearn', 'pandas', 'rich', 'narwhals'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version(capsys):
    assert run(capsys, "--version") == (0, f"kernelweave {__version__}\n", "")


@pytest.mark.parametrize(
    ("package", "argv", "message"),
    [
        ("pandas", ("fit", "table.csv", "--target", "two", "--json"), "need pandas"),
        ("click", ("--help",), "needs click"),
        ("rich", ("fit", "table.csv", "--target", "two"), "needs rich"),
        ("rich", ("demo",), "needs rich"),
        ("matplotlib", ("demo",), "needs matplotlib"),
    ],
)
def test_packages_that_are_missing(folder, capsys, monkeypatch, package, argv, message):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    fails(capsys, message, *argv)
    fails(capsys, 'pip install "kernelweave[cli]"', *argv)


def test_pyarrow_is_missing(folder, capsys, monkeypatch):
    def read(path):
        raise ImportError("Unable to find a usable engine")

    monkeypatch.setattr(pd, "read_parquet", read)
    fails(capsys, '"kernelweave[io]"', "fit", "table.parquet", "--target", "two")


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, "kernelweave: stopped\n"),
        (BrokenPipeError(), 141, ""),
        (
            ZeroDivisionError("x\ny"),
            3,
            "an internal error of kernelweave (ZeroDivisionError: x y)\n",
        ),
    ],
)
def test_what_goes_wrong_on_the_way(folder, capsys, monkeypatch, error, code, text):
    def fail(*args):
        raise error

    monkeypatch.setattr("kernelweave.tables.read_table", fail)
    found, out, err = run(capsys, *FIT, "two")
    assert (found, out) == (code, "")
    assert err.endswith(text)


def test_warnings_are_one_line(folder, capsys, monkeypatch):
    def warn(*args):
        warnings.warn("beware\nof this", UserWarning, stacklevel=1)
        raise ValueError("enough")

    monkeypatch.setattr("kernelweave.tables.read_table", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        _, _, err = run(capsys, *FIT, "two")
    assert err == "kernelweave: warning: beware of this\nkernelweave: error: enough\n"


def test_letters_the_terminal_does_not_have(folder, monkeypatch):
    main([*FIT, "town", "--quiet", *map(str, ALONE)])
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["info", "table.kw"]) == 0
    assert b"Bonn, K\\xf6ln, Ulm" in screen.buffer.getvalue()


def kernelweave(*argv, **options):
    environment = os.environ | {"PYTHONWARNINGS": "", "COLUMNS": "80"}
    return subprocess.Popen(
        [sys.executable, "-m", "kernelweave.cli", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        **options,
    )


@pytest.mark.slow
def test_as_a_process(folder, capsys):
    """Output is plain in a pipe, and a reader that leaves early is no fault."""
    with kernelweave(*FIT, "two", *map(str, ALONE)) as process:
        out, err = process.communicate(timeout=100)
    assert (process.returncode, err) == (0, b"")
    assert b"\x1b" not in out
    assert "kernel" in out.decode()

    large = pd.concat([TABLE] * 200)
    large.to_csv("large.csv", index=False)
    with kernelweave("predict", "table.kw", "large.csv", "--decision") as process:
        assert process.stdout.readline().startswith(b"two,decision")
        process.stdout.close()
        err = process.stderr.read()
        process.wait(timeout=100)
    assert (process.returncode, err) == (141, b"")


def test_a_report_into_a_closed_pipe(folder):
    read, write = os.pipe()
    os.close(read)
    environment = os.environ | {"PYTHONWARNINGS": ""}
    command = [sys.executable, "-m", "kernelweave.cli", *FIT, "two", *map(str, ALONE)]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, env=environment)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
    assert (folder / "table.kw").exists()
