"""The page of every estimator is complete, sound and quiet."""

import base64
import hashlib
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from jinja2 import UndefinedError
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import kernelweave
from kernelweave import Linear, MKLClassifier, RuleEnsembleClassifier, report
from kernelweave.errors import DataError, InputError, InputTypeError, KernelweaveError
from kernelweave.io import load, save
from kernelweave.report.rendering import environment
from kernelweave.report.tables import Column, Table, number, text_column
from report_models import COUNTS, FRAME, GROUPS, MODELS, TWO, UNMEASURED, X, fitted, parts
from report_models import page as written
from report_pages import parse, rows

EVIL = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "a\"b'c&amp;<!--"]


def test_every_estimator_is_here():
    public = {name for name in kernelweave.__all__ if hasattr(getattr(kernelweave, name), "fit")}
    models = [fitted(name)[0] for name in MODELS]
    tested = {
        type(model[-1] if name.endswith("pipeline") else model).__name__
        for name, model in zip(MODELS, models, strict=True)
    }
    assert tested == public - {"Propositions"}


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


def check_sound(text):
    """Check what must hold for every page, and return it as a tree."""
    page = parse(text)
    assert len(text.encode()) < 2e6
    assert not re.search(r"https?:", text)
    every = page.find()
    assert not [
        e for e in every for a in e.attributes if a.startswith("on") or a in ("style", "src")
    ]
    ids = [e.attributes["id"] for e in every if "id" in e.attributes]
    assert len(set(ids)) == len(ids)
    links = [e.attributes["href"] for e in page.find("a")]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert len(page.find("h1")) == 1
    for part in page.find("section"):
        assert part.attributes["aria-labelledby"] in ids
    for head in page.find("th"):
        assert head.attributes["aria-sort"] in ("none", "ascending", "descending")
        assert [b.attributes["type"] for b in head.find("button")] == ["button"]
    for body in page.find("table"):
        widths = {
            len([c for c in line.children if not isinstance(c, str)]) for line in body.find("tr")
        }
        assert len(widths) == 1
    for picture in page.find("svg", role="img"):
        assert picture.find("title")[0].text()
    assert "nan" not in re.findall(
        r"[a-z]+",
        " ".join(
            str(v)
            for e in every
            if e.name in ("circle", "rect", "line", "text", "polyline")
            for k, v in e.attributes.items()
            if k != "class"
        ),
    )
    return page


@pytest.mark.parametrize("data", [False, True], ids=["alone", "with data"])
def test_a_page_for_every_estimator(name, data):
    page = check_sound(written(name, data))
    assert {part.attributes["id"] for part in page.find("section")} == parts(name, data)
    (lead,) = page.find("p", class_="lead")
    assert lead.text().startswith("This model ")
    assert lead.text().endswith(".")
    measured = page.find("section", id="performance")[0].text()
    assert ("Not measured" in measured) == (not data or name in UNMEASURED)


def test_only_the_style_and_the_script_of_the_page_are_allowed():
    page = parse(report.to_html(fitted("mkl")[0]))
    (policy,) = (m.attributes["content"] for m in page.find("meta") if "http-equiv" in m.attributes)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for kind in ("style", "script"):
        (element,) = page.find(kind)
        digest = base64.b64encode(hashlib.sha256(element.text().encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"


def test_names_are_shown_as_they_are():
    frame = pd.DataFrame(X, columns=EVIL, index=[f"{EVIL[0]} {i}" for i in range(len(X))])
    target = pd.Series(np.where(TWO == "high", EVIL[0], EVIL[1]), name=EVIL[1], index=frame.index)
    kernels = [Linear(columns=[name], name=f"{name}!") for name in EVIL]
    models = [MKLClassifier(kernels), kernelweave.NoiseTolerantKernelClassifier(kernels)]
    models += [
        kernelweave.RuleEnsembleClassifier(C=10),
        kernelweave.SumProductMKLClassifier(kernels),
    ]
    for model in models:
        text = report.to_html(
            model.fit(frame, target), frame, target, cv=2, title=EVIL[0], facts={EVIL[1]: EVIL[2]}
        )
        page = check_sound(text)
        assert len(page.find("script")) == 1
        assert not page.find("img")
        shown = page.text()
        assert all(name in shown for name in EVIL)
        assert page.find("h1")[0].text() == EVIL[0]


def test_what_no_page_can_hold_is_replaced():
    shown = environment().from_string("<b>{{ x }}</b>").render(x="a\x00b\ud800c\x1b")
    assert shown == r"<b>a\x00b\ud800c\x1b</b>"
    model = MKLClassifier([Linear(columns=["x\x00"])]).fit(pd.DataFrame({"x\x00": X[:, 0]}), TWO)
    report.to_html(model).encode("utf-8")


@pytest.mark.parametrize("learner", [MKLClassifier, RuleEnsembleClassifier])
def test_long_names_are_shortened(learner):
    long = "n" * 5000
    table = pd.DataFrame({long: X[:, 0], "b\x1b\u202e": X[:, 1]})
    y = pd.Series(np.where(TWO == TWO[0], long, "other"), name=long)
    options = (
        {"kernels": [Linear(columns=name) for name in table]} if learner is MKLClassifier else {}
    )
    page = report.to_html(learner(**options).fit(table, y), table, y, cv=2, facts={"file": long})
    check_sound(page)
    shown = page.partition('<section id="reproduce"')[0]  # where a program needs whole names
    assert "n" * 300 not in shown
    assert "nnn\u2026nnn" in shown
    assert not set(page) & {"\x1b", "\u202e"}


def test_templates_escape_every_value():
    template = environment().from_string('<a class="{{ x }}">{{ x }}{{ [x] }}{{ 1 }}</a>')
    shown = template.render(x="<b>\"y'")
    assert "<b>" not in shown
    assert shown.startswith('<a class="&lt;b&gt;&#34;y&#39;">&lt;b&gt;&#34;y&#39;')
    with pytest.raises(UndefinedError):
        environment().from_string("{{ absent }}").render()


def test_reports_without_jinja2_say_what_to_install(monkeypatch):
    environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(KernelweaveError, match=r'Reports need jinja2.*"kernelweave\[report\]"'):
        report.to_html(fitted("mkl")[0])


def test_every_template_is_used():
    folder = Path(report.__file__).parent / "templates"
    modules = {path.stem for path in folder.parent.glob("*.py")}
    for path in folder.glob("*.html"):
        assert path.stem in modules | {"macros"}


def render(table):
    source = '{% from "macros.html" import table %}{{ table(t) }}'
    return parse(environment().from_string(source).render(t=table))


def test_long_tables_are_folded_and_cut():
    lines = [["x" * 1000, number(1.0)]] * 30
    page = render(Table("things", [text_column("name"), Column("n")], lines, n_all=99))
    assert page.find("table")[0].attributes["data-folded"] == "15"
    assert page.find("input", type="search")
    assert len(page.find("td")[0].text()) == 240
    assert "The first 30 of 99 are shown." in page.text()
    short = render(Table("things", [Column("n")], [[number(1.0)]]))
    assert not short.find("input")
    assert "data-folded" not in short.find("table")[0].attributes


def test_a_page_of_very_many_kernels_is_small():
    kernels = [Linear(columns=[0], name=f"{'long name ' * 40}{j}") for j in range(1500)]
    model = MKLClassifier(kernels, norm=2.0).fit(X, TWO)
    check_sound(report.to_html(model))


def test_a_page_of_very_many_classes_is_small():
    classes = [f"{'c' * 60} {k % 40}" for k in range(200)]
    model = kernelweave.RuleEnsembleClassifier(C=100, class_weight="balanced")
    model.fit(pd.DataFrame({"x": classes}), classes)
    page = check_sound(report.to_html(model))
    assert len(rows(page, "rules")[0]) == 15
    assert "The table shows the first 12." in page.text()
    clusters = kernelweave.KernelSpectralClustering(100, n_init=1, random_state=0)
    check_sound(
        report.to_html(clusters.fit(np.abs(np.random.default_rng(0).normal(size=(200, 150)))))
    )


def test_many_folds_have_no_columns():
    shown = rows(parse(report.to_html(fitted("mkl")[0], X, TWO, cv=12)), "performance")
    assert shown[0] == ["measure", "mean", "from", "to"]


def test_a_search_and_other_pipelines_are_opened():
    search = GridSearchCV(MKLClassifier(), {"C": [0.1, 1.0]}, cv=2).fit(X, TWO)
    page = parse(report.to_html(search))
    assert [
        "C",
        repr(search.best_params_["C"]),
        "yes" if search.best_params_["C"] == 1 else "no",
    ] in rows(page, "reproduce")
    scaled = make_pipeline(StandardScaler(), MKLClassifier()).fit(X, TWO)
    assert parse(report.to_html(scaled)).find("h1")[0].text() == "MKLClassifier"


def test_bad_input_is_one_sentence(tmp_path):
    model = fitted("mkl")[0]
    with pytest.raises(InputTypeError, match="model: must be an estimator of kernelweave"):
        report.to_html(LogisticRegression().fit(X, TWO))
    with pytest.raises(NotFittedError):
        report.to_html(clone(model))
    with pytest.raises(InputError, match="X: y was given without"):
        report.to_html(model, y=TWO)
    with pytest.raises(InputTypeError, match="title: must be text"):
        report.to_html(model, title=3)
    with pytest.raises(InputTypeError, match="path: must be"):
        report.write(model, None)
    with pytest.raises(DataError, match="cannot be written"):
        report.write(model, tmp_path / "no" / "page.html")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        report.to_html(model, X, TWO[:-1])
    with pytest.raises(InputError, match="X: has 2 columns, but the model was fitted to 3"):
        report.to_html(model, X[:, :2], TWO)
    with pytest.raises(InputError, match="X: lacks 'age' and 'town', which the model needs"):
        report.to_html(fitted("rules")[0], FRAME[["height", "weight"]])


def test_nothing_learns_from_a_target_that_is_still_in_the_table():
    target = pd.Series(np.random.default_rng(1).permutation(TWO), name="size")
    model = fitted("mkl in a pipeline")[0]
    leaky = clone(model).set_params(model__kernels=None).fit(FRAME, target)
    clean, full = (
        rows(parse(report.to_html(leaky, table_, target, cv=2)), "performance")
        for table_ in (FRAME, FRAME.assign(size=target)[["size", *FRAME.columns[::-1]]])
    )
    assert full == clean


def test_other_forms_of_data():
    model = kernelweave.PairwiseKernelLearner(random_state=0)
    scaled = make_pipeline(MinMaxScaler(), model).fit(COUNTS, GROUPS)
    page = check_sound(report.to_html(scaled, COUNTS.tolist(), GROUPS.tolist(), cv=2))
    assert "Map of the rows" in page.text()
    sparse = csr_array(COUNTS)
    page = check_sound(report.to_html(clone(model).fit(sparse, GROUPS), sparse, GROUPS, cv=2))
    assert "entries are not zero" in page.text()
    labels = np.column_stack([TWO == "high", X[:, 0] > 0]).astype(int)
    for several in (kernelweave.RuleEnsembleClassifier(), kernelweave.HierarchicalMKLClassifier()):
        page = check_sound(report.to_html(several.fit(X, labels), X, labels, cv=2))
        assert [line[0] for line in rows(page, "performance")[1:]] == ["accuracy"]
        assert "2 labels at once" in page.find("p", class_="lead")[0].text()


def test_a_file_appears_complete_or_not_at_all(tmp_path):
    where = report.write(fitted("mkl")[0], tmp_path / "page.html")
    assert where.read_text(encoding="utf-8") == report.to_html(fitted("mkl")[0])
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_frames_of_other_libraries_and_missing_values():
    import polars as pl

    frame = FRAME.assign(
        height=FRAME["height"].where(FRAME["height"] > -1), smoker=FRAME["age"] > 0
    )
    model = kernelweave.RuleEnsembleClassifier(C=10).fit(frame, TWO)
    expected = rows(parse(report.to_html(model, frame, TWO, cv=2)), "data")
    by_name = {line[0]: line[1:] for line in expected}
    missing = int(frame["height"].isna().sum())
    assert missing > 0
    assert by_name["height"][:3] == ["number", str(missing), str(len(FRAME) - missing)]
    assert by_name["smoker"][0] == "true or false"
    most = frame["town"].value_counts()
    assert by_name["town"][3] == f"mostly {most.index[0]} ({100 * most.iloc[0] / 60:.1f}%)"
    assert rows(parse(report.to_html(model, pl.from_pandas(frame), TWO, cv=2)), "data") == expected


@pytest.mark.parametrize("name", [name for name in MODELS if name != "clusters"])
def test_a_model_from_a_file_has_the_same_page(name, tmp_path):
    model = fitted(name)[0]
    again = load(save(model, tmp_path / "model.kw"))
    one, two = (parse(report.to_html(each)) for each in (model, again))
    for part in parts(name) - {"reproduce"}:  # families of kernels come back written out
        assert two.find("section", id=part)[0].text() == one.find("section", id=part)[0].text()
    assert two.find("header")[0].text() == one.find("header")[0].text()
