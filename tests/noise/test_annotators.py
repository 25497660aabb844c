"""Truth from answers of several annotators: the method of Dawid and Skene, votes, bad input."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import log_softmax

from kernelweave.errors import InputError, InputTypeError
from kernelweave.noise import answers_from_triples
from kernelweave.noise.annotators import Vote, confusions_of, find_consensus, read_answers


def make_table(seed, n=120, n_annotators=7, n_classes=3, asked=0.5):
    """Return true classes and a table of answers of annotators of different accuracy."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    wrong = rng.random((n, n_annotators)) < np.linspace(0.05, 0.6, n_annotators)
    said = np.where(wrong, rng.integers(0, n_classes, (n, n_annotators)), truth[:, None])
    table = said.astype(float)
    table[rng.random(table.shape) > asked] = np.nan
    table[0] = np.arange(n_annotators) % n_classes  # every class is there
    return truth, table


def dawid_skene(table, n_rounds, twice=()):
    """Return the probabilities of Dawid and Skene by plain loops; some annotators count twice."""
    n, n_annotators = table.shape
    n_classes = int(np.nanmax(table)) + 1
    q = np.zeros((n, n_classes))
    for i in range(n):
        for j in range(n_annotators):
            if table[i, j] == table[i, j]:
                q[i, int(table[i, j])] += 1 + (j in twice)
    answered = q.sum(axis=1) > 0
    q[answered] /= q[answered].sum(axis=1, keepdims=True)
    q[~answered] = q[answered].mean(axis=0)
    for _ in range(n_rounds):
        prior = q.mean(axis=0)
        T = np.zeros((n_annotators, n_classes, n_classes))
        for i in range(n):
            for j in range(n_annotators):
                if table[i, j] == table[i, j]:
                    T[j, :, int(table[i, j])] += q[i]
        T /= np.maximum(T.sum(axis=2, keepdims=True), 1e-300)
        new = np.tile(prior, (n, 1))
        for i in range(n):
            for j in range(n_annotators):
                if table[i, j] == table[i, j]:
                    new[i] *= T[j, :, int(table[i, j])] ** (1 + (j in twice))
        q = new / new.sum(axis=1, keepdims=True)
    return q


@pytest.mark.parametrize("seed", range(3))
def test_the_limit_without_columns_is_the_method_of_dawid_and_skene(seed):
    _, table = make_table(seed)
    found = find_consensus(read_answers(table), kappa=0.0, max_iter=25, tol=0.0)
    np.testing.assert_allclose(found.truth, dawid_skene(table, 25), atol=1e-8)


def test_a_copy_of_an_annotator_counts_as_twice_the_evidence():
    _, table = make_table(8)
    doubled = np.column_stack([table, table[:, 2]])
    found = find_consensus(read_answers(doubled), kappa=0.0, max_iter=25, tol=0.0)
    np.testing.assert_allclose(found.truth, dawid_skene(table, 25, twice=[2]), atol=1e-8)
    np.testing.assert_array_equal(found.confusions[2], found.confusions[-1])


def test_table_and_triples_give_the_same():
    _, table = make_table(3)
    rows, who = np.nonzero(~np.isnan(table))
    names = np.array([f"annotator {j}" for j in range(table.shape[1])])
    triples = answers_from_triples(rows, names[who], table[rows, who].astype(int), len(table))
    a = find_consensus(read_answers(table), kappa=3.0)
    b = find_consensus(triples, kappa=3.0)
    np.testing.assert_array_equal(a.truth, b.truth)
    assert triples.names.tolist() == names.tolist()


def test_annotators_may_be_permuted():
    _, table = make_table(4)
    order = np.random.default_rng(0).permutation(table.shape[1])
    a = find_consensus(read_answers(table), kappa=3.0)
    b = find_consensus(read_answers(table[:, order]), kappa=3.0)
    np.testing.assert_allclose(a.truth, b.truth, atol=1e-13)
    np.testing.assert_allclose(a.confusions[order], b.confusions, atol=1e-13)


def test_an_annotator_who_shifts_every_class_is_recognised():
    truth, table = make_table(5, n=300, asked=0.7)
    shifted = np.where(np.isnan(table[:, 0]), np.nan, (truth + 1) % 3)
    found = find_consensus(read_answers(np.column_stack([table, shifted])), kappa=1.0)
    confusion = found.confusions[-1]
    assert (confusion[np.arange(3), (np.arange(3) + 1) % 3] > 0.8).all()


def test_confusions_are_rows_of_probabilities_between_own_and_pooled():
    counts = np.array([[[8.0, 2.0], [1.0, 9.0]], [[0.0, 0.0], [0.0, 4.0]]])
    np.testing.assert_allclose(confusions_of(counts, 3.0).sum(axis=2), 1.0)
    pooled = 0.99 * np.array([[0.8, 0.2], [1 / 14, 13 / 14]]) + 0.005
    np.testing.assert_allclose(confusions_of(counts, 3.0)[1, 0], pooled[0])  # never asked
    own = (counts[0] + 3.0 * pooled) / (counts[0] + 3.0 * pooled).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(confusions_of(counts, 3.0)[0], own)


def test_a_known_prior_moves_the_truth():
    _, table = make_table(6)
    plain = find_consensus(read_answers(table), kappa=3.0).truth.mean(axis=0)
    prior = np.array([0.8, 0.1, 0.1])
    moved = find_consensus(read_answers(table), kappa=3.0, prior=prior).truth.mean(axis=0)
    assert moved[0] > plain[0]


@pytest.mark.parametrize("penalty", [1.0, 30.0])
def test_votes_minimise_the_penalised_log_loss(penalty):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(80, 3)) * [1.0, 5.0, 0.2] + [0.0, 1.0, 2.0]
    truth = rng.dirichlet(np.ones(3), size=80)
    vote = Vote.fit(scores, truth, penalty)
    spread = scores.std(axis=0)

    def value(flat):
        W, b = flat[:9].reshape(3, 3), flat[9:]
        logs = log_softmax(scores / spread @ W + b, axis=1)
        return -(truth * logs).sum() + 0.5 * penalty * (W**2).sum()

    at = np.concatenate([(vote.slopes * spread[:, None]).ravel(), vote.offsets])
    assert np.abs(approx_fprime(at, value, 1e-6)).max() < 2e-2
    # Votes keep the shares of the classes: the offsets carry no penalty.
    logs = log_softmax(scores @ vote.slopes + vote.offsets, axis=1)
    np.testing.assert_allclose(np.exp(logs).mean(axis=0), truth.mean(axis=0), atol=1e-3)


@pytest.mark.parametrize("known", [False, True])
def test_scores_without_information_get_no_vote(known):
    """Votes of useless scores would be fitted by chance, and found again in the next round."""
    rng = np.random.default_rng(0)
    truth, table = make_table(7, n=300, asked=0.4)
    checked = np.where(rng.random(300) < 0.3, truth, -1) if known else None
    answers = read_answers(table)
    plain = find_consensus(answers, kappa=3.0, known=checked)
    L = rng.normal(size=(300, 300))
    np.fill_diagonal(L, 0.0)
    L -= L.mean(axis=1, keepdims=True)
    useless = find_consensus(answers, kappa=3.0, known=checked, scores=lambda q: L @ q)
    assert useless.penalty >= 100.0
    assert (useless.truth.argmax(1) == plain.truth.argmax(1)).mean() > 0.97
    right = np.eye(3)[truth] + rng.normal(size=(300, 3)) / 2
    useful = find_consensus(answers, kappa=3.0, known=checked, scores=lambda q: right)
    assert useful.penalty <= 10.0
    right, wrong = (np.mean(one.truth.argmax(1) == truth) for one in (useful, plain))
    assert right > wrong + 0.03


def test_missing_answers_of_every_kind():
    pd = pytest.importorskip("pandas")
    plain = np.array([["a", "b"], ["b", "b"], ["a", "a"]], dtype=object)
    for gap in (None, np.nan, pd.NA, pd.NaT):
        table = plain.copy()
        table[1, 0] = gap
        answers = read_answers(pd.DataFrame(table, columns=["ann", "bob"]))
        assert answers.names.tolist() == ["ann", "bob"]
        assert len(answers.labels) == 5
    masked = np.ma.masked_array([[0, 1], [1, 1]], mask=[[False, True], [False, False]])
    assert read_answers(masked).labels.tolist() == [0, 1, 1]
    assert read_answers([[0.0, np.nan], [1.0, 0.0]]).classes.dtype.kind == "i"


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([0, 1, 2, 1], "i"), ([True, False, True, True], "b"), ([0.0, 1, 2, 2], "i")],
)
def test_numbers_with_gaps_are_numbers(labels, kind):
    pd = pytest.importorskip("pandas")
    cells = np.array([*labels, None, None], dtype=object).reshape(3, 2)
    nullable = pd.DataFrame(cells).convert_dtypes()
    assert {str(dtype) for dtype in nullable.dtypes} <= {"Int64", "boolean"}
    for given in (cells, nullable):
        answers = read_answers(given)
        assert answers.classes.tolist() == sorted(set(labels))
        assert answers.classes[answers.labels].tolist() == labels
    assert read_answers(nullable).classes.dtype.kind == kind


def test_rows_without_answers_get_the_shares_of_the_others():
    answers = answers_from_triples([0, 1, 1], ["x", "x", "y"], [0, 1, 1], n_rows=3)
    np.testing.assert_allclose(answers.shares()[2], [0.5, 0.5])


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (lambda: read_answers(np.full((3, 2), np.nan)), InputError, "no answer at all"),
        (lambda: read_answers(np.zeros((2, 2, 2))), InputError, "a column for each"),
        (lambda: read_answers([[0.5, 1.2], [0.3, 0.1]]), ValueError, "Unknown label type"),
        (lambda: answers_from_triples([0, 1], ["a"], [0, 1]), InputError, "same length"),
        (lambda: answers_from_triples([0.5, 1], ["a", "a"], [0, 1]), InputError, "row numbers"),
        (lambda: answers_from_triples([-1, 1], ["a", "a"], [0, 1]), InputError, "got -1"),
        (lambda: answers_from_triples([0, 5], ["a", "a"], [0, 1], 3), InputError, "row 5"),
        (lambda: answers_from_triples([0, 1], ["a", None], [0, 1]), InputError, "needs one"),
        (lambda: answers_from_triples([0], [["a"]], [0]), InputError, "must be columns"),
        (
            lambda: answers_from_triples([0, 1], ["a", "a"], np.array(["x", 1], dtype=object)),
            InputTypeError,
            "both are there",
        ),
    ],
)
def test_bad_answers_get_a_sentence(given, error, words):
    with pytest.raises(error, match=words):
        given()
