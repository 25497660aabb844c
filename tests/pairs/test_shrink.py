"""Deviations from equal weights, the kernels they stand for, and the choice by held-out pairs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from document_cases import make_documents
from kernelweave.pairs import shrink as module
from kernelweave.pairs.graphs import adjacency
from kernelweave.pairs.shrink import (
    Links,
    Setting,
    column_factors,
    contrast,
    idf,
    learn,
    scale_rows,
    select,
    settings,
)
from kernelweave.pairs.values import pair_features
from pair_oracles import solve_weights

X, Y, LINKS = make_documents()
ALL = Links(LINKS, None, len(X))


class TestScaling:
    def test_rows_have_unit_length_and_zeros_stay(self):
        rows = X.copy()
        rows[4] = 0
        for sparse in (False, True):
            given = csr_array(rows) if sparse else rows
            scaled = scale_rows(given, column_factors(given, 1.0))
            scaled = scaled.toarray() if sparse else scaled
            lengths = np.linalg.norm(scaled, axis=1)
            np.testing.assert_allclose(np.delete(lengths, 4), 1.0)
            assert not scaled[4].any()
        np.testing.assert_array_equal(idf(csr_array(rows)), idf(rows))

    def test_a_word_in_every_row_counts_nothing_but_at_power_zero(self):
        assert column_factors(X, 1.0)[0] == 0
        assert (column_factors(X, 0.0) == 1).all()


class TestLearning:
    scaled = scale_rows(X, column_factors(X, 0.5))

    def problem(self, alpha=1.0):
        """Return the pairs that `learn` draws with this seed."""
        drawn = {}

        def spy(rows, pairs):
            drawn["pairs"] = pairs
            return pair_features(rows, pairs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "pair_features", spy)
            found = learn(self.scaled, ALL, alpha, [1.0], 0, tol=1e-10)[1.0]
        return drawn["pairs"], found

    def test_weights_are_those_of_an_independent_solver(self):
        pairs, found = self.problem()
        F = pair_features(self.scaled, pairs)
        n_same = len(LINKS)
        s = np.repeat([1.0, -1.0], [n_same, len(pairs) - n_same])
        c = np.where(s > 0, 0.5 / n_same, 0.5 / (len(pairs) - n_same))
        v = F.sum(axis=1)
        g = np.array([(c * s) @ v])
        a, b = solve_weights(v[:, None], c, g, 1e-12, balance=0.0)
        assert found.scale == pytest.approx(a[0], rel=1e-4)
        u = a[0] * v + b
        curve = c / (4 * np.cosh(u / 2) ** 2)
        present = F.any(axis=0)
        lam = (F[:, present] ** 2 * curve[:, None]).sum(axis=0).mean()
        w, bias = solve_weights(F, c, F.T @ (c * s), lam, prior=found.scale, balance=0.0)
        np.testing.assert_allclose(found.weights, w, atol=1e-5 * w.max())
        assert found.bias == pytest.approx(bias, abs=1e-5)
        assert found.converged

    def test_a_huge_pull_gives_equal_weights(self):
        found = learn(self.scaled, ALL, 1.0, [1e12, np.inf], 0)
        for one in found.values():
            np.testing.assert_allclose(one.weights, one.scale, rtol=1e-6)

    def test_strengths_do_not_influence_each_other(self):
        together = learn(self.scaled, ALL, 0.3, [0.1, 1.0, 10.0], 0, tol=1e-9)
        alone = learn(self.scaled, ALL, 0.3, [0.1], 0, tol=1e-9)
        np.testing.assert_allclose(together[0.1].weights, alone[0.1].weights, rtol=1e-5, atol=1e-6)

    def test_size_of_the_kernels_only_scales_the_weights(self):
        one = learn(self.scaled, ALL, 0.3, [1.0], 0, tol=1e-10)[1.0]
        other = learn(self.scaled * 10, ALL, 0.3, [1.0], 0, tol=1e-10)[1.0]
        assert other.scale * 100 == pytest.approx(one.scale, rel=1e-5)
        np.testing.assert_allclose(other.weights * 100, one.weights, rtol=1e-4, atol=1e-6)

    def test_sparse_rows_give_the_same(self):
        one = learn(self.scaled, ALL, 0.3, [1.0], 0, tol=1e-9)[1.0]
        other = learn(csr_array(self.scaled), ALL, 0.3, [1.0], 0, tol=1e-9)[1.0]
        np.testing.assert_allclose(other.weights, one.weights, rtol=1e-6, atol=1e-9)

    def test_pairs_without_anything_in_common_give_equal_weights(self):
        rows = np.eye(6)
        found = learn(rows, Links(np.array([[0, 1], [2, 3]]), None, 6), 1.0, [1.0], 0)[1.0]
        assert np.ptp(found.weights) == 0
        assert np.isfinite(found.weights).all()


class TestContrast:
    def test_one_cluster_tells_nothing(self):
        assert contrast(np.zeros(60, int), ALL) == pytest.approx(0)
        both = Links(LINKS, np.array([[0, 1], [2, 3]]), 60)
        assert contrast(np.zeros(60, int), both) == pytest.approx(0)

    def test_names_of_clusters_do_not_matter(self):
        turned = np.array([2, 0, 1])[Y]
        assert contrast(turned, ALL) == pytest.approx(contrast(Y, ALL))

    def test_each_row_alone_scores_about_nothing(self):
        assert abs(contrast(np.arange(60), ALL)) < 0.05

    def test_the_classes_score_high(self):
        random = np.random.default_rng(0).permutation(Y)
        assert contrast(Y, ALL) > 0.4 > abs(contrast(random, ALL)) + 0.1

    def test_flip_noise_scales_the_score(self):
        random = np.random.default_rng(5)
        n, N = 200_000, 3000
        classes = random.integers(4, size=N)
        clusters = np.where(random.random(N) < 0.3, random.integers(4, size=N), classes)
        pairs = random.integers(N, size=(n, 2))
        t = classes[pairs[:, 0]] == classes[pairs[:, 1]]
        s = t ^ (random.random(n) < 0.2)
        excess = t[s].mean() + (~t[~s]).mean() - 1
        noisy = contrast(clusters, Links(pairs[s], pairs[~s], N))
        true = contrast(clusters, Links(pairs[t], pairs[~t], N))
        assert abs(noisy - excess * true) <= 4 * np.sqrt(0.25 / s.sum() + 0.25 / (~s).sum())


class TestSelection:
    def test_parts_are_disjoint_and_complete(self):
        links = replace(ALL, different=np.column_stack([np.arange(30), np.arange(30, 60)]))
        rest, held = links.split(0.2, np.random.RandomState(0))
        for name in ("same", "different"):
            parts = [{tuple(p) for p in getattr(part, name).tolist()} for part in (rest, held)]
            assert not parts[0] & parts[1]
            assert parts[0] | parts[1] == {tuple(p) for p in getattr(links, name).tolist()}
            assert len(parts[1]) == round(0.2 * len(getattr(links, name)))

    @pytest.mark.parametrize("alpha", [0.3, 1.0])
    def test_held_out_pairs_take_no_part_in_learning(self, alpha, monkeypatch):
        """Neither links, nor walks along them, nor the smoother know what is held out."""
        seen = {"held": [], "learned": [], "smoothed": []}
        split, original = Links.split, module.learn

        def watch_split(self, *args):
            rest, held = split(self, *args)
            seen["held"].append({tuple(p) for p in held.same.tolist()})
            return rest, held

        def watch_learn(X, links, *args, **options):
            seen["learned"].append({tuple(p) for p in links.same.tolist()})
            return original(X, links, *args, **options)

        def watch_adjacency(links, n):
            seen["smoothed"].append({tuple(p) for p in links.tolist()})
            return adjacency(links, n)

        monkeypatch.setattr(Links, "split", watch_split)
        monkeypatch.setattr(module, "learn", watch_learn)
        monkeypatch.setattr(module, "adjacency", watch_adjacency)
        candidates = [Setting("graph", 0.5, alpha, rho, 1) for rho in (1.0, np.inf)]
        select(X, ALL, candidates, 3, n_splits=2, holdout=0.2, random_state=0)
        assert len(seen["held"]) == len(seen["learned"]) == len(seen["smoothed"]) == 2
        assert seen["held"][0] != seen["held"][1]
        for held, learned, smoothed in zip(*seen.values(), strict=True):
            assert len(held) == round(0.2 * len(LINKS))
            assert not held & learned
            assert not held & smoothed

    def test_best_first_and_deterministic(self):
        candidates = list(settings("diag", gamma=0.5, alpha=1.0))
        assert len(candidates) == 8
        options = {"n_splits": 2, "holdout": 0.2, "random_state": 3}
        first = select(X, ALL, candidates, 3, **options)
        scores = [one.score for one in first]
        assert scores == sorted(scores, reverse=True)
        assert all(len(one.scores) == 2 for one in first)
        assert first == select(X, ALL, candidates, 3, **options)

    def test_equal_weights_are_always_a_candidate(self):
        for shape in ("diag", "words", "graph"):
            assert any(np.isinf(s.rho) for s in settings(shape))
            assert {s.steps for s in settings(shape, steps=3)} == {3}


@pytest.mark.parametrize("size", [1e-200, 1e180])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_rows_of_any_size_get_unit_length(form, size):
    scaled = scale_rows(form(size * X), column_factors(X, 0.0))
    dense = scaled.toarray() if hasattr(scaled, "toarray") else scaled
    np.testing.assert_allclose(np.linalg.norm(dense, axis=1), 1.0)
