"""Memory is made when it is first lent, lent again, and never to two at once."""

import threading

import numpy as np
import pytest

from kernelweave.banks.workspace import Workspace


def test_memory_is_lent_again():
    workspace = Workspace(4, np.float32)
    assert workspace._memory is None
    with workspace.borrow() as first:
        assert first.shape == (16,)
        assert first.dtype == np.float32
        first[:] = 3.0
    with workspace.borrow() as second:
        assert second is first


def test_another_thread_waits():
    workspace, entered = Workspace(2, np.float64), threading.Event()

    def enter():
        with workspace.borrow():
            entered.set()

    thread = threading.Thread(target=enter)
    with workspace.borrow():
        thread.start()
        assert not entered.wait(0.05)
    thread.join(5.0)
    assert entered.is_set()


def test_an_error_gives_the_memory_back():
    workspace = Workspace(2, np.float64)
    with pytest.raises(KeyError), workspace.borrow():
        raise KeyError
    assert not workspace._lock.locked()


def test_a_sum_is_computed_once_until_another_needs_the_memory():
    workspace, calls = Workspace(2, np.float64, whole=True), []
    owners = [type("Owner", (), {})() for _ in range(2)]

    def lend(k):
        def compute(out):
            calls.append(k)
            out[:] = k

        with workspace.sum_of(owners[k], 3, compute) as matrix:
            assert (matrix == k).all()
            return matrix

    first = lend(0)
    assert lend(0) is first
    assert lend(1) is first
    lend(0)
    assert calls == [0, 1, 0]
    del owners[0]  # another object may get its address
    owners.insert(0, type("Owner", (), {})())
    lend(0)
    assert calls == [0, 1, 0, 0]


def test_a_sum_that_was_interrupted_is_computed_again():
    workspace, owner = Workspace(2, np.float64, whole=True), type("Owner", (), {})()

    def fail(out):
        raise KeyError

    with pytest.raises(KeyError), workspace.sum_of(owner, 3, fail):
        pass
    with workspace.sum_of(owner, 3, lambda out: out.fill(5.0)) as matrix:
        assert (matrix == 5.0).all()
    other = type("Owner", (), {})()
    with workspace.sum_of(other, 4, lambda out: out.fill(6.0)) as matrix:  # of other rows
        assert matrix.shape == (4, 4)
