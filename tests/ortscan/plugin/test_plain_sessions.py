"""Plain sessions of unmodified models: nodes that the plugin runs have the same results as on onnxruntime."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.corpus import CorpusModel, corpus_models
from tests.support.plugin_sessions import SCAN, Array, asked_options, both, feeds_of_scan, taken
from tests.support.text import model_from_text

MODELS = {
    "a capture computed at run time": """g (float[2,8] h, float[T,2,8] xs, float[8] w0) => (float[2,8] hT, float[T,2,8] ys) {
      w = Abs (w0)
      hT, ys = Scan <num_scan_inputs = 1, body = b (float[2,8] s, float[2,8] x) => (float[2,8] s1, float[2,8] y) {
        a = Mul (s, w) s1 = Add (a, x) y = Neg (s1) }> (h, xs)
    }""",
    "a final state that nobody reads": """g (float[2,8] h, float[T,2,8] xs) => (float[T,2,8] ys) {
      hT, ys = Scan <num_scan_inputs = 1, body = b (float[2,8] s, float[2,8] x) => (float[2,8] s1, float[2,8] y) {
        a = Mul (s, x) s1 = Add (a, x) y = Neg (s1) }> (h, xs)
    }""",
    "results that nobody reads": """g (float[2,8] h, float[T,2,8] xs) => (float[T,2,8] zs) {
      hT, ys, zs = Scan <num_scan_inputs = 1, body = b (float[2,8] s, float[2,8] x) => (float[2,8] s1, float[2,8] y, float[2,8] z) {
        a = Mul (s, x) s1 = Add (a, x) y = Neg (s1) z = Sub (s1, s) }> (h, xs)
    }""",
    "one value given twice": """g (float[2,8] h, float[T,2,8] xs) => (float[2,8] hT, float[2,8] gT, float[T,2,8] ys) {
      hT, gT, ys = Scan <num_scan_inputs = 2, body = b (float[2,8] s, float[2,8] r, float[2,8] x, float[2,8] z) => (float[2,8] s1, float[2,8] r1, float[2,8] y) {
        a = Mul (s, x) s1 = Add (a, z) r1 = Sub (r, x) y = Mul (s1, r1) }> (h, h, xs, xs)
    }""",
    "backwards": """g (float[2,8] h, float[T,2,8] xs) => (float[2,8] hT, float[T,2,8] ys) {
      hT, ys = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1], body = b (float[2,8] s, float[2,8] x) => (float[2,8] s1, float[2,8] y) {
        a = Mul (s, x) s1 = Add (a, x) y = Neg (s1) }> (h, xs)
    }""",
    "two loops, one after the other": """g (float[2,8] h, float[T,2,8] xs) => (float[2,8] hT, float[2,8] gT, float[T,2,8] ys) {
      hT, us = Scan <num_scan_inputs = 1, body = b (float[2,8] s, float[2,8] x) => (float[2,8] s1, float[2,8] y) {
        a = Mul (s, x) s1 = Add (a, x) y = Neg (s1) }> (h, xs)
      gT, ys = Scan <num_scan_inputs = 1, body = b (float[2,8] s, float[2,8] x) => (float[2,8] s1, float[2,8] y) {
        a = Mul (s, x) s1 = Sub (a, x) y = Abs (s1) }> (hT, us)
    }""",
}


@pytest.mark.parametrize("what", MODELS)
def test_a_loop_gives_the_same_bits(what: str, tmp_path: Path) -> None:
    model = model_from_text(MODELS[what], 18)
    feeds = {**feeds_of_scan(), "w0": np.linspace(-1, 0.5, 8, dtype=np.float32)}
    feeds = {info.name: feeds[info.name] for info in model.graph.input}
    check(model, feeds, tmp_path, model_loops(model))


@pytest.mark.parametrize("dead", ["first", "last"])
def test_a_loop_that_nobody_reads_is_left_alone_and_the_session_made(dead: str, tmp_path: Path) -> None:
    body = (
        "body = b (int64 i, bool c, float[2,8] s) => (bool go, float[2,8] s1) { go = Identity (c) a = Mul (s, s) s1 = STEP (a, s) }"
    )
    used = f"z = Loop <{body.replace('STEP', 'Sub')}> (m, , h)"
    unused = f"nobody = Loop <{body.replace('STEP', 'Add')}> (m, , h)"
    nodes = f"{unused} {used}" if dead == "first" else f"{used} {unused}"
    model = model_from_text(f"g (float[2,8] h) => (float[2,8] z) <int64 m = {{3}}> {{ {nodes} }}", 18)
    feeds = {"h": feeds_of_scan()["h"]}
    plain, asked = both(model, feeds)
    for left, right in zip(plain, asked, strict=True):
        np.testing.assert_array_equal(left, right)
    assert taken(model, feeds, tmp_path) == 1


@pytest.mark.parametrize("opset", [9, 11, 13, 18, 21])
def test_models_of_all_opsets_are_taken(opset: int, tmp_path: Path) -> None:
    check(model_from_text(SCAN, opset), feeds_of_scan(), tmp_path, 1)


@pytest.mark.parametrize("steps", [1, 2, 3, 100])
def test_any_number_of_steps_runs(steps: int, tmp_path: Path) -> None:
    check(model_from_text(SCAN, 18), feeds_of_scan(steps, 3), tmp_path, 1)


def test_no_step_gives_empty_results_where_onnxruntime_fails() -> None:
    model, feeds = model_from_text(SCAN, 18).SerializeToString(), feeds_of_scan(0)
    with pytest.raises(Exception, match="Scan"):
        ort.InferenceSession(model, quiet(ort.SessionOptions())).run(None, feeds)
    final, stacked = ort.InferenceSession(model, asked_options()).run(None, feeds)
    np.testing.assert_array_equal(final, feeds["h"])
    assert stacked.shape == (0, 2, 8)


def test_branches_that_call_everything_alike_are_not_mixed_up(tmp_path: Path) -> None:
    def branch(number: float) -> str:
        return f"""b () => (float[T,2,8] ys) {{
          c = Constant <value = float[8] {{{",".join(str(number + i) for i in range(8))}}}> ()
          hT, ys = Scan <num_scan_inputs = 1, body = b (float[2,8] s, float[2,8] x) => (float[2,8] s1, float[2,8] y) {{
            a = Mul (s, c) s1 = Sub (x, a) y = Neg (s1) }}> (h, xs) }}"""

    text = f"""g (bool which, float[2,8] h, float[T,2,8] xs) => (float[T,2,8] zs) {{
      zs = If <then_branch = {branch(0.1)}, else_branch = {branch(-0.3)}> (which)
    }}"""
    model = model_from_text(text, 18)
    for which in (True, False):
        check(model, {"which": np.array(which), **feeds_of_scan()}, tmp_path, 1)


def test_a_loop_within_a_loop_is_taken(tmp_path: Path) -> None:
    text = """g (float[2,8] h, float[K,T,2,8] xs) => (float[2,8] hT, float[K,T,2,8] ys) {
      hT, ys = Scan <num_scan_inputs = 1, body = o (float[2,8] s, float[T,2,8] x) => (float[2,8] s1, float[T,2,8] y) {
        s1, y = Scan <num_scan_inputs = 1, body = b (float[2,8] r, float[2,8] z) => (float[2,8] r1, float[2,8] v) {
          a = Mul (r, z) r1 = Sub (z, a) v = Neg (r1) }> (s, x)
      }> (h, xs)
    }"""
    feeds = feeds_of_scan(12)
    check(model_from_text(text, 18), {"h": feeds["h"], "xs": feeds["xs"].reshape(3, 4, 2, 8)}, tmp_path, 1)


@pytest.mark.parametrize("where", ["of the body", "of the graph", "of the graph, and replaceable"])
def test_large_weights_are_found_wherever_they_are(where: str, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    weight = numpy_helper.from_array(
        (random.normal(size=(200, 200)) / 20).astype(np.float32), "w"
    )  # more than are sent to the planner
    floats = TensorProto.FLOAT
    state, row = (helper.make_tensor_value_info(name, floats, [2, 200]) for name in ("s", "x"))
    final, out = (helper.make_tensor_value_info(name, floats, [2, 200]) for name in ("s1", "y"))
    nodes = [
        helper.make_node("MatMul", ["s", "w"], ["p"]),
        helper.make_node("Add", ["p", "x"], ["q"]),
        helper.make_node("Tanh", ["q"], ["s1"]),
    ]
    nodes.append(helper.make_node("Neg", ["s1"], ["y"]))
    body = helper.make_graph(nodes, "b", [state, row], [final, out], [weight] if where == "of the body" else [])
    loop = helper.make_node("Scan", ["h", "xs"], ["hT", "ys"], num_scan_inputs=1, body=body)
    inputs = [helper.make_tensor_value_info("h", floats, [2, 200]), helper.make_tensor_value_info("xs", floats, ["T", 2, 200])]
    replaceable = [helper.make_tensor_value_info("w", floats, [200, 200])] if "replaceable" in where else []
    outputs = [helper.make_tensor_value_info("hT", floats, [2, 200]), helper.make_tensor_value_info("ys", floats, ["T", 2, 200])]
    graph = helper.make_graph([loop], "g", inputs + replaceable, outputs, [] if where == "of the body" else [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    feeds = {"h": random.normal(size=(2, 200)).astype(np.float32), "xs": random.normal(size=(6, 2, 200)).astype(np.float32)}
    check(model, feeds, tmp_path, 1, rtol=1e-5)
    if replaceable:
        check(model, {**feeds, "w": (random.normal(size=(200, 200)) / 20).astype(np.float32)}, tmp_path, 1, rtol=1e-5)


def test_a_loop_in_a_function_of_the_model_is_taken(tmp_path: Path) -> None:
    inner = model_from_text(SCAN, 18).graph
    function = helper.make_function(
        "local", "Recurrence", ["h", "xs"], ["hT", "ys"], list(inner.node), [helper.make_opsetid("", 18)]
    )
    call = helper.make_node("Recurrence", ["h", "xs"], ["hT", "ys"], domain="local")
    graph = helper.make_graph([call], "g", list(inner.input), list(inner.output))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=9)
    check(model, feeds_of_scan(), tmp_path, 1)


def test_what_has_no_plan_runs_as_ever(tmp_path: Path) -> None:
    model = model_from_text(SCAN.replace("Tanh", "Asinh"), 18)
    check(model, feeds_of_scan(), tmp_path, 0)


@pytest.mark.parametrize("entry", corpus_models(shipped_only=True))
def test_models_of_exporters_give_the_same(entry: CorpusModel, tmp_path: Path) -> None:
    model = entry.load()
    plain, asked = both(model, entry.feeds())
    for left, right in zip(asked, plain, strict=True):
        np.testing.assert_allclose(left, right, rtol=entry.tolerance, atol=entry.tolerance)


def quiet(options: ort.SessionOptions) -> ort.SessionOptions:
    options.log_severity_level = 4
    return options


def model_loops(model: onnx.ModelProto) -> int:
    return sum(node.op_type == "Scan" for node in model.graph.node)


def check(model: onnx.ModelProto, feeds: dict[str, Array], folder: Path, loops: int, rtol: float = 0.0) -> None:
    plain, asked = both(model, feeds)
    for left, right in zip(asked, plain, strict=True):
        assert (left.shape, left.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(left, right, rtol=rtol, atol=rtol)
    assert taken(model, feeds, folder) == loops
