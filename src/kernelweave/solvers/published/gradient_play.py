"""Simultaneous subgradient steps with averaging, as published for the StPMKL game."""

from __future__ import annotations

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import KernelBank
from kernelweave.losses import CVaRHinge
from kernelweave.solvers.bounds import Callback, Result
from kernelweave.solvers.mirror_prox import Average, Functions, Game

_LENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)  # first steps that are tried
_TRIAL = 0.05  # share of the steps that each gets
_CHECK = 10  # steps between two looks at the gap


def gradient_play(
    bank: KernelBank,
    Y: Floats,
    cost: Floats,
    loss: CVaRHinge,
    *,
    lam: float,
    n: float,
    tol: float,
    max_iter: int,
    report: Callback | None = None,
) -> Result:
    """Learn kernels and a classifier by subgradient steps of length ``eta / sqrt(t)``.

    Here for comparison: it is slower than `mirror_prox` by far. The first step eta is the best of
    five, each tried over a twentieth of the steps.

    Parameters
    ----------
    bank, Y, cost, loss, lam, n, tol
        As in `mirror_prox`.
    max_iter : int
        Steps at most, those of the trials not counted.
    report : callable, optional
        Called with every `Step`.

    Returns
    -------
    result : Result
        As in `mirror_prox`.
    """

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
            if step % _CHECK and step < steps:
                continue
            mean = average.functions
            game.note(mean, average.alpha, average.products, step)
            gap = game.offer(mean, average.alpha, average.products, step)
            if not np.isfinite(gap) or game.evaluator.verify():
                break
        return gap

    def new_game(report: Callback | None) -> Game:
        return Game(bank, Y, cost, loss, lam=lam, n=n, tol=tol, report=report)

    trial = max(1, int(_TRIAL * max_iter))
    with np.errstate(over="ignore", invalid="ignore"):  # a step that is far too long
        gaps = [play(length, trial, new_game(None)) for length in _LENGTHS]
        # Up to 1 / lam no step makes a function longer than all of them were together.
        length = _LENGTHS[int(np.argmin(gaps))] if np.isfinite(gaps).any() else 1.0 / lam
        game = new_game(report)
        play(length, max_iter, game)
    return game.result()
