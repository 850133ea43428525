"""A Scan without steps or rows refuses to run its nodes. After its removal, nodes that would crash without them are guarded."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers, drawn
from tests.support.runtime import ort_run
from tests.support.text import model_from_text, parsed

MODEL = """<ir_version: 8, opset_import: ["": 16]>
g (float[T,B,3] x) => (float[T,1,B,2] y, float[T,B,3] z) <float[1,6,3] w, float[1,6,2] r> {
    y = GRU <hidden_size = 2> (x, w, r)
    s, z = Scan <num_scan_inputs = 1, body = b (float[1] h, float[B,3] e) => (float[1] h1, float[B,3] v) {
        h1 = INSIDE v = Mul (e, h) }> (o, x) }"""
GONE = "Identity (h)"
LEFT = "Sin (h)"
UNREAD = (
    ("float[T,B,3] z)", "float[B,3] z)"),
    ("y = GRU", "k = Constant <value_ints = [0]> () z = ReduceSum <keepdims = 0> (x, k) y = GRU"),
    ("s, z = Scan", "s, u = Scan"),
)


def model_of(inside: str, *changes: tuple[str, str], dims: str = "T,B,3") -> onnx.ModelProto:
    text = (
        MODEL.replace("INSIDE", inside)
        .replace("float[T,B,3] x", f"float[{dims}] x")
        .replace(" <float[1,6,3] w, float[1,6,2] r>", "")
    )
    for old, new in changes:
        text = text.replace(old, new)
    return parsed(text, weights=drawn(w=(1, 6, 3), r=(1, 6, 2), o=(1,)))


def with_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Store the weights in the model. In its text they are inputs."""
    for name, array in drawn(w=(1, 6, 3), r=(1, 6, 2)).items():
        model.graph.input.remove(next(info for info in model.graph.input if info.name == name))
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


def guarded(model: onnx.ModelProto) -> bool:
    return "GRU" not in {node.op_type for node in model.graph.node}


def survives(model: onnx.ModelProto, after: onnx.ModelProto) -> None:
    for steps, rows in ((2, 3), (1, 1), (0, 2), (2, 0), (0, 0)):
        feeds = {"x": np.ones((steps, rows, 3), np.float32)}
        if steps and rows:
            assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
        else:
            assert ort_run(after, feeds)[0].shape == (steps, 1, rows, 2)


@pytest.mark.parametrize("target", ["cpu", "cuda", "onnx"])
def test_a_node_is_guarded_once_its_scan_is_written_otherwise(target):
    model = model_of(GONE)
    after = ortscan.optimize(model, target=target)
    assert guarded(after)
    survives(model, after)
    assert ortscan.optimize(after, target=target) == after


def test_a_node_is_guarded_once_its_scan_is_dropped_unread():
    model = model_of(LEFT, *UNREAD)
    for after in (ortscan.migrate(model, 13), ortscan.migrate(model, 21), ortscan.optimize(model)):
        assert "Scan" not in {node.op_type for node in after.graph.node}
        assert guarded(after)
        survives(model, after)


def test_a_node_that_is_the_same_in_every_step_is_guarded_where_it_leaves_its_loop():
    model = model_from_text(
        """<ir_version: 8, opset_import: ["": 16]>
        g (float[T,B,3] x, float[T,B,3] u, float[1,6,3] w, float[1,6,2] r) => (float[1] s, float[T,B,3] z) {
            o = Constant <value_floats = [1.0]> ()
            s, z = Scan <num_scan_inputs = 1, body = b (float[1] h, float[B,3] e) => (float[1] h1, float[B,3] v) {
                y = GRU <hidden_size = 2> (u, w, r) k = ReduceSum <keepdims = 0> (y) a = Add (h, k) h1 = Sin (a) v = Mul (e, h) }> (o, x) }"""
    )
    after = ortscan.optimize(model, verify=False)
    assert "Scan" in {node.op_type for node in after.graph.node}
    assert guarded(after)
    rng = np.random.default_rng(0)
    for rows in (2, 0):
        shapes = {"x": (3, rows, 3), "u": (3, rows, 3), "w": (1, 6, 3), "r": (1, 6, 2)}
        feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        if rows:
            assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
        else:
            assert ort_run(after, feeds)[1].shape == (3, 0, 3)


IN_A_FUNCTION = """<ir_version: 8, opset_import: ["": 16, "my": 1]>
g (float[T,B,3] x, float[1,6,3] w, float[1,6,2] r) => (float[T,1,B,2] y, float[T,B,3] z) {
    k = Constant <value_ints = [0]> () f = Gather (x, k)
    y = my.run (x, w, r) OTHER }
<domain: "my", opset_import: ["": 16]> run (x, w, r) => (y) { y = GRU <hidden_size = 2> (x, w, r) }"""
STAYS = """z = Neg (x) o = Constant <value_floats = [1.0]> () u = Constant <value_floats = [1.0, 2.0]> ()
    s, v = Scan <num_scan_inputs = 1, body = b (float[1] h, float e) => (float[1] h1, float[1] q) { h1 = Sin (h) q = Mul (e, h) }> (o, u)"""


@pytest.mark.parametrize("other", ["z = Neg (x)", STAYS], ids=["beside nothing", "beside a loop"])
def test_a_node_of_a_function_is_guarded_once_what_failed_before_it_is_dropped(other: str) -> None:
    text = IN_A_FUNCTION.replace("OTHER", other).replace("z)", "z, float[2,1] v)" if "Scan" in other else "z)", 1)
    model = with_weights(parsed(text))
    for after in (ortscan.migrate(model, 21), *([ortscan.optimize(model)] if "Scan" in other else [])):
        assert not after.functions
        assert guarded(after)
        survives(model, after)


def test_a_function_stays_that_nothing_was_dropped_beside() -> None:
    text = IN_A_FUNCTION.replace("OTHER", "z = Neg (x)")
    model = parsed(text[: text.index("k = Constant")] + text[text.index("y = my.run") :])
    assert ortscan.migrate(model, 21).functions


def test_a_node_without_steps_that_onnxruntime_runs_gives_what_it_gives():
    model = parsed(
        """<ir_version: 8, opset_import: ["": 16]>
        g (float[S,B,3] u, float[T,B,3] x, float[1,8,3] w, float[1,8,2] r, float[1,B,2] c) => (float[1,B,2] h, float[T,B,3] z) {
            o = Constant <value_floats = [1.0]> ()
            y, h = LSTM <hidden_size = 2> (u, w, r, , , c, c)
            s, z = Scan <num_scan_inputs = 1, body = b (float[1] h, float[B,3] e) => (float[1] h1, float[B,3] v) {
                h1 = Identity (h) v = Mul (e, h) }> (o, x) }"""
    )
    after = ortscan.optimize(model, verify=False)
    assert "LSTM" not in {node.op_type for node in after.graph.node}
    rng = np.random.default_rng(0)
    for steps in (3, 0):
        shapes = {"u": (steps, 2, 3), "x": (3, 2, 3), "w": (1, 8, 3), "r": (1, 8, 2), "c": (1, 2, 2)}
        feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


def test_a_node_beside_a_scan_that_stays_is_left_as_it_is():
    model = model_of(LEFT)
    for after in (ortscan.migrate(model, 13), ortscan.migrate(model, 21)):
        assert "Scan" in {node.op_type for node in after.graph.node}
        assert not guarded(after)


def test_a_node_of_known_sizes_is_left_as_it_is():
    model = model_of(GONE, dims="4,2,3")
    assert not guarded(ortscan.optimize(model))


@pytest.mark.parametrize(
    "refusing",
    ["u = Gather <axis = 1> (x, zero)", "u = ReduceMax <axes = [1]> (x)", "u = ArgMax <axis = 0> (x)"],
    ids=lambda text: text.split()[2],
)
def test_a_node_is_guarded_once_something_unread_is_dropped_that_refuses_empty_tensors(refusing):
    model = model_of(LEFT, ("y = GRU", f"{refusing} zero = Constant <value_int = 0> () y = GRU"))
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(sorted(nodes, key=lambda node: node.op_type != "Constant"))
    assert guarded(ortscan.migrate(model, 21))


def test_a_node_is_left_as_it_is_where_what_is_dropped_is_never_empty():
    model = model_of(LEFT, ("y = GRU", "k = Shape (x) zero = Constant <value_int = 0> () u = Gather (k, zero) y = GRU"))
    assert not guarded(ortscan.migrate(model, 21))
