"""Outputs with sizes that inference does not confirm are read before they declare them."""

import onnx_ir as ir
import pytest

from rewrites.tidy.declared_outputs import detach_unproven_outputs
from tests.rewrites.apply import prepared

TEXT = """<ir_version: 10, opset_import: ["": 18]>
main (float[N,2] x) => (float[N,2] y, int64[2] n) { y = Tanh (x) n = Shape (y) }"""


@pytest.mark.parametrize(
    ("declared", "operators"),
    [(["N", 2], "Tanh Shape"), ([None, 2], "Tanh Shape"), ([3, 2], "Tanh Shape Identity"), ([1], "Tanh Shape Identity")],
)
def test_an_output_is_read_before_it_declares_an_unproven_size(declared, operators):
    ctx = prepared(TEXT)
    detach_unproven_outputs(ctx, {"y": ir.Shape(declared)})
    graph = ctx.model.graph
    assert " ".join(node.op_type for node in graph) == operators
    assert [value.name for value in graph.outputs] == ["y", "n"]
    assert (graph[1].inputs[0] is graph.outputs[0]) == (operators == "Tanh Shape")


def test_an_output_that_no_node_reads_stays_as_it_is():
    ctx = prepared(TEXT.replace("Shape (y)", "Shape (x)"))
    detach_unproven_outputs(ctx, {"y": ir.Shape([3, 2])})
    assert [node.op_type for node in ctx.model.graph] == ["Tanh", "Shape"]
