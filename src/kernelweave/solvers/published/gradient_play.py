"""Simultaneous subgradient steps with averaging, the method that StPMKL was compared with.

References
----------
T. Yang, M. Mahdavi, R. Jin, L. Zhang, Y. Zhou (2012), Multiple kernel learning from noisy labels by
stochastic programming, ICML: problem (11) and the experiments.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelweave.solvers.bounds import Result
from kernelweave.solvers.mirror_prox import Average, Functions, Game, GameOptions
from kernelweave.solvers.problem import Limits, Problem

_LENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)  # first steps that are tried
_TRIAL = 0.05  # share of the steps that each gets


def gradient_play(problem: Problem, limits: Limits, options: GameOptions) -> Result:
    """Learn kernels and a classifier by subgradient steps of length ``eta / sqrt(t)``.

    Here for comparison: it is slower than `mirror_prox` by far. The first step eta is the best of
    five, each tried over a twentieth of the steps, which `max_iter` does not count. Problem,
    options and result are those of `mirror_prox`.
    """
    bank, Y, lam, n = problem.bank, problem.Y, options.lam, options.n

    def play(length: float, steps: int, game: Game) -> float:
        functions, alpha = Functions.zero(bank.n_kernels, Y.shape), np.zeros_like(Y)
        average, gap = Average(), np.inf
        for step in range(1, steps + 1):
            eta = length / np.sqrt(step)
            products = game.products(alpha)
            norms = functions.norms
            pull = np.divide(
                eta * lam * norms.sum(), norms, out=np.zeros_like(norms), where=norms > 0
            )
            ascent = game.ascent(functions)
            kept = functions.scaled(1.0 - pull)
            functions = kept.moved(eta / n, Y * alpha, products)
            functions.refresh()
            alpha = game.project(alpha + eta * ascent)
            average.add(functions, alpha, game.products(alpha))
            if step % options.check and step < steps:
                continue
            mean = average.functions
            game.note(mean, average.alpha, average.products, step)
            gap = game.offer(mean, average.alpha, average.products, step)
            if not np.isfinite(gap) or game.evaluator.verify():
                break
        return gap

    trial, quiet = max(1, int(_TRIAL * limits.max_iter)), replace(limits, callback=None)
    with np.errstate(over="ignore", invalid="ignore"):  # a step that is far too long
        gaps = [play(length, trial, Game(problem, quiet, options)) for length in _LENGTHS]
        # Up to 1 / lam no step makes a function longer than all of them were together.
        length = _LENGTHS[int(np.argmin(gaps))] if np.isfinite(gaps).any() else 1.0 / lam
        game = Game(problem, limits, options)
        play(length, limits.max_iter, game)
    return game.result()
