"""A value takes another's place without a public name, type or shape changing."""

import onnx
import onnx_ir as ir
import pytest

from rewrites.graph.names import Names
from rewrites.graph.replace import can_copy, dequantize_outside, replace_output, replace_value, take_over
from tests.rewrites.apply import read
from tests.support.text import assert_text_equal


def named(text: str) -> tuple[ir.Model, dict[str, ir.Value], Names]:
    model = ir.from_proto(read(text))
    graph = model.graph
    values = [*graph.inputs, *graph.initializers.values(), *(value for node in graph.all_nodes() for value in node.outputs)]
    return model, {value.name or "": value for value in values}, Names(model)


CHAIN = "g (float[2] x) => (float[2] y) { a = Exp (x) b = Neg (x) y = Tanh (a) }"


def test_every_use_reads_the_new_value() -> None:
    model, values, names = named(
        "g (float[2] x, bool t) => (float[2] y, float[2] z) { a = Exp (x) b = Neg (x) y = Mul (a, a) "
        "z = If (t) <then_branch = p () => (float[2] u) { u = Abs (a) }, else_branch = q () => (float[2] v) { v = Add (a, b) }> }"
    )
    replace_value(values["a"], values["b"], names)
    assert not values["a"].uses()
    assert_text_equal(
        model,
        "g (float[2] x, bool t) => (float[2] y, float[2] z) { a = Exp (x) b = Neg (x) y = Mul (b, b) "
        "z = If (t) <then_branch = p () => (float[2] u) { u = Abs (b) }, else_branch = q () => (float[2] v) { v = Add (b, b) }> }",
    )


def test_a_result_takes_an_outputs_place_name_type_and_shape() -> None:
    model, values, names = named("g (float[T] x) => (float[T] y) { a = Exp (x) y = Tanh (a) }")
    values["a"].shape = None
    replace_value(values["y"], values["a"], names)
    (output,) = model.graph.outputs
    assert output is values["a"]
    assert (output.name, output.dtype, str(output.shape)) == ("y", ir.DataType.FLOAT, "[T]")
    assert values["y"].name != "y"
    assert not values["y"].is_graph_output()


@pytest.mark.parametrize("new", ["x", "w", "z"], ids=["an input", "an initializer", "another output"])
def test_what_cannot_stand_there_itself_is_copied(new: str) -> None:
    model, values, names = named(
        "g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> { a = Add (x, w) y = Tanh (a) z = Neg (a) }"
    )
    replace_value(values["y"], values[new], names)
    assert [value.name for value in model.graph.outputs] == ["y", "z"]
    producer = model.graph.outputs[0].producer()
    assert producer is not None
    assert (producer.op_type, producer.inputs[0]) == ("Identity", values[new])
    assert values[new].name == new


def test_an_outer_value_returned_by_a_body_is_copied_in_the_body() -> None:
    model, values, names = named(
        "g (float[2] x, bool t) => (float[2] z) { a = Exp (x) "
        "z = If (t) <then_branch = p () => (float[2] u) { u = Abs (a) }, else_branch = q () => (float[2] v) { v = Neg (a) }> }"
    )
    body = values["u"].graph
    replace_value(values["u"], values["a"], names)
    assert isinstance(body, ir.Graph)
    assert body.outputs[0].graph is body
    assert body.outputs[0].name == "u"
    assert [node.op_type for node in body] == ["Abs", "Identity"]
    assert len(model.graph) == 2


def test_what_is_returned_twice_stays_returned_twice() -> None:
    model, values, names = named(CHAIN)
    model.graph.outputs.append(values["y"])
    replace_output(values["y"], values["b"], names)
    assert [value is values["b"] for value in model.graph.outputs] == [True, True]
    assert values["b"].name == "y"


def test_an_output_that_is_also_read_is_read_under_its_name() -> None:
    model, values, names = named("g (float[2] x) => (float[2] y, float[2] z) { a = Exp (x) y = Tanh (a) z = Neg (y) }")
    replace_value(values["y"], values["a"], names)
    assert_text_equal(model, "g (float[2] x) => (float[2] y, float[2] z) { y = Exp (x) z = Neg (y) d = Tanh (y) }")


def test_a_value_takes_over_name_type_and_shape_of_an_inner_one() -> None:
    _, values, names = named(CHAIN)
    values["a"].shape = ir.Shape([2])
    values["b"].shape = None
    values["b"].type = None
    take_over(values["a"], values["b"], names)
    assert (values["b"].name, values["a"].name) == ("a", "b")
    assert (values["b"].dtype, str(values["b"].shape)) == (values["a"].dtype, "[2]")


def test_what_is_known_is_not_forgotten_where_the_old_value_knows_nothing() -> None:
    _, values, names = named(CHAIN)
    values["a"].shape, values["a"].type = None, None
    values["b"].shape, values["b"].type = ir.Shape([2]), ir.TensorType(ir.DataType.FLOAT)
    take_over(values["a"], values["b"], names)
    assert (values["b"].dtype, str(values["b"].shape)) == (ir.DataType.FLOAT, "[2]")


@pytest.mark.parametrize(
    ("kind", "since"),
    [
        (ir.TensorType(ir.DataType.STRING), 1),
        (ir.SequenceType(ir.TensorType(ir.DataType.FLOAT)), 14),
        (ir.OptionalType(ir.TensorType(ir.DataType.FLOAT)), 16),
        (None, 16),
    ],
    ids=["tensor", "sequence", "optional", "unknown"],
)
def test_identity_takes_each_kind_of_value_since_its_own_opset(kind: ir.TypeProtocol | None, since: int) -> None:
    value = ir.Value(name="v", type=kind)
    assert [can_copy(value, opset) for opset in (1, 13, 14, 15, 16, 25)] == [since <= opset for opset in (1, 13, 14, 15, 16, 25)]


DEQUANTIZED = """<ir_version: 10, opset_import: ["": 21]>
g (float[2] s, float[T, 2] x) => (float[2] z) <uint8[2, 2] w = {164, 175, 125, 105}, float each = {0.02}> {
    z = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] xt) => (float[2] h1) {
        ZERO d = DequantizeLinear (w, each, zero) p = MatMul (h, d) h1 = Add (p, xt) }> (s, x) }"""


@pytest.mark.parametrize(
    ("zero", "operators"),
    [
        ("zero = Constant <value = uint8 {130}> ()", ["Constant", "DequantizeLinear", "Scan"]),
        ("q = Cast <to = 2> (xt) c = Constant <value_ints = [0]> () zero = ReduceMax <keepdims = 0> (q, c)", ["Scan"]),
    ],
)
def test_constants_are_dequantized_outside_a_body(zero: str, operators: list[str]) -> None:
    model = ir.from_proto(onnx.parser.parse_model(DEQUANTIZED.replace("ZERO", zero)))
    (scan,) = model.graph
    dequantize_outside(scan.attributes["body"].as_graph(), model.graph, Names(model))
    assert [node.op_type for node in model.graph] == operators
    onnx.checker.check_model(ir.to_proto(model), full_check=True)


@pytest.mark.parametrize(("scale", "outside"), [("each", False), ("given", True)])
def test_constants_stay_if_onnxruntime_multiplies_them_as_integers(scale: str, outside: bool) -> None:
    text = (
        DEQUANTIZED.replace("float[2] s,", "float[2] s, float given,").replace("ZERO", "").replace("(w, each, zero)", "(w, each)")
    )
    text = text.replace("p = MatMul (h, d)", f"q = QuantizeLinear (h, {scale}) e = DequantizeLinear (q, {scale}) p = MatMul (e, d)")
    model = ir.from_proto(onnx.parser.parse_model(text))
    dequantize_outside(model.graph[-1].attributes["body"].as_graph(), model.graph, Names(model))
    assert [node.op_type for node in model.graph] == (["DequantizeLinear"] if outside else []) + ["Scan"]
