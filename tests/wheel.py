"""Install a built wheel into an empty environment without a compiler, and use it from outside.

``python tests/wheel.py dist`` does so with the wheels of a folder; ``--here`` in its place tries
what is installed in this environment.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

SMOKE = """
import csv, subprocess, sys
from pathlib import Path
import numpy as np
import kernelweave
from kernelweave import MKLClassifier, MetricKernelRegressor, RuleEnsembleClassifier
from kernelweave.datasets import make_additive
from kernelweave.io import load, save

assert Path.cwd() not in Path(kernelweave.__file__).parents
X, y = make_additive(120, 6, random_state=0)
for model in (MKLClassifier(), MetricKernelRegressor(), RuleEnsembleClassifier(C=1.0)):
    fitted = model.fit(X, y)
    save(fitted, "model.kw")
    assert np.array_equal(load("model.kw").predict(X), fitted.predict(X))
with open("table.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow([*"abcdef", "target"])
    rows.writerows([*map(float, x), int(label)] for x, label in zip(X, y))


def run(*words):
    subprocess.run([sys.executable, "-m", "kernelweave.cli", *words], check=True)


run("fit", "table.csv", "--target", "target", "--out", "table.kw", "--report", "page.html")
run("predict", "table.kw", "table.csv", "--out", "predictions.csv")
run("report", "table.kw", "--out", "again.html")
assert len(Path("predictions.csv").read_text().splitlines()) == 121
assert Path("page.html").stat().st_size > 10_000 and Path("again.html").stat().st_size > 10_000
"""


def try_wheel(wheel: Path, place: str) -> None:
    venv.create(Path(place) / "env", with_pip=True)
    python = str(Path(place) / "env" / "bin" / "python")
    # A compiler that fails: whatever needs one is found out.
    without = os.environ | {"CC": "false", "CXX": "false", "PYTHONPATH": ""}
    install = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    subprocess.run([python, *install, f"{wheel}[cli,io]"], check=True, env=without)
    outside = Path(place) / "outside"
    outside.mkdir()
    subprocess.run([python, "-c", SMOKE], check=True, cwd=outside, env=without)
    print(f"{wheel.name}: installed without a compiler; it fits, saves, loads and reports.")


def main(folder: str) -> None:
    if folder == "--here":
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([sys.executable, "-c", SMOKE], check=True, cwd=place)
        return
    wheels = sorted(Path(folder).resolve().glob("*.whl"))
    assert wheels, f"there is no wheel in {folder}"
    for wheel in wheels:
        with tempfile.TemporaryDirectory() as place:
            try_wheel(wheel, place)


if __name__ == "__main__":
    main(sys.argv[1])
