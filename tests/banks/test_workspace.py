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
