"""A fork waits for critical sections and they wait for a fork, each with a time limit."""

import os
import threading
import time

import pytest

from ortscan.base import forks
from ortscan.base.forks import not_while_forking

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")


def forked() -> float:
    """Fork a child that passes the gate and ends. Return how long the fork took."""
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        with not_while_forking():
            os._exit(len(forks._inside) - 1)
    took = time.monotonic() - begun
    assert os.waitpid(child, 0)[1] == 0
    assert not forks._forking
    return took


def held(seconds: float) -> threading.Thread:
    entered = threading.Event()

    def hold() -> None:
        with not_while_forking():
            entered.set()
            time.sleep(seconds)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(10)
    return thread


def test_a_fork_waits_for_the_block_of_another_thread():
    thread = held(0.2)
    forked()
    assert not forks._inside
    thread.join()


def test_a_fork_waits_no_longer_than_it_must(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(forks, "_MOST_SECONDS", 0.05)
    thread = held(0.5)
    assert forked() < 0.4
    assert forks._inside
    thread.join()


def test_a_fork_inside_a_block_of_its_own_thread_does_not_wait():
    with not_while_forking(), not_while_forking():
        assert len(forks._inside) == 2
        child = os.fork()
        if child == 0:
            os._exit(len(forks._inside) - 2)
        assert os.waitpid(child, 0)[1] == 0
    assert not forks._inside


def test_a_block_waits_for_a_fork_of_another_thread_unless_it_is_inside_already(monkeypatch: pytest.MonkeyPatch):
    begun = time.monotonic()
    monkeypatch.setattr(forks, "_forking", {-1: begun + 0.2})
    with not_while_forking():
        assert time.monotonic() >= begun + 0.2
        forks._forking[-1] = time.monotonic() + 60
        with not_while_forking():
            assert time.monotonic() - begun < 30
