"""Before version 12 a Constant holds a tensor.

Constant <value_ints = [1, 2]> ()  ->  Constant <value = int64[2] {1, 2}> ()
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = ["value_as_tensor"]

_OTHERS = ("value_int", "value_ints", "value_float", "value_floats", "value_string", "value_strings")


def value_as_tensor(step: Step) -> Sequence[ir.Value] | None:
    """12 -> 11."""
    if not any(step.has(name) for name in _OTHERS):
        return None
    tensor = ir.convenience.get_const_tensor(step.node.outputs[0])
    if tensor is None:
        raise Unconvertible("its value cannot be read")
    return step.like(**dict.fromkeys(_OTHERS), value=tensor)
