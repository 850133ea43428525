"""The lifetime of sessions with plans: many at once, in many threads, across a fork and at exit."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rewrites.native.plan import Plan, Size, Storage
from tests.ortscan.native.test_running import feeds, inputs_of, session_of
from tests.support.sample_plans import counting, lstm, recurrence


def plans() -> list[tuple[Plan, tuple[int, ...]]]:
    """Return plans with packs, free sizes, blocks and a condition, and their sizes."""
    return [(lstm(Size(3), 16), ()), (lstm(None, 16), (5,)), (recurrence(Storage.TWO_ROWS, block=3), ()), (counting(least=20), ())]


def given_to(plan: Plan, seed: int, symbols: tuple[int, ...]) -> dict[str, np.ndarray]:
    given = inputs_of(plan, 3 + seed, seed, symbols)
    if plan.form:
        given[0], given[2] = np.array(True), np.array(5 * seed)
    return feeds(given)


def run_in_threads(runs: int, threads: int = 8) -> int:
    """Run a session of each plan in many threads with inputs of eight sizes. Return how many runs equal a single-threaded run."""
    good = 0
    for plan, symbols in plans():
        session = session_of(plan)
        given = [given_to(plan, seed, symbols) for seed in range(8)]
        wanted = [session.run(None, each) for each in given]

        def run(thread: int, session=session, given=given, wanted=wanted) -> int:  # type: ignore[no-untyped-def]
            same = 0
            for index in range(thread, thread + runs):
                got = session.run(None, given[index % 8])
                same += all(map(np.array_equal, got, wanted[index % 8]))
            return same

        with ThreadPoolExecutor(threads) as pool:
            good += sum(pool.map(run, range(threads)))
    return good


def test_session_gives_equal_results_in_many_threads() -> None:
    assert run_in_threads(100) == 8 * 100 * len(plans())


def grown(sessions: int) -> float:
    """Make, run and drop sessions. Return the growth of the process in KiB since the first tenth of them."""

    def resident() -> int:
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

    def one(index: int) -> None:
        plan, symbols = plans()[index % 4]
        session = session_of(plan)
        for seed in range(2):
            session.run(None, given_to(plan, seed, symbols))

    for index in range(sessions // 10):
        one(index)
    before = resident()
    for index in range(sessions):
        one(index)
    return resident() - before


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_closed_sessions_leak_nothing() -> None:
    assert grown(200) < 8 * 1024  # a workspace or a pack of each would be more: 200 of them are kept nowhere


FORKED = """
import os, sys
from tests.ortscan.native.test_lives import *
made = [(session_of(plan), given_to(plan, 4, symbols)) for plan, symbols in plans()]
wanted = [session.run(None, given) for session, given in made]
child = os.fork()
same = all(np.array_equal(*pair) for (session, given), each in zip(made, wanted) for pair in zip(session.run(None, given), each))
same = same and run_in_threads(5, 3) == 15 * len(plans())
if child == 0:
    os._exit(0 if same else 3)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.exit(status or (0 if same else 4))
"""
LEFT = """
import threading
from tests.ortscan.native.test_lives import *
made = [(session_of(plan), given_to(plan, 4, symbols)) for plan, symbols in plans()]
kept = [session.run(None, given) for session, given in made]
def run():
    for session, given in made * 200:
        session.run(None, given)
for _ in range(3):
    threading.Thread(target=run).start()  # no daemons: those end the process of any session of onnxruntime that they run
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no fork elsewhere, or not with threads")
def test_a_fork_runs_the_sessions_of_its_parent() -> None:
    ended(FORKED)


def test_the_process_ends_while_sessions_live_and_run() -> None:
    ended(LEFT)


def ended(code: str) -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
