"""Loops over elements that operators on sequences do not know: no Slice, Gather or Concat takes float8, or four bits.

What a loop carries, scans or stacks in such a type cannot be taken apart along the steps, so such loops are left.
"""

import onnx_ir as ir

from rewrites.loops import Loop, ScanView
from rewrites.not_applicable import NotApplicable

__all__ = ["unsliced"]

_UNSLICED = ("FLOAT8", "FLOAT4", "INT4", "UINT4", "INT2", "UINT2")


def unsliced(loop: Loop) -> NotApplicable | None:
    """Give the refusal of a loop that carries, scans or stacks elements which can be neither sliced nor joined."""
    values = [state.inner for state in loop.states] + [output.inner for output in loop.scan_outputs]
    if isinstance(loop, ScanView):
        values += [scan.inner for scan in loop.scan_inputs] + [scan.outer for scan in loop.scan_inputs]
    for value in values:
        if isinstance(value.dtype, ir.DataType) and value.dtype.name.startswith(_UNSLICED):
            return NotApplicable("ELEMENT-TYPE", f"'{value.name}' holds {value.dtype.name.lower()}")
    return None
