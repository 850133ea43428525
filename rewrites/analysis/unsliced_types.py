"""Refuses loops over element types that Slice, Gather, Expand or Concat of the opset do not support.

Examples are float8 and types of 4 bits. Rules can neither slice nor join values of such a type. Therefore a loop is refused in
three cases:

- A state has such a type. Its values could not be stacked.
- A stacked result that has such a type is loop-invariant. It could not be repeated.
- A scanned or stacked tensor that has such a type is reversed, or does not have the steps as axis 0.
"""

import functools
from collections.abc import Iterable

import onnx
import onnx_ir as ir

from rewrites.analysis.dependence import varying_values
from rewrites.base import since
from rewrites.base.not_applicable import NotApplicable
from rewrites.loops import Loop, ScanView

__all__ = ["unscanned", "unsliced", "unsliced_among"]

_ON_SEQUENCES = ("Concat", "Expand", "Gather", "Slice")
_NO_NUMBERS = (ir.DataType.STRING, ir.DataType.UNDEFINED)
_PACKED = frozenset(kind for kind in ir.DataType if kind not in _NO_NUMBERS and kind.bitwidth < 8)


def unsliced_among(values: Iterable[ir.Value], opset: int) -> NotApplicable | None:
    """Return a reason if ``opset`` cannot slice or join the element type of one of ``values``, else None."""
    for value in values:
        if value.dtype is not None and not _is_sliced(value.dtype, opset):
            return NotApplicable("ELEMENT-TYPE", f"'{value.name}' holds {value.dtype.name.lower()}")
    return None


def unscanned(value: ir.Value) -> NotApplicable | None:
    """Return a reason if several elements of ``value`` share a byte. No loop can scan or stack them."""
    if value.dtype is None or value.dtype not in _PACKED:
        return None
    return NotApplicable("ELEMENT-TYPE", f"'{value.name}' holds {value.dtype.name.lower()}")


@functools.cache
def _is_sliced(kind: ir.DataType, opset: int) -> bool:
    schemas = [onnx.defs.get_schema(op_type, max(opset, since.EXPAND)) for op_type in _ON_SEQUENCES]
    said = f"tensor({kind.name.lower()})"
    return all(said in constraint.allowed_type_strs for schema in schemas for constraint in schema.type_constraints[:1])


def unsliced(loop: Loop, opset: int) -> NotApplicable | None:
    """Return a reason if rewriting ``loop`` would slice or join values whose type does not support it."""
    values = [state.inner for state in loop.states]
    if isinstance(loop, ScanView):
        values += [scan.inner for scan in loop.scan_inputs if scan.axis or scan.reverse]
    moving = varying_values(loop.body, loop.body.inputs)
    values += [output.inner for output in loop.scan_outputs if output.axis or output.reverse or output.inner not in moving]
    return unsliced_among(values, opset)
