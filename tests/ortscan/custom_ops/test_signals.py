"""Signals, handlers and forks around runs that call Python, each in a process of its own."""

import sys

import pytest

from tests.support.python_calls import survives

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of other processes, and forks"),
]


def test_a_child_that_another_thread_forks_during_a_run_gets_its_signals():
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


def test_a_child_that_the_run_itself_forks_goes_on_in_it_protected():
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


def test_a_handler_that_is_set_during_a_run_stays_and_ends_nothing():
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


def test_a_handler_set_inside_an_op_is_there_after_the_run():
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


def test_a_run_inside_an_op_is_protected_as_much_as_the_one_around_it():
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
