"""Shapes found while a rule only looks: they are put aside, and put into the model where its patch is made."""

from collections.abc import Iterable, Mapping

import onnx_ir as ir

__all__ = ["LearnedShapes", "put_shapes", "shapes_of", "taken_back"]

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
