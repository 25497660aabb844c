"""What the numbers were taken on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "kernelweave",
    "numpy",
    "scipy",
    "scikit-learn",
    "MKLpy",
    "torch",
    "cvxopt",
    "scikit-multimodallearn",
    "himalaya",
)

_BLAS = """
import json, numpy, threadpoolctl
pools = threadpoolctl.threadpool_info()
print(json.dumps(sorted({f"{p['internal_api']} {p['version']}" for p in pools})))
"""


def describe_machine() -> dict[str, Any]:
    """Return processor, memory, load, and the versions of everything that takes part."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory": _memory(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "linear_algebra": _linear_algebra(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def machine_lines(machine: dict[str, Any]) -> list[str]:
    """Return the description as sentences."""
    cores = machine["cores"] or "unknown number of"
    there = [f"{name} {v}" for name, v in machine["packages"].items() if v]
    missing = [name for name, v in machine["packages"].items() if not v]
    lines = [
        f"{machine['processor']}, {cores} cores, {machine['memory']}, {machine['system']}, "
        f"Python {machine['python']}, {', '.join(machine['linear_algebra'])}.",
        f"{', '.join(there)}.",
    ]
    if missing:
        lines.append(f"Not installed, so not measured: {', '.join(missing)}.")
    if machine["load"] is not None and machine["load"] > 0.3:
        lines.append(
            f"Other work was running (load {machine['load']:.1f} before the start): "
            "trust ratios, which were taken in turns, more than seconds."
        )
    return lines


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return "unknown memory"
    return f"{size / 1e9:.0f} GB"


def _linear_algebra() -> list[str]:
    done = subprocess.run([sys.executable, "-c", _BLAS], capture_output=True, text=True)
    found: list[str] = json.loads(done.stdout) if done.returncode == 0 else ["unknown BLAS"]
    return found


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
