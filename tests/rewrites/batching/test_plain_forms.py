"""What models may leave unsaid, written out: `rewrites.ops.versions.plain_forms`."""

import onnx
import onnx_ir as ir
import pytest

from rewrites.analysis.shapes.inference import infer_model
from rewrites.graph.builder import Builder, ConstantPool
from rewrites.graph.names import Names
from rewrites.ops.versions import make_range_inputs_scalars, remove_trailing_absent_inputs, set_onesided


def _model(nodes: str, inputs: str, outputs: str) -> ir.Model:
    text = f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => ({outputs}) {{ {nodes} }}'
    return ir.from_proto(onnx.parser.parse_model(text))


def test_a_spectrum_says_that_it_is_one_sided() -> None:
    both = "y = STFT (x, s, , n) z = STFT <onesided=0> (x, s, , n)"
    model = _model(both, "float[1, 24, 1] x, int64 s, int64 n", "float[A, B, C, D] y, float[E, F, G, H] z")
    set_onesided(model.graph)
    assert [node.attributes.get_int("onesided") for node in model.graph] == [1, 0]


def test_one_element_becomes_a_scalar_only_where_it_is_known_to_be_one() -> None:
    model = _model("y = Range (a, b, c)", "int64 a, int64[1] b, int64[N] c", "int64[K] y")
    infer_model(model)
    names = Names(model)
    constants = ConstantPool(model.graph, names)
    make_range_inputs_scalars(model.graph, lambda: Builder(names, constants, model.opset_imports, 8))
    assert [node.op_type for node in model.graph] == ["Squeeze", "Range"]
    (_, node) = model.graph
    assert [value.producer() is not None for value in node.inputs if value is not None] == [False, True, False]


@pytest.mark.parametrize(
    ("before", "count"), [("LayerNormalization (x, w)", 2), ("Clip (x)", 1), ("Clip (x, , w)", 3), ("Loop <body = BODY> (m)", 2)]
)
def test_absent_inputs_at_the_end_are_left_out_where_they_may_be(before: str, count: int) -> None:
    body = "b (int64 i, bool c) => (bool c1, float s) { c1 = Identity (c) s = Cast <to = 1> (i) }"
    model = _model(f"y = {before.replace('BODY', body)}", "float[3] x, float[3] w, int64 m", "float[N] y")
    model.graph[0].resize_inputs(3)
    remove_trailing_absent_inputs(model.graph, 17)
    assert len(model.graph[0].inputs) == count
