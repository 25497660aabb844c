"""Learn from a table and a list of answers of several annotators."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelweave.errors import DataError
from kernelweave.estimators import AnnotatorKernelClassifier
from kernelweave.noise import answers_from_triples, apply_decisions
from kernelweave.noise.annotators import Answers

from .choosing import Announce, silent
from .columns import note_columns
from .fitting import TableFit
from .hints import table_hints
from .kernels import offer_complete
from .methods import check_sources, make_preparer
from .problem import make_problem
from .reading import import_pandas

if TYPE_CHECKING:
    import pandas as pd


def fit_answers(
    frame: pd.DataFrame,
    triples: pd.DataFrame,
    *,
    target: str = "class",
    ignore: Sequence[str] = (),
    grams: Mapping[str, Any] | None = None,
    class_prior: Any = None,
    decisions: Any = None,
    missing: str = "fill",
    seed: int = 0,
    announce: Announce = silent,
) -> TableFit:
    """Learn the classes of rows, the annotators and a classifier from answers in long form.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    triples : pandas.DataFrame
        Three columns: the row, the annotator, the answer. Where the table has a column of the name
        of the first one, it is matched with it; otherwise it holds row numbers from 0.
    target : str
        Name of what is predicted. A column of this name is not learned from.
    ignore : sequence of str
        Columns to leave out.
    grams : dict, optional
        Ready Gram matrices by name; see `make_problem`.
    class_prior : "equal", array or None
        Known shares of the classes; None: estimated.
    decisions : str, path, data frame or list, optional
        Decisions of a person: the class of these rows is certain.
    missing : {"fill", "refuse"}
        Missing values are filled, or an error.
    seed : int
        Seed of the checks of the table.
    announce : callable
        Called with the current step and the share of it that is done.

    Returns
    -------
    fit : TableFit
        Its target is the most probable class of each row.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"key": list("abcdef"), "x": [0.0, 0.1, 0.2, 1.0, 1.1, 1.2]})
    >>> said = ["low"] * 6 + ["high"] * 6
    >>> keys, who = list("aabbccddeeff"), ["ann", "bob"] * 6
    >>> triples = pd.DataFrame({"key": keys, "who": who, "answer": said})
    >>> fit_answers(frame, triples).model[-1].labels_.tolist()
    ['low', 'low', 'low', 'high', 'high', 'high']
    """
    answers, key = _read_triples(frame, triples)
    own = frame.drop(columns=[target], errors="ignore")
    shares = answers.shares()
    own = own.assign(**{target: answers.classes[shares.argmax(axis=1)]})
    hidden = [*ignore, *([key] if key is not None and key not in ignore else [])]
    columns: dict[str, Any] = {"ignore": hidden, "grams": grams}
    problem = make_problem(own, target, task="classification", missing=missing, **columns)
    check_sources(problem, "annotators")
    known = None
    if decisions is not None:
        votes = answers.classes.astype(object)[_most_frequent(answers)]
        votes[np.bincount(answers.rows, minlength=answers.n_rows) == 0] = None
        known = apply_decisions(votes, decisions).known
    announce(f"fitting to {len(frame)} rows", 0.0)
    began = time.perf_counter()
    preparer = make_preparer(problem, "columns")
    model = AnnotatorKernelClassifier(offer_complete(problem), class_prior=class_prior)
    model.fit(preparer.fit_transform(problem.X, problem.y), answers, known=known)
    consensus = import_pandas().Series(model.labels_, index=problem.y.index, name=target)
    problem = replace(problem, y=consensus)
    notes = [*problem.notes, *note_columns(problem.kinds, kept=False, encoded=False)]
    if target in frame.columns:
        notes.append(f"the column {target!r} is left out: the answers take its place")
    return TableFit(
        Pipeline([("table", preparer), ("model", model)]),
        "annotators",
        problem,
        len(frame),
        None,
        None,
        time.perf_counter() - began,
        0.0,
        tuple(notes),
        tuple(table_hints(problem, seed)),
    )


def _most_frequent(answers: Answers) -> Any:
    """Return the most frequent answer of each row, the first class of equal ones."""
    votes = np.zeros((answers.n_rows, answers.n_classes))
    np.add.at(votes, (answers.rows, answers.labels), 1.0)
    return votes.argmax(axis=1)


def _read_triples(frame: pd.DataFrame, triples: pd.DataFrame) -> tuple[Answers, str | None]:
    """Return the answers, and the column that they were matched with."""
    if triples.shape[1] != 3:
        raise DataError(
            "--answers: the table must have three columns, the row (or a column of the table that "
            f"identifies it), the annotator and the answer, but has {triples.shape[1]}."
        )
    key, rows = str(triples.columns[0]), triples.iloc[:, 0]
    if key in frame.columns:
        texts = frame[key].astype(str)
        if texts.duplicated().any():
            raise DataError(
                f"--answers: the column {key!r} of the table must identify the rows, but "
                f"{texts[texts.duplicated()].iloc[0]!r} occurs more than once."
            )
        place = {text: k for k, text in enumerate(texts)}
        lost = [one for one in rows.astype(str) if one not in place]
        if lost:
            raise DataError(f"--answers: no row of the table has {lost[0]!r} in {key!r}.")
        numbers = np.array([place[one] for one in rows.astype(str)], dtype=np.intp)
    else:
        pandas = import_pandas()
        given = pandas.to_numeric(rows, errors="coerce").to_numpy(dtype=np.float64)
        wrong = np.flatnonzero(~((given >= 0) & (given < len(frame)) & (given % 1 == 0)))
        if len(wrong):
            raise DataError(
                f"--answers: the first column, {key!r}, must hold row numbers from 0 to "
                f"{len(frame) - 1}, or have the name of a column of the table, got "
                f"{rows.iloc[wrong[0]]} in line {wrong[0] + 2}."
            )
        numbers = given.astype(np.intp)
    who, said = triples.iloc[:, 1], triples.iloc[:, 2]
    if said.dtype.kind not in "biuf":
        said = said.astype(object).where(said.isna(), said.astype(str))
    people = who.astype(str).to_numpy()
    found = answers_from_triples(numbers, people, said.to_numpy(), len(frame))
    return found, key if key in frame.columns else None
