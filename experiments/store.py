"""Results of a long run in a file that is whole at any time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Task = tuple[Any, ...]


class Store:
    """Results in a JSON file, one for each task.

    Parameters
    ----------
    path : Path
        The file; what it holds is read.
    settings : dict
        What all results share; a file with other settings is refused.
    fields : tuple of str
        The entries of a result that say which task it answers.
    """

    def __init__(self, path: Path, settings: dict[str, Any], fields: tuple[str, ...]) -> None:
        self.path = path
        self._settings = settings
        self._fields = fields
        self._records: dict[Task, Record] = {}
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["settings"] != settings:
                raise ValueError(
                    f"{path} holds results for {kept['settings']}, not for {settings}; remove it "
                    "or choose another folder with --output."
                )
            self._records = {self._task(record): record for record in kept["records"]}

    def __contains__(self, task: Task) -> bool:
        return task in self._records

    def get(self, task: Task) -> Record | None:
        """Return the result of a task, if there is one."""
        return self._records.get(task)

    def records(self) -> list[Record]:
        """Return all results in the order of their tasks."""
        return [self._records[task] for task in sorted(self._records)]

    def add(self, record: Record) -> None:
        """Keep a result."""
        self._records[self._task(record)] = record
        # Written at every result, so a record takes one line and not fifty.
        lines = ",\n".join(json.dumps(record) for record in self.records())
        settings = json.dumps(self._settings)
        write(self.path, f'{{"settings": {settings},\n"records": [\n{lines}\n]}}\n')

    def _task(self, record: Record) -> Task:
        return tuple(record[name] for name in self._fields)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)
