"""The process in which one case runs: an order per line comes in, an answer per line goes out."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from importlib import import_module
from statistics import median
from typing import Any

from benchmarks import memory
from benchmarks.tasks import Task

_ENOUGH = 0.2  # seconds of work that make one repeat ...
_MOST = 25  # ... or this many calls
_WARM_ROWS = 150


def main() -> None:
    # Packages print; the answers keep a channel of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    state = _State()
    for line in sys.stdin:
        try:
            answer = state.obey(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            answer = {"problem": _sentence(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


class _State:
    task: Task
    result: Any = None

    def obey(self, order: Any) -> dict[str, Any]:
        if order == "repeat":
            return self._repeat()
        if order == "tell":
            return self.task.tell(self.result)
        module, name = order["task"].split(":")
        make = getattr(import_module(f"benchmarks.tasks.{module}"), name)
        args = order["args"]
        if args.get("n", 0) > _WARM_ROWS:  # load what is loaded late, start threads
            try:
                make(**{**args, "n": _WARM_ROWS}).work()
            except (ArithmeticError, ValueError):
                pass  # too small for this package; the first repeat will be the warm one
        self.task = make(**args)
        return {}

    def _repeat(self) -> dict[str, Any]:
        self.result = None
        base = memory.settle()
        walls: list[float] = []
        cpus: list[float] = []
        while sum(walls) < _ENOUGH and len(walls) < _MOST:
            self.result = None
            wall, cpu = time.perf_counter(), time.process_time()
            self.result = self.task.work()
            cpus.append(time.process_time() - cpu)
            walls.append(time.perf_counter() - wall)
        return {"wall": median(walls), "cpu": median(cpus), "base": base, "peak": memory.peak()}


def _sentence(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed"
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0] if first else ''}"


if __name__ == "__main__":
    main()
