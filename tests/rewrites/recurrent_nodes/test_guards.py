"""Sequences without steps or rows: what onnxruntime does with them, and the Ifs that keep nodes from them."""

from types import ModuleType

import numpy as np
import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from rewrites.fission import loop_fission
from rewrites.recurrent_nodes import guard_recurrence
from rewrites.repair import guard_scan
from tests.rewrites.apply import apply, patches, reasons
from tests.rewrites.recurrences.written_cells import written
from tests.rewrites.recurrent_nodes.nodes import INPUTS, OneNode
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import assert_text_equal

RUNNING = """
g (float[T, B, 3] x, float[1, B, 2] h0) => (float[T, 1, B, 2] y, float[1, B, 2] h)
<float[1, 6, 3] W = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}, float[1, 6, 2] R = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}>
{ y, h = GRU <hidden_size = 2> (x, W, R, , , h0) }
"""
GUARDED = """
g (float[T, B, 3] x, float[1, B, 2] h0) => (float[T, 1, B, 2] y, float[1, B, 2] h)
<float[1, 6, 3] W = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}, float[1, 6, 2] R = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6},
 int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}>
{
  steps = Shape <start = 0, end = 1> (x)
  rows = Shape <start = 1, end = 2> (x)
  sizes = Concat <axis = 0> (steps, rows)
  least = ReduceMin <keepdims = 1> (sizes, zero)
  some = Less (zero, least)
  flag = Squeeze (some, zero)
  y, h = If (flag) <
    then_branch = some_steps () => (y1, h1) { y1, h1 = GRU <hidden_size = 2> (x, W, R, , , h0) },
    else_branch = nothing () => (y2, h2) {
      t = Shape <start = 0, end = 1> (x)
      b = Shape <start = 1, end = 2> (x)
      shape = Concat <axis = 0> (t, one, b, two)
      y2 = ConstantOfShape <value = float[1] {0}> (shape)
      h2 = Identity (h0)
    }
  >
}
"""


def test_a_node_that_runs_is_guarded_on_request():
    feeds = {"x": np.ones((3, 2, 3), np.float32), "h0": np.ones((1, 2, 2), np.float32)}
    result, report = apply(RUNNING, [guard_recurrence], feeds=feeds)
    assert_text_equal(result, GUARDED)
    assert patches(report) == ["guard-recurrence"]
    _, report = apply(result, [guard_recurrence])
    assert not report.patches


@pytest.mark.parametrize(
    ("old", "new"), [("T, B", "3, 2"), ("GRU <hidden_size = 2>", "RNN <hidden_size = 2>")], ids=["known sizes", "an RNN"]
)
def test_what_needs_no_guard_gets_none(old, new):
    text = RUNNING.replace(old, new).replace("1, B, 2] h0", "1, 2, 2] h0" if "3" in new else "1, B, 2] h0")
    if "RNN" in new:
        text = text.replace("1, 6,", "1, 2,").replace("7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}", "}").replace("6, }", "6}")
        text = text.replace("{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}", "{1, 2, 3, 4}")
    _, report = apply(text, [guard_recurrence], check=False)
    assert not report.patches


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize(("rows", "steps"), [(0, 5), (2, 0), (0, 0)])
def test_sizes_declared_as_nothing_are_guarded_once(kind, rows, steps):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 22]>
    g (float[{rows},{steps},3] x, float[1,{2 * gates},3] w, float[1,{2 * gates},2] r) => (float[{rows},{steps},1,2] y) {{
        y = {kind} <hidden_size = 2, layout = 1> (x, w, r) }}""")
    result = to_caller_type(rewritten(model, debug=True)[0])
    feeds = {"x": np.zeros((rows, steps, 3)), "w": np.ones((1, 2 * gates, 3)), "r": np.ones((1, 2 * gates, 2))}
    assert ort_run(result, {name: array.astype(np.float32) for name, array in feeds.items()})[0].shape == (rows, steps, 1, 2)


def test_nobody_guards_what_runs_unasked():
    model = OneNode("LSTM").model()
    loaded, report = rewritten(model)
    assert not report.changed
    assert list(to_caller_type(loaded).graph.node) == list(model.graph.node)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("lengths", [False, True])
def test_a_guarded_node_survives_what_kills_onnxruntime(kind, direction, lengths):
    extra = {"initial_h", "initial_c", *(["lengths"] if lengths else [])}
    node = OneNode(kind, {"direction": direction}, frozenset(extra & {*INPUTS[kind]}))
    loaded, _ = rewritten(node.model(), passes=["default", "guard-recurrence"], debug=True)
    result = to_caller_type(loaded)
    for steps, rows in ((3, 2), (0, 2), (2, 0), (0, 0)):
        feeds = node.feeds(steps, rows)
        expected = node.expected(feeds)
        if steps == 0 and kind == "RNN":  # runs as it is, and what runs keeps its numbers
            expected = [np.zeros_like(one) for one in expected]
        assert_same_numbers(ort_run(result, feeds), expected)


SCAN = """
g (float[H] h0, float[T, B, H] xs) => (float[H] h, float[T, B, H] ys, int64[T, 2] ns)
<int64[2] two = {1, 2}>
{
  h, ys, ns = Scan <num_scan_inputs = 1, body = b (float[H] s, float[B, H] x) => (float[H] s1, float[B, H] y, int64[2] n) {
      y = Add (s, x)
      t = ReduceSum <keepdims = 0> (y, axis)
      s1 = Tanh (t)
      n = Identity (two)
    }> (h0, xs)
}
""".replace("<int64[2] two = {1, 2}>", "<int64[2] two = {1, 2}, int64[1] axis = {0}>")


def feeds_of(steps: int, rows: int = 2, size: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(steps)
    shapes = {"h0": (size,), "xs": (steps, rows, size)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("rules", [[guard_scan], [loop_fission, guard_scan]], ids=["alone", "with others"])
def test_a_scan_of_no_step_gives_initial_states_and_empty_results(rules: list[ModuleType]):
    result, report = apply(SCAN, rules, feeds=feeds_of(3))
    assert patches(report).count("guard-scan") == 1
    h, ys, ns = ort_run(result, feeds_of(0))
    np.testing.assert_array_equal(h, feeds_of(0)["h0"])
    assert (ys.shape, ns.shape, ns.dtype) == ((0, 2, 3), (0, 2), np.int64)
    _, report = apply(result, rules)
    assert not report.patches


def test_a_scan_of_known_steps_needs_no_guard():
    _, report = apply(SCAN.replace("[T,", "[4,"), [guard_scan])
    assert not report.patches


def test_a_result_of_unknown_size_keeps_the_scan_as_it_is():
    text = """
    g (float[T, 3] xs) => (float[T, N] ys) {
      ys = Scan <num_scan_inputs = 1, body = b (float[3] x) => (float[N] y) { k = NonZero (x) f = Cast <to = 1> (k)
          e = Squeeze (f, axis) y = Identity (e) }> (xs)
    }
    """.replace("{\n", "<int64[1] axis = {0}> {\n", 1)
    _, report = apply(text, [guard_scan])
    assert reasons(report) == ["EMPTY-SHAPE"]


def test_a_scan_is_not_guarded_unasked():
    _, report = rewritten(onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 18]>' + SCAN))
    assert "guard-scan" not in patches(report)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_cell_of_no_step_gives_its_initial_states(kind):
    cell = written(kind, "one product for all gates" if kind != "GRU" else "split by Slice")
    model = cell.model(steps="T", rows="B")
    for target in ("cpu", "onnx"):
        loaded, report = rewritten(model, passes=["default", "guard-scan"], target=target, debug=True)
        assert "guard-scan" in patches(report)
        feeds = cell.feeds(steps=3, rows=1)
        assert_same_numbers(ort_run(to_caller_type(loaded), feeds), ort_run(model, feeds), 1e-4, 1e-5)
        empty = cell.feeds(steps=0, rows=1)
        for value in ort_run(to_caller_type(loaded), empty):
            assert value.shape[0] == 0 or any(np.array_equal(value, one) for one in empty.values())


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("rules", [["guard-scan"], ["guard-recurrence"], ["guard-scan", "guard-recurrence"]], ids=" and ".join)
@pytest.mark.parametrize("target", ["cpu", "onnx"])
def test_what_is_guarded_is_not_guarded_again(kind, rules, target):
    model = written(kind, "one product for all gates" if kind != "GRU" else "split by Slice").model(steps="T", rows="B")
    loaded, report = rewritten(model, passes=["default", *rules], target=target)
    assert report.patches
    assert not rewritten(to_caller_type(loaded), passes=["default", *rules], target=target)[1].patches


def test_an_if_that_asks_for_steps_alone_guards_no_rows():
    text = """
    g (float[T, B, 3] x, float[1, B, 2] h0) => (float[1, B, 2] h)
    <float[1, 6, 3] W = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}, float[1, 6, 2] R = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6},
     int64[1] zero = {0}>
    {
      steps = Shape <start = 0, end = 1> (x)
      some = Less (zero, steps)
      flag = Squeeze (some, zero)
      h = If (flag) <
        then_branch = some_steps () => (h1) { y1, h1 = GRU <hidden_size = 2> (x, W, R, , , h0) },
        else_branch = nothing () => (h2) { h2 = Identity (h0) }
      >
    }
    """
    result, report = apply(text, [guard_recurrence])
    assert patches(report) == ["guard-recurrence"]
    feeds = {"x": np.ones((2, 0, 3), np.float32), "h0": np.ones((1, 0, 2), np.float32)}
    assert ort_run(result, feeds)[0].shape == (1, 0, 2)


@pytest.mark.parametrize("opset", [7, 8, 9])
@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_a_node_of_an_older_opset_is_guarded_in_one_that_has_the_operators(kind, opset):
    model = old_model(f'<ir_version: 3, opset_import: ["" : {opset}]>', kind)
    assert not rewritten(model)[1].changed
    loaded, report = rewritten(model, passes=["default", "guard-recurrence"], debug=True)
    assert patches(report) == ["guard-recurrence"]
    assert ort_run(to_caller_type(loaded), {"x": np.ones((2, 0, 3), np.float32)})[0].shape == (2, 1, 0, 2)


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_a_node_in_a_function_is_guarded_too(kind):
    model = old_model('<ir_version: 10, opset_import: ["" : 18, "own" : 1]>', kind)
    call = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
    g (float[T, B, 3] x) => (float[T, 1, B, 2] y) {{ y = own.F (x, W, R) }}
    <opset_import: ["" : 18], domain: "own"> F (x, W, R) => (y) {{ y = {kind} <hidden_size = 2> (x, W, R) }}""")
    call.graph.initializer.extend(model.graph.initializer)
    assert rewritten(call)[0].model.functions
    loaded, report = rewritten(call, passes=["default", "guard-recurrence"], debug=True)
    assert patches(report) == ["guard-recurrence"]
    assert ort_run(to_caller_type(loaded), {"x": np.ones((2, 0, 3), np.float32)})[0].shape == (2, 1, 0, 2)


def old_model(head, kind):
    gates = {"GRU": 3, "LSTM": 4}[kind]
    model = onnx.parser.parse_model(
        f"{head} g (float[T, B, 3] x) => (float[T, 1, B, 2] y) {{ y = {kind} <hidden_size = 2> (x, W, R) }}"
    )
    for name, width in (("W", 3), ("R", 2)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 2 * gates, width), np.float32), name))
        if model.ir_version < 4:
            model.graph.input.append(onnx.helper.make_tensor_value_info(name, 1, [1, 2 * gates, width]))
    return model


@pytest.mark.parametrize("lengths", [(0, 5), (5, 0), (3, 5)])
def test_scanned_inputs_of_unlike_lengths_are_still_refused(lengths):
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
    g (float[2] h, float[T,2] x, float[U,2] z) => (float[2] l) {
      l = Scan <num_scan_inputs = 2, body = b (float[2] s, float[2] a, float[2] c) => (float[2] n) {
        q = Add (s, a)
        p = Mul (q, c)
        n = Sin (p)
      }> (h, x, z) }""")
    loaded, report = rewritten(model, passes=["default", "guard-scan"], debug=True)
    assert "guard-scan" in patches(report)
    result, h = to_caller_type(loaded), np.ones(2, np.float32)
    with pytest.raises(Exception, match="inconsistent sequence lengths"):
        ort_run(result, {"h": h, "x": np.ones((lengths[0], 2), np.float32), "z": np.ones((lengths[1], 2), np.float32)})
    nothing = np.ones((0, 2), np.float32)
    assert_same_numbers(ort_run(result, {"h": h, "x": nothing, "z": nothing}), [h])


SIZES_UNKNOWN = """<ir_version: 10, opset_import: ["": 18]>
g (KIND[?,?] h, KIND[?,?,?] x, KIND[?,?] c) => (KIND[?,?] l, KIND[?,?,?] ys) {
  l, ys = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
                body = b (KIND[?,?] s, KIND[?,?] a) => (KIND[?,?] n, KIND[?,?] y) {
    n = Identity (a)
    y = FUNCTION (a, c)
  }> (h, x) }"""


@pytest.mark.parametrize("kind", ["float", "uint64", "bfloat16"])
def test_sizes_that_nothing_tells_are_those_of_a_step_on_zeros(kind):
    model = onnx.parser.parse_model(SIZES_UNKNOWN.replace("KIND", kind).replace("FUNCTION", "Add"))
    loaded, report = rewritten(model, passes=["default", "guard-scan"], debug=True)
    assert "guard-scan" in patches(report)
    if kind == "bfloat16":  # onnxruntime adds none
        return
    kinds = {"float": np.float32, "uint64": np.uint64}[kind]
    h, c = np.full((1, 3), 7, kinds), np.ones((4, 3), kinds)
    for steps in (0, 2):
        x = np.arange(steps * 3).reshape(1, steps, 3).astype(kinds)
        last, ys = ort_run(to_caller_type(loaded), {"h": h, "x": x, "c": c})
        assert_same_numbers([last], [x[:, -1] if steps else h])
        assert_same_numbers([ys], [np.stack([x[:, t] + c for t in range(steps)], 1) if steps else np.zeros((4, 0, 3), kinds)])


def test_a_step_that_may_fail_on_zeros_is_not_run_for_its_sizes():
    model = onnx.parser.parse_model(SIZES_UNKNOWN.replace("KIND", "int64").replace("FUNCTION", "Div"))
    report = rewritten(model, passes=["guard-scan"], debug=True)[1]
    assert "guard-scan" not in patches(report)
    assert "EMPTY-SHAPE" in reasons(report)


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize(("rows", "steps"), [(0, 5), (2, 0), (0, 0)])
def test_equations_of_sizes_declared_as_nothing_give_nothing(kind, rows, steps):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 22]>
    g (double[{steps},{rows},3] x, double[2,{2 * gates},3] w, double[2,{2 * gates},2] r, double[2,{4 * gates}] b,
       int64[1,{rows}] l, double[2,{rows},2] h) => (double[{steps},2,{rows},2] y, double[2,{rows},2] last) {{
        y, last = {kind} <hidden_size = 2, direction = "bidirectional"> (x, w, r, b, l, h) }}""")
    result = to_caller_type(rewritten(model, debug=True)[0])
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    feeds = {name: np.full(shape, 0 if name == "l" else 3, np.int64 if name == "l" else float) for name, shape in shapes.items()}
    y, last = ort_run(result, feeds)
    assert y.shape == (steps, 2, rows, 2)
    assert_same_numbers([last], [feeds["h"]])


@pytest.mark.parametrize(("rows", "steps"), [(0, 5), (2, 0), (2, 5)])
def test_a_node_is_guarded_in_opset_8(rows, steps):
    model = old_model('<ir_version: 3, opset_import: ["" : 8]>', "GRU")
    loaded, report = rewritten(model, opset="keep", passes=["default", "guard-recurrence"], debug=True)
    assert patches(report) == ["guard-recurrence"]
    assert loaded.model.opset_imports[""] == 8
    (result,) = ort_run(to_caller_type(loaded), {"x": np.ones((steps, rows, 3), np.float32)})
    assert result.shape == (steps, 1, rows, 2)
    assert result.size == 0 or np.array_equal(result, ort_run(model, {"x": np.ones((steps, rows, 3), np.float32)})[0])
