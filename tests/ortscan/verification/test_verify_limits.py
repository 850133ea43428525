"""The limits of a comparison: creating sessions counts too, and runs that may exhaust the memory use a limited subprocess."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.errors import OrtscanWarning
from ortscan.modelio.source import ModelSource
from ortscan.running import own_process
from ortscan.running.analysis import analyse
from ortscan.running.budget import Budget
from ortscan.running.growth import may_exhaust_memory, may_run_long
from ortscan.running.own_process import OwnProcessRunner
from ortscan.running.runner import Runner
from ortscan.running.specs import input_specs
from ortscan.verification import compare_models, verify
from tests.support.text import model_from_text

LOOP = """
g (int64 n, float[2] x, float[N] z) => (float[K] y) <int64 most = {{9223372036854775807}}, int64 few = {{5}}> {{
  t = Constant <value = bool {{1}}> ()
  {got} = Loop ({trips}, t, {state}) <body = b (int64 i, bool c, float[M] s) => (bool go, float[L] m{more}) {{
    go = Identity (c) {step}
  }}>
}}"""
STACKS = {"got": "last, y", "more": ", float[J] o", "step": "m = Neg (s) o = Neg (s)"}
PAIRS = "q = Constant <value_ints = [-1, 1]> () f = Constant <value_ints = [-1]> () a = Reshape (s, q) p = Mul (a, s) m = Reshape (p, f)"


def loop(**parts: str) -> onnx.ModelProto:
    text = LOOP.format(**{"got": "y", "trips": "n", "state": "z", "more": "", "step": "m = Neg (s)", **parts})
    return model_from_text(text, 18, check=False)


def constant_loads(size: int = 400, products: int = 600) -> onnx.ModelProto:
    """Return a model for which onnxruntime multiplies many constant matrices when it is loaded."""
    chain = " ".join(f"w{i + 1} = MatMul (w{i}, w{i})" for i in range(products))
    text = f"""g (float[T] x) => (float[T] y) {{
      s = Constant <value_ints = [{size}, {size}]> () w0 = ConstantOfShape (s) {chain}
      q = ReduceMax <keepdims = 0> (w{products}) y = Add (x, q)
    }}"""
    return model_from_text(text, 18, check=False)


def joined(text: str, times: int) -> str:
    return " ".join(f"{text}{i + 1} = StringConcat ({text}{i}, {text}{i})" for i in range(times))


STRINGS = f"""
g (float[T] x) => (float[T] y) {{
  u0 = Constant <value_string = "ab"> () {joined("u", 60)} e = Equal (u60, u60) q = Cast <to = 1> (e) y = Add (x, q)
}}"""


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, False),
        ({"trips": "most"}, False),
        ({"trips": "most", **STACKS}, True),
        ({"trips": '""', **STACKS}, True),
        ({"trips": "few", **STACKS}, False),
        ({"trips": "n", **STACKS}, False),
        ({"step": "m = Concat <axis = 0> (s, s)"}, True),
        ({"step": "m = Concat <axis = 0> (s, x)"}, False),
        ({"step": "r = Constant <value_ints = [2]> () m = Tile (s, r)"}, True),
        ({"step": PAIRS}, True),
    ],
)
def test_loops_that_may_take_all_memory_are_known(parts: dict[str, str], expected: bool) -> None:
    proto = loop(**parts)
    assert may_exhaust_memory(proto, analyse(proto, input_specs(proto.graph))) is expected


@pytest.mark.long
def test_a_loop_that_doubles_its_state_is_stopped_by_the_memory_of_its_process() -> None:
    grows = loop(trips="sixty", step="m = Concat <axis = 0> (s, s)", state="x")
    grows.graph.initializer.append(onnx.numpy_helper.from_array(np.array(60), "sixty"))
    outcome = verify(grows, grows, level="quick", memory_limit=1 << 20)
    assert outcome.outcome == "inconclusive"


def test_a_process_that_runs_a_model_has_the_memory_it_is_given() -> None:
    text = "g (int64[1] n) => (float[N] y) { a = ConstantOfShape (n) y = Neg (a) }"
    proto = model_from_text(text, 18, check=False)
    runner = OwnProcessRunner(ModelSource(proto, proto.SerializeToString()), ["y"], ["CPUExecutionProvider"], memory=512 << 20)
    assert runner.error is None
    try:
        assert runner.run({"n": np.array([1 << 20])}).values is not None
        outcome = runner.run({"n": np.array([1 << 28])})
        assert (outcome.values, outcome.exhausted) == (None, True)
        assert runner.run({"n": np.array([1 << 20])}).values is not None
    finally:
        runner.close()


def test_a_result_for_which_memory_does_not_suffice_is_not_different(monkeypatch: pytest.MonkeyPatch) -> None:
    before = loop(step="e = Concat <axis = 0> (s, s) h = Constant <value_int = 2> () m0, m = Split <num_outputs = 2> (e)")
    step = "r = Constant <value_ints = [100000000]> () e = Tile (s, r) n0 = Shape (s) k = Constant <value_ints = [0]> ()"
    after = loop(step=f"{step} m = Slice (e, k, n0)")
    monkeypatch.setattr(Budget, "process_bytes", lambda *_: 300 << 20)
    outcome = verify(before, after, level="quick")
    assert outcome.outcome != "different", outcome.summary()
    assert "there was not enough memory for the result" in outcome.summary()


@pytest.mark.parametrize("in_its_own", [False, True])
def test_a_session_is_not_made_for_longer_than_there_is_time(in_its_own: bool) -> None:
    proto = constant_loads()
    source = ModelSource(proto, proto.SerializeToString())
    kind = OwnProcessRunner if in_its_own else Runner
    runner = kind(source, ["y"], ["CPUExecutionProvider"], seconds=0.2)
    assert (runner.error, runner.loading_timed_out) == ("creating its session took longer than 0.2 s", True)
    if isinstance(runner, OwnProcessRunner):
        runner.close()


@pytest.mark.long
def test_a_quick_comparison_counts_the_time_to_make_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_models, "_SHORTEST_START", 0.1)
    proto = constant_loads()
    outcome = verify(proto, proto, level="quick", time_limit=0.1)
    assert outcome.outcome == "inconclusive"
    assert outcome.problems == ("the original was not loaded: creating its session took longer than 0.1 s",)
    assert outcome.summary().endswith("not tried: more, because the time limit of 0.1 s was reached")


def test_a_process_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_process, "_CHILD", "import time; time.sleep(60)")
    monkeypatch.setattr(own_process, "_GRACE_AT_START", 0.1)
    proto = constant_loads(2, 1)
    runner = OwnProcessRunner(ModelSource(proto, proto.SerializeToString()), ["y"], ["CPUExecutionProvider"], seconds=0.1)
    assert (runner.error, runner.loading_timed_out) == ("creating its session took longer than 0.1 s", True)


def test_strings_that_double_are_not_joined() -> None:
    proto = model_from_text(f'<ir_version: 10, opset_import: ["": 20]> {STRINGS}', check=False)
    outcome = verify(proto, proto, level="quick", memory_limit=1 << 20)
    assert outcome.outcome == "inconclusive"


def test_a_result_that_would_crash_onnxruntime_as_the_original_would_is_not_refuted() -> None:
    chain = " ".join(f"v{i + 1} = Concat <axis = 0> (v{i}, v{i})" for i in range(40))
    text = f"""g (float[T, 4] x, float[1] w) => (float[T, 4] y) {{
      v0 = Neg (w) {chain} q = ReduceMax <keepdims = 0> (v40)
      y = Scan <num_scan_inputs = 1, body = b (float[4] a) => (float[4] r) {{ r = Add (a, q) }}> (x)
    }}"""
    proto = model_from_text(text, 18, check=False)
    with pytest.warns(OrtscanWarning, match="was not verified: nothing was compared: the original would crash onnxruntime: Concat"):
        result = ortscan.optimize(proto)
    assert isinstance(result, onnx.ModelProto)
    assert all(node.op_type != "Scan" for node in result.graph.node)


@pytest.mark.parametrize("rank", [12, 60, 64, 65, 900])
def test_inputs_of_many_free_axes_are_compared_or_said_not_to_be(rank: int) -> None:
    dims = ",".join(f"D{place}" for place in range(rank))
    model = model_from_text(f"g (float[T] x, float[{dims}] w) => (float[T] y, float[{dims}] v) {{ v = Neg (w) y = Neg (x) }}", 18)
    outcome = verify(model, model, time_limit=5, memory_limit=1 << 22, level="quick")
    assert outcome.ok or outcome.inconclusive, outcome.summary()


def test_tensors_in_a_sequence_count() -> None:
    model = model_from_text(
        """g (float[T] x) => (float[T] y) { s = Constant <value_ints = [16777216]> () u = ConstantOfShape (s) f = SplitToSequence (u)
        o = Constant <value_int = 0> () e = SequenceAt (f, o) q = ReduceMax <keepdims = 0> (e) y = Add (x, q) }""",
        18,
    )
    outcome = verify(model, model, memory_limit=1 << 30)
    assert outcome.inconclusive
    assert "'f' would take 5120 MiB" in outcome.summary()


HEAVY = {
    "MaxPool": "c = MaxPool <kernel_shape = [{0},{0}]> (u) ",
    "AveragePool": "c = AveragePool <kernel_shape = [{0},{0}]> (u) ",
    "Conv": "w0 = Constant <value_ints = [1,1,{0},{0}]> () w = ConstantOfShape (w0) c = Conv (u, w) ",
    "MatMul": "c = MatMul (u, u)",
    "Einsum": 'c = Einsum <equation = "abij,abjk->abik"> (u, u)',
}


def _works(kind: str, size: int, kernel: int) -> onnx.ModelProto:
    text = f"""g (float[T,4] x) => (float[T,4] y) {{ s = Constant <value_ints = [1,1,{size},{size}]> () u0 = ConstantOfShape (s)
        m = ReduceMax <keepdims = 0> (x) u = Add (u0, m) {HEAVY[kind].format(kernel)} r = ReduceMax <keepdims = 0> (c) y = Add (x, r) }}"""
    return model_from_text(text, 18, check=False)


@pytest.mark.parametrize("kind", HEAVY)
def test_a_node_that_works_long_is_known(kind: str) -> None:
    for size, expected in ((3000, True), (100, False)):
        proto = _works(kind, size, size // 2)
        assert may_run_long(analyse(proto, input_specs(proto.graph))) is expected


@pytest.mark.long
def test_one_node_that_works_long_does_not_hold_up_a_comparison() -> None:
    proto = _works("MaxPool", 3000, 1500)
    scan = "w = Scan <num_scan_inputs = 1, body = b (float[4] p) => (float[4] q) { q = Tanh (p) }> (x)"
    proto.graph.node[-1].input[0] = "w"
    proto.graph.node.extend(model_from_text(f"g (float[T,4] x) => (float[T,4] w) {{ {scan} }}", 18).graph.node)
    proto.graph.node.sort(key=lambda node: node.output[0] == "y")
    begun = time.monotonic()
    with pytest.warns(OrtscanWarning, match="not verified"):
        ortscan.optimize(proto)
    assert time.monotonic() - begun < 60


def test_a_process_ends_with_the_one_that_started_it() -> None:
    child = (
        "import time; from ortscan.base import child_process as c; c.end_with_parent(); print('here', flush=True); time.sleep(60)"
    )
    parent = f"from ortscan.base import child_process as c; import time; p = c.start({child!r}); print(p.pid, flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = {process.stdout.readline().strip() for _ in range(2)}
    (pid,) = (int(line) for line in lines - {"here"})
    process.kill()
    process.wait()
    process.stdout.close()
    ends = time.monotonic() + 30
    while _runs(pid) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
