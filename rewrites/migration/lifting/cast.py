"""Cast names its type by number in version 6.

Cast <to = "FLOAT"> (x)  ->  Cast <to = 1> (x)
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = ["type_by_number"]


def type_by_number(step: Step) -> Sequence[ir.Value] | None:
    """Replace the type's name by its number."""
    name = step.string("to", "")
    if name.upper() not in ir.DataType.__members__:
        raise Unconvertible(f"its attribute 'to' is '{name}', which is no element type")
    return step.like(to=int(ir.DataType[name.upper()]))
