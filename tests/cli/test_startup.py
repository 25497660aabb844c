"""The program starts without modules that it may never use."""

import os
import subprocess
import sys

import pytest

from kernelweave.cli import startup
from quick import first

_SCRIPT = """
import sys
from kernelweave.cli.startup import defer
defer({"{name}": {held}, "no_such_module_at_all": ()})
assert "no_such_module_at_all" not in sys.modules
import {name}
assert "{inner}" not in sys.modules
{use}
assert "{inner}" in sys.modules and type(sys.modules["{name}"]) is type(sys)
"""


@pytest.mark.parametrize(
    ("name", "inner", "use"),
    first(
        3,
        [
            ("scipy.stats", "scipy.stats._stats_py", "assert scipy.stats.norm.cdf(0.0) == 0.5"),
            ("pandas", "pandas.core.frame", "from pandas.core.frame import DataFrame"),
            ("scipy.stats", "scipy.stats._stats_py", "import scipy.stats.distributions"),
            ("scipy.stats", "scipy.stats._stats_py", "from scipy.stats import norm"),
            ("pandas", "pandas.core.frame", "assert pandas.DataFrame({'a': [1]}).a.sum() == 1"),
        ],
    ),
)
def test_a_module_is_imported_when_it_is_used(name, inner, use):
    script = _SCRIPT.replace("{name}", name).replace("{inner}", inner).replace("{use}", use)
    held = repr(startup.SELDOM_USED[name])
    subprocess.run([sys.executable, "-c", script.replace("{held}", held)], check=True)


def test_scikit_learn_takes_names_of_a_module_that_is_not_used_yet():
    script = """
import sys
from kernelweave.cli.startup import defer
defer()
import sklearn.covariance, sklearn.isotonic, sklearn.metrics
from scipy.stats import chi2, rankdata
assert "scipy.stats._stats_py" not in sys.modules
assert rankdata([3, 1, 1]).tolist() == [3.0, 1.5, 1.5]
assert abs(chi2(2).cdf(1.0) - chi2.cdf(1.0, 2)) == 0 and 0.39 < chi2.cdf(1.0, 2) < 0.4
assert sys.modules["scipy.stats"].chi2 is not chi2 and type(sys.modules["scipy.stats"]) is type(sys)
import scipy.stats
assert rankdata([2, 1]).tolist() == scipy.stats.rankdata([2, 1]).tolist()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_integrals_and_splines_are_imported_when_they_are_used():
    script = """
import sys
from kernelweave.cli.startup import defer
defer()
import sklearn.metrics, sklearn.preprocessing
assert "scipy.integrate._quadrature" not in sys.modules
assert "scipy.interpolate._bsplines" not in sys.modules
assert sklearn.metrics.auc([0, 1], [0, 1]) == 0.5
assert sklearn.preprocessing.SplineTransformer().fit_transform([[0.0], [1.0]]).shape == (2, 7)
assert "scipy.interpolate._bsplines" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_geometric_means_of_gradient_boosting_need_no_statistics():
    script = """
import sys
from kernelweave.cli.startup import defer
defer()
import numpy as np
from scipy.stats import gmean
values = np.array([[1.0, 4.0], [2.0, 8.0]])
quick = gmean(values, axis=1)
assert "scipy.stats._stats_py" not in sys.modules
import scipy.stats._stats_py
assert np.allclose(quick, scipy.stats._stats_py.gmean(values, axis=1), rtol=1e-15)
assert np.allclose(gmean(values, axis=1, weights=[1.0, 0.0]), values[:, 0])
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("given", [None, "2"])
def test_blas_has_one_thread_unless_the_user_says_otherwise(given):
    script = "import os; from kernelweave.cli.startup import defer; defer()"
    script += f"; assert os.environ['OPENBLAS_NUM_THREADS'] == {given or '1'!r}"
    kept = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    own = {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    subprocess.run([sys.executable, "-c", script], check=True, env=kept | own)


def test_garbage_is_collected_as_before_after_a_command(tmp_path, capsys):
    import gc

    from kernelweave.cli import main

    before, seen = gc.get_threshold(), []
    with startup.rare_collections():
        seen.append(gc.get_threshold())
    assert seen[0][0] > before[0]
    assert main(["predict", str(tmp_path / "missing.kw"), "x.csv"]) == 2
    assert gc.get_threshold() == before


def test_modules_that_are_imported_already_stay():
    before = {name: sys.modules.get(name) for name in ("numpy", "pandas")}
    startup.defer(dict.fromkeys(before, ()))
    assert all(sys.modules[name] is module for name, module in before.items() if module)


def test_prediction_imports_neither_pipelines_nor_statistics(tmp_path):
    import numpy as np
    import pandas as pd

    import kernelweave as kw
    from kernelweave.io import TablePreparer, save

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    frame["kind"] = rng.choice(["u", "v"], 40)
    from sklearn.pipeline import make_pipeline

    target = np.where(frame["a"] > 0, "yes", "no")
    model = make_pipeline(TablePreparer(standardize=False), kw.MetricKernelClassifier())
    model.fit(frame, target)
    save(model, tmp_path / "m.kw")
    frame.head(5).to_csv(tmp_path / "new.csv", index=False)
    script = (
        "import sys; from kernelweave.cli import main; code = main(sys.argv[1:]);"
        "unused = ['sklearn.pipeline', 'sklearn.preprocessing', 'scipy.stats._stats_py',"
        "'scipy.optimize', 'kernelweave.solvers', 'kernelweave.banks', 'rich', 'jinja2'];"
        "sys.exit(code or ' '.join(name for name in unused if name in sys.modules) or 0)"
    )
    arguments = ["predict", tmp_path / "m.kw", tmp_path / "new.csv", "--proba", "--set", "0.9"]
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "prediction,probability no,probability yes,set"
