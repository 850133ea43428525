import onnx_ir as ir

from rewrites.graph.values import through_identity


def test_a_copy_is_followed_to_what_it_copies() -> None:
    source = ir.Value(name="x")
    one = ir.Node("", "Identity", [source], num_outputs=1)
    other = ir.Node("", "Identity", [one.outputs[0]], num_outputs=1)
    assert through_identity(other.outputs[0]) is source


def test_a_copy_of_nothing_is_itself() -> None:
    node = ir.Node("", "Identity", [], num_outputs=1)
    assert through_identity(node.outputs[0]) is node.outputs[0]
    assert through_identity(ir.Node("", "Identity", [None], num_outputs=1).outputs[0]) is None
