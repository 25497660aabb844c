"""A process that is killed while it writes a model file leaves the old file or the new one."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from kernelweave import RBF, MKLClassifier
from kernelweave.io import load, save
from quick import first

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")

LOAD = """
import os, random, signal, sys, time
from kernelweave.io import load, save
old, new, path = sys.argv[1:4]
old, new = load(old), load(new)
def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)
"""
# Dies before the contents are on the disk, when they are, and while an array is written.
PLACES = {
    "before the contents are synced": "os.fsync = die",
    "before the file is renamed": "os.replace = die",
    "in the middle of an array": """
import numpy.lib.format as format
write = format.write_array
def half(stream, array, **options):
    stream.write(b"half")
    die()
format.write_array = half
import numpy as np
np.lib.format.write_array = half
""",
}
MANY = """
random.seed(0)
for _ in range(40):
    child = os.fork()
    if not child:
        while True:
            save(new, path)
            save(old, path)
    time.sleep(random.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert load(path).C in (old.C, new.C)
print("all loaded")
"""


def fitted(C):
    X = np.random.default_rng(0).normal(size=(200, 3))
    return MKLClassifier([RBF(1.0), RBF(3.0)], C=C).fit(X, X[:, 0] > 0)


@pytest.fixture
def files(tmp_path):
    """Return paths of an old model, a new one and a copy of the old one to be replaced."""
    (tmp_path / "work").mkdir()
    for name, C in (("old.kw", 1.0), ("new.kw", 10.0), ("work/model.kw", 1.0)):
        save(fitted(C), tmp_path / name)
    return [tmp_path / name for name in ("old.kw", "new.kw", "work/model.kw")]


def run(code, files):
    command = [sys.executable, "-c", LOAD + code, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("place", first(1, PLACES.values()), ids=PLACES)
def test_the_old_file_stays(files, place):
    old, _, path = files
    done = run(f"{place}\nsave(new, path)", files)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert path.read_bytes() == old.read_bytes()
    assert load(path).C == 1.0
    assert len(list(path.parent.iterdir())) == 2  # what is left is hidden, and goes next time
    save(load(path), path)
    assert [p.name for p in path.parent.iterdir()] == ["model.kw"]


def test_the_new_file_is_whole_once_it_has_the_name(files):
    _, new, path = files
    code = """
replace = os.replace
def last(*args):
    replace(*args)
    die()
os.replace = last
save(new, path)
"""
    assert run(code, files).returncode == -signal.SIGKILL
    assert path.read_bytes() == new.read_bytes()
    assert [p.name for p in path.parent.iterdir()] == ["model.kw"]


@pytest.mark.slow
def test_kills_at_any_time(files):
    done = run(MANY, files)
    assert (done.returncode, done.stdout) == (0, "all loaded\n"), done.stderr
    save(load(files[2]), files[2])
    assert [p.name for p in files[2].parent.iterdir()] == ["model.kw"]


def test_contents_are_on_the_disk_before_the_name(files, monkeypatch):
    calls = []
    monkeypatch.setattr("os.fsync", lambda place: calls.append("sync"))
    monkeypatch.setattr("os.replace", lambda *args: calls.append("rename"))
    save(load(files[0]), files[2])
    assert calls == ["sync", "rename", "sync"]


@pytest.mark.slow
def test_a_file_that_is_being_written_is_not_removed(files):
    old, _, path = files
    code = (
        "os.replace = lambda *args: (print('waiting', flush=True), time.sleep(60))\nsave(new, path)"
    )
    command = [sys.executable, "-c", LOAD + code, *map(str, files)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout.readline() == "waiting\n"
            save(load(old), path)
            assert len(list(path.parent.iterdir())) == 2
        finally:
            writer.kill()
    save(load(old), path)
    assert [p.name for p in path.parent.iterdir()] == ["model.kw"]


@pytest.mark.slow
def test_several_processes_write_one_file(files):
    code = """
for _ in range(3):
    if not os.fork():
        end = time.time() + 1.0
        while time.time() < end:
            save(new, path)
        os._exit(0)
while True:
    try:
        assert os.waitpid(-1, 0)[1] == 0
    except ChildProcessError:
        break
print("done")
"""
    began = time.monotonic()
    done = run(code, files)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert time.monotonic() - began < 60
    assert files[2].read_bytes() == files[1].read_bytes()
    assert [p.name for p in files[2].parent.iterdir()] == ["model.kw"]
