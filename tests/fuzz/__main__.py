"""The command line of the fuzzer."""

import argparse
import secrets
import sys
import time

from .run import FIT_SECONDS, check_seed, describe, hunt, quiet


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long to hunt")
    parser.add_argument("--seed", type=int, help="first seed; drawn and printed by default")
    parser.add_argument("--fits", type=int, help="stop after so many fits")
    parser.add_argument("--only", help="name of the one estimator to fit")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--limit", type=float, default=FIT_SECONDS, help="seconds of a fit")
    parser.add_argument("--replay", type=int, help="check this one seed, and describe it")
    options = parser.parse_args()
    quiet()
    if options.replay is not None:
        return replay(options.replay, options.only)
    seed = secrets.randbelow(10**9) * 1000 if options.seed is None else options.seed
    print(f"seed {seed}, {options.minutes:g} minutes", flush=True)
    failures = hunt(
        seed,
        minutes=options.minutes,
        n_processes=options.processes,
        most=options.fits,
        only=options.only,
        limit=options.limit,
        say=lambda text: print(text, flush=True),
    )
    return 1 if failures else 0


def replay(seed, only):
    print(describe(seed, only), flush=True)
    began = time.process_time()
    outcome = check_seed(seed, only)
    print(f"{outcome.status}, {time.process_time() - began:.2f} s of processor time")
    for kind, text in outcome.findings:
        print(f"{kind}: {text}")
    return 1 if outcome.findings else 0


sys.exit(main())
