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
from rewrites.graph.type_names import type_name
from rewrites.loops import Loop, ScanView

__all__ = ["unscannable", "unsliceable_among", "unsliceable_in_loop"]

_ON_SEQUENCES = ("Concat", "Expand", "Gather", "Slice")
_NO_NUMBERS = (ir.DataType.STRING, ir.DataType.UNDEFINED)
_PACKED = frozenset(kind for kind in ir.DataType if kind not in _NO_NUMBERS and kind.bitwidth < 8)


def unsliceable_among(values: Iterable[ir.Value], opset: int) -> NotApplicable | None:
    """Return a reason if the type of one of ``values`` cannot be sliced or joined in ``opset``, else None."""
    for value in values:
        if value.dtype is not None and not _is_sliceable(value.dtype, opset):
            return NotApplicable("ELEMENT-TYPE", f"'{value.name}' holds {type_name(value.dtype)}")
    return None


def unscannable(value: ir.Value) -> NotApplicable | None:
    """Return a reason if no loop can scan or stack ``value``: several of its elements share a byte."""
    if value.dtype is None or value.dtype not in _PACKED:
        return None
    return NotApplicable("ELEMENT-TYPE", f"'{value.name}' holds {type_name(value.dtype)}")


@functools.cache
def _is_sliceable(kind: ir.DataType, opset: int) -> bool:
    schemas = [onnx.defs.get_schema(op_type, max(opset, since.EXPAND)) for op_type in _ON_SEQUENCES]
    said = f"tensor({kind.name.lower()})"
    return all(said in constraint.allowed_type_strs for schema in schemas for constraint in schema.type_constraints[:1])


def unsliceable_in_loop(loop: Loop, opset: int) -> NotApplicable | None:
    """Return a reason if a rewrite of ``loop`` would slice or join values of an unsupported type.

    Return None if all types are supported in ``opset``.
    """
    values = [state.inner for state in loop.states]
    if isinstance(loop, ScanView):
        values += [scan.inner for scan in loop.scan_inputs if scan.axis or scan.reverse]
    moving = varying_values(loop.body, loop.body.inputs)
    values += [output.inner for output in loop.scan_outputs if output.axis or output.reverse or output.inner not in moving]
    return unsliceable_among(values, opset)
