"""Shapes found while a rule only looks: they are put aside, and put into the model where its patch is made."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import onnx_ir as ir

__all__ = ["LearnedShapes", "put_shapes", "shapes_kept", "shapes_of", "taken_back", "told_anew"]

LearnedShapes = Mapping[ir.Value, ir.Shape | None]


def shapes_of(values: Iterable[ir.Value]) -> dict[ir.Value, ir.Shape | None]:
    """Return the shapes that ``values`` have now."""
    return {value: value.shape for value in values}


def taken_back(before: LearnedShapes) -> dict[ir.Value, ir.Shape | None]:
    """Return values the shapes they had ``before``; return those that had become others, as they had become."""
    learned = {value: value.shape for value, shape in before.items() if value.shape is not shape}
    put_shapes({value: before[value] for value in learned})
    return learned


def put_shapes(shapes: LearnedShapes) -> None:
    """Give values the ``shapes``."""
    for value, shape in shapes.items():
        value.shape = shape


@contextmanager
def shapes_kept(values: Iterable[ir.Value]) -> Iterator[dict[ir.Value, ir.Shape | None]]:
    """Let ``values`` have their shapes of now again in the end: those that are given, to which more may be added on the way."""
    before = shapes_of(values)
    try:
        yield before
    finally:
        put_shapes(before)


def told_anew(node: ir.Node, infer: Callable[[ir.Node], None]) -> dict[ir.Value, ir.Shape | None]:
    """Return the shapes that ``infer`` tells of the results of ``node`` where none is known; they keep those they have."""
    with shapes_kept(node.outputs):
        put_shapes(dict.fromkeys(node.outputs))
        infer(node)
        return shapes_of(node.outputs)
