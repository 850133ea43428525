"""Loops over elements that operators on sequences do not know: no Slice, Gather or Concat takes float8, or four bits.

A state of such a type cannot be taken along the steps, nor a sequence be turned round, or have its steps along another axis than
the first. Sequences that are only computed from, or given, for all steps at once do no harm.
"""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.loops import Loop, ScanView
from rewrites.not_applicable import NotApplicable

__all__ = ["unsliced", "unsliced_among"]

_UNSLICED = ("FLOAT8", "FLOAT4", "INT4", "UINT4", "INT2", "UINT2")


def unsliced_among(values: Iterable[ir.Value]) -> NotApplicable | None:
    """Give the refusal of the first of ``values`` that holds elements which can be neither sliced nor joined."""
    for value in values:
        if value.dtype is not None and value.dtype.name.startswith(_UNSLICED):
            return NotApplicable("ELEMENT-TYPE", f"'{value.name}' holds {value.dtype.name.lower()}")
    return None


def unsliced(loop: Loop) -> NotApplicable | None:
    """Give the refusal of a loop that would have to be taken apart where its elements can be neither sliced nor joined."""
    values = [state.inner for state in loop.states]
    if isinstance(loop, ScanView):
        values += [scan.inner for scan in loop.scan_inputs if scan.axis or scan.reverse]
    values += [output.inner for output in loop.scan_outputs if output.axis or output.reverse]
    return unsliced_among(values)
