"""The block on Spark of the documentation runs, and scores as the model does."""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kernelweave import MKLClassifier, RuleEnsembleClassifier
from kernelweave.io import save

pytest.importorskip("pyspark")
if shutil.which("java") is None:
    pytest.skip("no Java; on Debian: default-jre-headless", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore")  # of Spark, which is not ours

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "scoring.md"
BLOCKS = [block for block in PAGE.read_text(encoding="utf-8").split("```") if "pandas_udf" in block]
RANDOM = np.random.default_rng(0)
N = 300
LOANS = pd.DataFrame(
    {
        "income": np.where(RANDOM.random(N) < 0.05, np.nan, RANDOM.gamma(4.0, 10.0, N)),
        "purpose": RANDOM.choice(["car", "house", "study"], N),
    }
)
LOST = np.where(LOANS["income"].fillna(20) + 20 * RANDOM.random(N) < 40, "lost", "paid")
COLUMNS = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), ["income"]),
    (OneHotEncoder(), ["purpose"]),
)
MODELS = {
    "rules": RuleEnsembleClassifier(max_length=2),
    "default kernels": MKLClassifier(),
    "pipeline": make_pipeline(COLUMNS, MKLClassifier()),
}


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # of the workers
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_the_block_of_the_page(tmp_path, spark, model):
    (block,) = [block for block in BLOCKS if "createDataFrame" in block]
    path = str(save(model.fit(LOANS, LOST), tmp_path / "model.kw"))
    scope = {"spark": spark, "loans": LOANS, "path": path}
    exec(compile(block.lstrip("\n"), str(PAGE), "exec"), scope)
    found = scope["scored"].toPandas()
    assert len(found) == N
    pd.testing.assert_series_equal(found["purpose"], LOANS["purpose"], check_dtype=False)
    # Spark has its own blocks of rows, and products of other blocks other last digits.
    expected = model.decision_function(LOANS)
    np.testing.assert_allclose(found["score"], expected, rtol=0, atol=1e-12)
