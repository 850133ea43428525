"""Vectors that onnx would follow element by element, too long for that, are seen before it is asked to."""

import onnx
import onnx_ir as ir
import pytest

from ortscan.running import joined_vectors
from rewrites.analysis.shapes.long_vectors import has_long_vectors

MANY = 1 << 40
DOUBLING = " ".join(f"v{i + 1} = Concat <axis = 0> (v{i}, v{i})" for i in range(24))
DOUBLING_IFS = " ".join(
    f"v{i + 1} = If (p) <then_branch = a{i} () => (float[N] t{i}) {{ t{i} = Concat <axis = 0> (v{i}, v{i}) }},"
    f" else_branch = b{i} () => (float[N] e{i}) {{ e{i} = Neg (v{i}) }}>"
    for i in range(24)
)
LEAF = '<domain: "f", opset_import: ["": 18]> F24 (x) => (y) { y = Neg (x) }'
CALLS = "\n".join(
    f'<domain: "f", opset_import: ["": 18, "f": 1]> F{k} (x) => (y) {{ a = f.F{k + 1} (x) y = Concat <axis = 0> (a, a) }}'
    for k in range(24)
)
LONG = {
    "an axis": (f"y = Identity (x{MANY})", ""),
    "a chain of Concats": (f"v0 = Identity (x) {DOUBLING} y = Identity (v24)", ""),
    "a chain through Ifs": (f"v0 = Identity (x) {DOUBLING_IFS} y = Identity (v24)", ""),
    "a chain through functions": ("y = f.F0 (x)", f"{CALLS}\n{LEAF}"),
    "functions that nothing calls": ("y = Neg (x)", f"{CALLS}\n{LEAF}"),
    "a constant size": (f"s = Constant <value_ints = [{MANY}]> () y = ConstantOfShape (s)", ""),
    "a computed size": (f"s = Constant <value_ints = [{1 << 20}]> () t = Mul (s, s) y = ConstantOfShape (t)", ""),
    "a size of a value": (f"s = Constant <value_ints = [{MANY}]> () c = ConstantOfShape (s) t = Shape (c) y = Expand (x, t)", ""),
    "a cast size": ("s = Constant <value = float[1] {1e12}> () t = Cast <to = 7> (s) y = ConstantOfShape (t)", ""),
    "a Tile": (f"s = Constant <value_ints = [{MANY}]> () y = Tile (x, s)", ""),
    "a Range backwards": (
        f"z = Constant <value_int = 0> () d = Constant <value_int = -1> () e = Constant <value_int = {-MANY}> () y0 = Range (z, e, d)"
        " y = Cast <to = 1> (y0)",
        "",
    ),
    "a Pad": (f"s = Constant <value_ints = [0, {MANY}]> () y = Pad (x, s)", ""),
}
SHORT = {
    "few Concats": ("a = Concat <axis = 0> (x, x) y = Concat <axis = 0> (a, a)", ""),
    "free sizes": ("s = Shape (x) t = Mul (s, s) u = Mul (t, t) y = ConstantOfShape (u)", ""),
    "small numbers": ("s = Constant <value_ints = [1000]> () y = ConstantOfShape (s)", ""),
    "a large number that is no size": (f"s = Constant <value_int = {MANY}> () t = Cast <to = 1> (s) y = Mul (x, t)", ""),
    "a function that calls itself": ("y = f.F (x)", '<domain: "f", opset_import: ["": 18, "f": 1]> F (x) => (y) { y = f.F (x) }'),
}


@pytest.mark.parametrize("what", [*LONG, *SHORT])
def test_what_is_too_long_is_seen_in_both_forms_of_a_model(what: str) -> None:
    nodes, functions = {**LONG, **SHORT}[what]
    inputs = f"float[N] x, bool p, float[{MANY}] x{MANY}"
    text = f'<ir_version: 10, opset_import: ["": 18, "f": 1]> g ({inputs}) => (float[M] y) {{ {nodes} }} {functions}'
    if what != "an axis":
        text = text.replace(f", float[{MANY}] x{MANY}", "")
    proto = onnx.parser.parse_model(text)
    model = ir.from_proto(proto)
    assert has_long_vectors(model.graph, model.functions) is (what in LONG)
    assert joined_vectors.has_long_vectors(proto) is (what in LONG)


def layers(size: str, joined: str, between: str = "") -> onnx.ModelProto:
    """Nine layers, each of which takes its 8 steps apart and joins them again."""
    nodes = []
    for at in range(9):
        steps = [f"s{at}_{k} = Slice (v{at}, k{k}, k{k + 1}, k0)" for k in range(8)]
        each = ", ".join(f"s{at}_{k}" for k in range(8))
        nodes.append(f"{' '.join(steps)} w{at} = Concat <axis = {joined}> ({each}) {between.format(at)} v{at + 1} = Tanh (w{at})")
    constants = ", ".join(f"int64[1] k{k} = {{{k}}}" for k in range(9))
    text = f"g (float[8, {size}] v0, int64[2] shape) => (float[A, C] v9) <{constants}> {{ {' '.join(nodes)} }}"
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> {text}')


@pytest.mark.parametrize("size", ["3", "B"])
def test_steps_that_are_joined_again_and_again_are_not_endless(size: str) -> None:
    assert joined_vectors.oversized_concats(layers(size, "0")) == []


@pytest.mark.parametrize("size", ["3", "B"])
def test_steps_that_are_joined_along_another_axis_are_endless_once_they_are_many(size: str) -> None:
    assert joined_vectors.oversized_concats(layers(size, "1", "x{0} = Concat <axis = 0> (w{0}, w{0})")) != []


def test_what_a_model_says_of_its_sizes_is_not_believed() -> None:
    proto = layers("B", "0")
    for node in (node for node in proto.graph.node if node.op_type == "Tanh"):
        node.op_type = "Reshape"
        node.input.append("shape")
        proto.graph.value_info.append(onnx.helper.make_tensor_value_info(node.output[0], onnx.TensorProto.FLOAT, [8, 1]))
    assert joined_vectors.oversized_concats(proto) != []
