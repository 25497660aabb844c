"""A fuzzer: random problems for every estimator, and a referee that shares no numerics with them.

``instances`` draws a problem from an integer, ``reference`` evaluates kernels in long double,
``referee`` compares what a fitted model claims with what it can work out itself, and ``run`` does
this in a pool of processes. ``python -m tests.fuzz --help`` lists the options.
"""

import sys
from pathlib import Path

_TESTS = str(Path(__file__).resolve().parents[1])
if _TESTS not in sys.path:  # the conic oracles are modules of tests/
    sys.path.insert(0, _TESTS)
