"""The plugin in a process: threads, bound memory, many sessions, child processes, and the exit of the interpreter."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

import ortscan
from ortscan.errors import OptionError
from ortscan.native import library as installed
from ortscan.plugin import register
from ortscan.plugin.register import PROVIDER
from tests.support.native_plans import library
from tests.support.plugin_sessions import SCAN, asked_options, feeds_of_scan
from tests.support.text import model_from_text

pytestmark = pytest.mark.long

MODEL = model_from_text(SCAN, 18).SerializeToString()

BEGIN = """
import os, sys, threading
from pathlib import Path
import numpy as np, onnxruntime as ort, ortscan
from ortscan.native import library
library._built = lambda: Path(sys.argv[1])
from tests.support.plugin_sessions import SCAN, asked_options, feeds_of_scan
from tests.support.text import model_from_text
MODEL, FEEDS = model_from_text(SCAN, 18).SerializeToString(), feeds_of_scan()
WANTED = ort.InferenceSession(MODEL).run(None, FEEDS)
def check(session):
    assert session.get_providers()[0] == "OrtscanExecutionProvider"
    for one, other in zip(session.run(None, FEEDS), WANTED, strict=True):
        np.testing.assert_array_equal(one, other)
"""


BROAD = """g (float[B,8] h, float[B,8] w, float[T,B,8] xs) => (float[B,8] hT, float[T,C,8] ys) {
  hT, ys = Scan <num_scan_inputs = 1, body = b (float[B,8] s, float[B,8] x) => (float[B,8] s1, float[C,8] y) {
    s1 = Tanh (s) y = Mul (w, x) }> (h, xs) }"""

BROADCAST = (
    f"BROAD = model_from_text({BROAD!r}, 18).SerializeToString()"
    + """
ODD = FEEDS | {"w": np.ones((1, 8), np.float32)}
RIGHT = ort.InferenceSession(BROAD).run(None, ODD)
def same(session):
    for one, other in zip(session.run(None, ODD), RIGHT, strict=True):
        np.testing.assert_array_equal(one, other)
"""
)


def in_a_process(text: str) -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + text, str(library())],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["done"]), done.stderr[-2000:]


def test_sessions_outlive_the_library_that_was_unregistered() -> None:
    in_a_process(
        BROADCAST
        + """
session, within = ort.InferenceSession(MODEL, asked_options()), ort.InferenceSession(BROAD, asked_options())
check(session)
same(within)
ort.unregister_execution_provider_library("OrtscanExecutionProvider")
check(session)
same(within)
del session, within
check(ort.InferenceSession(MODEL, asked_options()))  # registered again
print("done")
"""
    )


def test_many_sessions_leave_nothing_behind() -> None:
    in_a_process("""
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20 if sys.platform == "linux" else 0
for number in range(400):
    check(ort.InferenceSession(MODEL, asked_options()))
    if number == 100:
        before = resident()
assert resident() - before < 20, (before, resident())
print("done")
""")


def test_a_session_may_live_as_long_as_the_interpreter_does() -> None:
    in_a_process("""
sessions = [ort.InferenceSession(MODEL, asked_options()) for _ in range(3)]
for session in sessions:
    check(session)
print("done")
""")


def test_the_library_may_be_registered_by_other_names_too() -> None:
    in_a_process("""
session = ort.InferenceSession(MODEL, asked_options())
ort.register_execution_provider_library("another name", sys.argv[1])
check(session)
check(ort.InferenceSession(MODEL, asked_options()))
ort.unregister_execution_provider_library("another name")
check(session)
check(ort.InferenceSession(MODEL, asked_options()))
print("done")
""")


@pytest.mark.parametrize("kind", ["missing", "no library", "another library", "a folder"])
def test_a_library_that_is_none_is_one_error(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / library().name
    if kind == "no library":
        path.write_bytes(b"no library at all" * 100)
    elif kind == "another library":
        path = next((Path(ort.__file__).parent / "capi").glob("*providers_shared.*"))
    elif kind == "a folder":
        path.mkdir()
    monkeypatch.setattr(installed, "_built", lambda: path)
    ort_devices = ort.get_ep_devices
    monkeypatch.setattr(ort, "get_ep_devices", lambda: [each for each in ort_devices() if each.ep_name != PROVIDER])
    monkeypatch.setattr(register, "PROVIDER", f"{PROVIDER}{kind}")
    options = ort.SessionOptions()
    with pytest.raises(OptionError, match="onnxruntime rejects ortscan's plugin"):
        ortscan.register_plugin(options)
    ort.InferenceSession(MODEL, options).run(None, feeds_of_scan())


@pytest.mark.skipif(sys.platform != "linux", reason="memory is bound in another way")
def test_a_session_made_where_memory_is_scarce_fails_or_is_right() -> None:
    in_a_process("""
import resource
check(ort.InferenceSession(MODEL, asked_options()))
options = [asked_options() for _ in range(40)]
for each in options:
    each.log_severity_level = 4
for number, each in enumerate(options):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + number * 64 * 1024, resource.RLIM_INFINITY))
    try:
        results = ort.InferenceSession(MODEL, each).run(None, FEEDS)
    except Exception:
        results = WANTED
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for one, other in zip(results, WANTED, strict=True):
        np.testing.assert_array_equal(one, other)
check(ort.InferenceSession(MODEL, asked_options()))
print("done")
""")


def test_the_log_says_what_profiles_call_a_loop() -> None:
    in_a_process("""
import contextlib, json, tempfile
named = model_from_text(SCAN.replace("hT, ys = Scan", "[cell] hT, ys = Scan"), 18).SerializeToString()
options = asked_options()
options.log_severity_level, options.enable_profiling = 1, True
options.profile_file_prefix = os.path.join(tempfile.mkdtemp(), "profile")
with tempfile.TemporaryFile() as log:
    os.dup2(log.fileno(), 2)
    session = ort.InferenceSession(named, options)
    session.run(None, FEEDS)
    log.seek(0)
    said = log.read().decode(errors="replace")
(line,) = [each for each in said.splitlines() if "Scan 'cell' runs as " in each]
name = line.split("Scan 'cell' runs as ")[1].split()[0]
events = json.loads(Path(session.end_profiling()).read_text())
assert [each for each in events if each["name"].startswith(name) and each["args"]["provider"] == "OrtscanExecutionProvider"], name
print("done")
""")


def test_providers_given_to_a_session_replace_what_options_hold() -> None:
    with pytest.warns(UserWarning, match="providers"):
        session = ort.InferenceSession(MODEL, asked_options(), providers=["CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    session = ort.InferenceSession(MODEL, providers=[PROVIDER, "CPUExecutionProvider"])
    assert session.get_providers() == [PROVIDER, "CPUExecutionProvider"]
    wanted = ort.InferenceSession(MODEL).run(None, feeds_of_scan())
    for left, right in zip(session.run(None, feeds_of_scan()), wanted, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_uses_sessions_of_its_parent_and_makes_its_own() -> None:
    in_a_process(
        BROADCAST
        + """
session, within = ort.InferenceSession(MODEL, asked_options()), ort.InferenceSession(BROAD, asked_options())
same(within)
child = os.fork()
if child == 0:
    check(session)
    same(within)
    check(ort.InferenceSession(MODEL, asked_options()))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
check(session)
same(within)
check(ort.InferenceSession(MODEL, asked_options()))
print("done")
"""
    )


def test_sessions_are_made_and_run_in_many_threads() -> None:
    feeds = [feeds_of_scan(steps, batch, steps) for steps, batch in [(3, 1), (50, 2), (7, 5), (200, 3)]]
    plain = ort.InferenceSession(MODEL)
    wanted = [plain.run(None, each) for each in feeds]
    shared, barrier = ort.InferenceSession(MODEL, asked_options()), threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        own = ort.InferenceSession(MODEL, asked_options())
        for turn in range(40):
            which = (number + turn) % len(feeds)
            for session in (shared, own):
                for left, right in zip(session.run(None, feeds[which]), wanted[which], strict=True):
                    np.testing.assert_array_equal(left, right)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_runs_that_no_plan_fits_are_made_in_many_threads() -> None:
    model = model_from_text(BROAD, 18).SerializeToString()
    feeds = feeds_of_scan() | {"w": np.ones((1, 8), np.float32)}
    wanted = ort.InferenceSession(model).run(None, feeds)
    session, barrier = ort.InferenceSession(model, asked_options()), threading.Barrier(8)

    def work(_: int) -> None:
        barrier.wait()
        for _ in range(10):
            for left, right in zip(session.run(None, feeds), wanted, strict=True):
                np.testing.assert_array_equal(left, right)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_results_are_written_where_they_are_bound() -> None:
    feeds = feeds_of_scan(9)
    wanted = ort.InferenceSession(MODEL).run(None, feeds)
    session = ort.InferenceSession(MODEL, asked_options())
    given = [np.full(each.shape, np.nan, np.float32) for each in wanted]
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    for name, array in zip(("hT", "ys"), given, strict=True):
        binding.bind_output(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
    session.run_with_iobinding(binding)
    for left, right in zip(given, wanted, strict=True):
        np.testing.assert_array_equal(left, right)


def test_shapes_that_no_plan_fits_are_run_as_ever() -> None:
    text = """g (float[B,8] h, float[T,B,8] xs) => (float[B,8] hT, float[T,C,8] ys) {
      hT, ys = Scan <num_scan_inputs = 1, body = b (float[B,8] s, float[B,8] x) => (float[B,8] s1, float[C,8] y) {
        s1 = Tanh (s) y = Mul (s, x) }> (h, xs)
    }"""
    model = model_from_text(text, 18).SerializeToString()
    plain, session = ort.InferenceSession(model), ort.InferenceSession(model, asked_options())
    for batch in (2, 1):
        feeds = feeds_of_scan(5, batch) | {"xs": feeds_of_scan(5, 2)["xs"]}
        for left, right in zip(session.run(None, feeds), plain.run(None, feeds), strict=True):
            np.testing.assert_array_equal(left, right)


def test_what_onnxruntime_refuses_is_refused_in_its_words() -> None:
    options = asked_options()
    options.log_severity_level = 4
    feeds = {"h": np.zeros((1, 8), np.float32), "xs": np.zeros((5, 2, 8), np.float32)}
    with pytest.raises(Exception, match="running Scan node"):
        ort.InferenceSession(MODEL, options).run(None, feeds)


def test_options_are_prepared_once_and_by_anyone() -> None:
    options = ort.SessionOptions()
    with ThreadPoolExecutor(4) as pool:
        assert all(each is options for each in pool.map(ortscan.register_plugin, [options] * 20))
    assert ort.InferenceSession(MODEL, options).get_providers() == [PROVIDER, "CPUExecutionProvider"]


def test_other_providers_may_be_there_before() -> None:
    options = ort.SessionOptions()
    options.add_provider_for_devices([next(each for each in ort.get_ep_devices() if each.ep_name == "CPUExecutionProvider")], {})
    session = ort.InferenceSession(MODEL, ortscan.register_plugin(options))
    assert session.get_providers() == ["CPUExecutionProvider", PROVIDER]


def test_a_list_of_providers_takes_the_place_of_what_was_registered() -> None:
    with pytest.warns(UserWarning, match="will only use the providers passed"):
        session = ort.InferenceSession(MODEL, asked_options(), providers=["CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_the_environment_switches_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTSCAN_NATIVE", "0")
    assert not asked_options().has_providers()


def test_what_cannot_be_had_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match=r"needs onnxruntime\.SessionOptions, not int"):
        ortscan.register_plugin(3)  # type: ignore[arg-type]
    monkeypatch.setattr(installed, "_built", lambda: None)
    with pytest.raises(OptionError, match="needs ortscan's library: this ortscan was installed without a compiler"):
        asked_options()
