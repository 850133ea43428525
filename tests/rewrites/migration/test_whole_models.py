"""What a migration leaves as it was: names, interface, documentation, functions, other domains; and what it says it did."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from rewrites.analysis.shapes.inference import infer_model
from rewrites.base.errors import MigrationError
from rewrites.driver.invariants import check_invariants
from rewrites.graph.names import Names
from rewrites.migration.migrate import raise_ir_version
from rewrites.migration.operators import Conversion, convert_operators, is_scan_8_to_lift, needs_inlining
from rewrites.migration.versions import NEWEST
from tests.rewrites.migration.holders import convert
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)


def loaded(model: onnx.ModelProto) -> ir.Model:
    inner = ir.from_proto(onnx.ModelProto.FromString(model.SerializeToString()))
    infer_model(inner)
    return inner


def conversions(model: onnx.ModelProto, target: int) -> list[Conversion]:
    inner = loaded(model)
    return convert_operators(inner, target, Names(inner))


def test_a_conversion_says_what_was_written_and_how_often():
    text = """main (float[2,3,4] x) => (float[2,3,4] y) {
        a = Softmax (x) b = Softmax (a) c = Unsqueeze <axes = [0]> (b) d = Squeeze <axes = [0]> (c) e = Neg (d) y = Elu (e) }"""
    assert conversions(model_from_text(text, 11), 21) == [
        Conversion("Neg", 6, 13, (), 1),
        Conversion("Softmax", 11, 13, ("Flatten", "Softmax", "Shape", "Reshape"), 2),
        Conversion("Squeeze", 11, 21, ("Squeeze",), 1),
        Conversion("Unsqueeze", 11, 21, ("Unsqueeze",), 1),
    ]


def test_what_did_not_change_is_not_listed():
    model = model_from_text("main (float[2] x) => (float[2] y) { y = Elu (x) }", 8)
    assert conversions(model, 21) == []
    assert conversions(model, 8) == []


def test_names_documentation_and_metadata_stay():
    text = "main (float[2,3,4] x) => (float[2,3,4] soft, float z) { soft = Softmax (x) z = ReduceSum <keepdims = 0, axes = [0, 1, 2]> (soft) }"
    model = model_from_text(text, 11)
    for node in model.graph.node:
        node.name, node.doc_string = f"/the/{node.op_type}:0", "documented"
        node.metadata_props.add(key="module", value="layer.1")
    model.graph.doc_string = "a graph"
    after = convert(model, 18)
    by_name = {node.name: node for node in after.graph.node}
    for name, op_type in (("/the/Softmax:0", "Softmax"), ("/the/ReduceSum:0", "ReduceSum")):
        assert (by_name[name].op_type, by_name[name].doc_string) == (op_type, "documented")
    assert all(node.metadata_props[0].value == "layer.1" for node in after.graph.node)
    assert after.graph.doc_string == "a graph"
    assert after.graph.input == model.graph.input
    assert after.graph.output == model.graph.output


def test_names_are_unique_and_the_invariants_hold():
    body = " ".join(
        f'"s.{i}" = Softmax ("s.{i - 1}") "const_{i}" = Squeeze <axes = [0]> (t{i}) t{i + 1} = Unsqueeze <axes = [0]> ("const_{i}")'
        for i in range(1, 6)
    )
    text = f'main (float[2,3,4] "s.0", float[1,2] t1) => (float[2,3,4] "s.5", float[1,2] t6) {{ {body} }}'
    model = model_from_text(text, 11)
    inner = loaded(model)
    convert_operators(inner, 26, Names(inner))
    check_invariants(inner, "the migration")
    feeds = {"s.0": X, "t1": np.float32([[1, 2]])}
    assert_same_numbers(ort_run(convert(model, 26), feeds), ort_run(model, feeds), rtol=1e-6)


def test_a_result_that_is_returned_and_read_and_captured_stays_one_value():
    text = """main (float[2,3,4] x, bool c) => (float[2,3,4] y, float[2,3,4] z) {
        y = Softmax (x)
        z = If (c) <then_branch = t () => (float[2,3,4] a) { a = Add (y, y) }, else_branch = e () => (float[2,3,4] b) { b = Softmax (y) }> }"""
    model = model_from_text(text, 11)
    for go in (True, False):
        feeds = {"x": X, "c": np.array(go)}
        assert_same_numbers(ort_run(convert(model, 26), feeds), ort_run(model, feeds), rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axis", "empty"),
    [("float[N,M,4]", 1, [[0, 3, 4], [2, 0, 4]]), ("float[N,3,4]", 2, [[0, 3, 4]]), ("float[2,M,4]", 0, [[2, 0, 4]])],
)
def test_a_softmax_over_several_axes_is_right_on_empty_inputs_at_opset_13(shape, axis, empty):
    model = model_from_text(f"main ({shape} x) => ({shape} y) {{ y = Softmax <axis = {axis}> (x) }}", 12)
    after = convert(model, 13)
    for size in (*empty, [2, 3, 4]):
        feeds = {"x": np.ones(size, np.float32)}
        assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


@pytest.mark.parametrize(("shape", "axis"), [("float[N,3,4]", 0), ("float[2,M,4,5]", 2), ("float[2,3,K]", 1)])
def test_a_softmax_over_several_axes_that_may_be_empty_is_refused_at_opset_13(shape, axis):
    model = model_from_text(f"main ({shape} x) => ({shape} y) {{ y = Softmax <axis = {axis}> (x) }}", 12)
    with pytest.raises(MigrationError, match="sizes of its input may be 0, which Reshape supports from opset 14 on"):
        convert(model, 13)
    assert convert(model, 14)


FUNCTION = """<ir_version: 10, opset_import: ["": 17, "my": 1]>
main (float[2,3,4] x) => (float y) { a = my.norm <kept = 1> (x) b = my.norm <kept = 1> (a) y = ReduceSum <keepdims = 0> (b) }"""
NORM = """<domain: "my", opset_import: ["": {opset}]> norm <kept> (x) => (y)
{{ m = ReduceMean <axes = [-1], keepdims: int = {kept}> (x) s = Softmax (x) y = {op} (s, m) }}"""


def function_model(opset: int = 11, kept: str = "@kept", op: str = "Mul") -> onnx.ModelProto:
    return model_from_text(FUNCTION + NORM.format(opset=opset, kept=kept, op=op), check=False)


def at_twelve(model: onnx.ModelProto) -> onnx.ModelProto:
    model.opset_import[0].version = 12
    return model


def test_a_function_is_converted_from_its_own_opset_and_kept():
    model = at_twelve(function_model())
    after = convert(model, 21)
    (function,) = after.functions
    assert [(one.domain, one.version) for one in function.opset_import] == [("", 21)]
    assert len([node for node in after.graph.node if node.op_type == "norm"]) == 2
    assert_same_numbers(ort_run(after, {"x": X}), ort_run(model, {"x": X}), rtol=1e-6)


def test_a_function_is_lowered_with_the_model():
    model = function_model(21, kept="1")
    model.functions[0].node[0].ClearField("attribute")
    model.opset_import[0].version = 20
    after = convert(model, 16)
    assert [one.version for one in (*after.functions[0].opset_import, after.opset_import[0])] == [16, 16]
    assert_same_numbers(ort_run(after, {"x": X}), ort_run(model, {"x": X}), rtol=1e-6)


def test_a_function_whose_operators_mean_something_else_in_the_model_is_refused():
    with pytest.raises(
        MigrationError, match="The function 'my::norm' has opset 11, and its Softmax means something else in the model's opset 17"
    ):
        convert(function_model(), 18)
    assert convert(function_model(13), 18)


def test_a_function_needs_inlining_only_where_a_rule_reads_its_parameter():
    harmless, read = loaded(at_twelve(function_model())), loaded(at_twelve(function_model()))
    (function,) = read.functions.values()
    softmax = next(node for node in function if node.op_type == "Softmax")
    softmax.attributes["axis"] = ir.RefAttr("axis", "kept", ir.AttributeType.INT)
    assert not needs_inlining(harmless, next(iter(harmless.functions.values())), 18)
    assert needs_inlining(read, function, 18)
    assert not needs_inlining(read, function, 12)
    with pytest.raises(
        MigrationError,
        match=r"Softmax '.*' cannot be lifted from opset 11 to 18: its attribute 'axis' refers to an attribute of the function",
    ):
        convert_operators(read, 18, Names(read))


def test_asking_whether_a_function_needs_inlining_changes_nothing():
    inner = loaded(function_model())
    before = ir.to_proto(inner).SerializeToString(deterministic=True)
    needs_inlining(inner, next(iter(inner.functions.values())), 18)
    assert ir.to_proto(inner).SerializeToString(deterministic=True) == before


def test_a_clip_in_a_function_needs_inlining_for_its_type():
    text = """<ir_version: 10, opset_import: ["": 17, "my": 1]> main (float[2] x) => (float[2] y) { y = my.f (x) }
        <domain: "my", opset_import: ["": 10]> f (x) => (y) { y = Clip <min = 0.0> (x) }"""
    inner = loaded(model_from_text(text, check=False))
    assert needs_inlining(inner, next(iter(inner.functions.values())), 17)


def test_a_call_of_a_function_that_is_named_like_an_operator_is_no_operator():
    text = """<ir_version: 10, opset_import: ["": 11]> main (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax (x) }
        <opset_import: ["": 11]> Softmax (x) => (y) { y = Neg (x) }"""
    after = convert(model_from_text(text, check=False), 18)
    assert [node.op_type for node in after.graph.node] == ["Softmax"]


def test_graphs_in_lists_and_in_other_domains_are_converted():
    inner = helper.make_graph(
        [helper.make_node("Squeeze", ["x"], ["q"], axes=[0])], "g", [], [helper.make_tensor_value_info("q", TensorProto.FLOAT, [3])]
    )
    other = helper.make_graph(
        [helper.make_node("Softmax", ["x"], ["w"])], "h", [], [helper.make_tensor_value_info("w", TensorProto.FLOAT, [1, 3])]
    )
    node = helper.make_node("Branches", ["x"], ["y"], domain="com.example")
    node.attribute.append(helper.make_attribute("cases", [inner, other]))
    node.attribute.append(helper.make_attribute("one", inner))
    graph = helper.make_graph(
        [node],
        "main",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
    )
    imports = [helper.make_opsetid("", 11), helper.make_opsetid("com.example", 1)]
    result = loaded(helper.make_model(graph, opset_imports=imports, ir_version=7))
    convert_operators(result, 18, Names(result))
    (branches,) = ir.to_proto(result).graph.node
    by_name = {attribute.name: attribute for attribute in branches.attribute}
    assert [len(one.node[0].input) for one in (*by_name["cases"].graphs[:1], by_name["one"].g)] == [2, 2]
    assert by_name["cases"].graphs[1].node[0].attribute[0].i == 1


def test_unknown_operators_and_other_domains_pass():
    text = """<ir_version: 7, opset_import: ["": 11, "com.microsoft": 1]>
        main (float[2] x) => (float[2] y) { a = com.microsoft.Gelu (x) y = ImageScaler <scale = 2.0> (a) }"""
    after = convert(model_from_text(text, check=False), 18)
    assert [node.op_type for node in after.graph.node] == ["Gelu", "ImageScaler"]
    assert {one.domain: one.version for one in after.opset_import} == {"": 18, "com.microsoft": 1}


def test_a_batched_scan_is_left_standing_and_its_body_converted():
    text = """main (float[2,3,1,4] x) => (float[2,3,4] y) {
        y = Scan <num_scan_inputs = 1, body = b (float[1,4] r) => (float[4] q) { q = Squeeze <axes = [0]> (r) }> (, x) }"""
    inner = loaded(model_from_text(text, 8, check=False))
    convert_operators(inner, 13, Names(inner))
    (scan,) = inner.graph
    assert is_scan_8_to_lift(scan, 8, 13)
    assert not is_scan_8_to_lift(scan, 9, 13)
    assert len(scan.attributes["body"].as_graph()[0].inputs) == 2


@pytest.mark.parametrize("target", [0, NEWEST + 1, -1])
def test_an_opset_nobody_knows_is_refused(target: int):
    with pytest.raises(MigrationError, match=f"opset {target} is not supported; choose one from 1 to {NEWEST}"):
        convert(model_from_text("main (float[2] x) => (float[2] y) { y = Neg (x) }", 13), target)


def test_types_that_an_operator_lost_are_not_taken_where_it_lost_them():
    model = model_from_text("main (int32[3] x) => (int32[1] y) { y = ReduceLogSum (x) }", 18)
    assert convert(model, 26)
    with pytest.raises(MigrationError, match=r"version 28 of it does not support 'data' of type tensor\(int32\)"):
        convert(model, 28)


def test_the_ir_version_is_raised_to_what_the_opset_demands_and_never_lowered():
    model = model_from_text("main (float[2] x) => (float[2] y) { y = Neg (x) }", 13, ir_version=7)
    assert [convert(model, target).ir_version for target in (13, 15, 21, 26)] == [7, 8, 10, 13]
    assert convert(model, 9).ir_version == 7


def test_weights_leave_the_list_of_inputs_when_ir_version_3_is_left():
    text = "main (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1.0, 2.0}> { y = Add (x, w) }"
    inner = loaded(model_from_text(text, 8, ir_version=3))
    inner.opset_imports[""] = 13
    raise_ir_version(inner)
    assert [value.name for value in inner.graph.inputs] == ["x"]
    assert (inner.ir_version, list(inner.graph.initializers)) == (7, ["w"])
