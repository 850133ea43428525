"""Shapes that are only tried leave the values as they were."""

import onnx_ir as ir
import pytest

from rewrites.graph.node_inference import infer_afresh, restore_shapes, shapes_kept, shapes_of


def value(name: str, *dims: int | str | None) -> ir.Value:
    return ir.Value(name=name, shape=ir.Shape(dims))


def test_shapes_come_back_whatever_happens_and_more_may_be_added() -> None:
    one, other = value("a", 2), value("b", 3)
    first, second = one.shape, other.shape

    def forget() -> None:
        with shapes_kept([one]) as before:
            before[other] = other.shape
            one.shape, other.shape = None, ir.Shape(["N"])
            raise KeyError

    with pytest.raises(KeyError):
        forget()
    assert one.shape is first
    assert other.shape is second


def test_what_was_learned_is_told_once_it_is_taken_back() -> None:
    one, other = value("a", 2), value("b", None)
    before = shapes_of([one, other])
    other.shape = ir.Shape([4])
    assert restore_shapes(before) == {other: [4]}
    assert shapes_of([one, other]) == before


def test_a_node_is_asked_as_if_nothing_were_known_of_its_results() -> None:
    node = ir.Node("", "Neg", [value("x", 2)], outputs=[value("y", 7)])
    seen = list[object]()

    def infer(one: ir.Node) -> None:
        seen.append(one.outputs[0].shape)
        one.outputs[0].shape = ir.Shape([2])

    assert infer_afresh(node, infer) == {node.outputs[0]: [2]}
    assert seen == [None]
    assert node.outputs[0].shape == [7]
