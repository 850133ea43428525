import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest

import ortscan
from ortscan.modelio.protos import locations_in
from ortscan.session.outline import LEAST_STEPS, NOT_IN_TREES, may_be_changed, outline_of
from rewrites.loop_form.prefix_trees import trees
from rewrites.loop_form.written_out import chains
from tests.support.prefix_trees import prefix_tree
from tests.support.small_models import MAP, PLAIN, RECURRENCE, WRITTEN_OUT
from tests.support.text import parsed

READS = {
    "gather": "a = Gather (x, i) b = Gather (x, j) c = Gather (x, i) d = Gather (x, j)",
    "slice": "a = Slice (x, i1, j1) b = Slice (x, j1, k1) c = Slice (x, i1, k1) d = Slice (x, j1, k1)",
    "split": "a, b, c, d = Split (x, s)",
    "constants": "m = Constant <value_int = 1> () a = Gather (x, m) b = Gather (x, m) c = Gather (x, m) d = Gather (x, m)",
    "aliases": "m = Identity (i) n = Identity (m) a = Gather (x, n) b = Gather (x, n) c = Gather (x, n) d = Gather (x, m)",
    "three rows": "a = Gather (x, i) b = Gather (x, j) c = Gather (x, i)",
    "rows of a shape": "z = Shape (x) a = Gather (z, i) b = Gather (z, j) c = Gather (z, i) d = Gather (z, j)",
    "rows of a weight": "a = Gather (w, i) b = Gather (w, j) c = Gather (w, i) d = Gather (w, j)",
    "rows of a constant": "m = Constant <value_ints = [1, 2]> () a = Gather (m, i) b = Gather (m, j) c = Gather (m, i) d = Gather (m, j)",
    "given indices": "a = Gather (x, g) b = Gather (x, g) c = Gather (x, g) d = Gather (x, g)",
    "computed indices": "m = Add (i, j) a = Gather (x, m) b = Gather (x, m) c = Gather (x, m) d = Gather (x, m)",
    "aliases of a given index": "m = Identity (g) a = Gather (x, m) b = Gather (x, m) c = Gather (x, m) d = Gather (x, m)",
    "another domain": "a = my.Gather (x, i) b = my.Gather (x, j) c = my.Gather (x, i) d = my.Gather (x, j)",
}


def reading(nodes: str) -> onnx.ModelProto:
    return parsed(f"""
        <ir_version: 8, opset_import: ["": 18, "my": 1]>
        g (float[4, 4] x, int64 g) => (float[4] a)
        <float[2] w = {{1, 2}}, int64 i = {{0}}, int64 j = {{1}}, int64[1] i1 = {{0}}, int64[1] j1 = {{1}}, int64[1] k1 = {{2}},
         int64[4] s = {{1, 1, 1, 1}}> {{ {nodes} }}
    """)


def may_change(model: onnx.ModelProto, **options: str) -> bool:
    return may_be_changed(outline_of(model.SerializeToString()), options)


@pytest.mark.parametrize("nodes", READS.values(), ids=READS)
def test_the_structure_tells_what_the_parsed_model_does(nodes: str):
    model = reading(nodes)
    assert may_change(model) == chains.may_have_unrolled_steps(ir.from_proto(model))


def test_both_count_steps_from_the_same_number_on():
    assert LEAST_STEPS == chains.LEAST_STEPS
    assert [may_change(reading(READS[name])) for name in ("gather", "slice", "split", "three rows")] == [True, True, True, False]


def test_both_find_prefix_trees_by_the_same_levels() -> None:
    assert {name.encode() for name in trees.NOT_IN_TREES} == NOT_IN_TREES
    assert [may_change(prefix_tree("doubling", "sum", steps)) for steps in (8, 4)] == [True, False]


@pytest.mark.parametrize(("model", "expected"), [(MAP, True), (RECURRENCE, True), (WRITTEN_OUT, True), (PLAIN, False)])
def test_loops_and_written_out_steps_may_be_changed(model: str, expected: bool):
    assert may_change(parsed(model)) is expected


def test_options_that_change_any_model_are_heeded():
    assert may_change(parsed(PLAIN), opset="20")
    assert not may_change(parsed(PLAIN), skip="loop-fission")


@pytest.mark.parametrize(("target", "expected"), [("coreml", True), ("cpu", False)])
def test_an_if_may_be_changed_for_targets_that_lack_it(target: str, expected: bool):
    model = parsed("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[4] x, bool c) => (float[4] y) {
          y = If (c) <then_branch = t () => (float[4] a) { a = Neg (x) }, else_branch = e () => (float[4] b) { b = Abs (x) }>
        }
    """)
    assert may_change(model, target=target) is expected


def test_the_bytes_of_weights_are_no_names():
    assert not may_change(parsed(PLAIN, weights={"w": np.frombuffer(b"LSTMLoopScan" * 100, np.float32)}))


def test_a_session_rolls_up_what_optimize_rolls_up():
    model, options = parsed(WRITTEN_OUT), ort.SessionOptions()
    session = ortscan.InferenceSession(model, options)
    assert session.ortscan.source == "optimized"
    assert session.ortscan.report.operators_after == ortscan.explain(model, native=True).operators_after
    feeds = {"x": np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4), "h0": np.ones(4, np.float32)}
    original = ort.InferenceSession(model.SerializeToString())
    np.testing.assert_allclose(session.run(None, feeds)[0], original.run(None, feeds)[0], rtol=1e-6)


@pytest.mark.parametrize("content", [b"", b"no model", b"\xff" * 10_000, b"\x3a\xff\x01"])
def test_what_is_no_model_has_no_nodes_and_is_searched_as_it_is(content: bytes):
    outline = outline_of(content)
    assert (outline.text, list(outline.nodes())) == (content, [])
    assert not may_be_changed(outline, {})


def test_a_node_that_cannot_be_read_is_left_to_onnxruntime():
    node = b"\x0a\xff"
    assert not may_be_changed(outline_of(b"\x3a\x04\x0a\x02" + node), {})


def external(location: str) -> onnx.TensorProto:
    tensor = onnx.TensorProto(name=location, dims=[1], data_type=1, data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="offset", value="0")
    return tensor


def test_external_data_is_found_wherever_a_tensor_may_be():
    def graph(name: str) -> onnx.GraphProto:
        node = onnx.helper.make_node("Constant", [], ["c"], value=external(f"{name}/constant"))
        node.attribute.append(onnx.helper.make_attribute("more", [external(f"{name}/first"), external(f"{name}/second")]))
        return onnx.helper.make_graph([node], name, [], [], [external(f"{name}/weight"), external("shared")])

    model = onnx.helper.make_model(graph("main"))
    for container in (model.graph, model.functions.add()):
        kind = type(container).__name__
        container.node.append(onnx.helper.make_node("If", ["b"], [], then_branch=graph(f"{kind}/then")))
        container.node.append(onnx.helper.make_node("My", [], [], graphs=[graph(f"{kind}/list"), graph(f"{kind}/ä")]))
    assert len(locations_in(model)) == 4 + 1 + 6 * 4
    assert list(outline_of(model.SerializeToString()).locations) == locations_in(model)


def test_weights_that_are_damaged_or_of_no_name_have_no_location():
    model = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], [external("w")]))
    content = model.SerializeToString()
    for other in (content.replace(b"location", b"locatiom"), content.replace(b"\x01w", b"\x01\xff")):
        assert other != content
        assert outline_of(other).locations in ((), [])
