"""Signals, forks, exits and deep stacks around runs that call Python, each in a subprocess."""

import os
import sys

import pytest

from tests.support.python_calls import survives

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform == "win32", reason="signals of other processes, and forks")]


def test_child_forked_by_another_thread_gets_its_signals():
    code = """
class Ended(BaseException): pass
def end(number, frame): raise Ended
signal.signal(signal.SIGTERM, end)
s = session()
child = None
def fork():
    global child
    child = os.fork()
    if child == 0:
        name = signal.getsignal(signal.SIGTERM).__name__
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        except Ended:
            y = s.run(None, {"a": A})[0]
            os._exit(7 if y.shape == (2,) and name == "end" else 3)
        os._exit(2)
parent = os.getpid()
def run(values):
    if os.getpid() == parent:
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    return values
with behaving(run):
    s.run(None, {"a": A})
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert survives(code).splitlines() == ["7"]


def test_child_forked_inside_a_run_stays_protected():
    code = """
def interrupt(number, frame): raise KeyboardInterrupt
signal.signal(signal.SIGTERM, interrupt)
s = session()
def run(values):
    global child
    child = os.fork()
    if child == 0: os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)
    return values
with behaving(run):
    try:
        s.run(None, {"a": A})
    except KeyboardInterrupt:
        os._exit(7 if child == 0 else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert survives(code).splitlines() == ["7"]


def test_handler_set_during_a_run_stays():
    code = """
class Ended(BaseException): pass
def second(number, frame): raise Ended
def first(number, frame): signal.signal(signal.SIGUSR1, second)
signal.signal(signal.SIGUSR1, first)
s = session(IN_A_SCAN)
stop = False
def bother():
    while not stop:
        time.sleep(0.0003)
        os.kill(os.getpid(), signal.SIGUSR1)
step = 0
def run(values):
    global step
    step += 1
    if step == 3: os.kill(os.getpid(), signal.SIGUSR1)
    if step == 5: thread.start()
    return values[:1]
thread = threading.Thread(target=bother)
with behaving(run):
    caught = False
    try:
        s.run(None, {"h": np.zeros(2), "x": np.ones((3000, 2))})
    except Ended:
        caught = True
    finally:
        while not stop:
            try: stop = True
            except Ended: pass
        while thread.is_alive():
            try: thread.join()
            except Ended: pass
print(caught, 5 <= step < 3000, signal.getsignal(signal.SIGUSR1).__name__)
"""
    assert survives(code).splitlines() == ["True True second"]


def test_handler_set_inside_an_op_stays():
    code = """
import unittest.mock
s = session()
for handler in (signal.SIG_IGN, signal.SIG_DFL, lambda number, frame: None, unittest.mock.Mock()):
    for before in (signal.SIG_IGN, signal.default_int_handler, unittest.mock.Mock()):
        signal.signal(signal.SIGINT, before)
        def run(values):
            old = signal.signal(signal.SIGINT, handler)
            signal.signal(signal.SIGINT, old)
            signal.signal(signal.SIGINT, handler)
            return values
        with behaving(run): s.run(None, {"a": A})
        assert signal.getsignal(signal.SIGINT) is handler
        def run(values):
            signal.signal(signal.SIGINT, signal.signal(signal.SIGINT, before))
            return values
        with behaving(run): s.run(None, {"a": A})
        assert signal.getsignal(signal.SIGINT) is handler
print("ok")
"""
    assert survives(code).splitlines() == ["ok"]


def test_run_inside_an_op_is_protected():
    code = """
s, inner = session(), session(IN_A_SCAN)
feed = {"h": np.zeros(2), "x": np.ones((400, 2))}
depth, caught, stop = 0, 0, False
def bother():
    while not stop:
        time.sleep(0.0007)
        os.kill(os.getpid(), signal.SIGUSR1)
class Ended(BaseException): pass
def end(number, frame): raise Ended
def run(values):
    global depth
    if depth: return values[:1]
    depth = 1
    try: inner.run(None, feed)
    finally: depth = 0
    return values
with behaving(run):
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    thread = threading.Thread(target=bother)
    thread.start()
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        try:
            signal.signal(signal.SIGUSR1, end)
            s.run(None, {"a": A})
        except Ended:
            caught += 1
        finally:
            while True:
                try:
                    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
                    break
                except Ended: pass
    stop = True
    thread.join()
assert caught > 20, caught
print(s.run(None, {"a": A})[0].shape)
"""
    assert survives(code).splitlines() == ["(2,)"]


ASYNC = """
def once():
    over = threading.Event()
    s.run_async(None, feed, lambda *_: over.set(), None)
    over.wait(20)
"""


@pytest.mark.parametrize("once", ["def once(): s.run(None, feed)", ASYNC], ids=["run", "run_async"])
def test_daemon_threads_in_runs_do_not_abort_at_exit(once: str):
    code = f"""
import onnx
made = options()
made.intra_op_num_threads = 2
s = ortscan.InferenceSession(onnx.parser.parse_model(IN_A_SCAN), made)
feed = {{"h": np.zeros(2), "x": np.ones((500, 2))}}
{once}
def forever():
    while True: once()
for _ in range(3): threading.Thread(target=forever, daemon=True).start()
time.sleep(0.2)
print("end")
"""
    assert survives(code).splitlines() == ["end"]


def test_runs_at_exit_succeed_or_are_refused():
    code = """
import atexit
def tried():
    try: return s.run(None, {"a": A})[0].shape
    except (Exception, SystemExit) as error: return f"{type(error).__name__}: {error}"
def other():
    said = []
    thread = threading.Thread(target=lambda: said.append(tried()), daemon=True)
    thread.start()
    thread.join(20)
    return said[0]
threads_start = sys.version_info < (3, 12)
atexit.register(lambda: print(tried(), other() if threads_start else "SystemExit: the interpreter exits", sep=chr(10)))
s = session()
atexit.register(lambda: print(tried(), other() if threads_start else (2,), sep=chr(10)))
"""
    assert survives(code).splitlines() == [
        *("(2,)", "(2,)"),
        "OrtscanError: the model calls Python, which is not possible while the interpreter exits.",
        "SystemExit: the interpreter exits",
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_child_does_not_wait_for_the_runs_of_other_threads():
    code = """
import atexit
s = session()
forked, go = threading.Event(), threading.Event()
def run(values):
    forked.set()
    go.wait(20)
    return values
with behaving(run):
    thread = threading.Thread(target=lambda: s.run(None, {"a": A}), daemon=True)
    thread.start()
    forked.wait()
    started = time.monotonic()
    if os.fork() == 0:
        atexit._run_exitfuncs()
        os._exit(0)
    status = os.wait()[1]
    go.set()
    thread.join()
print(status, time.monotonic() - started < 5)
"""
    assert survives(code).splitlines() == ["0 True"]


def test_run_at_any_stack_depth_succeeds_or_raises():
    code = """
s = session()
def down(left): return s.run(None, {"a": A}) if left == 0 else down(left - 1)
def fails(values): raise ValueError("v")
def tried(depth):
    try: return down(depth)[0].shape
    except (RecursionError, ValueError) as error: return type(error).__name__
depths = range(sys.getrecursionlimit() - 130, sys.getrecursionlimit())
print(sorted({str(tried(depth)) for depth in depths}))
with behaving(fails):
    print(sorted({tried(depth) for depth in depths}))
"""
    assert survives(code).splitlines() == ["['(2,)', 'RecursionError']", "['RecursionError', 'ValueError']"]
