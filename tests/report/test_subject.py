"""What a page is about: the model inside pipelines, its rows and its names."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLRegressor
from kernelweave.errors import InputError, InputTypeError
from kernelweave.report.subject import Subject

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["a", "b"])
Y = FRAME["a"].rename("dose")


def test_the_estimator_of_a_pipeline_and_the_rows_it_gets():
    model = make_pipeline(StandardScaler(), MKLRegressor()).fit(FRAME, Y)
    subject = Subject(model, FRAME.assign(dose=Y), Y)
    assert subject.name == "MKLRegressor"
    assert subject.target == "dose"
    assert list(subject.X.columns) == ["a", "b"]  # without the target
    assert subject.rows.mean(axis=0) == pytest.approx(0.0, abs=1e-12)
    assert subject.n_rows is None  # not known without a step that counted them


def test_refusals():
    model = MKLRegressor().fit(FRAME, Y)
    with pytest.raises(InputTypeError, match="must be an estimator of kernelweave"):
        Subject(Ridge().fit(FRAME, Y))
    with pytest.raises(NotFittedError):
        Subject(MKLRegressor())
    with pytest.raises(InputError, match="y was given without the rows"):
        Subject(model, y=Y)
    with pytest.raises(InputError, match="lacks 'b', which the model needs"):
        Subject(model, FRAME[["a"]])
    with pytest.raises(InputError, match="has 3 columns, but the model was fitted to 2"):
        Subject(model, np.zeros((5, 3)))
