"""The end of the interpreter, and the end of its stack, around runs that call Python; each in a process of its own."""

import os

import pytest

from tests.support.python_calls import survives

pytestmark = pytest.mark.long

ASYNC = """
def once():
    over = threading.Event()
    s.run_async(None, feed, lambda *_: over.set(), None)
    over.wait(20)
"""


@pytest.mark.parametrize("once", ["def once(): s.run(None, feed)", ASYNC], ids=["run", "run_async"])
def test_daemon_threads_in_runs_do_not_end_the_process_with_an_abort(once: str):
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


def test_runs_at_the_end_of_the_interpreter_run_or_say_why_not():
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
atexit.register(lambda: print(tried(), other() if threads_start else "SystemExit: the interpreter ends", sep=chr(10)))
s = session()
atexit.register(lambda: print(tried(), other() if threads_start else (2,), sep=chr(10)))
"""
    assert survives(code).splitlines() == [
        *("(2,)", "(2,)"),
        "OrtscanError: the model calls Python, which it cannot any more: the interpreter ends.",
        "SystemExit: the interpreter ends",
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_does_not_wait_for_runs_of_threads_it_does_not_have():
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


def test_a_run_at_any_depth_of_the_stack_runs_or_raises():
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
