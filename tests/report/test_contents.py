"""What a page says is what the model and scikit-learn say."""

import re
from dataclasses import replace
from itertools import combinations, groupby

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import StratifiedKFold

from kernelweave import (
    RBF,
    HierarchicalMKLClassifier,
    Linear,
    MKLClassifier,
    NoiseTolerantKernelClassifier,
    PairwiseKernelLearner,
    RadiusKernelClassifier,
    SumProductMKLClassifier,
    group,
    report,
)
from kernelweave.io import FitRecord, ScoredModel
from kernelweave.plots.structure import layered
from kernelweave.report.charts import linear, logarithmic
from kernelweave.report.reproduce import program
from kernelweave.report.subject import Subject
from quick import every
from report_models import (
    COUNTS,
    GROUPS,
    MODELS,
    NOISY,
    QUANTITY,
    THREE,
    TWO,
    X,
    fitted,
    page,
    parts,
)
from report_pages import parse, rows


def text(name, section, data=True):
    (part,) = parse(page(name, data)).find("section", id=section)
    return part.text()


def last(name):
    model = fitted(name)[0]
    return model[-1] if name.endswith("pipeline") else model


@pytest.mark.parametrize("name", [name for name in MODELS if "kernels" in parts(name)])
def test_weights_are_those_of_the_model(name):
    model = last(name)
    head, *lines = rows(parse(page(name, data=False)), "kernels")
    assert head[1] == "weight"
    shown = [float(line[1].rstrip("%")) for line in lines]
    assert shown == sorted(shown, reverse=True)
    expected = 100 * np.sort(model.weights_)[::-1] / (model.weights_.sum() or 1)
    np.testing.assert_allclose(shown, expected[: len(shown)], atol=0.0501)
    assert len(shown) == np.count_nonzero(model.weights_)


def test_bars_are_as_long_as_the_weights():
    part = parse(page("mkl")).find("section", id="kernels")[0]
    bars = [float(r.attributes["width"].rstrip("%")) for r in part.find("rect")]
    weights = np.sort(fitted("mkl")[0].weights_)[::-1]
    weights = weights[weights > 0]
    np.testing.assert_allclose(bars, 100 * weights / weights[0], atol=0.0501)


def test_folds_say_which_kernels_are_kept_by_chance():
    model = fitted("mkl")[0]
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    kept = sum(
        MKLClassifier(model.kernels).fit(X[a], TWO[a]).weights_ > 0 for a, _ in folds.split(X, TWO)
    )
    head, *lines = rows(parse(page("mkl")), "kernels")
    order = [j for j in np.argsort(-model.weights_, kind="stable") if model.weights_[j] > 0]
    assert head[-1] == "in folds"
    assert [line[-1] for line in lines] == [f"{kept[j]} of 2" for j in order]


def test_the_record_of_a_fit_is_shown():
    model = fitted("pairs")[0]
    plain = FitRecord(
        (ScoredModel("this model", {"pairs_auc": 0.8}, 12),), "on 12 rows held out", remark="So."
    )
    part = parse(report.to_html(model, record=plain)).find("section", id="performance")[0]
    assert "Scores on 12 rows held out. So." in part.text()
    assert "0.800" in part.text()
    assert not part.find("svg")
    record = FitRecord(
        (
            ScoredModel("linear", {"accuracy": 0.93, "log_loss": 0.2}, 200),
            ScoredModel("SVM", {"accuracy": 0.9, "log_loss": 0.3}, 200, (0.1, 0.01)),
            ScoredModel("boosting", {"accuracy": 0.94, "log_loss": 0.2}, 200, (-0.01, 0.2)),
            ScoredModel("forest", {"accuracy": 0.99, "log_loss": 0.1}, 50, (-0.1, 0.01), 0.95),
        ),
        "on 200 rows left out in 3 folds",
        (0.886, 0.958),
        "log_loss",
        {"accuracy": 0.5, "log_loss": 0.7},
        warnings=("A <b>warning</b>.",),
        facts={"file": "rows.csv"},
    )
    shown = parse(report.to_html(fitted("mkl")[0], record=record))
    head = shown.find("header")[0]
    assert [one.text() for one in head.find("ul", class_="warnings")[0].find("li")] == [
        "A <b>warning</b>."
    ]
    (score,) = head.find("p", class_="score")
    said = "93.0% accuracy on 200 rows left out in 3 folds (95% interval 88.6% to 95.8%)"
    assert score.text() == said
    words = head.text()
    assert "Better than a constant prediction (50.0%)." in words
    assert (
        "By log-loss, which decided, better than SVM; about as good as boosting; worse than forest."
    ) in words
    ranks = [line.text() for line in head.find("ol", class_="ranks")[0].find("li")]
    assert ranks == [
        "this model93.0%",
        "SVM90.0%",
        "boosting94.0%",
        "forest on 50 rows, where this model has 95.0%99.0%",
        "constant prediction50.0%",
    ]
    places = [float(c.attributes["cx"].rstrip("%")) for c in head.find("circle", class_="dot")[:5]]
    order = np.argsort([0.93, 0.9, 0.94, 0.99, 0.5])
    assert np.argsort(places).tolist() == order.tolist()
    title, *lines = rows(shown, "performance")
    assert title[-1] == "against this model, by log-loss"
    assert lines[0] == ["this model: linear", "93.0%", "0.200", "200", "", ""]
    assert lines[3] == ["forest", "99.0%", "0.100", "50", "95.0%", "better"]
    assert lines[-1][:3] == ["constant prediction", "50.0%", "0.700"]
    assert "filerows.csv" in shown.find("section", id="reproduce")[0].text()
    unsure = replace(record, interval=(0.4, 0.99))
    words = parse(report.to_html(fitted("mkl")[0], record=unsure)).find("header")[0].text()
    assert "Not significantly better than a constant prediction" in words


def test_the_verdict_is_in_words():
    gap = fitted("mkl")[0].duality_gap_ / fitted("mkl")[0].objective_
    assert f"{100 * gap:.2g}% of the objective (tolerance 0.1%)" in text("mkl", "convergence")
    said = "This is a statement about the optimiser, not about how good the model is."
    assert said in text("mkl", "convergence")
    assert "certified" not in parse(page("mkl")).find("header")[0].text()
    assert "No bound on the optimum is known" in text("widths", "convergence")
    assert "closed form" in text("tolerant", "convergence")
    assert "Newton step" in text("pairs", "convergence")
    assert "best of 20 runs of k-means" in text("clusters", "convergence")
    with pytest.warns(UserWarning, match="raise max_iter"):
        model = MKLClassifier([RBF(w) for w in (0.5, 1, 2)], max_iter=1, tol=1e-9).fit(X, TWO)
    words = parse(report.to_html(model)).find("section", id="convergence")[0].text()
    assert "Not converged" in words
    assert "Raise max_iter" in words


def test_the_history_is_drawn():
    model = fitted("mkl")[0]
    part = parse(page("mkl")).find("section", id="convergence")[0]
    (line,) = part.find("polyline")
    points = [tuple(map(float, p.split(","))) for p in line.attributes["points"].split()]
    finite = [step for step in model.history_ if np.isfinite(step.relative_gap)]
    assert len(points) == len(finite)
    heights = [y for _, y in points]  # pixels from the top: the gap falls, the line goes down
    assert heights == sorted(heights)
    assert [x for x, _ in points] == sorted(x for x, _ in points)


def test_rules_are_those_of_the_model():
    model = fitted("rules")[0]
    head, *lines = rows(parse(page("rules")), "rules")
    assert head == ["about", "rule", "weight", "covers"]
    shown = [[r.text, f"{r.weight:+.3g}", f"{100 * r.coverage:.1f}%"] for r in model.rules_]
    assert sorted(line[1:] for line in lines) == sorted(shown)
    groups = [about for about, _ in groupby(line[0] for line in lines)]
    assert len(groups) == len(set(groups))  # rules about the same columns stand together
    assert f"begins at the base score {model.intercept_[0]:+.3g}" in text("rules", "rules")
    assert f"A positive score favours {model.classes_[1]}" in text("rules", "rules")


def test_rules_of_several_classes_have_a_weight_for_each():
    model = fitted("rules of three")[0]
    head, first, *_ = rows(parse(page("rules of three")), "rules")
    assert head == ["about", "rule", "covers", "a", "b", "c"]
    (rule,) = [rule for rule in model.rules_ if rule.text == first[1]]
    assert first[3:6] == [f"{w:+.3g}" for w in rule.weights]
    search = rows(parse(page("rules of three")), "rules", table=2)
    assert list(dict.fromkeys(line[0] for line in search[1:])) == ["0.1", "1"]
    assert f"at C = {model.C_:g}" in text("rules of three", "rules")


def test_structures_are_drawn_whole():
    model = fitted("structure")[0]
    part = parse(page("structure")).find("section", id="structure")[0]
    network = model.network_
    assert len(part.find("circle", class_="product")) == len(network.products)
    assert len(part.find("circle", class_="leaf")) == len(network.leaves)
    assert len(part.find("path")) == sum(len(node.children) for node in network.nodes)
    shown = {line[0]: line[1] for line in rows(parse(page("structure")), "structure")[1:]}
    assert shown == {name: f"{value:.3g}" for name, value in model.node_weights_.items()}


def test_graphs_of_kernels_are_drawn_with_their_edges():
    part = parse(page("graph")).find("section", id="structure")[0]
    assert len(part.find("circle", class_="product")) == len(fitted("graph")[0].active_nodes_) == 3
    assert len(part.find("path")) == 2
    assert {one.text() for one in part.find("text")} == {"left", "right", "both"}
    lattice = fitted("lattice")[0]
    part = parse(page("lattice")).find("section", id="structure")[0]
    below = [
        (a, b)
        for a in lattice.active_nodes_
        for b in lattice.active_nodes_
        if sum(r for _, r in b) == sum(r for _, r in a) + 1
        and all(dict(b).get(j, 0) >= r for j, r in a)
    ]
    assert len(part.find("path")) == len(below) > 0


def test_nodes_that_do_not_touch_are_not_drawn():
    model = HierarchicalMKLClassifier({"a": RBF(1.0), "b": Linear()}, C=10).fit(X, TWO)
    part = parse(report.to_html(model)).find("section", id="structure")[0]
    assert "nothing to draw" in part.text()
    assert not part.find("circle")
    assert len(part.find("tr")) == 3


def test_long_names_of_products_leave_room_for_the_next_column():
    inner = group(RBF(1.0), Linear(), name="a rather long name for a group of kernels")
    model = SumProductMKLClassifier(inner * RBF(2.0) + Linear()).fit(X, TWO)
    part = parse(report.to_html(model)).find("section", id="structure")[0]
    (label,) = [one.text() for one in part.find("text") if one.text().startswith("a rather")]
    weight = model.node_weights_["a rather long name for a group of kernels"]
    assert label.endswith(f"kernels {weight:.2g}")
    assert "\u2026" in label


def test_suspects_are_those_of_the_model():
    for name in ("noisy", "tolerant"):
        found = fitted(name)[0].suspects()
        lines = rows(parse(page(name)), "labels")[1:]
        assert [int(line[0]) for line in lines] == found.index.tolist()
        assert [line[1:3] for line in lines] == np.column_stack(
            [found.given, found.suggested]
        ).tolist()
        assert f"{found.n_wrong} of {found.n_samples}" in text(name, "labels")
    assert "Share of wrong labels, as given20.0%" in text("noisy", "labels")
    assert "Estimated share of wrong labels" in text("tolerant", "labels")
    given = NoiseTolerantKernelClassifier(rates=(0.1, 0.2)).fit(X, NOISY)
    words = parse(report.to_html(given)).find("section", id="labels")[0].text()
    assert "Rates as given" in words
    assert "Estimated" not in words
    rates = rows(parse(page("tolerant of three")), "labels", table=1)[1:]
    shown = [[float(v.rstrip("%")) / 100 for v in line[1:]] for line in rates]
    np.testing.assert_allclose(shown, fitted("tolerant of three")[0].rates_, atol=6e-4)


def test_radius_and_widths():
    assert f"{fitted('radius')[0].squared_radius_:.5g}" in text("radius", "radius")
    model = fitted("widths")[0]
    lines = rows(parse(page("widths")), "radius")[1:]
    order = np.argsort(model.kernel_.widths)
    assert [line[0] for line in lines] == [model.feature_names_in_[j] for j in order]
    assert [line[1] for line in lines] == [f"{model.kernel_.widths[j]:.4g}" for j in order]
    mixture = RadiusKernelClassifier("mixture", n_widths=2, n_starts=1).fit(X, TWO)
    assert len(parse(report.to_html(mixture)).find("section", id="radius")[0].find("table")) == 0


def test_pairs_and_clusters_are_mapped():
    part = parse(page("pairs")).find("section", id="pairs")[0]
    assert len([c for c in part.find("circle") if "point" in c.attributes["class"]]) == 60
    assert "90.0%" in part.text()
    assert not parse(page("pairs", data=False)).find("section", id="pairs")[0].find("circle")
    options = rows(parse(page("shrunk pairs")), "pairs")[1:]
    best = fitted("shrunk pairs")[0].selection_[0]
    assert options[0][-1] == f"{best.score:.4g}"
    model = fitted("clusters")[0]
    lines = rows(parse(page("clusters")), "clusters")[1:]
    assert [int(line[1]) for line in lines] == np.bincount(model.labels_).tolist()
    assert f"{adjusted_rand_score(GROUPS, model.labels_):.3f}" in text("clusters", "clusters")


def test_pairs_without_a_weight_and_without_classes():
    pairs, labels = [[0, 1], [1, 2], [0, 3], [1, 4]], [1, 1, -1, -1]  # the wrong way round
    with pytest.warns(UserWarning, match="all weights are zero"):
        model = PairwiseKernelLearner().fit(10 * np.eye(3)[GROUPS], pairs=pairs, labels=labels)
    shown = parse(report.to_html(model, 10 * np.eye(3)[GROUPS]))
    assert "found no column" in shown.find("p", class_="lead")[0].text()
    model = fitted("shrunk pairs")[0]
    part = parse(report.to_html(model, COUNTS)).find("section", id="pairs")[0]
    assert "colours are 3 clusters" in part.text()


def test_classes_and_quantities_are_summarised():
    lines = rows(parse(page("mkl of three classes")), "data", table=1)[1:]
    labels, counts = np.unique(THREE, return_counts=True)
    assert {line[0]: int(line[1]) for line in lines} == dict(
        zip(labels.tolist(), counts.tolist(), strict=True)
    )
    assert f"{QUANTITY.min():.5g} to {QUANTITY.max():.5g}" in text("regression", "data")
    known = rows(parse(page("mkl in a pipeline", data=False)), "data")[1:]
    assert [line[:2] for line in known][-1] == ["town", "text"]


@pytest.mark.parametrize("name", every(2, [name for name in MODELS if "pairs" not in name]))
def test_the_program_makes_the_same_model(name):
    model, rows_, target = fitted(name)
    code = program(Subject(model))
    scope = {"X": rows_, "y": target}
    exec(code, scope)
    again = scope["model"]
    expected = model if name == "clusters" else model.predict(rows_)
    found = again.labels_ if name == "clusters" else again.predict(rows_)
    np.testing.assert_array_equal(found, expected.labels_ if name == "clusters" else expected)
    shown = parse(page(name)).find("pre")[0].text()
    assert shown == code
    assert max(map(len, code.splitlines())) < 90


def test_every_parameter_is_listed():
    model = fitted("noisy")[0]
    lines = {line[0]: line[1:] for line in rows(parse(page("noisy")), "reproduce")[1:]}
    assert set(lines) == set(model.get_params())
    assert lines["lam"] == ["0.05", "no"]
    assert lines["tol"] == ["0.001", "yes"]
    assert re.search(r"scikit-learn\d+\.\d+", text("noisy", "reproduce"))


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (0.913, 1.0), (-3e5, 2e6), (5.0, 5.0), (0, 0)]
)
def test_axes_cover_their_range(low, high):
    axis = linear(low, high)
    assert axis.low <= low <= high <= axis.high
    assert axis.low < axis.high
    assert 3 <= len(axis.ticks) <= 8
    np.testing.assert_allclose(axis.at([axis.low, axis.high]), [0, 1])


@pytest.mark.parametrize(("low", "high"), [(1e-3, 1.0), (1e-9, 1e3), (0.5, 0.6), (1.0, 1.0)])
def test_logarithmic_axes_cover_their_range(low, high):
    axis = logarithmic(low, high, str)
    assert axis.low <= low * (1 + 1e-9)
    assert axis.high >= high
    assert 2 <= len(axis.ticks) <= 8


def test_nodes_of_a_graph_do_not_lie_on_each_other():
    children = {0: [3, 4], 1: [3, 4], 2: [4], 3: [], 4: []}
    for flush in (True, False):
        places = layered([3, 4, 0, 1, 2], children, flush=flush)
        assert len(set(places.values())) == 5
        for a, b in combinations([0, 1, 2], 2):  # a circle and the number above it need this much
            assert abs(places[a][1] - places[b][1]) > 0.75
        assert all(places[p][0] < places[c][0] for p in children for c in children[p])
