"""Fit and check in a pool of processes that outlives every fit that hangs."""

import multiprocessing
import os
import signal
import time
import traceback
from collections import Counter, defaultdict
from multiprocessing.connection import wait

from .instances import draw
from .referee import Outcome, check_fit

FIT_SECONDS = 10.0  # of processor time, for up to 300 rows
LARGE_FIT_SECONDS = 60.0
REFEREE_SECONDS = 120.0
GRACE_SECONDS = 10.0  # for what is under way when the time is used up
FAILURES = {
    "false certificate", "false convergence", "silent", "bad model", "wrong kernel", "wrong values",
    "wrong scale", "wrong refusal", "foreign exception", "foreign warning", "not finite",
    "changed input", "not reproducible", "slow", "stuck", "broken referee",
}  # fmt: skip


def check_seed(seed, only=None, stage=lambda name: None) -> Outcome:
    """Draw, fit and check one instance."""
    instance = draw(seed, only)
    outcome = check_fit(instance, stage)
    outcome.traits = instance.traits
    return outcome


def describe(seed, only=None):
    """Return in words what a seed stands for."""
    instance = draw(seed, only)
    parameters = {
        k: v
        for k, v in instance.model.get_params(deep=False).items()
        if k not in ("verbose", "memory_limit", "warm_start")
    }
    given = ", ".join(f"{k}={v}" for k, v in parameters.items())
    return f"{instance.name}({given})\n{instance.n_rows} rows, {', '.join(instance.traits)}"


def _is_long(instance):
    """Tell whether a fit may take long.

    Many rows, all conjunctions of many propositions, a search over weights of kernels (ten fits),
    or a bank for many rows on a few, where each step is a block of some rows.
    """
    whole = getattr(instance.model, "max_length", 1) is None
    searched = hasattr(instance.model, "Cs") and instance.name.startswith("MKL")
    forced = instance.name.startswith(("OnDemand", "Nystroem"))
    return instance.n_rows > 300 or whole or searched or forced


def _work(connection, only, limit):
    """Check the seeds that come in; a limit of processor time ends the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    while (seed := connection.recv()) is not None:
        many = _is_long(draw(seed, only))

        def stage(name, seed=seed, many=many):
            connection.send(("stage", seed, name))
            seconds = max(limit, LARGE_FIT_SECONDS) if many else limit
            # The timer counts the processor time of this process, and its signal ends it, whatever
            # code is running.
            signal.setitimer(signal.ITIMER_PROF, seconds if name == "fit" else REFEREE_SECONDS)

        began = time.process_time()
        try:
            outcome = check_seed(seed, only, stage)
        except Exception:
            outcome = Outcome("referee", "broken")
            outcome.report("broken referee", traceback.format_exc(limit=-3))
        signal.setitimer(signal.ITIMER_PROF, 0)
        outcome.seconds = time.process_time() - began
        connection.send(("done", seed, outcome))


class Pool:
    """Processes that each check one seed at a time."""

    def __init__(self, n_processes, only, limit):
        self.context = multiprocessing.get_context("fork")  # everything is imported already
        self.only, self.limit = only, limit
        self.workers = [self._start() for _ in range(n_processes)]

    def _start(self):
        here, there = self.context.Pipe()
        process = self.context.Process(target=_work, args=(there, self.only, self.limit))
        process.start()
        there.close()
        return {"process": process, "pipe": here, "seed": None, "stage": "", "since": 0.0}

    def run(self, seeds, until):
        """Yield seeds and outcomes until the seeds or the time are used up."""
        seeds = iter(seeds)
        for worker in self.workers:
            self._next(worker, seeds, until)
        while busy := [w for w in self.workers if w["seed"] is not None]:
            if time.monotonic() > until + GRACE_SECONDS:
                return
            ready = wait([w["pipe"] for w in busy], timeout=1.0)
            for number, worker in enumerate(self.workers):
                if worker["seed"] is None:
                    continue
                finished = self._listen(worker) if worker["pipe"] in ready else None
                if finished is None and self._is_over(worker):
                    finished = self._lost(worker)
                    self.workers[number] = worker = self._start()
                if finished is not None:
                    yield finished
                    self._next(worker, seeds, until)

    def close(self):
        for worker in self.workers:
            worker["process"].kill()
            worker["process"].join()

    def _next(self, worker, seeds, until):
        seed = next(seeds, None) if time.monotonic() < until else None
        worker["seed"], worker["stage"], worker["since"] = seed, "draw", time.monotonic()
        worker["pipe"].send(seed)

    def _listen(self, worker):
        try:
            kind, seed, what = worker["pipe"].recv()
        except (EOFError, ConnectionError):
            worker["process"].join()
            return None
        worker["since"] = time.monotonic()
        if kind == "stage":
            worker["stage"] = what
            return None
        return seed, what

    def _is_over(self, worker):
        """Tell whether a process has ended, or seems to wait for ever."""
        waited = time.monotonic() - worker["since"]
        return not worker["process"].is_alive() or waited > 20 * LARGE_FIT_SECONDS

    def _lost(self, worker):
        process, stage = worker["process"], worker["stage"]
        process.kill()
        process.join()
        code = process.exitcode
        outcome = Outcome(draw(worker["seed"], self.only).name, "slow")
        outcome.seconds = self.limit
        if stage != "fit":
            outcome.status = "broken"
            outcome.report("broken referee", f"ended in stage {stage!r} with code {code}")
        elif code == -signal.SIGPROF:
            outcome.report("slow", "the fit was ended at its limit of processor time")
        else:
            outcome.status = "stuck"
            outcome.report("stuck", f"the process of the fit ended with code {code}")
        return worker["seed"], outcome


def hunt(base, *, minutes, n_processes=2, most=None, only=None, limit=FIT_SECONDS, say=print):
    """Check the seeds from ``base`` on; return the number of failures."""
    began = time.monotonic()
    until, told = began + 60 * minutes, began
    tally = defaultdict(Counter)
    seeds = range(base, base + (most or 10**12))
    pool = Pool(n_processes, only, limit)
    seconds = failures = 0.0
    try:
        for seed, outcome in pool.run(seeds, until):
            counts = tally[outcome.estimator]
            counts["fits"] += 1
            counts[outcome.status] += 1
            counts["open"] += outcome.status == "fitted" and not outcome.converged
            counts["conic"] += outcome.conic
            seconds += outcome.seconds
            for kind, text in outcome.findings:
                counts[kind] += 1
                failures += kind in FAILURES
                say(f"{outcome.estimator} {kind}: {text}")
            if outcome.findings:
                which = f" --only {only}" if only else ""
                say(f"    python -m tests.fuzz --replay {seed}{which}")
            if time.monotonic() - told > 60:
                told = time.monotonic()
                total = sum(c["fits"] for c in tally.values())
                say(f"{(told - began) / 60:.0f} min: {total} fits, {failures:.0f} failures")
    finally:
        pool.close()
    say(table(tally, seconds))
    return int(failures)


COLUMNS = {
    "fits": ["fits"],
    "refused": ["refused"],
    "not converged": ["open"],
    "conic": ["conic"],
    "slow": ["slow", "stuck"],
    "false": ["false certificate", "false convergence", "silent", "bad model"],
    "wrong value": ["wrong kernel", "wrong values", "wrong scale", "wrong refusal", "not finite"],
    "foreign": ["foreign exception", "foreign warning"],
    "other": ["changed input", "not reproducible"],
    "referee": ["broken referee"],
}


def table(tally, seconds):
    """Return a table of what was found, one line per estimator."""
    lines = ["{:32}".format("") + "".join(f"{title:>14}" for title in COLUMNS)]
    total = Counter()
    for name in sorted(tally):
        total += tally[name]
    for name, counts in [*sorted(tally.items()), ("all", total)]:
        # A status and a finding may share their name; a fit counts once.
        cells = [sum(counts[key] for key in keys) for keys in COLUMNS.values()]
        cells[4] = counts["slow"] // 2 + counts["stuck"] // 2
        lines.append(f"{name:32}" + "".join(f"{cell:14}" for cell in cells))
    fits = total["fits"]
    rate = fits / max(seconds, 1e-9)
    lines.append(f"{fits} fits in {seconds:.0f} s of processor time, {rate:.1f} per second")
    return "\n".join(lines)


def quiet():
    """Leave threads to the pool."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
